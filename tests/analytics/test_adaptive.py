"""Adaptive assignment: batches, looks, errors and the quantile by hand, replays of real boards, refusals."""

import csv
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from analytics.research.adaptive import assignment as adaptive
from analytics.research.adaptive import clopper_pearson
from analytics.research.cli import main
from selection.standings.choice import training
from tests.selection.records import record_of


def board(n_agents=24, n_tasks=40, seed=1):
    """Passes and failures of agents of different ability on tasks of different difficulty."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 1.2, n_agents)[:, None] - rng.normal(0.0, 1.5, n_tasks)
    return (rng.random((n_agents, n_tasks)) < 1 / (1 + np.exp(-logits))).astype(float)


def rows_of(outcomes, names=None):
    return [
        {
            "benchmark": "B",
            "agent": (names or {}).get(i, f"a{i:02d}"),
            "scaffold": "s",
            "model": f"m{i}",
            "submitted_at": "",
            "task": f"t{j:02d}",
            "trial": 1,
            "outcome": outcomes[i, j],
        }
        for i in range(outcomes.shape[0])
        for j in range(outcomes.shape[1])
        if not np.isnan(outcomes[i, j])
    ]


def written(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize(
    ("n_tasks", "size", "looks"),
    [
        (20, 1, (2, 3, 5, 7, 10)),  # 1/8 is 2.5: 2 is as near as 3, and smaller
        (45, 3, (6, 12, 15, 21)),  # 1/8 and 1/6 are both nearest to 6; 22.5 lies between 21 and 24
        (50, 3, (6, 9, 12, 18, 24)),
        (165, 9, (18, 27, 45, 54, 81)),
        (500, 25, (50, 75, 125, 175, 250)),
        (3, 1, (1,)),
    ],
)
def test_batches_and_looks(n_tasks, size, looks):
    assert adaptive.batch_size(n_tasks) == size
    assert adaptive.looks_of(n_tasks) == looks


def test_the_batch_is_the_least_certain_tasks_and_equal_ones_in_task_order():
    start = adaptive.NewcomerPrior(np.array([3.0, -0.5, 0.5, 0.1] + [4.0] * 36), mean=0.0, variance=1.0)
    looks, _, waiting = adaptive.walk(start, np.zeros(40), np.zeros(40, bool))
    assert waiting.tolist() == [1, 3]  # p(1 − p) of ±0.5 is one number
    assert looks == []
    delivered = np.zeros(40, bool)
    delivered[[1, 3]] = True
    assert adaptive.walk(start, np.zeros(40), delivered)[2].tolist() == [0, 2]


def test_ability_score_and_error_by_hand():
    # One passed and one failed task at ±b around the mean leave the ability at the mean.
    start = adaptive.NewcomerPrior(np.array([1.0, -1.0, 0.0, math.log(3)]), mean=0.0, variance=2.0)
    outcomes = np.array([1.0, 0.0, np.nan, np.nan])
    known = np.array([True, True, False, False])
    assert adaptive.ability(start, outcomes, known) == pytest.approx(0.0, abs=1e-11)
    k, score, se = adaptive.completed(start, outcomes, np.array([True, True, True, False]))
    assert k == 3  # an invalid outcome was asked for, and stays among the rest
    assert score == pytest.approx((1 + 0 + 1 / 2 + 1 / 4) / 4)
    rest, p = 1 / 4 + 3 / 16, 1 / (1 + math.e)
    information = 2 * p * (1 - p) + 1 / 2
    assert se == pytest.approx(math.sqrt(rest + rest**2 / information) / 4)


def test_ability_has_the_prior_of_the_past():
    start = adaptive.NewcomerPrior(np.zeros(1), mean=0.7, variance=0.25)
    assert adaptive.ability(start, np.array([np.nan]), np.array([False])) == 0.7
    level = adaptive.ability(start, np.ones(1), np.array([True]))
    assert 1 - 1 / (1 + math.exp(-level)) == pytest.approx((level - 0.7) / 0.25)


def test_prior_is_the_past_agents_sample_and_never_narrow():
    alike = np.tile([1.0, 0.0], (20, 10))
    assert adaptive.prepared(training(record_of(alike)), np.arange(20)).variance == 0.25
    agents = training(record_of(board()))
    start, fitted = adaptive.prepared(agents, np.arange(24)), agents.fit_of(np.arange(24))
    assert start.mean == pytest.approx(np.mean(fitted.abilities))
    assert start.variance == pytest.approx(np.var(fitted.abilities, ddof=1))


@pytest.mark.parametrize(("n", "rank"), [(19, 19), (20, 20), (38, 38), (39, 38), (57, 56)])
def test_quantile_and_scales_by_hand(n, rank):
    assert rank == math.ceil(0.95 * (n + 1) - 1e-9)
    z = np.column_stack([np.arange(1.0, n + 1), 2 * np.arange(1.0, n + 1)])
    found = quantile, scale = adaptive.calibration_of(z)
    rms = math.sqrt(sum(i * i for i in range(1, n + 1)) / n)
    assert scale == pytest.approx([rms, 2 * rms])
    assert quantile == pytest.approx(rank / rms)
    assert adaptive.half_widths(found, [adaptive.InterimEstimate(4, 0.5, 0.01)]) == pytest.approx(
        [rank * 0.01]
    )


def test_ranks_and_binomial_limits():
    scores = np.array([0.2, 0.4, 0.6, 0.8])
    assert adaptive.ranks(scores, 0.3, 0.7) == (2, 4)
    assert adaptive.ranks(scores, 0.4, 0.6) == (2, 4)  # equal is not above
    assert adaptive.ranks(scores, 0.85, 1.0) == (1, 1)
    for covered, n in ((0, 7), (37, 38), (32, 32)):
        expected = binomtest(covered, n).proportion_ci(0.95)
        assert clopper_pearson(covered, n) == pytest.approx((expected.low, expected.high))


def test_the_way_depends_on_what_was_asked_alone():
    agents = training(record_of(board()))
    start, outcomes = adaptive.prepared(agents, np.arange(1, 24)), agents.outcomes[0].copy()
    looks, batches, _ = adaptive.walk(start, outcomes)
    outside = np.setdiff1d(np.arange(40), np.concatenate(batches))
    outcomes[outside] = 1.0 - outcomes[outside]
    assert adaptive.walk(start, outcomes)[0] == looks
    assert [k for k, _, _ in looks] == list(adaptive.looks_of(40))


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_tasks_and_agents_changes_nothing(seed):
    outcomes, rng = board(21, 40, seed % 7), np.random.default_rng(seed)
    rows, columns = rng.permutation(20), rng.permutation(40)
    start = adaptive.NewcomerPrior(np.linspace(-2.0, 2.1, 40) ** 3, 0.1, 0.9)
    looks, batches, _ = adaptive.walk(start, outcomes[20])
    moved_looks, moved_batches, _ = adaptive.walk(
        adaptive.NewcomerPrior(start.difficulties[columns], 0.1, 0.9), outcomes[20][columns]
    )
    for here, there in zip(batches, moved_batches, strict=True):
        assert set(here.tolist()) == set(columns[there].tolist())
    assert [score for _, score, _ in moved_looks] == pytest.approx([score for _, score, _ in looks])
    past = training(record_of(outcomes[:20]))
    shuffled = training(record_of(outcomes[:20][rows]))
    one, other = (adaptive.calibrated(agents, np.arange(20)) for agents in (past, shuffled))
    assert other[0] == pytest.approx(one[0])
    assert other[1] == pytest.approx(one[1])


def test_next_walks_an_agent_through_its_batches(tmp_path, answer):
    outcomes = board()
    past, newcomer = outcomes[:23], outcomes[23]
    rows, ran, seen = rows_of(past), set(), []
    for _ in range(20):
        mine = np.where(np.isin(np.arange(40), list(ran)), newcomer, np.nan)
        file = written(tmp_path / "b.csv", rows + rows_of(np.vstack([mine]), {0: "New"}))
        told = answer("next", file, "--agent", "New", "--half-width", 0.001)
        assert list(told) == [*("tasks", "look", "score", "lo", "hi", "rank_lo", "rank_hi", "done", "reason")]
        seen.append(told)
        if told["done"]:
            break
        assert len(told["tasks"]) == 2
        ran |= {int(task[1:]) for task in told["tasks"]}
    assert seen[0]["score"] is None
    assert "first look" in seen[0]["reason"]
    last = seen[-1]
    assert len(ran) == adaptive.looks_of(40)[-1]
    assert last["tasks"] == []
    assert "last look" in last["reason"]
    assert last["lo"] <= last["score"] <= last["hi"]
    assert 1 <= last["rank_lo"] <= last["rank_hi"] <= 24
    # The rows' order in the file changes nothing, and enough is known earlier where less is asked for.
    every = rows + rows_of(np.vstack([mine]), {0: "New"})
    random.Random(3).shuffle(every)
    assert answer("next", written(file, every), "--agent", "New", "--half-width", 0.001) == last
    early = answer("next", file, "--agent", "New", "--half-width", 0.9)
    assert early["done"]
    assert early["look"] == 1
    assert "points to each side, at most 90 were wanted" in early["reason"]
    assert (
        "24 were wanted"
        in answer("next", file, "--agent", "New", "--half-width", 0.001, "--ranks", 24)["reason"]
    )
    budget = answer("next", file, "--agent", "New", "--half-width", 0.001, "--budget", 7)
    assert budget["done"]
    assert budget["look"] == 2
    assert "budget of 7" in budget["reason"]


def test_refusals_are_one_line(tmp_path, refusal):
    outcomes = board()
    few = written(tmp_path / "few.csv", rows_of(outcomes[:19]))
    for said in (refusal("adaptive", few), refusal("next", few, "--agent", "a03")):
        assert (
            "adaptive assignment needs 19 past agents that ran every task (not counting the one being "
            "assigned); there are 18" in said
        )
    graded = written(tmp_path / "graded.csv", rows_of(outcomes * 0.7))
    for said in (refusal("adaptive", graded), refusal("next", graded, "--agent", "a03")):
        assert "strictly between 0 and 1" in said
    enough = written(tmp_path / "enough.csv", rows_of(outcomes))
    assert "between 0 and 1" in refusal("adaptive", enough, "--half-width", "2")
    assert "between 0 and 1" in refusal("next", enough, "--agent", "x", "--half-width", "0")
    assert "ranks: at least 1" in refusal("next", enough, "--agent", "x", "--ranks", "0")
    assert "ends before the first look, after 4" in refusal("next", enough, "--agent", "x", "--budget", "1")
    assert "seeds: at least 1" in refusal("adaptive", enough, "--seeds", "0")


def test_a_replay_says_what_is_not_shown(tmp_path, capsys):
    file = written(tmp_path / "b.csv", rows_of(board(20)))
    assert main(["adaptive", str(file), "--seeds", "3"]) == 0
    text = capsys.readouterr().out
    assert "no replay: 20 of 20 complete agents have no date" in text
    assert "never reach it" in text
    assert " of 20" in text


def test_agents_of_one_model_have_no_error_of_the_difference(tmp_path, answer, capsys):
    file = written(tmp_path / "b.csv", [row | {"model": "m"} for row in rows_of(board(20))])
    found = answer("adaptive", file, "--seeds", "3")
    assert [one["se"] for one in found["chosen"]] == [None] * 4
    assert main(["adaptive", str(file), "--seeds", "3"]) == 0
    assert "All agents are of one model, so nobody can say whether" in capsys.readouterr().out


def told(found, protocol, half_width):
    (line,) = [
        one for one in found["replayed"] if (one["protocol"], one["half_width"]) == (protocol, half_width)
    ]
    return round(line["share_run"], 3), line["n_covered"], line["n"], line["n_never"]


def chosen(found):
    return {one["strategy"]: round(one["pairs_correct_full"], 3) for one in found["chosen"]}


@pytest.mark.slow(each=True)
@pytest.mark.parametrize(
    ("name", "at_10", "k", "pairs"),
    [
        ("hal_gaia", (0.331, 32, 32, 0), 45, {"adaptive": 0.938, "spread": 0.902}),
        ("hal_corebench_hard", (0.414, 37, 38, 15), 12, {"adaptive": 0.910, "spread": 0.909}),
        ("hal_taubench_airline", None, 12, {"adaptive": 0.864, "spread": 0.923}),
    ],
)
def test_replays_of_boards(real_data, answer, name, at_10, k, pairs):
    found = answer("adaptive", real_data / f"{name}.csv.gz", "--half-width", 0.1, "--seeds", 2)
    if at_10:
        assert told(found, "loao", 0.1) == at_10
    assert found["k"] == k
    assert pairs.items() <= chosen(found).items()


def test_boards_that_are_refused(real_data, refusal):
    assert "needs 19 past agents" in refusal("adaptive", real_data / "terminal_bench_core_011.csv.gz")


@pytest.mark.slow
def test_replay_of_a_large_board(real_data, answer):
    file = real_data / "swebench_verified_2023_2025.csv.gz"
    found = answer("adaptive", file, "--half-width", 0.1, 0.05, "--seeds", 2)
    assert told(found, "loao", 0.1) == (0.140, 57, 57, 0)
    assert told(found, "loao", 0.05) == (0.426, 56, 57, 1)
    assert told(found, "temporal", 0.1)[:3] == (0.168, 36, 37)
    assert told(found, "temporal", 0.05)[:3] == (0.420, 36, 37)
    assert {"adaptive": 0.982, "spread": 0.972}.items() <= chosen(found).items()
