"""Kept or chosen anew: nested figures against plain loops, and what is told of a proposal."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from selection.errors import SelectionError
from selection.folds import Rule
from selection.prior import PriorDecisions, SubsetVersion
from selection.reselection import carry
from selection.rules import Rules
from selection.standings import answer
from selection.standings.choice import choice, training
from selection.standings.reselecting import proposals_of
from selection.standings.validating import validation_of
from selection.validation.figures import clear_pairs
from selection.validation.replacing import IN_USE, PLAIN, WITH_HYSTERESIS, SubsetInUse, expected
from tests.refusals import refused
from tests.selection.records import by_name, record_of
from tests.selection.reference import full_score
from tests.toys import FIRST, LATER, S_FIRST, S_HYSTERESIS, S_PLAIN, passing

N = 16


def outcomes():
    """16 incumbents and 16 that came later, on 20 tasks."""
    both = passing(FIRST) | passing(LATER, seed=1, prefix="b")
    return np.array([[float(mark) for mark in marks] for marks in both.values()])


def positions(names):
    return np.array([int(name[1:]) for name in names])


def dates(n=2 * N):
    return tuple(date(2026, 1, 1) + timedelta(i) for i in range(n))


def record(x=None, **options):
    x = outcomes() if x is None else x
    names = [f"a{i:02d}" for i in range(N)] + [f"b{i:02d}" for i in range(len(x) - N)]
    return record_of(x, names=names, dates=dates(len(x)), **options)


def version(tasks, incumbents, number=1):
    return SubsetVersion(
        number=number,
        tasks=tuple(f"t{j:03d}" for j in tasks),
        chosen_from=tuple(incumbents),
        arrival=N - 1,
        fixed_on=date(2026, 1, N),
        lo=0.3,
        hi=0.7,
        widened=False,
        provisional=False,
        strategy="mid_range",
        reason="9 of 20 tasks have a pass rate from 30% to 70%",
        n_complete=N,
        n_tasks=20,
    )


GIVEN = PriorDecisions(subsets=(version(range(9), [f"a{i:02d}" for i in range(N)]),))


def replaced(x=None, **options):
    found = record(x)
    agents = training(found)
    described = {
        "agents": agents,
        "clear": clear_pairs(agents.outcomes, agents.scores),
        "in_use": positions(S_FIRST),
        "incumbents": np.arange(agents.n) < N,
        "rule": Rule(hysteresis=0.05),
        "strategy": "mid_range",
        "estimator": "completion",
        "base_seed": 0,
    }
    return SubsetInUse(**described | options)


SUBSETS = {IN_USE: positions(S_FIRST), PLAIN: positions(S_PLAIN), WITH_HYSTERESIS: positions(S_HYSTERESIS)}


def in_band(rates):
    return [j for j, p in enumerate(rates) if 0.3 - 1e-9 <= p <= 0.7 + 1e-9]


def stays(rates, previous):
    return sorted({*in_band(rates), *(j for j in previous if 0.25 - 1e-9 <= rates[j] <= 0.75 + 1e-9)})


def kept_without(x, i):
    """S for whom it was not chosen from; else what the other incumbents choose."""
    others = [a for a in range(N) if a != i]
    return list(range(9)) if i >= N else in_band(x[others].mean(axis=0))


def chosen(way, x, i, before):
    """The tasks of held-out i; `before` are its training agents in time, None: all others."""
    others = [a for a in range(len(x)) if a != i] if before is None else before
    rates = x[others].mean(axis=0)
    if way == PLAIN:
        return in_band(rates)
    if before is None:
        return kept_without(x, i) if way == IN_USE else stays(rates, kept_without(x, i))
    if way == IN_USE:
        return list(range(9)) if set(range(N)) <= set(before) else in_band(rates)
    path = []
    for n in range(10, len(before) + 1):
        path = stays(x[:n].mean(axis=0), path)
    return path


def share_in_order(scores, y, i, others, mine):
    compared = [j for j in others if abs(y[j] - y[i]) > 1e-12]
    right = [
        0.5 if abs(mine - scores[j]) < 1e-9 else float((mine > scores[j]) == (y[i] > y[j])) for j in compared
    ]
    return np.mean(right)


def by_loops(x, way, protocol):
    """pairs_correct and pairs_correct_full, fold by fold; ŷ by scikit-learn and scipy."""
    y, shares, full = x.mean(axis=1), [], []
    for i in range(0 if protocol == "loao" else 10, len(x)):
        others = [a for a in range(len(x)) if a != i] if protocol == "loao" else list(range(i))
        tasks = chosen(way, x, i, None if protocol == "loao" else others)
        r = x[:, tasks].mean(axis=1)
        shares.append(share_in_order(r, y, i, others, r[i]))
        told = full_score("completion", x[others], y[others], np.array(tasks), x[i, tasks], n_before=i)
        full.append(share_in_order(y, y, i, others, float(told)))
    return np.mean(shares), np.mean(full)


@pytest.mark.parametrize("protocol", ["loao", "temporal"])
def test_figures_are_those_of_plain_loops(protocol):
    x, told = outcomes(), expected(replaced(), SUBSETS)
    loops = {way: by_loops(x, way, protocol) for way in SUBSETS}
    for way, (pairs, full) in loops.items():
        found = told[way][protocol]
        assert found["pairs_correct"] == pytest.approx(pairs, abs=1e-12)
        assert found["pairs_correct_full"] == pytest.approx(full, abs=1e-12)
        assert (found["n_folds"], found["n_skipped"]) == (32 if protocol == "loao" else 22, 0)
        if way != IN_USE:
            gained = loops[way][1] - loops[IN_USE][1]
            assert found["difference"]["value"] == pytest.approx(gained, abs=1e-12)
    assert told[IN_USE][protocol]["difference"] == {"value": None, "se": None}


def test_what_changes_nothing_gains_nothing():
    """All agents are incumbents: kept and plain choose the same in every fold."""
    x = outcomes()[:N]
    found = replaced(x, incumbents=np.ones(N, dtype=bool))
    told = expected(found, {IN_USE: positions(S_FIRST), PLAIN: positions(S_FIRST)})
    kept, plain = told[IN_USE]["loao"], told[PLAIN]["loao"]
    assert kept | {"difference": None} == plain | {"difference": None}
    assert plain["difference"] == {"value": 0.0, "se": 0.0}


def test_without_dates_nothing_is_told_in_time():
    found = replaced()
    agents = replace(found.agents, dates=(None,) * 32)
    told = expected(replace(found, agents=agents), SUBSETS)
    assert "date" in told[IN_USE]["temporal"]["reason"]
    assert "rho" not in told[PLAIN]["temporal"]
    assert "rho" in told[PLAIN]["loao"]


def test_a_fold_that_lacks_a_subset_is_left_out_for_all():
    """Five incumbents: without one of them four are left, who choose nothing: 5 of 32 folds."""
    told = expected(replaced(incumbents=np.arange(32) < 5), SUBSETS)
    assert {told[way]["loao"]["n_skipped"] for way in SUBSETS} == {5}
    assert {told[way]["loao"]["n"] for way in SUBSETS} == {27}
    few = expected(replaced(outcomes()[:20], incumbents=np.arange(20) < 5), SUBSETS)
    assert few[PLAIN]["loao"]["reason"] == (
        "15 of 20 folds have a subset by every rule; at most a fifth may lack one"
    )


def test_a_proposal_by_hand():
    told = proposals_of(record(), Rules(), GIVEN, {"t009": 13 / 16})
    plain, other = told["variants"]["plain"], told["variants"]["hysteresis"]
    assert [int(task[1:]) for task in plain["tasks"]] == positions(S_PLAIN).tolist()
    assert [int(task[1:]) for task in other["tasks"]] == positions(S_HYSTERESIS).tolist()
    assert plain["entering"][0] == {"task": "t009", "then": 13 / 16, "now": 21 / 32}
    assert plain["entering"][1] == {"task": "t011", "then": None, "now": 12 / 32}
    rates = outcomes().mean(axis=0)
    assert positions(S_HYSTERESIS).tolist() == carry(np.arange(9), rates, 32).tolist()


def test_the_board_after_estimates_who_ran_the_version_in_use_from_what_it_ran():
    row = np.full((1, 20), np.nan)
    row[0, :9] = np.arange(9) % 2
    found = record(np.vstack([outcomes(), row]), submitted=[32])
    told = proposals_of(found, Rules(), GIVEN, {})["variants"]["plain"]["board"]
    (mine,) = (line for line in told["agents"] if line["agent"] == "b16")
    assert (mine["before"]["how"], mine["after"]["how"]) == ("estimated", "estimated")
    expected_score = full_score("completion", outcomes(), None, np.arange(9), row[0, :9], n_before=32)
    assert told["target_after"] == "full"
    assert mine["after"]["score"] == pytest.approx(expected_score, abs=1e-8)
    before = by_name(answer(found, Rules(), GIVEN))["b16"].at["full"]
    assert mine["before"]["score"] == before.score


def test_another_strategy_proposes_what_it_chooses():
    rules = Rules(strategy="spread")
    told = proposals_of(record(), rules, GIVEN, {})
    afresh = choice(record(), rules, PriorDecisions())
    assert told["variants"]["plain"]["tasks"] == [f"t{j:03d}" for j in afresh.tasks]
    assert told["variants"]["plain"]["reason"] == afresh.reason
    assert "tasks" not in told["variants"]["hysteresis"]


def test_copies_and_whoever_is_withheld_have_no_say():
    """The later agents are withheld: nothing has changed."""
    found = record()
    about = [replace(one, withheld="waits") if i >= N else one for i, one in enumerate(found.about)]
    kept = replace(found, about=tuple(about), complete=found.complete & (np.arange(32) < N))
    told = proposals_of(kept, Rules(), GIVEN, {})
    assert (told["n_complete"], told["chosen_from"]) == (N, [f"a{i:02d}" for i in range(N)])
    assert told["variants"]["plain"]["entering"] == told["variants"]["plain"]["leaving"] == []


def test_a_thin_band_is_no_proposal_and_says_why():
    """By hand: 16 of 112 agents pass anything, so that no rate is above 14%."""
    x = np.vstack([outcomes()[:N], np.zeros((96, 20))])
    told = proposals_of(record(x), Rules(), GIVEN, {})["variants"]
    assert "(10%) are needed" in told["plain"]["reason"]
    assert "tasks" not in told["plain"]
    assert told["hysteresis"] == told["plain"]


def test_there_is_nothing_to_replace_before_a_version():
    with refused(SelectionError, "nothing_to_replace"):
        proposals_of(record(), Rules(), PriorDecisions(), {})


@pytest.mark.parametrize("strategy", ["mid_range", "spread", "random"])
def test_the_plain_rule_shows_what_a_validation_shows(strategy):
    """On folds in which every way has a subset, which are all: two doors to the same figures."""
    rules = Rules(strategy=strategy)
    told = proposals_of(record(), rules, GIVEN, {})["variants"]["plain"]["figures"]
    options = {"protocols": ("loao", "temporal"), "strategies": (strategy,), "seeds": 1}
    study = validation_of(record(), rules, **options, other_estimators=False, coverage=False)
    for protocol in ("loao", "temporal"):
        theirs = study["protocols"][protocol]["strategies"][strategy]
        for figure in ("pairs_correct", "pairs_correct_full", "rho", "rho_rest", "n"):
            assert told[protocol][figure] == pytest.approx(theirs[figure], abs=1e-12)
        assert told[protocol]["se"]["pairs_correct_full"] == pytest.approx(
            theirs["se"]["pairs_correct_full"], abs=1e-12
        )
