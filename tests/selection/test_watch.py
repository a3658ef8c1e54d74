"""Watching a record: order in time, the past only, a planted jump, refusals; when real boards would have
alarmed.
"""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binomtest, norm, rankdata
from threadpoolctl import threadpool_limits

from analytics import flat_file
from analytics.outcome_table import OutcomeTable
from analytics.record import About, Counting, Record
from analytics.record.alike import Repeats
from selection.bands import mid_range
from selection.errors import SelectionError
from selection.history import is_later
from selection.prior import PriorDecisions, Promise
from selection.rules import Rules
from selection.watch import NO_SUBSET, findings
from selection.watch import replay as replay_record
from tests.refusals import refused
from tests.selection import reference

START = date(2026, 1, 1)
MONITORS = [
    "rank fidelity",
    "capability jump",
    "band erosion",
    "calibration",
    "calibration residuals",
    "saturation",
    "tuning to the subset",
    "scaffold novelty",
    "harness failures",
    "run-to-run noise",
    "cost per task",
]


@pytest.fixture(autouse=True)
def one_thread():
    """Many small matrices: threads of BLAS would only wait for each other."""
    with threadpool_limits(1, user_api="blas"):
        yield


def table_of(outcomes, *, days=None, scaffolds=None, n_valid=None, **moments):
    n_agents, n_tasks = outcomes.shape
    return OutcomeTable(
        agents=tuple(f"a{i:03d}" for i in range(n_agents)),
        tasks=tuple(f"t{j:03d}" for j in range(n_tasks)),
        means=outcomes,
        n_valid=(~np.isnan(outcomes)).astype(np.int32) if n_valid is None else n_valid,
        dates=tuple(START + timedelta(days=i) for i in range(n_agents)) if days is None else tuple(days),
        scaffolds=("s",) * n_agents if scaffolds is None else tuple(scaffolds),
        models=("m",) * n_agents,
        **moments,
    )


def record_of(table, *, n_invalid=None, n_places=None, costs=None, arrival=0, first=0):
    """A file's record of a table, of which all came with one delivery, and once before with the first."""
    shape = table.means.shape
    places = table.n_valid if n_places is None else n_places
    return Record(
        table=table,
        about=tuple(
            About(a, s, m) for a, s, m in zip(table.agents, table.scaffolds, table.models, strict=True)
        ),
        counting=Counting(),
        n_places=places,
        n_gaps=np.zeros(shape, np.int32),
        n_invalid=np.zeros(shape, np.int32) if n_invalid is None else n_invalid,
        asked=np.ones(shape, np.bool_),
        operator=np.ones(shape[0], np.bool_),
        arrival=np.full(shape[0], arrival, np.int64),
        first=np.full(shape[0], first, np.int64),
        completed=np.zeros(shape[0], np.int64),
        settled=np.zeros(shape[0], np.int64),
        complete=table.complete(),
        voice=np.ones(shape[0], np.bool_),
        costs=np.full(shape, np.nan) if costs is None else costs,
        n_tokens=(None,) * shape[0],
        seconds=(None,) * shape[0],
        n_deliveries=np.ones(shape[0], np.int64),
        repeats=(Repeats(),) * shape[0],
        compared=(),
        left_out=(),
        condition=("",) * shape[0],
        universe="",
    )


def replay(table, *, progress=None, n_unconfirmed=(), **more):
    record = replace(record_of(table, **more), n_unconfirmed=tuple(n_unconfirmed))
    return replay_record(record, Rules(), progress=progress)


def board(n_agents, n_tasks=100, *, jump_at=None, jump=0.0, seed=1, spread=0.5, difficulty=0.7):
    """Agents of random ability; from `jump_at` on all are better by `jump` in pass rate."""
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(-rng.normal(0, spread, n_agents)[:, None] + rng.normal(0, difficulty, n_tasks)))
    if jump_at is not None:
        chance[jump_at:] = np.minimum(chance[jump_at:] + jump, 1.0)
    return (rng.random((n_agents, n_tasks)) < chance).astype(float)


def monitor(found, name):
    return next(one for one in found.monitors if one.name == name)


# ---------------------------------------------------------------------------------------- what it is made of


def test_the_subset_is_chosen_from_all_agents_up_to_the_fifteenths_date():
    outcomes = board(22)
    days = [START + timedelta(days=min(i, 13)) for i in range(17)]  # the 14th to the 17th share a date
    days += [START + timedelta(days=14 + i) for i in range(5)]
    found = replay(table_of(outcomes, days=days))
    assert len(found.version.chosen_from) == 17
    assert found.version.fixed_on == START + timedelta(days=13)
    assert found.version.tasks == tuple(f"t{j:03d}" for j in mid_range(outcomes[:17]).tasks)
    assert list(found.promises) == [f"a{i:03d}" for i in range(17, 22)]


def test_agents_come_by_date_then_name():
    outcomes = board(20)
    forward = replay(table_of(outcomes))
    days = [START + timedelta(days=19 - i) for i in range(20)]
    backward = replay(table_of(outcomes[::-1], days=days))
    named = {f"a{i:03d}": f"a{19 - i:03d}" for i in range(20)}
    assert [named[agent] for agent in backward.promises] == list(forward.promises)
    assert [one.score for one in backward.promises.values()] == pytest.approx(
        [one.score for one in forward.promises.values()], abs=1e-9
    )


def test_each_later_agent_is_predicted_by_the_model_of_earlier_dates():
    outcomes = board(22, 60)
    found = replay(table_of(outcomes))
    tasks = [int(name[1:]) for name in found.version.tasks]
    assert len(found.promises) == 7
    for i, (name, promise) in enumerate(found.promises.items(), start=15):
        past, seen = outcomes[:i], np.full(60, np.nan)
        seen[tasks] = outcomes[i, tasks]
        model = reference.joint_model(past, in_time=True)
        score, se = reference.by_model(model, seen, reference.mean_before(model, i))
        z = reference.left_out_errors(past, tasks, np.arange(i) % 20, in_time=True)
        half = stats.t.ppf(0.975, 4 + i) * np.sqrt((4 + np.sum(z**2)) / (4 + i)) * se
        assert promise.score == pytest.approx(score, abs=1e-8)
        assert promise.interval == pytest.approx((max(score - half, 0), min(score + half, 1)), abs=1e-8)
        assert (name in found.missed) is not (score - half <= outcomes[i].mean() <= score + half)


def same(promise, other):
    """Equal but for where the fits began: they end with a slope below 1e-10."""
    told, expected = ((one.score, *one.interval) for one in (promise, other))
    return told == pytest.approx(expected, abs=1e-9)


def test_agents_of_one_date_do_not_predict_each_other():
    days = [START + timedelta(days=i) for i in range(15)] + [START + timedelta(days=30)] * 10
    outcomes = board(25)
    found = replay(table_of(outcomes, days=days))
    changed = outcomes.copy()
    changed[15:24] = 1 - changed[15:24]
    again = replay(table_of(changed, days=days))
    assert same(found.promises["a024"], again.promises["a024"])


@cache
def jumped():
    """40 agents, of whom the later ones are better, and the replay of them all."""
    table = table_of(board(40, jump_at=20, jump=0.3))
    return table, replay(table)


@pytest.mark.parametrize("n_kept", [20, 25, 31])
def test_the_future_changes_nothing(n_kept):
    """What fired by agent n fires the same whoever comes later."""
    table, whole = jumped()
    part = replay(table.restrict(agents=np.arange(40) < n_kept))
    assert list(whole.promises)[: n_kept - 15] == list(part.promises)
    assert all(same(whole.promises[name], promise) for name, promise in part.promises.items())
    for all_, some in zip(whole.monitors, part.monitors, strict=True):
        for level in ("warn", "alert"):
            fired, known = getattr(all_, level), getattr(some, level)
            if known is not None or (fired is not None and fired.n_later <= n_kept - 15):
                assert fired == known


def test_incomplete_agents_are_seen_but_not_judged():
    outcomes = board(40)
    outcomes[5, :50] = outcomes[20, :50] = np.nan
    scaffolds = ["s"] * 20 + ["new"] * 20
    found = replay(table_of(outcomes, scaffolds=scaffolds))
    assert "a005" not in found.version.chosen_from
    assert found.version.fixed_on == START + timedelta(days=15)
    assert "a020" not in found.promises
    # the look at 20 of the 24 agents that came later: a016 to a035
    assert monitor(found, "scaffold novelty").final.evidence["agents"] == [f"a{i:03d}" for i in range(20, 36)]


# --------------------------------------------------------------------------------------------- what it finds


def test_nothing_fires_on_a_board_where_nothing_happens():
    found = replay(table_of(board(45, 200, seed=4)))
    assert [one.name for one in found.monitors] == MONITORS
    assert {one.name: one.alert for one in found.monitors} == dict.fromkeys(MONITORS)
    assert monitor(found, "capability jump").final.state == "ok"
    # two charts of 1/7,500 an agent; at most .01 each of fidelity, calibration and failures, .02 of erosion
    assert found.false_alerts_a_year == pytest.approx(45 / 44 * 365.25 * 2 / 7_500 + 0.05)


def first_above(values, n_reference, line):
    """Position at which C⁺ of the definition first passes a line, each rank taken from the whole past."""
    level = 0.0
    for t in range(n_reference, len(values)):
        score = norm.ppf((rankdata(values[: t + 1])[-1] - 0.5) / (t + 1))
        level = max(0.0, level + score - 0.5)
        if level > line:
            return t
    return None


def test_a_planted_jump_is_found_when_the_chart_says_so_and_not_before():
    outcomes = board(50, jump_at=30, jump=0.25)
    found = replay(table_of(outcomes))
    tasks = [int(name[1:]) for name in found.version.tasks]
    means = outcomes[:, tasks].mean(axis=1)
    assert means[30:].mean() - means[:30].mean() > 2 * means[:30].std()
    fired = monitor(found, "capability jump")
    warned, alarmed = (first_above(means, 15, line) for line in (5.5, 7.0))
    assert (fired.warn.agent, fired.alert.agent) == (f"a{warned:03d}", f"a{alarmed:03d}")
    assert 30 <= warned < alarmed < 45
    assert fired.alert.n_later == alarmed - 14
    assert fired.alert.day == START + timedelta(days=alarmed)


def test_a_band_that_eroded_is_found_at_the_next_look():
    """The look at 20 newcomers sees 5 agents after the jump, the one at 40 sees 20 of them."""
    found = monitor(replay(table_of(board(56, jump_at=30, jump=0.35))), "band erosion")
    assert found.alert is not None
    assert found.alert.n_later == 40


def test_the_founders_are_the_reference_and_do_not_alarm():
    found = replay(table_of(board(20, jump_at=11, jump=0.4, spread=0.1)))
    capability = monitor(found, "capability jump")
    assert capability.final.state == "ok"
    assert capability.final.evidence["alarms"] == []


def test_failures_of_the_harness_and_cost_are_watched_where_they_are_known():
    n = 45
    costs = np.where(np.arange(n) < 25, 1.0, 3.0) + np.random.default_rng(2).random(n)
    n_invalid = np.zeros((n, 100), np.int32)
    n_invalid[:, 0], n_invalid[25:, 1:30] = 1, 1
    found = replay(table_of(board(n)), n_invalid=n_invalid, costs=np.tile(costs[:, None], 100))
    for name in ("harness failures", "cost per task"):
        fired = monitor(found, name).alert
        assert fired is not None
        assert 25 <= int(fired.agent[1:]) <= 33
    silent = replay(table_of(board(n)))
    assert monitor(silent, "harness failures").final.state == "ok"
    assert monitor(silent, "cost per task").final.reason == "not measured: no cost was stated"


def test_what_submitters_call_invalid_only_warns():
    """Ten agents lose 29 of 100 trials: alerts where an operator confirmed it of one in two."""
    n = 35
    n_invalid = np.zeros((n, 100), np.int32)
    n_invalid[25:, 1:30] = 1
    lost = n_invalid.sum(axis=1)
    table = table_of(board(n))
    told = [
        monitor(replay(table, n_invalid=n_invalid, n_unconfirmed=unconfirmed), "harness failures")
        for unconfirmed in (lost, np.where(np.arange(n) % 2, lost, 0), 0 * lost)
    ]
    assert [one.final.state for one in told] == ["warn", "alert", "alert"]
    assert told[0].final.reason.endswith("not by what submitters call invalid")
    assert told[0].final.statistic == told[2].final.statistic


def test_noisier_trials_are_found_at_a_look():
    n, n_tasks = 40, 30
    rng = np.random.default_rng(3)
    noise = np.where(np.arange(n) < 15, 0.05, 0.4)[:, None] * rng.random((n, n_tasks))
    trials = {"trial_variances": noise, "n_trials": np.full((n, n_tasks), 2.0)}
    table = table_of(board(n, n_tasks), n_valid=np.full((n, n_tasks), 2, np.int32), **trials)
    found = replay(table)
    spread = monitor(found, "run-to-run noise")
    assert spread.alert is not None
    assert spread.alert.n_later == 10
    assert found.monitors == replay(table).monitors


def test_misses_are_those_of_the_e_value():
    """After the founders scores drop where S does not look: est stays, y falls, and intervals get wider."""
    outcomes = board(40, 200, seed=6, difficulty=2.5)
    tasks = [int(name[1:]) for name in replay(table_of(outcomes)).version.tasks]
    outside = np.setdiff1d(np.arange(200), tasks)
    outcomes[15:, outside] = 0.0
    found, scores = replay(table_of(outcomes)), outcomes.mean(axis=1)
    ends = {name: promise.interval for name, promise in found.promises.items()}
    missed = [name for name, (low, high) in ends.items() if not low <= scores[int(name[1:])] <= high]
    assert list(found.missed) == missed
    assert missed[:2] == list(found.promises)[:2]
    assert monitor(found, "calibration").alert is not None


# ------------------------------------------------------------------------------------------------- refusals


def test_refusals():
    table = table_of(board(20))
    with refused(SelectionError, "no_replay", match="2 of 20 agents have no date, such as 'a003'"):
        replay(replace(table, dates=(*table.dates[:3], None, None, *table.dates[5:])))
    with refused(SelectionError, "no_replay", match="14 agents with full runs; a check for drift needs 15"):
        replay(table_of(board(14)))
    with refused(SelectionError, "no_replay", match=r"15 agents with full runs, and none after 2026-01-15"):
        replay(table_of(board(15)))
    one_day = replace(table_of(board(24)), dates=(date(2025, 5, 5),) * 24)
    with refused(
        SelectionError,
        "no_replay",
        match="24 agents with full runs, and none after 2025-05-05. The ranking tasks are chosen from the "
        "first 15 agents; a check for drift needs later agents",
    ):
        replay(one_day)
    with refused(
        SelectionError, "no_replay", match=r"no ranking tasks for the first 15 agents: none of 100 tasks"
    ):
        replay(table_of(np.ones((20, 100))))


def test_progress_counts_the_later_agents():
    seen = []
    replay(table_of(board(20)), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 5) for done in range(6)]


# --------------------------------------------------------------------------------------------- real boards


def real_record(real_data, name):
    return Record.from_flat(
        flat_file.read(real_data / f"{name}.csv.gz", as_of=datetime(2026, 11, 1, tzinfo=UTC))
    )


def test_swe_bench_verified_in_time_order(real_data, real_rows, capsys):
    """Steady progress has to alarm: 57 agents from 2023-10 to 2025-01 go from 4% to 65%."""
    found = replay_record(real_record(real_data, "swebench_verified_2023_2025"), Rules())
    with capsys.disabled():
        for one in found.monitors:
            when = [f"{level} {at.day}" for level, at in (("warn", one.warn), ("alert", one.alert)) if at]
            print(f"\n{one.name:22} {', '.join(when) or 'not fired'} ({one.final.state})", end="")
    assert (len(found.version.chosen_from), found.version.fixed_on) == (15, date(2024, 7, 28))
    assert len(found.promises) == 42
    assert monitor(found, "capability jump").alert is not None
    assert monitor(found, "band erosion").alert is not None
    # 125 of 130: Wilson's lower limit passes .90 with 20241108_devlo; no agent before solved as many. It
    # has 271 of all 500 tasks, so that S alone is solved: this asks for another, and does not alert.
    saturated = monitor(found, "saturation")
    limits = [binomtest(n, 130).proportion_ci(0.98, "wilson").low for n in (124, 125)]
    assert limits[0] < 0.90 <= limits[1]
    assert (saturated.alert, saturated.warn.day) == (None, date(2024, 10, 29))
    best = saturated.final.evidence["agent"]
    rows = real_rows("swebench_verified_2023_2025")
    n_passed = sum(row["agent"] == best and float(row["outcome"]) for row in rows)
    low = binomtest(int(n_passed), 500).proportion_ci(0.98, "wilson").low
    assert saturated.final.reason.endswith(
        f"; on all 500 tasks {best} has {n_passed / 500:.1%}, at least {low:.1%}, "
        "so the benchmark is not solved"
    )
    assert saturated.final.evidence["subset_alone"]


def test_a_solved_benchmark_alerts():
    """All of 120 tasks get easy after the subset was chosen: the later agents pass 98% of them."""
    outcomes = board(40, 120)
    outcomes[20:] = np.random.default_rng(3).random((20, 120)) < 0.98
    found = monitor(replay(table_of(outcomes)), "saturation")
    assert found.alert is not None
    assert found.final.state == "alert"


def solved_subset(seed=4):
    """As on MINT: later agents solve the tasks of which founders pass half, and not the hard two thirds."""
    rng = np.random.default_rng(seed)
    founders = np.hstack([rng.random((15, 100)) < 0.5, rng.random((15, 200)) < 0.05])
    later = np.hstack([rng.random((25, 100)) < 0.97, rng.random((25, 200)) < 0.5])
    return np.vstack([founders, later]).astype(float)


def test_a_solved_subset_of_an_unsolved_benchmark_does_not_alert():
    outcomes = solved_subset()
    found = monitor(replay(table_of(outcomes)), "saturation")
    best = found.final.evidence["agent"]
    score = outcomes[int(best[1:])].mean()
    assert 0.6 < score < 0.75
    assert found.final.evidence["lower_99"] >= 0.90
    assert (found.alert, found.final.state) == (None, "warn")
    assert f"on all 300 tasks {best} has {score:.1%}, at least " in found.final.reason
    assert found.final.advice == "choose new ranking tasks from the latest full runs"


def test_an_estimated_full_score_is_asked_where_none_is_measured():
    """The best agent ran S alone; its estimate decides, and without one the subset does."""
    outcomes = solved_subset()
    version = replay(table_of(outcomes)).version
    in_subset = np.isin([f"t{j:03d}" for j in range(300)], version.tasks)
    outcomes[:39, np.flatnonzero(in_subset)[0]] = 0.0
    outcomes[39] = np.where(in_subset, 1.0, np.nan)
    record = record_of(table_of(outcomes))
    given = PriorDecisions(subsets=(version,))

    def asked(*promise):
        told = replace(given, promises={"a039": Promise(*promise)} if promise else {})
        return monitor(findings(record, Rules(), told), "saturation")

    assert (asked().state, asked().evidence["agent"]) == ("alert", "a039")
    assert asked(0.7, (0.6, 0.8)).state == "warn"
    assert "has an estimated 70.0%, at least 60.0%" in asked(0.7, (0.6, 0.8)).reason
    assert asked(0.95, (0.91, 0.98)).state == "alert"
    assert asked(0.7, None).state == "alert"


def test_only_agents_that_are_vouched_for_raise_saturation():
    outcomes = board(40)
    outcomes[39] = 1.0
    record, version = record_of(table_of(outcomes)), replay(table_of(outcomes)).version

    def asked(*unvouched):
        about = tuple(replace(one, vouched=one.name not in unvouched) for one in record.about)
        prior = PriorDecisions(subsets=(version,))
        return monitor(findings(replace(record, about=about), Rules(), prior), "saturation")

    assert (asked().state, asked().evidence["agent"]) == ("alert", "a039")
    assert "only agents that are" not in asked().reason
    found = asked("a039")
    means = outcomes[:39, [int(task[1:]) for task in version.tasks]].mean(axis=1)
    assert (found.state, found.evidence["mean"]) == ("ok", pytest.approx(means.max()))
    assert found.reason.endswith("; only agents that are verified or of a trusted account count")
    found = asked(*record.table.agents)
    assert found.state == "insufficient"
    assert found.reason.startswith("no agent has run the ranking tasks; only agents that are verified or of")


def test_a_board_that_changes_little_does_not_alarm(real_data):
    """As many of the intervals of 95% may miss as of honest ones would in one case of twenty."""
    found = replay_record(real_record(real_data, "hal_corebench_hard"), Rules())
    assert monitor(found, "capability jump").alert is None
    assert monitor(found, "band erosion").warn is None
    assert monitor(found, "calibration").warn is None
    assert len(found.promises) == 20
    assert binomtest(len(found.missed), len(found.promises), 0.05, alternative="greater").pvalue > 0.05


# ------------------------------------------------------------------------------------------------ now


def test_findings_are_the_last_prefix_of_the_replay():
    """Watching the version and the promises of a replay says what the replay says in the end."""
    table, replayed = jumped()
    record = record_of(table)
    found = findings(record, Rules(), PriorDecisions(subsets=(replayed.version,), promises=replayed.promises))
    assert found.monitors == tuple(one.final for one in replayed.monitors)
    assert (found.subset, found.n_later) == (1, 25)
    assert found.false_alerts_a_year == replayed.false_alerts_a_year


def test_a_later_delivery_is_later_whatever_its_date():
    table = table_of(board(30))
    record = record_of(table)
    version = replay_record(record, Rules()).version
    chosen_from = version.chosen_from[3:]
    late = np.where(np.arange(30) < 3, 1, 0)  # dated before S, delivered after it
    early = replace(record, arrival=late, first=late)
    prior = PriorDecisions(subsets=(replace(version, arrival=0, chosen_from=chosen_from),))
    assert findings(early, Rules(), prior).n_later == 3 + 15


def test_results_that_were_loaded_again_leave_an_agent_where_it_was():
    """S was fixed by delivery 1, and all was delivered again with 3: by an operator, by submitters."""
    table = table_of(board(30))
    chosen = replay_record(record_of(table), Rules()).version
    version = replace(chosen, arrival=1, fixed_on=START + timedelta(days=99))
    record = record_of(table, arrival=3, first=1)
    agents = np.array(table.agents)

    def later(record):
        return agents[is_later(record, version)].tolist()

    founders = list(version.chosen_from)
    others = [name for name in table.agents if name not in founders]
    assert (len(founders), len(others)) == (15, 15)
    assert later(record) == []
    # a first delivery of a submitter that was taken back is none; a founder stays one while it is complete
    submitted = replace(record, operator=np.zeros(30, np.bool_))
    assert later(submitted) == others
    gone = replace(submitted, complete=agents != founders[0])
    assert later(gone) == sorted([founders[0], *others])
    assert later(replace(record, complete=agents != founders[0])) == []


def test_without_a_version_nothing_is_watched():
    record = record_of(table_of(board(20)))
    found = findings(record, Rules(), PriorDecisions())
    assert (found.monitors, found.reason) == ((), NO_SUBSET)
    assert found.as_plain()["fixed_on"] is None


def test_every_line_says_what_to_do():
    record = record_of(table_of(board(50, jump_at=30, jump=0.25)))
    monitors = replay_record(record, Rules()).monitors
    for one in monitors:
        if one.final.state != "insufficient":
            assert (one.final.advice == "nothing to do") is (one.final.state == "ok")
    found = {one.name: one.final.advice for one in monitors}
    assert found["cost per task"] == "state costs with the outcomes, to have them watched"
    assert "choose new ranking tasks" in found["capability jump"]
