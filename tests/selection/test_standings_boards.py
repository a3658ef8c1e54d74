"""Standings of real boards, of the demonstration whose truth is known, and of a large board."""

import csv
import json
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy import stats

from analytics.flat_file import read
from analytics.record import Counting, Record
from analytics.simulation import demonstration, flat_rows
from selection.rules import Rules
from selection.schema.board import Standings
from selection.standings import answer
from tests.selection.records import NAN, board, by_name, record_of

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
PUBLISHED = {  # complete agents, tasks, tasks of the band; of the published matrices
    "hal_gaia": (32, 165, 82),
    "hal_corebench_hard": (38, 45, 15),
    "hal_taubench_airline": (26, 50, 28),
    "swebench_verified_2023_2025": (57, 500, 153),
}


def answered(path, rules=None):
    rules = rules or Rules()
    return answer(Record.from_flat(read(path, as_of=AS_OF), rules.counting), rules)


def test_cumulative_trials_are_one_trial_of_every_interval(tmp_path):
    """As on ALFWorld: 6 agents, 15 trials of 134 tasks, none ever goes back; by hand SE² = ȳ(1 − ȳ)/134."""
    rng = np.random.default_rng(1)
    lines, means = ["benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"], {}
    for i in range(6):
        first = rng.geometric(0.1 + 0.1 * i, 134)
        passes = np.arange(1, 16) >= first[:, None]
        means[f"a{i}"] = passes.mean()
        lines += [f"B,a{i},s,m{i},,t{j:03d},{t + 1},{passes[j, t]:d}" for j in range(134) for t in range(15)]
    path = tmp_path / "alf.csv"
    path.write_text("\n".join(lines) + "\n")
    found = answered(path)
    for line in found.agents:
        told, y = line.at["full"], means[line.agent]
        assert told.score == pytest.approx(y, abs=1e-12)
        assert (told.se, told.upper_bound) == (pytest.approx(np.sqrt(y * (1 - y) / 134)), True)
        assert line.marks == ("flagged",)
        assert line.flags[0].startswith("its trials are cumulative, not repeats: none of the ")
        assert (line.icc["icc"], line.icc["reason"]) == (None, f"not measured: {line.flags[0]}")


@pytest.mark.parametrize("name", PUBLISHED)
def test_boards_of_full_runs(real_data, real_rows, name):
    n_complete, n_tasks, k = PUBLISHED[name]
    found = answered(real_data / f"{name}.csv.gz")
    assert (found.n_complete, found.n_tasks, found.subset.size) == (n_complete, n_tasks, k)
    assert {line.how for line in found.agents} <= {"measured", "completed"}
    cells = {}
    for row in real_rows(name):
        if row.get("valid", "1") == "1":
            cells.setdefault((row["agent"], row["task"]), []).append(float(row["outcome"]))
    for line in found.agents:
        own = [np.mean(values) for (agent, _), values in cells.items() if agent == line.agent]
        if len(own) == n_tasks:
            assert line.at["full"].score == pytest.approx(np.mean(own), abs=1e-12)
        on_subset = [
            np.mean(cells[line.agent, task]) for task in found.subset.tasks if (line.agent, task) in cells
        ]
        if len(on_subset) == k:
            assert line.at["subset"].score == pytest.approx(np.mean(on_subset), abs=1e-12)
    for target, told in found.targets.items():
        n_pairs = n_complete * (n_complete - 1) / 2
        assert stats.t.ppf(0.975, told.n_tasks - 1) <= told.critical
        if told.n_tasks >= 50:  # on fewer tasks the statistic is far from normal
            assert told.critical <= stats.t.ppf(1 - 0.025 / n_pairs, told.n_tasks - 1) * 1.1
        assert told.n_ranked == n_complete, target
    assert Standings.of_plain(json.loads(json.dumps(found.as_plain(), allow_nan=False))) == found


def test_a_board_without_a_band(real_data):
    found = answered(real_data / "hal_scicode.csv.gz")
    assert (found.phase, found.subset, found.target) == ("unsuited", None, "full")
    assert found.targets["full"].critical == found.targets["domain"].critical


def test_a_board_on_which_trials_were_lost(real_data):
    """Six of thirteen agents lost over 5% of their trials; as failures all are ranked."""
    path = real_data / "terminal_bench_core_011.csv.gz"
    found = answered(path, Rules(counting=Counting(missing="gap")))
    n_lost = sum("more than 5%" in line.at["domain"].reason for line in found.agents)
    assert (found.n_complete, n_lost) == (7, 6)
    assert (found.targets["full"].n_ranked, found.next_step) == (0, "missing=zero_loaded")
    zero = answered(path, Rules(counting=Counting(missing="zero")))
    assert (zero.n_complete, zero.targets["full"].n_ranked) == (13, 13)
    assert answered(path).as_plain() == zero.as_plain()
    for line in found.agents:
        low, high = line.at["full"].bounds or (0, 1)
        assert low - 1e-12 <= by_name(zero)[line.agent].at["full"].score <= high + 1e-12


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demonstration, and its record from a file with the rows in another order."""
    simulated = demonstration()
    columns = flat_rows(simulated)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    folder = tmp_path_factory.mktemp("demo")
    orders = {"given": range(len(rows)), "shuffled": np.random.default_rng(1).permutation(len(rows))}
    found = {}
    for name, order in orders.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(columns))
            writer.writeheader()
            writer.writerows(rows[i] for i in order)
        found[name] = answered(folder / f"{name}.csv")
    return simulated, found


def test_the_order_of_rows_leaves_no_trace(demo):
    _, found = demo
    assert found["given"] == found["shuffled"]


def test_the_truth_lies_in_the_rank_intervals_of_the_demonstration(demo):
    """Where true scores are equal or near, no order is claimed that is not there."""
    simulated, found = demo
    truth = dict(zip(simulated.agents, simulated.probabilities.mean(axis=1), strict=True))
    board = found["given"]
    ranked = [line for line in board.agents if line.at["full"].rank is not None]
    for line in ranked:
        true_rank = 1 + sum(truth[other.agent] > truth[line.agent] + 1e-12 for other in ranked)
        n_tied = sum(abs(truth[other.agent] - truth[line.agent]) <= 1e-12 for other in ranked)
        told = line.at["full"]
        assert told.rank_lower <= true_rank + n_tied - 1
        assert told.rank_upper >= true_rank
    best = max(ranked, key=lambda line: truth[line.agent]).agent
    assert best in board.targets["full"].may_be_first


def test_the_demonstration_says_what_it_can(demo):
    board = demo[1]["given"]
    assert board.subset is not None
    assert sum(line.how == "incomplete" for line in board.agents) >= 1
    assert board.savings["per_run"]["median"] > 0
    assert any(line.icc["icc"] is not None for line in board.agents)
    json.dumps(board.as_plain(), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize(("n_new", "gaps"), [(0, False), (100, False), (0, True)])
def test_all_of_500_agents_on_500_tasks_are_ranked(n_new, gaps):
    """With 1% of the trials void nearly every agent is completed."""
    outcomes = board(500 - n_new, 500)
    tasks = answer(record_of(outcomes[:40])).subset.size
    new = np.full((n_new, 500), NAN)
    rates = outcomes.mean(axis=0)
    new[:, (rates >= 0.3) & (rates <= 0.7)] = 1.0
    outcomes, lost = np.vstack([outcomes, new]), None
    if gaps:
        lost = np.random.default_rng(1).random(outcomes.shape) < 0.01
        outcomes[lost] = NAN
    record = record_of(outcomes, lost=lost, names=[f"a{i:03d}" for i in range(500)])
    found = answer(record, Rules(target="full"))
    assert found.targets["full"].n_ranked == 500
    assert tasks > 0
