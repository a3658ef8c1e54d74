"""Where every agent stands: by hand, against scipy and scikit-learn, by property, on degenerate boards."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge

from analytics.differences.finite_errors import Measured, TrialNoise
from analytics.differences.ranks import rank_sets
from analytics.differences.rows import Facet, Row
from analytics.record.alike import Repeats
from selection.full_scores import FitCache
from selection.prior import FittedOn, PriorDecisions
from selection.rules import Rules
from selection.schema.board import Standings
from selection.standings import answer
from selection.standings.answering import tied_ranges
from tests.selection.records import NAN, band, board, by_name, record_of, with_newcomers

FULL = Rules(target="full")
RIDGE = Rules(target="full", estimator="ridge")


def marks(*lines):
    return np.array([[NAN if mark == "." else float(mark) for mark in line] for line in lines])


def at(standings, name, target="full"):
    return by_name(standings)[name].at[target]


# -------------------------------------------------------------------------------------------------- by hand


def test_a_clear_winner_beats_and_twins_are_tied():
    """Nothing but 1 against nothing but 0 on 40 tasks, and two agents with the same outcomes."""
    outcomes = marks("1" * 40, "10" * 20, "10" * 20, "0" * 40)
    found = answer(record_of(outcomes, names=["best", "one", "two", "worst"]))
    ranks = {line.agent: (line.at["full"].rank_lower, line.at["full"].rank_upper) for line in found.agents}
    assert ranks == {"best": (1, 1), "one": (2, 3), "two": (2, 3), "worst": (4, 4)}
    assert [line.at["full"].rank for line in found.agents] == [1, 2, 2, 4]
    assert [line.at["full"].tied_with for line in found.agents] == [(), ((2, 2),), ((1, 1),), ()]
    assert found.targets["full"].may_be_first == ("best",)
    assert by_name(found)["one"].flags == ("the same outcome as two on every task",)
    assert by_name(found)["one"].marks == ("flagged",)
    assert (found.phase, found.target, found.subset) == ("cold_start", "full", None)


def test_one_trial_a_task():
    """Finite: √(ȳ(1 − ȳ)/N), an upper bound, t with N − 1; domain: s/√N; one naive error for both."""
    outcomes = board(4, 20)
    found = answer(record_of(outcomes))
    x = outcomes[1]
    full, domain = at(found, "a01"), at(found, "a01", "domain")
    assert (full.method, domain.method) == ("upper bound", "domain")
    assert (full.upper_bound, domain.upper_bound) == (True, False)
    assert (
        full.se
        == full.naive_se
        == domain.naive_se
        == pytest.approx(math.sqrt(x.mean() * (1 - x.mean()) / 20))
    )
    assert domain.se == pytest.approx(stats.sem(x))
    assert domain.upper - domain.score == pytest.approx(stats.t.ppf(0.975, 19) * domain.se)
    assert found.not_measured[0].startswith("how much the trials of one task vary")


def test_repeated_trials():
    """SE² = N⁻²·Σ s²_j/R_j over the agent's tasks."""
    x = np.random.default_rng(3).integers(0, 2, (4, 12, 3))
    found = answer(record_of(x.mean(axis=2), n_trials=3, trial_variances=x.var(axis=2, ddof=1)))
    for i in range(4):
        told = at(found, f"a{i:02d}")
        assert (told.method, told.upper_bound) == ("repeated trials", False)
        assert told.se == pytest.approx(math.sqrt(np.sum(x[i].var(axis=1, ddof=1) / 3)) / 12)
    assert not any("trials of one task" in words for words in found.not_measured)


def test_trials_that_repeat_each_other_count_as_one():
    x = np.random.default_rng(1).integers(0, 2, (5, 120)).astype(float)
    record = record_of(x, n_trials=2, trial_variances=np.zeros(x.shape))
    copies = Repeats(reason="not measured: copies", copies="two trials agree on 120 of 120 tasks")
    told = by_name(answer(replace(record, repeats=(copies,) * 5)))["a02"]
    y = x[2].mean()
    assert told.flags == (copies.copies,)
    assert told.at["full"].se == pytest.approx(math.sqrt(y * (1 - y) / 120))


def test_intervals_are_clipped():
    outcomes = np.ones((6, 20))
    outcomes[0, 0] = 0
    found = answer(record_of(outcomes))
    assert at(found, "a00").upper == 1.0
    assert 0 < at(found, "a00").lower < 0.95


# -------------------------------------------------------------------------------------------------- foreign


def test_estimated_scores_against_scikit_learn():
    outcomes, tasks = with_newcomers()
    found = answer(record_of(outcomes), RIDGE)
    complete, scores = outcomes[:14], outcomes[:14].mean(axis=1)
    ridge = Ridge(alpha=1.0).fit(complete[:, tasks], scores)
    residuals = []
    for i in range(14):
        others = np.arange(14) != i
        chosen = band(complete[others])
        left = Ridge(alpha=1.0).fit(complete[np.ix_(others, chosen)], scores[others])
        residuals.append(scores[i] - left.predict(complete[i : i + 1, chosen])[0])
    s = math.sqrt(np.mean(np.square(residuals)))
    predicted = ridge.predict(outcomes[14:, tasks])
    for name, value in zip(("a14", "a15"), predicted, strict=True):
        told = at(found, name)
        assert told.score == pytest.approx(value, abs=1e-10)
        assert told.se == pytest.approx(s, abs=1e-10)
        assert (told.estimated, told.source, told.method) == (True, "normal", "calibration")
        half = stats.t.ppf(0.975, 13) * s * math.sqrt(1 + 1 / 14)
        assert told.upper == pytest.approx(min(value + half, 1), abs=1e-10)
        assert told.rank is not None
        assert by_name(found)[name].how == "estimated"
    assert found.targets["full"].method == "errors of scores and resampled tasks"
    assert found.targets["full"].n_ranked == 16
    ranks = {line.agent: line.at["full"].rank for line in found.agents}
    values = np.round([*scores, *predicted], 9)
    assert ranks == {f"a{i:02d}": 1 + int(np.sum(values > values[i])) for i in range(16)}
    assert found.targets["domain"].n_ranked == 14
    assert "were not run" in at(found, "a14", "domain").reason


def test_a_new_scaffold_has_its_own_error():
    outcomes, _ = with_newcomers()
    scaffolds = [f"s{i % 6}" for i in range(14)] + ["s0", "unseen"]
    found = answer(record_of(outcomes, scaffolds=scaffolds), RIDGE)
    complete, scores = outcomes[:14], outcomes[:14].mean(axis=1)
    residuals = np.empty(14)
    for s in range(6):
        out = np.arange(14) % 6 == s
        chosen = band(complete[~out])
        model = Ridge(alpha=1.0).fit(complete[np.ix_(~out, chosen)], scores[~out])
        residuals[out] = scores[out] - model.predict(complete[np.ix_(out, chosen)])
    groups = [residuals[np.arange(14) % 6 == s] for s in range(6)]
    sizes = np.array([group.size for group in groups])
    means = np.array([group.mean() for group in groups])
    between = np.sum(sizes * (means - residuals.mean()) ** 2) / 5
    within = sum(np.sum((group - group.mean()) ** 2) for group in groups) / 8
    n_0 = (14 - np.sum(sizes**2) / 14) / 5
    sigma_s2 = max(0.0, (between - within) / n_0)
    new, old = at(found, "a15"), at(found, "a14")
    assert (new.source, old.source) == ("new scaffold", "normal")
    assert new.se == pytest.approx(math.sqrt(sigma_s2 * 7 / 6 + within), abs=1e-10)
    assert new.se != pytest.approx(old.se)


# ----------------------------------------------------------------------------------- the full score's edges


def test_an_estimate_lies_in_what_the_outcomes_leave_open():
    """An agent that failed all of the subset cannot reach more than what it has not run."""
    outcomes, tasks = with_newcomers(n_agents=20, n_tasks=80)
    outcomes[20, tasks] = 0.0
    told = at(answer(record_of(outcomes), FULL), "a20")
    highest = (80 - tasks.size) / 80
    assert 0 <= told.lower <= told.score <= told.upper <= highest


@pytest.mark.parametrize("n_passed", [2, 5, 10])
def test_an_estimate_is_never_below_what_is_certain(n_passed):
    """It failed all of S, and passed some tasks outside."""
    outcomes, tasks = with_newcomers(n_agents=20, n_tasks=80)
    outcomes[20, tasks] = 0.0
    outcomes[20, np.setdiff1d(np.arange(80), tasks)[:n_passed]] = 1.0
    told = at(answer(record_of(outcomes), FULL), "a20")
    assert told.estimated
    assert n_passed / 80 <= told.lower <= told.score <= told.upper <= (80 - tasks.size) / 80


def test_under_ten_complete_agents_nothing_is_estimated():
    outcomes, _ = with_newcomers(n_agents=9)
    found = answer(record_of(outcomes), FULL)
    told = at(found, "a09")
    assert (told.rank, told.lower, told.se, told.score) == (None, None, None, None)
    assert told.reason == "an estimate needs 10 full runs and there are 9"
    assert found.targets["full"].n_ranked == 9
    assert found.targets["full"].method == "resampled tasks"


def test_a_new_scaffold_among_few_has_the_error_of_the_others():
    outcomes, _ = with_newcomers()
    scaffolds = ["s"] * 15
    new, known = (
        at(answer(record_of(outcomes, scaffolds=[*scaffolds, last]), FULL), "a15") for last in ("unseen", "s")
    )
    assert (new.source, new.se) == (f"{known.source}; new scaffold: not calibrated for it", known.se)
    found = answer(record_of(outcomes, scaffolds=[*scaffolds, "unseen"]), FULL)
    assert [line.agent for line in found.agents if "new scaffold" in line.marks] == ["a15"]
    assert found.targets["full"].n_ranked == 16


def test_what_was_fitted_is_used_while_it_is_of_these_tasks_and_agents():
    outcomes, tasks = with_newcomers()
    record = record_of(outcomes)
    names = tuple(record.table.tasks[j] for j in tasks)
    none = (None,) * 12
    wide = FittedOn("ridge", names, record.table.agents[:12], none, (0.1,) * 12, none, none)
    told = at(answer(record, RIDGE, PriorDecisions(fitted=wide)), "a14")
    assert told.se == pytest.approx(0.1)
    ridge = Ridge(alpha=1.0).fit(outcomes[:12, tasks], outcomes[:12].mean(axis=1))
    assert told.score == pytest.approx(ridge.predict(outcomes[14:15, tasks])[0], abs=1e-10)
    other = replace(wide, tasks=names[1:])
    assert at(answer(record, RIDGE, PriorDecisions(fitted=other)), "a14").se != pytest.approx(0.1)
    gone = replace(wide, agents=(*record.table.agents[:11], "gone"))
    assert at(answer(record, RIDGE, PriorDecisions(fitted=gone)), "a14").se != pytest.approx(0.1)
    by_line = Rules(target="full", estimator="line")
    assert at(answer(record, by_line, PriorDecisions(fitted=wide)), "a14").se != pytest.approx(0.1)


def test_a_perfect_agent_keeps_a_rank_interval_beside_estimated_ones():
    outcomes, _ = with_newcomers(n_agents=20)
    outcomes[3] = 1.0
    told = at(answer(record_of(outcomes), FULL), "a03")
    assert (told.se, told.rank, told.rank_lower) == (None, 1, 1)
    assert "a standard error of 0" in told.reason
    assert told.rank_upper < 20


@pytest.mark.parametrize("share", [0.0, 0.1, 0.7, 1.0])
def test_ties_are_told_as_ranges_of_places(share):
    rng = np.random.default_rng(4)
    tied, order = np.triu(rng.random((23, 23)) < share, 1), rng.permutation(23)
    tied |= tied.T
    for place, ranges in enumerate(tied_ranges(tied, order)):
        told = [at for first, last in ranges for at in range(first, last + 1)]
        assert told == [at for at in range(23) if tied[order[place], order[at]]]
        assert all(later - last > 1 for (_, last), (later, _) in pairwise(ranges))


# --------------------------------------------------------------------------------------------- newcomers on S


def test_the_incumbent_shift_widens_new_against_old_alone():
    outcomes, tasks = with_newcomers(n_new=3)
    record = record_of(outcomes)
    incumbents = outcomes[:14]
    shifts = [
        incumbents[i, tasks].mean() - incumbents[i, band(np.delete(incumbents, i, 0))].mean()
        for i in range(14)
    ]
    from selection.standings.answering import basis_of, shift_of

    found = basis_of(record, Rules(), PriorDecisions())
    assert shift_of(found, Rules()) == pytest.approx(np.var(shifts, ddof=1), rel=1e-9)
    alone = basis_of(record_of(incumbents), Rules(), PriorDecisions())
    assert shift_of(alone, Rules()) == 0.0
    # In the decision and not in the draws: the critical value is that of the same outcomes without a shift.
    agents = [
        Measured(name, row, Row(row))
        for name, row in zip(record.table.agents, outcomes[:, tasks], strict=True)
    ]
    added = np.zeros((17, 17))
    added[:14, 14:] = added[14:, :14] = np.var(shifts, ddof=1)
    plain, wider = (rank_sets(agents, TrialNoise(), seed=0, added=one) for one in (None, added))
    told = answer(record)
    assert told.targets["subset"].critical == plain.critical
    for i, name in enumerate(record.table.agents):
        line = at(told, name, "subset")
        assert (line.rank_lower, line.rank_upper) == (wider.lower[i], wider.upper[i])


@pytest.mark.parametrize("changed", ["", "a newcomer", "an incumbent", "the seed"])
def test_the_incumbent_shift_is_asked_for_once(monkeypatch, changed):
    from selection.standings import choice
    from selection.standings.answering import basis_of, shift_of

    asked = []
    plan = choice.nested_plan
    monkeypatch.setattr(choice, "nested_plan", lambda *what: asked.append(1) or plan(*what))
    outcomes, _ = with_newcomers(n_new=3)
    kept, rules, given = FitCache(), Rules(), PriorDecisions()
    shift_of(basis_of(record_of(outcomes), rules, given), rules, kept)
    if changed == "a newcomer":
        outcomes = np.concatenate([outcomes, outcomes[-1:]])
    elif changed == "an incumbent":
        outcomes[0, 0] = 1 - outcomes[0, 0]
    elif changed == "the seed":
        rules = Rules(seed=5)
    found = basis_of(record_of(outcomes), rules, given)
    told = shift_of(found, rules, kept)
    assert len(asked) == 1 + (changed in ("an incumbent", "the seed"))
    assert told == shift_of(found, rules) > 0


# ----------------------------------------------------------------------------------------------- variances


def test_a_variance_study_widens_and_names_what_was_measured():
    outcomes = board(6, 40)
    facets = (Facet("run", 0.001, 0.0), Facet("prompt"), Facet("judge", 0.002, 0.001))
    given = PriorDecisions(facets=facets)
    plain, wider = answer(record_of(outcomes)), answer(record_of(outcomes), None, given)
    added = at(wider, "a02").se ** 2 - at(plain, "a02").se ** 2
    assert added == pytest.approx(0.001 + 0.002)  # by how much judges differ is no error: they are fixed
    assert [one for one in wider.not_measured if "judge" in one or "full runs" in one] == []
    assert any("judge" in one for one in plain.not_measured)


def test_no_order_is_claimed_where_missing_outcomes_could_turn_it():
    outcomes = board(n_agents=12, n_tasks=400)
    missing = np.flatnonzero(outcomes[5] == 0)[:18]  # under 5%: the agent stays complete
    lost = np.zeros(outcomes.shape, bool)
    lost[5, missing] = True
    outcomes[5, missing] = NAN
    outcomes[6] = outcomes[5]
    outcomes[6, missing] = 0.0
    found = answer(record_of(outcomes, lost=lost), FULL)
    places = [line.agent for line in found.agents]
    tied = {places[j] for first, last in at(found, "a05").tied_with for j in range(first, last + 1)}
    assert "a06" in tied
    assert by_name(found)["a05"].how == "completed"


# ---------------------------------------------------------------------------------------------- properties


@pytest.mark.parametrize("target", ["subset", "full", "domain"])
def test_ranks_and_ties(target):
    outcomes, _ = with_newcomers(n_agents=20, n_new=3)
    outcomes[3] = outcomes[2]
    found = answer(record_of(outcomes), Rules(target=target))
    assert found.target == target
    ranked = [line for line in found.agents if line.at[target].rank is not None]
    scores = np.round([line.at[target].score for line in ranked], 9)
    places = {line.agent: i for i, line in enumerate(found.agents)}
    ties = {
        line.agent: {found.agents[j].agent for a, b in line.at[target].tied_with for j in range(a, b + 1)}
        for line in found.agents
    }
    for line, score in zip(ranked, scores, strict=True):
        told = line.at[target]
        assert told.rank == 1 + int(np.sum(scores > score))
        assert told.rank_lower <= told.rank <= told.rank_upper
        assert line.agent not in ties[line.agent]
        assert all(line.agent in ties[other] for other in ties[line.agent])
        n_beaten = len(ranked) - told.rank_upper
        n_beating = told.rank_lower - 1
        assert len(ties[line.agent]) == len(ranked) - 1 - n_beaten - n_beating
    assert "a03" in ties["a02"]
    keys = [(line.at[target].rank, line.agent) for line in ranked]
    assert keys == sorted(keys)
    assert sorted(places.values()) == list(range(len(places)))
    first = set(found.targets[target].may_be_first)
    assert {line.agent for line in ranked if line.at[target].rank == 1} <= first
    assert first <= {line.agent for line in ranked if line.at[target].rank_lower == 1}


def test_the_order_of_agents_and_their_names_leave_no_trace():
    """Renaming the agents permutes the rows; outcomes, scores and standard errors go with the rows."""
    outcomes, _ = with_newcomers(n_agents=18, n_new=2)
    order = np.random.default_rng(1).permutation(20)
    one = answer(record_of(outcomes))
    two = answer(record_of(outcomes[order]))
    for place, i in enumerate(order):
        a, b = by_name(one)[f"a{i:02d}"], by_name(two)[f"a{place:02d}"]
        for target in ("subset", "full", "domain"):
            x, y = a.at[target], b.at[target]
            assert (x.rank, x.n_valid) == (y.rank, y.n_valid)
            assert x.score == (y.score if y.score is None else pytest.approx(y.score, abs=1e-12))
            assert x.se == (y.se if y.se is None else pytest.approx(y.se, rel=1e-9))
    assert one.subset.tasks == two.subset.tasks


def test_an_unranked_agent_more_changes_nothing_else():
    outcomes, tasks = with_newcomers(n_agents=18, n_new=2)
    part = np.full(60, NAN)
    part[tasks[:5]] = 1.0
    one = answer(record_of(outcomes))
    two = answer(record_of(np.vstack([outcomes, part]), names=[f"a{i:02d}" for i in range(20)] + ["z"]))
    assert two.agents[:-1] == one.agents
    assert two.targets == one.targets
    assert two.subset == one.subset
    assert two.savings["so_far"] == one.savings["so_far"]
    last = two.agents[-1]
    assert (last.agent, last.how, last.marks) == ("z", "incomplete", ("incomplete",))
    low, high = last.at["subset"].bounds
    assert low == pytest.approx(5 / tasks.size)
    assert high == 1.0


def test_a_newcomer_leaves_what_is_measured_of_the_others():
    outcomes, _ = with_newcomers(n_agents=18, n_new=2)
    one, two = answer(record_of(outcomes[:18])), answer(record_of(outcomes))
    for line in one.agents:
        other = by_name(two)[line.agent]
        for target in ("subset", "full", "domain"):
            assert (line.at[target].score, line.at[target].se) == (
                other.at[target].score,
                other.at[target].se,
            )
    assert one.targets["domain"] == two.targets["domain"]


def test_answers_are_the_same_each_time_and_read_back():
    record = record_of(with_newcomers()[0])
    one, two = answer(record), answer(record)
    assert one == two
    assert Standings.of_plain(json.loads(json.dumps(one.as_plain(), allow_nan=False))) == one
    other = answer(record, Rules(seed=5))
    assert other.targets["subset"].critical != one.targets["subset"].critical


# ---------------------------------------------------------------------------------------- degenerate boards


@pytest.mark.parametrize(
    "outcomes",
    [
        marks("1011001110"),
        marks(*["1" * 20] * 16),
        marks(*["0" * 20] * 6),
        marks(*["10" * 10] * 16),
        marks("101", "010"),
        marks("1" + "." * 9, "." * 9 + "1"),
        np.full((3, 8), NAN),
        np.full((16, 20), 0.5),
    ],
    ids=[
        "one agent",
        "all pass",
        "all fail",
        "all alike",
        "three tasks",
        "nothing shared",
        "nothing",
        "graded",
    ],
)
def test_degenerate_boards_have_reasons_and_no_nan(outcomes):
    found = answer(record_of(outcomes))
    json.dumps(found.as_plain(), allow_nan=False)
    for line in found.agents:
        for told in line.at.values():
            assert told.se or told.reason
            assert told.se != 0
            assert (told.rank is None) <= bool(told.reason)
    for line in found.targets.values():
        assert line.n_ranked or line.reason


def test_under_five_tasks_ranks_are_refused_with_the_number():
    found = answer(record_of(marks("101", "010")))
    assert "need at least 5 tasks; there are 3" in found.targets["full"].reason
    assert "ranks need at least 5 tasks, not 3" in found.targets["domain"].reason
    assert (found.targets["full"].note, found.targets["full"].method) == ("", "")
    assert (at(found, "a00").rank, at(found, "a00").rank_lower) == (1, None)
    assert at(found, "a00").se is not None
