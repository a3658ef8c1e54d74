"""Staged assignment: the model by another program, the rule by hand, the replay by naive loops."""

import itertools
import json
import math
from dataclasses import asdict
from dataclasses import replace as changed
from datetime import date, timedelta

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import t

from selection import rasch, validation_text
from selection.cli import main
from selection.errors import SelectionError
from selection.folds import CompleteAgents
from selection.staged import model as staged_model
from selection.staged import replay as staged_replay
from selection.staged import text as staged_text
from selection.staged import walks
from selection.staged.histories import walked
from selection.staged.model import ModelEstimate, completed, estimate, fit, means_before, window_of
from selection.staged.replay import Figure, StagedReplay, best, clear, replay, right, verdict
from selection.staged.study import AssignmentRule, WalkResult, replayed
from selection.staged.teaching import FullRun, first_size, scale_of, taught
from selection.staged.text import points
from selection.staged.walks import Fit, Stage, Staging, decide, next_batch, step
from selection.standings import words
from tests.once import once
from tests.refusals import refused
from tests.selection.records import record_of
from tests.selection.reference import joint_model


def simulated(n=24, m=40, *, seed=1, run=1.0, graded=False, rising=2.0):
    """Outcomes of agents that rise, on tasks of all difficulties; the first five ran everything."""
    rng = np.random.default_rng(seed)
    ability = np.linspace(-1, rising - 1, n) + rng.normal(0, 0.4, n)
    passing = 1 / (1 + np.exp(-(ability[:, None] - rng.normal(0, 1.5, m))))
    outcomes = (
        rng.beta(4 * passing, 4 * (1 - passing)) if graded else (rng.random((n, m)) < passing).astype(float)
    )
    gone = rng.random((n, m)) > run
    gone[:5] = False
    return np.where(gone, np.nan, outcomes)


def complete(outcomes, *, dated=True):
    n = len(outcomes)
    names = tuple(f"a{i:03d}" for i in range(n))
    day = date(2025, 1, 1)
    dates = tuple(day + timedelta(days=i) for i in range(n)) if dated else (None,) * n
    return CompleteAgents(names, outcomes, np.nanmean(outcomes, axis=1), dates, names, names)


def likelihood(outcomes, abilities, difficulties):
    distance = abilities[:, None] - difficulties
    logs = outcomes * -np.logaddexp(0, -distance) + (1 - outcomes) * -np.logaddexp(0, distance)
    return float(np.nansum(logs))


# ----------------------------------------------------------------------------------------------------- model


@pytest.mark.parametrize(("run", "graded"), [(1.0, False), (0.4, False), (0.5, True)])
def test_the_fit_is_the_maximum_that_scipy_finds(run, graded):
    outcomes = simulated(12, 20, run=run, graded=graded)
    n = len(outcomes)
    found = fit(outcomes)

    def loss(x):
        apart = x[:n] - found.means
        prior = found.dispersion * apart @ apart / (2 * found.spread) + x[n:] @ x[n:] / 8 + x[0] ** 2 / 200
        return prior - likelihood(outcomes, x[:n], x[n:])

    def slope(x):
        beyond = np.nan_to_num(outcomes - 1 / (1 + np.exp(-(x[:n, None] - x[n:]))))
        for_abilities = (x[:n] - found.means) * found.dispersion / found.spread - beyond.sum(axis=1)
        for_abilities[0] += x[0] / 100
        return np.concatenate([for_abilities, x[n:] / 4 + beyond.sum(axis=0)])

    other = minimize(
        loss, np.zeros(n + 20), jac=slope, method="BFGS", options={"gtol": 1e-10, "maxiter": 10000}
    )
    assert np.abs(other.x - np.concatenate([found.abilities, found.difficulties])).max() < 1e-7


@pytest.mark.parametrize("passed", [0.0, 1.0])
@pytest.mark.parametrize("dated", [True, False])
def test_a_first_agent_that_passed_nothing_or_everything_has_an_ability(passed, dated):
    outcomes = simulated(9, 40)
    outcomes[0] = passed
    found = fit(outcomes, None if dated else np.zeros(9, dtype=np.intp))
    abilities, difficulties, spread, *_ = joint_model(outcomes, dated)
    assert np.abs(found.abilities - abilities).max() < 1e-6
    assert np.abs(found.difficulties - difficulties).max() < 1e-6
    assert found.spread == pytest.approx(spread, abs=1e-6)
    assert (found.abilities[0] > found.abilities[1:].max()) == (passed == 1.0)


def test_a_history_that_begins_with_an_agent_that_passed_nothing_is_replayed():
    outcomes = simulated(14, 40, rising=2.0)
    outcomes[:2] = 0.0
    found = replay(complete(outcomes), n_seeds=1)
    assert found.pairs.value > 0.8


@pytest.mark.parametrize(("run", "graded"), [(0.4, False), (0.5, True)])
def test_means_spread_and_dispersion_are_what_the_model_defines(run, graded):
    outcomes = simulated(14, 20, run=run, graded=graded)
    found = fit(outcomes)
    passing = 1 / (1 + np.exp(-(found.abilities[:, None] - found.difficulties)))
    ran = ~np.isnan(outcomes)
    squares, within, ratio = 0.0, 0.0, 0.0
    for i in range(14):
        before = found.abilities[max(0, i - 10) : i] if i else found.abilities[:1]
        assert found.means[i] == pytest.approx(before.mean(), abs=1e-9)
        weight = sum(passing[i, j] * (1 - passing[i, j]) for j in range(20) if ran[i, j])
        squares += (found.abilities[i] - found.means[i]) ** 2
        squares += found.dispersion / (weight + found.dispersion / found.spread)
        within += weight
        ratio += sum((outcomes[i, j] - passing[i, j]) ** 2 for j in range(20) if ran[i, j])
    assert found.spread == pytest.approx(max((squares + 5) / 19, 0.09), abs=1e-9)
    assert found.dispersion == pytest.approx(min(ratio / within, 1.2) if graded else 1.0, abs=1e-9)


def test_with_the_priors_of_the_other_rasch_model_it_is_that_model(monkeypatch):
    outcomes = simulated(16, 30, run=0.6)
    monkeypatch.setattr(staged_model, "DIFFICULTY_VARIANCE", 9.0)
    monkeypatch.setattr(staged_model, "means_before", lambda abilities, begin, end: 0.0 * abilities)
    monkeypatch.setattr(staged_model, "_spread", lambda apart, variances: 9.0)
    found, other = fit(outcomes), rasch.fit(outcomes)
    distance = found.abilities[:, None] - found.difficulties
    assert np.abs(distance - (other.abilities[:, None] - other.difficulties)).max() < 1e-8


@pytest.mark.parametrize("seed", [53, 107, 128, 136])
def test_abilities_that_lie_far_apart_are_fitted(seed):
    # steps of τ² went to and fro on these
    rng = np.random.default_rng(seed)
    distance = rng.normal(0.0, 4.0, 39)[:, None] - rng.normal(size=16)
    outcomes = (rng.random((39, 16)) < 1 / (1 + np.exp(-distance))).astype(float)
    found = fit(outcomes)
    passing = 1 / (1 + np.exp(-(found.abilities[:, None] - found.difficulties)))
    of_abilities = (passing * (1 - passing)).sum(axis=1) + 1 / found.spread
    variance = ((found.abilities - found.means) ** 2).sum() + (1 / of_abilities).sum()
    assert found.spread == pytest.approx((variance + 5) / 44, abs=1e-9)


def test_a_warm_start_ends_where_a_cold_one_does():
    outcomes = simulated(20, 40, run=0.5)
    cold, warm = fit(outcomes), fit(outcomes, start=fit(outcomes[:-3]))
    assert np.abs(cold.abilities - warm.abilities).max() < 1e-8
    assert np.abs(cold.difficulties - warm.difficulties).max() < 1e-8
    assert abs(cold.spread - warm.spread) < 1e-8


def test_agents_of_one_delivery_share_a_mean():
    def means(abilities, first):
        return means_before(np.array(abilities), *window_of(np.array(first)))

    assert means([1.0, 3.0, 5.0, 7.0], [0, 0, 2, 2]).tolist() == [2.0, 2.0, 2.0, 2.0]
    assert means([1.0, 3.0, 5.0, 7.0], [0, 1, 2, 3]).tolist() == pytest.approx([1.0, 1.0, 2.0, 3.0])
    assert means(np.arange(20.0), np.arange(20))[19] == pytest.approx(np.mean(np.arange(9.0, 19.0)))


@pytest.mark.parametrize("n", [30, 110])  # fewer and more than are solved by elimination
@pytest.mark.parametrize("run", [0.5, 1.0])
def test_the_fit_ends_where_every_derivative_is_zero(n, run):
    outcomes, first = simulated(n, 25, run=run), np.arange(n)
    found = fit(outcomes)
    ran = ~np.isnan(outcomes)
    passing = 1 / (1 + np.exp(-(found.abilities[:, None] - found.difficulties)))
    left = np.where(ran, outcomes - passing, 0.0)
    before = [found.abilities[max(0, i - 10) : i].mean() for i in first[1:]]
    means = np.array([found.abilities[0], *before])
    of_abilities = left.sum(axis=1) - (found.abilities - means) / found.spread
    of_abilities[0] -= found.abilities[0] / 100.0
    assert np.abs(of_abilities).max() < 1e-9
    assert np.abs(left.sum(axis=0) + found.difficulties / 4.0).max() < 1e-9


def test_an_agent_that_ran_everything_has_its_mean():
    outcomes = simulated(12, 20)
    found = fit(outcomes)
    for row in outcomes:
        one = estimate(found, row, found.next_mean)
        assert one.score == pytest.approx(row.mean(), abs=1e-12)
        assert one.se == 0.0
    assert (completed(found, outcomes) == outcomes).all()


def test_an_estimate_and_its_error_by_hand():
    outcomes = simulated(12, 20, run=0.7)
    found = fit(outcomes)
    row = np.where(np.arange(20) < 8, outcomes[0], np.nan)
    one = estimate(found, row, 0.3)
    ability = found.difficulties[0] + np.log(one.passing[0] / (1 - one.passing[0]))
    passing = 1 / (1 + np.exp(-(ability - found.difficulties)))
    slope = sum(row[j] - passing[j] for j in range(8)) - (ability - 0.3) / found.spread
    assert abs(slope) < 1e-9
    w = passing * (1 - passing)
    v_ability = 1 / (w[:8].sum() + 1 / found.spread)
    v_tasks = [
        1 / (sum(p * (1 - p) for a, p in zip(outcomes[:, j], column, strict=True) if a == a) + 1 / 4)
        for j, column in enumerate((1 / (1 + np.exp(-(found.abilities[:, None] - found.difficulties)))).T)
    ]
    variance = w[8:].sum() + w[8:].sum() ** 2 * v_ability + sum(w[j] ** 2 * v_tasks[j] for j in range(8, 20))
    assert one.score == pytest.approx((row[:8].sum() + passing[8:].sum()) / 20, abs=1e-12)
    assert one.se == pytest.approx(math.sqrt(variance) / 20, abs=1e-12)


# ------------------------------------------------------------------------------------------------------ rule


def teaching(n=16, m=40, *, staging=None, **how):
    outcomes = simulated(n, m, **how)
    scores = np.where(np.isnan(outcomes).any(axis=1), np.nan, outcomes.mean(axis=1))
    runs = [FullRun(i, float(y)) for i, y in enumerate(scores) if y == y]
    return taught(outcomes, scores, runs, staging or Staging())


def test_the_first_batch_is_of_the_ranking_tasks_nearest_to_one_half():
    found = teaching(n=16, m=100)
    recent = [np.mean([found.completed[i, j] for i in range(6, 16)]) for j in range(100)]
    all_rates = found.completed.mean(axis=0)
    ranking = [j for j in range(100) if 0.3 - 1e-9 <= all_rates[j] <= 0.7 + 1e-9]
    wanted = sorted(ranking, key=lambda j: (round(abs(recent[j] - 0.5), 9), j))[:20]
    assert found.subset.tolist() == ranking
    assert found.first_batch.tolist() == sorted(wanted)


def test_where_few_tasks_rank_the_nearest_others_fill_the_first_batch():
    found = changed(teaching(n=16, m=100), subset=np.array([3, 7]))
    away = np.round(np.abs(found.completed[-10:].mean(axis=0) - 0.5), 9)
    others = sorted((j for j in range(100) if j not in (3, 7)), key=lambda j: (away[j], j))[:18]
    assert found.first_batch.tolist() == sorted([3, 7, *others])


@pytest.mark.parametrize(("m", "k"), [(500, 100), (165, 33), (45, 10), (16, 8), (3, 1), (1, 1)])
def test_the_size_of_a_first_batch(m, k):
    assert first_size(m) == k


def test_a_board_of_one_task_is_replayed():
    record = record_of((np.random.default_rng(0).random((30, 1)) < 0.5).astype(float))
    told = replayed(record, AssignmentRule(Staging()), n_seeds=1)
    assert (told["verdict"]["word"], told["figures"]["n_agents"]) == ("full runs", 30)


def test_a_few_repeated_trials_make_no_board_graded():
    """20 agents on 60 tasks; of one agent 59 cells are means of two trials, 4.9% of all cells; then 61."""
    outcomes = simulated(20, 60, seed=4)
    outcomes[3, 1:] = 0.5
    assert fit(outcomes).dispersion == 1.0
    outcomes[3, 0] = outcomes[4, 0] = 0.5
    assert fit(outcomes).dispersion != 1.0


def test_the_subset_is_a_preview_until_enough_agents_teach_and_then_stays():
    outcomes, staging = simulated(20, 60), Staging(subset_from=15)
    found, subsets = None, []
    for n in range(5, 21):
        found = taught(outcomes[:n], outcomes[:n].mean(axis=1), (), staging, before=found)
        subsets.append(None if found.subset is None else found.subset.tolist())
    assert subsets[:10] == [None] * 10
    assert subsets[10] is not None
    assert subsets[10:] == [subsets[10]] * 6


def test_audit_tasks_are_drawn_outside_of_the_subset():
    found = teaching(n=16, m=100)
    drawn = [walks.audit_tasks(found.fit, 0, f"a{i}") for i in range(20)]
    assert {one.size for one in drawn} == {2}
    used = set(np.concatenate(drawn).tolist())
    assert len(used) > 10
    assert not used & {*found.subset.tolist(), *found.first_batch.tolist()}


def decided(score, se, *, podium=3, precise=0.01, n_left=5):
    """With scores .9, .8, .7, .6, .5 on the board, and errors as they are."""
    found = teaching(n=5, m=10, staging=Staging(podium=podium, precise=precise))
    found.__dict__["bars"] = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    found.__dict__["scale"] = walks.Scale(1.0, 20)
    return decide(found.fit, ModelEstimate(score, se, np.zeros(10)), n_left)


@pytest.mark.parametrize(
    ("score", "se", "goes_on"),
    [
        (0.1, 0.031, True),  # over 3 points
        (0.1, 0.030, False),
        (0.66, 0.020, True),  # .66 + 2·.02 = .70 reaches the third place
        (0.659, 0.020, False),
        (0.75, 0.009, False),  # under 1 point, and cannot lead
        (0.75, 0.010, True),
        (0.885, 0.009, True),  # may lead
    ],
)
def test_who_goes_on(score, se, goes_on):
    assert decided(score, se)[0] is goes_on


def test_who_goes_on_with_other_settings_or_without_tasks():
    assert decided(0.56, 0.02, podium=4)[0]
    assert not decided(0.56, 0.02, podium=3)[0]
    assert decided(0.75, 0.001, precise=0.0)[0]
    assert not decided(0.95, 0.05, n_left=0)[0]
    assert "place 3 has 70.0%" in decided(0.5, 0.02)[1]


@pytest.mark.parametrize(
    ("score", "se", "told"),
    [
        (0.1, 0.03001, "its standard error is 3.001 points; at most 3 are allowed"),
        (0.65996, 0.02, "standard errors is 69.996%, and place 3 has 70.000%"),
        (0.66, 0.02, "standard errors is 70.0%, and place 3 has 70.0%"),
        (
            0.88004,
            0.00996,
            "is 0.996 points, and it is unlikely to lead: its score plus 2 standard errors is 89.996%, and "
            "the best has 90.000%",
        ),
        (0.85, 0.0004, "its standard error is under 0.05 points, and it is unlikely to lead: "),
    ],
)
def test_a_reason_prints_enough_digits_to_tell_its_numbers_apart(score, se, told):
    assert told in decided(score, se)[1]


def test_the_next_batch_tells_most_and_a_tenth_of_it_is_drawn():
    passing, asked = np.linspace(0, 1, 100), np.zeros(100, dtype=bool)
    asked[45:55] = True
    batch = next_batch(passing, asked, 0, "a")
    assert batch.size == 15
    order = sorted(
        (j for j in range(100) if not asked[j]), key=lambda j: (-round(passing[j] * (1 - passing[j]), 9), j)
    )
    assert set(order[:13]) <= set(batch.tolist())
    assert not asked[batch].any()
    assert next_batch(passing, np.arange(100) != 7, 0, "a").tolist() == [7]


def test_errors_are_scaled_to_those_that_earlier_agents_had():
    found = scale_of(np.array([(0.5 - 0.4) / 0.1, (0.7 - 0.5) / 0.1]), np.array([1.0, 1 / 0.25]))
    assert found.c == pytest.approx(math.sqrt((4 + 1 + 4 * 4) / (4 + 1 + 4)))
    assert found.degrees == 6
    assert found.quantile == pytest.approx(t.ppf(0.975, 6))


def test_drawn_estimates_come_before_those_as_they_came_and_these_before_leaving_out():
    found = teaching(n=24, m=30)
    runs = [FullRun(i, 0.5, first=(0.4, 0.1), stopped=(0.3, 0.1)) for i in range(19)]
    told = changed(found, full_runs=tuple(runs)).scale.c
    assert told == pytest.approx(math.sqrt((4 + 19 * ((0.5 - 0.3) / 0.1) ** 2) / (4 + 19)))
    fewer = [changed(one, stopped=None) for one in runs]
    told = changed(found, full_runs=tuple(fewer)).scale.c
    assert told == pytest.approx(math.sqrt((4 + 19 * ((0.5 - 0.4) / 0.1) ** 2) / (4 + 19)))
    alone = changed(found, full_runs=found.full_runs[:4])
    errors = []
    for run in alone.full_runs:
        kept = [i for i in range(24) if i != run.row]
        without = fit(alone.outcomes[kept])
        seen = np.full(30, np.nan)
        seen[alone.first_batch] = alone.outcomes[run.row, alone.first_batch]
        one = estimate(without, seen, float(alone.model.means[run.row]))
        errors.append(((run.score - one.score) / one.se) ** 2)
    assert alone.scale.c == pytest.approx(math.sqrt((4 + sum(errors)) / 8), abs=1e-7)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("podium", 0), ("staged_from", 4), ("draw_share", 1.5), ("reach", 0), ("window", 0)],
)
def test_settings_out_of_range_are_refused(setting, value):
    with refused(SelectionError, "staging_range", match=f"{setting} = {value} is out of range"):
        Staging(**{setting: value})


# ----------------------------------------------------------------------------------------------------- walks


def stepped(of, asked, outcomes, *, agent="a", **more):
    every = np.ones(outcomes.size, dtype=bool)
    given = {"delivered": every, "active": every, "seed": 0} | more
    return step(of, assigned_tasks=asked, outcomes=outcomes, agent=agent, **given)


def walk(of, outcomes, **more):
    """Every step to the end, and all that was asked."""
    asked, found = [], []
    while not found or found[-1].batch:
        found.append(stepped(of, asked, outcomes, **more))
        asked += found[-1].batch
    return found, asked


def test_a_walk_by_hand():
    of = teaching(n=16, m=100, staging=Staging(draw_share=0.0)).fit
    weak = (np.arange(100) % 4 == 0).astype(float)
    found, asked = walk(of, weak)
    assert set(found[0].batch) == {*of.first_batch.tolist(), *walks.audit_tasks(of, 0, "a").tolist()}
    assert [one.stage for one in found] == [Stage.RUNNING] * (len(found) - 1) + [Stage.STOPPED]
    assert len(set(asked)) == len(asked) < 100
    for k in range(1, len(found)):
        ran = [j for one in found[:k] for j in one.batch]
        seen = np.full(100, np.nan)
        seen[ran] = weak[ran]
        by_hand, known = estimate(of.model, seen, of.model.next_mean), found[k].estimate
        assert (known.score, known.model_se) == (by_hand.score, by_hand.se)
        assert known.se == of.scale.c * by_hand.se
        half = of.scale.quantile * known.se
        assert (known.lower, known.upper) == (max(known.score - half, 0), min(known.score + half, 1))
        assert decide(of, by_hand, 100 - len(ran))[0] is (found[k].stage == Stage.RUNNING)


def test_the_best_run_all_tasks():
    of = teaching(n=16, m=100).fit
    found, asked = walk(of, np.ones(100))
    assert found[-1].stage == Stage.COMPLETE
    assert sorted(asked) == list(range(100))


def test_being_drawn_is_told_after_the_estimate_and_asks_for_the_rest():
    of = teaching(n=16, m=100).fit
    weak = (np.arange(100) % 4 == 0).astype(float)
    some, _ = walk(changed(of, staging=Staging(draw_share=0.0)), weak)
    drawn, asked = walk(changed(of, staging=Staging(draw_share=1.0)), weak)
    assert [one.batch for one in drawn[: len(some) - 1]] == [one.batch for one in some[:-1]]
    assert (some[-1].stage, drawn[len(some) - 1].stage) == (Stage.STOPPED, Stage.DRAWN)
    assert drawn[len(some) - 1].estimate == some[-1].estimate
    assert drawn[-1].stage == Stage.COMPLETE
    assert len(asked) == 100


def test_nothing_is_told_of_a_batch_before_all_of_it_is_there():
    of, outcomes = teaching(n=16, m=100).fit, np.ones(100)
    asked = stepped(of, [], outcomes).batch
    there = np.isin(np.arange(100), asked[1:])
    found = stepped(of, asked, outcomes, delivered=there)
    assert (found.waiting, found.batch, found.estimate) == (asked[:1], (), None)
    assert found == stepped(of, asked, 1 - outcomes, delivered=there)


def test_tasks_that_nobody_asked_for_are_not_looked_at():
    of, weak = teaching(n=16, m=100).fit, (np.arange(100) % 4 == 0).astype(float)
    asked = stepped(of, [], weak).batch
    better = np.where(np.isin(np.arange(100), asked), weak, 1.0)
    assert stepped(of, asked, weak) == stepped(of, asked, better)


def test_retired_tasks_are_asked_no_longer_and_scores_are_those_of_the_others():
    of, weak = teaching(n=16, m=100).fit, (np.arange(100) % 4 == 0).astype(float)
    active = np.arange(100) % 10 != 3
    found, asked = walk(of, weak, active=active)
    assert active[asked].all()
    seen = np.where(np.isin(np.arange(100), asked), weak, np.nan)[active]
    fewer = changed(
        of.model,
        difficulties=of.model.difficulties[active],
        difficulty_variances=of.model.difficulty_variances[active],
    )
    assert found[-1].estimate.score == estimate(fewer, seen, of.model.next_mean).score


def test_a_failure_of_the_harness_is_as_if_it_had_not_been_run():
    of, weak = teaching(n=16, m=100).fit, (np.arange(100) % 4 == 0).astype(float)
    asked = list(stepped(of, [], weak).batch)
    lost = weak.copy()
    lost[asked[0]] = np.nan
    seen = np.full(100, np.nan)
    seen[asked[1:]] = weak[asked[1:]]
    assert stepped(of, asked, lost).estimate.score == estimate(of.model, seen, of.model.next_mean).score


def test_a_fit_that_was_kept_takes_the_same_steps():
    of, outcomes = teaching(n=16, m=100).fit, simulated(1, 100, seed=5)[0]
    again = Fit.from_plain(json.loads(json.dumps(of.as_plain())))
    assert walk(again, outcomes) == walk(of, outcomes)


# ---------------------------------------------------------------------------------------------------- replay


def test_each_agent_is_asked_every_task_at_most_once_and_contenders_run_all():
    agents = complete(simulated(30, 60))
    found = walked(agents, range(30), Staging())
    assert [walk.n_tasks for walk in found.walks[:5]] == [60] * 5
    for walk, truth, shown in zip(found.walks, found.truth, found.board, strict=True):
        tasks = np.concatenate(walk.batches)
        assert len(set(tasks.tolist())) == tasks.size
        if walk.published is None or walk.is_drawn:
            assert tasks.size == 60
            assert shown == truth
        else:
            assert walk.published.lower <= walk.published.score <= walk.published.upper


def test_where_all_are_drawn_nothing_is_saved_and_the_board_is_the_truth():
    agents = complete(simulated(24, 40))
    found = replay(agents, Staging(draw_share=1.0), n_seeds=2)
    assert (found.saved, found.regret, found.best_five, found.pairs.value) == (0.0, 0.0, 1.0, 1.0)
    assert found.n_published > 0
    assert found.coverage is not None


def test_what_was_drawn_does_not_show_in_what_was_published():
    """Being drawn is told after the estimate was kept: the first one that is stopped has it either way."""
    agents = complete(simulated(24, 40))
    some, others = (walked(agents, range(24), Staging(draw_share=share)) for share in (0.0, 1.0))
    first = next(k for k, walk in enumerate(some.walks) if walk.published)
    one, other = some.walks[first].published, others.walks[first].published
    assert (one.score, one.lower, one.upper) == (other.score, other.lower, other.upper)
    assert (some.walks[first].is_drawn, others.walks[first].is_drawn) == (False, True)


def test_later_agents_change_nothing_of_earlier_walks():
    outcomes = simulated(24, 40)
    whole, part = (walked(complete(outcomes[:n]), range(n), Staging()) for n in (24, 18))
    for one, other in zip(whole.walks, part.walks, strict=False):
        assert [batch.tolist() for batch in one.batches] == [batch.tolist() for batch in other.batches]


def test_pairs_by_naive_loops():
    board, truth = np.array([0.5, 0.5, 0.2, 0.9]), np.array([0.4, 0.3, 0.3, 0.8])
    agreed, differ = right(board, truth)
    for i, j in itertools.permutations(range(4), 2):
        shown, true = np.sign(board[i] - board[j]), np.sign(truth[i] - truth[j])
        assert differ[i, j] == (true != 0)
        if true:
            assert agreed[i, j] == (1.0 if shown == true else 0.5 if shown == 0 else 0.0)


def test_the_best_are_found_by_hand():
    truth = np.array([0.9, 0.8, 0.7, 0.7, 0.1])
    assert best(np.array([0.5, 0.9, 0.1, 0.8, 0.0]), truth, 3) == 1.0  # the third place is shared
    assert best(np.array([0.0, 0.9, 0.1, 0.8, 0.5]), truth, 3) == pytest.approx(2 / 3)


def test_clear_pairs_are_those_beyond_the_error_of_all_tasks():
    outcomes = simulated(6, 50)
    found, scores = clear(outcomes, outcomes.mean(axis=1)), outcomes.mean(axis=1)
    for i, j in itertools.permutations(range(6), 2):
        se = np.std(outcomes[i] - outcomes[j], ddof=1) / np.sqrt(50)
        assert found[i, j] == (abs(scores[i] - scores[j]) > 1.96 * se)


def test_the_error_of_a_share_of_pairs_leaves_out_one_agent_at_a_time():
    agents = complete(simulated(20, 40))
    one = walked(agents, range(20), Staging(draw_share=0.0))
    found = staged_replay._pair_figure([one], None)
    without = []
    for left in range(20):
        rest = [i for i in range(20) if i != left]
        agreed, differ = right(one.board[rest], one.truth[rest])
        without.append(agreed[differ].mean())
    expected = math.sqrt(19 / 20 * sum((value - np.mean(without)) ** 2 for value in without))
    assert found.se == pytest.approx(expected)


def test_undated_agents_are_replayed_in_random_orders(monkeypatch):
    assert staged_replay.N_ORDERS == 20
    monkeypatch.setattr(staged_replay, "N_ORDERS", 3)
    agents = complete(simulated(12, 20), dated=False)
    found = replay(agents)
    assert (found.n_seeds, found.is_dated) == (3, False)
    orders = staged_replay.orders_of(agents, 0)
    assert len({tuple(order) for order in orders}) == 3
    saved = [1 - walked(agents, order, Staging(), seed=k).n_run.mean() / 20 for k, order in enumerate(orders)]
    assert found.saved == pytest.approx(np.mean(saved))


def test_figures_are_means_over_seeds():
    assert staged_replay.N_SEEDS == 10
    agents = complete(simulated(24, 60, rising=2.0))
    alone = [replay(agents, seed=7 + k, n_seeds=1) for k in range(4)]
    found = replay(agents, seed=7, n_seeds=4)
    assert (found.n_seeds, found.is_dated) == (4, True)
    assert len({one.saved for one in alone}) > 1
    for name in (
        "saved",
        "saved_late",
        "best_five",
        "podium",
        "regret",
        "random_pairs",
        "random_best_five",
        "random_regret",
    ):
        assert getattr(found, name) == pytest.approx(np.mean([getattr(one, name) for one in alone])), name
    for name in ("pairs", "clear_pairs", "coverage", "bias"):
        values = [getattr(one, name).value for one in alone]
        assert getattr(found, name).value == pytest.approx(np.mean(values)), name
    for name in ("saved", "best_five", "regret"):
        values = [getattr(one, name) for one in alone]
        assert found.ranges[name] == pytest.approx((min(values), max(values)))
    values = [one.pairs.value for one in alone]
    assert found.ranges["pairs"] == pytest.approx((min(values), max(values)))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_full_runs_that_the_rule_chose_are_not_replayed(share):
    """Who ran everything as it was a contender is good: a replay of these would flatter the rule."""
    outcomes = simulated(40, 60, rising=4.0)
    agents = complete(outcomes)
    walks_ = walked(agents, range(40), Staging(draw_share=share)).walks
    drawn = [k for k, walk in enumerate(walks_) if walk.published and walk.is_drawn]
    chosen = [k for k in range(5, 40) if walks_[k].published is None]
    assert len(chosen) >= 10
    asked = {agents.names[k]: WalkResult((0.5, 0.1)) for k in chosen}
    asked |= {agents.names[k]: WalkResult((0.5, 0.1), (0.5, 0.1), share) for k in drawn}

    def told(rows, of):
        record = record_of(
            outcomes[rows], names=[agents.names[k] for k in rows], dates=[agents.dates[k] for k in rows]
        )
        return replayed(record, AssignmentRule(Staging()), of, n_seeds=1)

    others = sorted([*range(5), *drawn])
    everyone = sorted([*others, *chosen])
    found = told(everyone, asked)
    assert found == told(others, {})
    assert told(everyone, {})["figures"]["n_agents"] == len(everyone)
    if share:
        assert found["figures"]["n_agents"] == len(others)
    else:
        assert found["verdict"] is None
        assert found["reason"] == "a replay needs 10 agents that ran all tasks; there are 5"


def test_too_few_agents_are_refused():
    with refused(SelectionError, "no_replay", match="needs 10 agents that ran all tasks; there are 9"):
        replay(complete(simulated(9, 20)))


def test_two_full_runs_agree_as_often_as_in_a_simulation_by_loops():
    found = teaching(n=12, m=30)
    passing = 1 / (1 + np.exp(-(found.model.abilities[:, None] - found.model.difficulties)))
    rng, told = np.random.default_rng(5), []
    for _ in range(400):
        one, other = ((rng.random(passing.shape) < passing).mean(axis=1).round(9) for _ in range(2))
        pairs = [(i, j) for i in range(12) for j in range(i) if other[i] != other[j]]
        told.append(
            np.mean([(np.sign(one[i] - one[j]) * np.sign(other[i] - other[j]) + 1) / 2 for i, j in pairs])
        )
    error = np.std(told) / np.sqrt(400)
    assert abs(staged_replay.ceiling(found.outcomes, 0) - np.mean(told)) < 5 * error
    said = staged_text.shown(asdict(GOOD), verdict(GOOD))["second full run"]
    assert "(simulated at one trial per task;" in said


def test_a_share_of_an_estimate_in_each_replay_is_an_estimate():
    """One interval was published in ten replays: its coverage has a bound, of one estimate."""
    few = staged_replay._mean_figure([np.array([1.0])] + 9 * [np.array([])])
    assert (few.value, few.n) == (1.0, 1)


def test_where_all_agents_score_alike_no_pair_is_ordered_and_the_figures_are_json():
    found = replay(complete(np.ones((10, 60))), n_seeds=2)
    assert (found.pairs, found.random_pairs, found.saved) == (None, None, 0.0)
    json.dumps(asdict(found), allow_nan=False)


def test_a_real_history_from_the_command_line(real_data, capsys, monkeypatch):
    once(monkeypatch, "selection.cli_replay.replay")
    file = str(real_data / "hal_scicode.csv.gz")
    assert main(["replay", file, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_agents"], found["n_tasks"], found["n_seeds"], found["is_dated"]) == (24, 65, 10, True)
    assert found["saved"] > 0.2
    assert found["pairs"]["value"] > 0.95
    assert found["regret"] == 0.0
    assert main(["replay", file]) == 0
    assert found["verdict"]["text"] in " ".join(capsys.readouterr().out.split())
    assert main(["replay", file, "--podium", "0"]) == 2
    assert "podium = 0 is out of range" in capsys.readouterr().err


# --------------------------------------------------------------------------------------------------- verdict


GOOD = StagedReplay(
    n_agents=40,
    n_tasks=100,
    n_seeds=1,
    is_dated=True,
    n_published=30,
    n_podium=8,
    saved=0.31,
    saved_late=0.4,
    pairs=Figure(0.974, 0.01, 780),
    clear_pairs=Figure(1.0, 0.0, 500),
    best_five=1.0,
    podium=1.0,
    regret=0.0,
    coverage=Figure(0.9667, 0.03, 30),
    bias=Figure(-0.004, 0.004, 30),
    rmse=0.02,
    random_pairs=0.959,
    random_best_five=0.9,
    random_regret=0.001,
    ceiling=0.96,
    ranges={"saved": (0.31, 0.31)},
)


def test_the_sentence_of_a_good_replay():
    found = verdict(GOOD)
    assert found["word"] == "yes"
    assert found["reasons"] == []
    assert found["text"] == (
        "Does the service rank like full runs? Yes. On past results, the service would have saved 31% of the "
        "trials. It would have ranked the best agent first. It would have found all of the best five "
        "(random "
        "tasks: 4.5). It would have ordered 97.4% of pairs as full runs do (random tasks at the same cost: "
        "95.9%)."
    )


def test_figures_that_agree_to_a_billionth_are_set_alike_on_every_surface():
    """17.25% is set as 17.2, from whatever side an earlier sum missed it."""
    for value in (0.1725, 0.1725 + 1e-15):
        pairs = changed(GOOD.pairs, value=value)
        found = changed(GOOD, saved=value, saved_late=value, pairs=pairs, ranges={"saved": (value, 0.5)})
        said = staged_text.shown(asdict(found), verdict(found))
        assert said["trials saved"] == "17.2% (17.2% to 50.0%); 17.2% for the later half of the agents"
        assert "have ordered 17.2% of pairs" in said["verdict"]
        assert "pairs in order 17.2%" in said["reasons"]
        assert validation_text._percent(value) == words.percent(value) + "%" == "17.2%"


def test_the_sentence_says_how_far_replays_differ():
    of_ten = changed(GOOD, n_seeds=10, ranges={"saved": (0.283, 0.344)}, best_five=0.9, regret=0.0012)
    assert verdict(of_ten)["text"] == (
        "Does the service rank like full runs? Mostly. On past results, the service would have saved 31% of "
        "the trials (28 to 34% in 10 replays). Its first agent would have been 0.1 points below the best on "
        "average. It would have found 4.5 of the best five (random tasks: 4.5). It would have ordered 97.4% "
        "of pairs as full runs do (random tasks at the same cost: 95.9%)."
    )


def test_equal_full_runs_earn_no_praise():
    equal = verdict(changed(GOOD, pairs=None, clear_pairs=None, random_pairs=None))
    assert equal["word"] == "not yet"
    assert equal["reasons"] == ["all full runs have the same score"]
    assert equal["text"] == (
        "Does the service rank like full runs? Not yet. On past results, the service would have saved 31% of "
        "the trials. All full runs have the same score, so there is no order to check."
    )


def test_points_have_a_true_minus_and_zero_no_sign():
    told = [points(share) for share in (-0.0004, 0.0004, 0.0, -0.0006, 0.012)]
    assert told == ["0.0 points", "0.0 points", "0.0 points", "−0.1 points", "+1.2 points"]


@pytest.mark.parametrize(
    ("just_enough", "too_little", "below"),
    [
        (
            {"pairs": Figure(0.95, 0.001, 9)},
            {"pairs": Figure(0.9499, 0.001, 9)},
            {"pairs": Figure(0.9199, 0.001, 9)},
        ),
        (
            {"pairs": Figure(0.95, 0.0121, 9)},
            {"pairs": Figure(0.95, 0.0122, 9)},
            {"pairs": Figure(0.95, 0.0305, 9)},
        ),
        (
            {"clear_pairs": Figure(0.99, 0, 9)},
            {"clear_pairs": Figure(0.98, 0, 9)},
            {"clear_pairs": Figure(0.969, 0, 9)},
        ),
        ({"best_five": 1.0}, {"best_five": 0.8}, {"best_five": 0.6}),
        ({"regret": 0.005}, {"regret": 0.0051}, {"regret": 0.0151}),
        (
            {"coverage": Figure(0.9, 0.05, 30)},
            {"coverage": Figure(0.867, 0.05, 30)},
            {"coverage": Figure(0.7, 0.05, 30)},
        ),
        ({"bias": Figure(0.01, 0.001, 9)}, {"bias": Figure(0.0101, 0.001, 9)}, None),
        ({"bias": Figure(-0.0199, 0.01, 9)}, {"bias": Figure(-0.0201, 0.02, 9)}, None),
    ],
)
def test_each_figure_decides_at_its_threshold(just_enough, too_little, below):
    assert verdict(changed(GOOD, **just_enough))["word"] == "yes"
    mostly = verdict(changed(GOOD, **too_little))
    assert mostly["word"] == "mostly"
    assert len(mostly["reasons"]) >= 1
    if below:
        assert verdict(changed(GOOD, **below))["word"] == "not yet"


@pytest.mark.parametrize(
    ("enough", "too_little", "words"),
    [
        ({"pairs": Figure(0.92, 0.001, 9)}, {"pairs": Figure(0.9199, 0.001, 9)}, ("mostly", "not yet")),
        ({"pairs": Figure(0.95, 0.0303, 9)}, {"pairs": Figure(0.95, 0.0305, 9)}, ("mostly", "not yet")),
        ({"clear_pairs": Figure(0.99, 0, 9)}, {"clear_pairs": Figure(0.9899, 0, 9)}, ("yes", "mostly")),
        ({"clear_pairs": Figure(0.97, 0, 9)}, {"clear_pairs": Figure(0.9699, 0, 9)}, ("mostly", "not yet")),
        ({"best_five": 0.95}, {"best_five": 0.949}, ("yes", "mostly")),
        ({"best_five": 0.8}, {"best_five": 0.799}, ("mostly", "not yet")),
        ({"regret": 0.015}, {"regret": 0.0151}, ("mostly", "not yet")),
        # Wilson's upper ends: 92 of 100 .954, 91 .947, 86 .908, 85 .8995
        ({"coverage": Figure(0.92, 0.03, 100)}, {"coverage": Figure(0.91, 0.03, 100)}, ("yes", "mostly")),
        ({"coverage": Figure(0.86, 0.03, 100)}, {"coverage": Figure(0.85, 0.03, 100)}, ("mostly", "not yet")),
        ({"coverage": Figure(0.9, 0.1, 10)}, {"coverage": Figure(0.8, 0.1, 10)}, ("yes", "mostly")),
        ({"bias": Figure(0.015, 0.0075, 9)}, {"bias": Figure(0.0151, 0.0075, 9)}, ("yes", "mostly")),
        ({"bias": Figure(0.02, 0.02, 9)}, {"bias": Figure(0.0201, 0.02, 9)}, ("yes", "mostly")),
    ],
)
def test_each_word_ends_at_its_threshold(enough, too_little, words):
    assert tuple(verdict(changed(GOOD, **one))["word"] for one in (enough, too_little)) == words


@pytest.mark.parametrize("just", [{"n_agents": 20}, {"n_podium": 5}, {"n_published": 19}])
def test_just_enough_agents_may_earn_a_yes(just):
    assert verdict(changed(GOOD, **just))["word"] == "yes"


@pytest.mark.parametrize("few", [{"n_agents": 19}, {"n_podium": 4}, {"n_published": 18}])
def test_few_agents_never_earn_a_yes(few):
    found = verdict(changed(GOOD, **few))
    assert found["word"] == "mostly (few)"
    assert "needed" in found["reasons"][0]


def test_every_reason_against_a_firmer_verdict_is_given():
    found = verdict(changed(GOOD, n_podium=0, n_published=1, coverage=Figure(0.867, 0.05, 30)))
    assert found["reasons"] == [
        "coverage of intervals 86.7% (at least 90% needed)",
        "upper bound of coverage 93.9% (at least 95% needed)",
        "0 agents that entered the top places (at least 5 needed)",
        "1 estimate (at least 19 needed)",
    ]
    assert "Mostly, but there is little data." in found["text"]


def test_where_nothing_is_saved_full_runs_are_the_answer():
    assert verdict(changed(GOOD, saved=0.0499))["word"] == "full runs"
    assert verdict(changed(GOOD, saved=0.05))["word"] == "yes"
    assert verdict(changed(GOOD, coverage=None, bias=None, n_published=0))["word"] == "mostly (few)"


def test_agents_of_a_file_that_were_asked_in_stages_are_estimated(tmp_path, capsys):
    """By the model fitted to them all, as the core fits it; without the flag they are incomplete."""
    rng = np.random.default_rng(4)
    ability, difficulty = rng.normal(0, 1, 14), rng.normal(0, 1, 40)
    outcomes = (rng.random((14, 40)) < 1 / (1 + np.exp(difficulty - ability[:, None]))).astype(int)
    rows = ["benchmark,agent,scaffold,model,submitted_at,task,trial,outcome"]
    rows += [
        f"Toy,a{i:02d},S,M {i},2025-01-{i + 1:02d},t{j:02d},1,{outcomes[i, j]}"
        for i in range(14)
        for j in range(40)
        if i < 12 or j % 3
    ]
    path = tmp_path / "toy.csv"
    path.write_text("\n".join(rows) + "\n")
    assert main(["standings", str(path), "--staged", "--json"]) == 0
    told = {line["agent"]: line for line in json.loads(capsys.readouterr().out)["agents"]}
    seen = outcomes.astype(float)
    seen[12:, ::3] = np.nan
    scores = np.where(np.arange(14) < 12, outcomes.mean(axis=1), np.nan)
    runs = [FullRun(i, float(scores[i])) for i in range(12)]
    found = taught(seen, scores, runs, Staging())
    for i in (12, 13):
        at = told[f"a{i}"]["at"]["full"]
        one = estimate(found.model, seen[i], found.model.means[i])
        assert at["score"] == pytest.approx(one.score, abs=1e-8)
        assert at["se"] == pytest.approx(found.scale.c * one.se, rel=1e-6)
        assert at["rank"] is not None
    assert main(["standings", str(path), "--json"]) == 0
    alone = {line["agent"]: line for line in json.loads(capsys.readouterr().out)["agents"]}
    assert alone["a12"]["at"]["full"]["rank"] is None
