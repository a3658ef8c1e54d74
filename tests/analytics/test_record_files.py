"""A flat file's record: agents, dates, deliveries; and real files, read a second time by the csv module."""

import io
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from analytics.command_line import flat_file
from analytics.flat_file import read
from analytics.record import Condition, Counting, Record
from analytics.record.files import contents
from analytics.trials.flags import identical_agents
from tests.tables import outcome_table

HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"
REAL = (
    "hal_corebench_hard",
    "hal_gaia",
    "hal_scicode",
    "hal_taubench_airline",
    "swebench_verified_2023_2025",
    "terminal_bench_core_011",
)


@pytest.fixture
def made(tmp_path):
    def made(lines, *, head=HEAD, counting=None):
        path = tmp_path / "outcomes.csv"
        path.write_text("\n".join([head, *lines, ""]), encoding="utf-8")
        return Record.from_flat(flat_file(path), counting)

    return made


@pytest.fixture
def real(real_data):
    return lambda name: flat_file(real_data / f"{name}.csv.gz")


# ----------------------------------------------------------------------------------------------- what is said


def test_an_agents_date_is_its_earliest(made):
    result = made(
        [
            "B,a,s,m,2026-01-05,t,1,1",
            "B,a,s,m,2025-12,t,2,1",
            "B,b,s,m,,t,1,0",
            "B,c,s,m,2026-01-05T22:00:00Z,t,1,0",
        ]
    )
    assert [one.submitted_at for one in result.about] == ["2025-12-01", None, "2026-01-05"]
    assert [one.imprecise for one in result.about] == [True, False, False]
    assert [day and day.isoformat() for day in result.table.dates] == ["2025-12-01", None, "2026-01-05"]
    assert {one.run_by for one in result.about} == {"operator"}


def test_columns_that_say_more_of_an_agent(made):
    result = made(
        [
            "B,a,s,m,2026-01-05,t,1,1,,u.org,",
            "B,a,s,m,2026-01-05,u,1,1,2.1,,https://x/1",
            "B,b,s,m,,t,1,1,,,",
        ],
        head=f"{HEAD},version,organisation,report",
    )
    assert (result.about[0].version, result.about[0].organisation) == ("2.1", "u.org")
    assert result.about[0].links == {"report": "https://x/1"}
    assert (result.about[1].version, result.about[1].links) == ("", {})


@pytest.mark.parametrize("column", ["weights", "open_model"])
def test_weights_are_open_closed_or_not_stated(made, column):
    texts = {"weights": ("open", "Closed", "partly"), "open_model": ("True", "0", "maybe")}[column]
    lines = [f"B,{agent},s,m,,t,1,1,{text}" for agent, text in zip("abcd", [*texts, ""], strict=True)]
    found = made(lines, head=f"{HEAD},{column}").about
    assert [one.weights for one in found] == ["open", "closed", "", ""]


def test_a_run_label_is_a_delivery(made):
    lines = ["B,a,s,m,,t,1,1,one", "B,a,s,m,,t,1,0,two", "B,a,s,m,,u,1,0,two", "B,b,s,m,,t,1,0,"]
    head = f"{HEAD},run"
    result = made(lines, head=head)
    assert result.n_deliveries.tolist() == [2, 1]
    assert result.table.means[0].tolist() == [0.5, 0.0]
    assert made(lines, head=head, counting=Counting(duplicates="latest")).table.means[0].tolist() == [0, 0]
    first = made(lines, head=head, counting=Counting(duplicates="first")).table.means[0]
    assert first[0] == 1
    assert np.isnan(first[1])


def test_tokens_and_seconds_are_added_up(made):
    result = made(
        ["B,a,s,m,,t,1,1,100,,1.5,", "B,a,s,m,,u,1,0,10,5,,", "B,b,s,m,,t,1,0,,,,"],
        head=f"{HEAD},n_input_tokens,n_output_tokens,seconds_execution,seconds_scoring",
    )
    assert result.n_tokens == (115.0, None)
    assert result.seconds == (1.5, None)
    assert np.isnan(result.costs).all()


# ------------------------------------------------------------------------------------------------- real files


@pytest.mark.parametrize("name", REAL)
def test_without_settings_the_record_has_the_plain_table(name, real):
    flat = real(name)
    result = Record.from_flat(flat, Counting(missing="gap"))
    plain = outcome_table(
        agents=flat.agents,
        tasks=flat.tasks,
        agent=flat.agent,
        task=flat.task,
        outcome=flat.outcome,
        valid=flat.valid,
    )
    for field in ("means", "n_valid", "trial_variances", "n_trials"):
        np.testing.assert_array_equal(getattr(result.table, field), getattr(plain, field))
    assert (result.compared, result.left_out, result.universe) == ((), (), "")
    assert not result.short.any()


def test_two_judges_of_one_board(real, real_rows):
    """All four agents were judged by conda, three also by docker: conda alone is compared."""
    result = Record.from_flat(real("swebench_lite_repeats_acr"))
    assert result.compared == ("judge swe-bench-conda",)
    assert result.left_out == (("judge swe-bench-docker", 3),)
    assert set(result.condition) == {""}
    assert result.complete.all()
    passed = defaultdict(list)
    for row in real_rows("swebench_lite_repeats_acr"):
        if row["judge"] == "swe-bench-conda":
            passed[row["agent"]].append(float(row["outcome"]))
    assert result.table.scores().tolist() == pytest.approx(
        [sum(passed[a]) / len(passed[a]) for a in result.table.agents]
    )
    assert result.n_places.tolist() == [[1] * 300, [1] * 300, [3] * 300, [3] * 300]
    assert [summary.icc is None for summary in result.repeats] == [True, True, False, False]
    docker = Counting(settings=(Condition(None, "swe-bench-docker", None),))
    result = Record.from_flat(real("swebench_lite_repeats_acr"), docker)
    assert result.complete.tolist() == [True, True, True, False]
    assert result.condition == ("", "", "", "judge swe-bench-conda")


def test_void_trials_of_terminal_bench(real, real_rows):
    """Over 5% of the 400 trials of 6 of 13 agents are void; counted as failures, all 13 are ranked."""
    n_void, passed = defaultdict(int), defaultdict(float)
    for row in real_rows("terminal_bench_core_011"):
        n_void[row["agent"]] += row["valid"] == "0"
        passed[row["agent"]] += float(row["outcome"]) if row["valid"] == "1" else 0.0
    flat = real("terminal_bench_core_011")
    result = Record.from_flat(flat, Counting(missing="gap"))
    assert result.n_gaps.sum(axis=1).tolist() == [n_void[name] for name in result.table.agents]
    assert result.complete.tolist() == [20 * n_void[name] <= 400 for name in result.table.agents]
    assert result.complete.sum() == 7
    zero = Record.from_flat(flat, Counting(missing="zero"))
    assert zero.complete.all()
    assert zero.table.scores().tolist() == pytest.approx([passed[a] / 400 for a in zero.table.agents])
    lower, upper, n_missing = result.bounds(np.arange(80))
    np.testing.assert_allclose(lower, zero.table.scores(), rtol=1e-12)
    np.testing.assert_allclose(upper, lower + n_missing / 400, rtol=1e-12)


def test_a_run_of_gaia_costs_the_mean_of_its_trials(real, real_rows):
    """The leader ran every task twice, for $356.90 in all; a run of it is told as $178, its mean."""
    result = Record.from_flat(real("hal_gaia"))
    stated = defaultdict(list)
    for row in real_rows("hal_gaia"):
        if row["cost_usd"]:
            stated[row["agent"], row["task"]].append(float(row["cost_usd"]))
    means = defaultdict(float)
    for (agent, _), costs in stated.items():
        means[agent] += sum(costs) / len(costs)
    sums = dict(zip(result.table.agents, np.nansum(result.costs, axis=1), strict=True))
    assert sums == pytest.approx(means)


@pytest.mark.parametrize("name", REAL)
def test_no_agent_of_a_real_board_is_a_copy_even_if_it_had_been_submitted(name, real):
    """On SciCode three agents pass the same one of 65 tasks, two the same three: chance explains it."""
    parts = contents(real(name))
    submitted = [replace(one, operator=False) for one in parts["deliveries"]]
    result = Record.of(**{**parts, "deliveries": submitted})
    assert set(result.copy_of) == {""}
    assert bool(identical_agents(result.table.means)) == (name == "hal_scicode")


def test_groups_are_those_of_the_active_tasks():
    rows = [
        f"b,{agent},s,m,2025-01-01,{task},1,1,{group},{category}"
        for agent in "ab"
        for task, group, category in (("t1", "g", ""), ("t2", "", "c"), ("t3", "h", "c"))
    ]
    text = "\n".join(["benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,group,category", *rows])
    flat = read(io.BytesIO(text.encode()), as_of=datetime(2026, 1, 1, tzinfo=UTC))
    result = Record.from_flat(flat)
    assert (result.groups, result.categories) == (("g", "", "h"), ("", "c", "c"))
    two = Record.from_flat(flat, Counting(universe=("t2", "t3")))
    assert (two.table.tasks, two.groups, two.categories) == (("t2", "t3"), ("", "h"), ("c", "c"))
