"""Completing by the model of all full runs: the scale of errors, and who is estimated from what."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from scipy.stats import t

from selection.intervals import components
from selection.prior import PriorDecisions, SubsetVersion
from selection.staged.model import fit
from selection.staged.teaching import FullRun, taught
from selection.staged.walks import Staging
from selection.standings import answer
from selection.standings.full_scores import Completing, WalkResult, taught_by
from selection.standings.placing import place
from tests.selection.records import NAN, band, board, by_name, record_of
from tests.selection.reference import by_model, joint_model, left_out_errors, mean_before


def teaching(outcomes, scaffolds=None, *, in_time=True):
    n = len(outcomes)
    runs = [
        FullRun(i, float(row.mean()), scaffold=scaffolds[i] if scaffolds else "s")
        for i, row in enumerate(outcomes)
    ]
    first = np.arange(n) if in_time else np.zeros(n, dtype=int)
    return taught(outcomes, outcomes.mean(axis=1), runs, Staging(), first=first)


@pytest.mark.parametrize("seed", [7, 10, 15, 24])
def test_a_benchmark_solved_at_once_is_fitted(seed):
    """After 20 agents of any ability all pass 98%: steps of the spread and of abilities went in circles."""
    outcomes = board(20, 120, seed)[np.random.default_rng(seed).permutation(20)]
    outcomes = np.vstack([outcomes, np.random.default_rng(seed).random((20, 120)) < 0.98])
    found, (abilities, difficulties, spread, _, variances) = (
        fit(outcomes),
        joint_model(outcomes, in_time=True),
    )
    assert found.abilities == pytest.approx(abilities, abs=1e-8)
    assert found.difficulties == pytest.approx(difficulties, abs=1e-8)
    assert found.difficulty_variances == pytest.approx(variances, abs=1e-8)
    assert found.spread == pytest.approx(spread, abs=1e-8)


@pytest.mark.parametrize("in_time", [True, False])
def test_four_full_runs_are_left_out_one_at_a_time(in_time):
    outcomes, batch = board(4, 12), np.array([0, 3, 4, 7, 9])
    z = left_out_errors(outcomes, batch, range(4), in_time)
    found = teaching(outcomes, in_time=in_time).scale_on(batch)
    assert found.c == pytest.approx(
        np.sqrt((4 + z[0] ** 2 + z[1] ** 2 + z[2] ** 2 + z[3] ** 2) / 8), abs=1e-7
    )
    assert found.degrees == 8


def test_above_twenty_full_runs_the_groups_are_twenty():
    outcomes, batch = board(23, 12), np.arange(5)
    groups = [*range(20), 0, 1, 2]  # the 21st with the first, and so on
    z = left_out_errors(outcomes, batch, groups, in_time=True)
    found = teaching(outcomes)
    assert found.scale_on(batch).c == pytest.approx(np.sqrt((4 + np.sum(z**2)) / 27), abs=1e-7)
    assert found.scale_on(batch).degrees == 27
    assert len(found.refits.models) == 20
    assert set(found.refits.models) == {(i, i + 20) if i < 3 else (i,) for i in range(20)}


@pytest.mark.parametrize(("n_vouched", "n_telling"), [(12, 12), (5, 5), (4, 12)])
def test_with_five_that_are_vouched_for_others_do_not_tell_the_scale(n_vouched, n_telling):
    """Whoever is drawn may run the rest badly on purpose: 10 standard errors, at a tenth of a chance."""
    record = record_of(board(12, 40))
    about = tuple(replace(one, vouched=i < n_vouched) for i, one in enumerate(record.about))
    record = replace(record, about=about)
    walks = {record.table.agents[11]: WalkResult((0.5, 0.02), (0.5, 0.02), share=0.1)}
    found, before = taught_by(record, Staging(), walks), taught_by(record, Staging())
    assert len(found.outcomes) == 12
    assert len(found.telling) == n_telling
    assert (found.scale == before.scale) == (n_telling < 12)


def test_of_a_new_scaffold_the_errors_are_those_of_scaffolds_left_out():
    """Six scaffolds of three; each helps with tasks of its own."""
    rng, scaffolds = np.random.default_rng(5), [f"s{i % 6}" for i in range(18)]
    helps = rng.normal(0, 1.2, (6, 40))[np.arange(18) % 6]
    outcomes = (rng.random((18, 40)) < 1 / (1 + np.exp(-helps))).astype(float)
    batch, found = np.arange(10), teaching(outcomes, scaffolds)
    known = found.scale_on(batch)
    assert found.scale_for("s3", batch) == (known, False)
    z = left_out_errors(outcomes, batch, scaffolds, in_time=True)
    scale, is_new = found.scale_for("other", batch)
    assert is_new
    assert scale.c == pytest.approx(max(components(z, scaffolds).s_cal, known.c), abs=1e-7)
    assert scale.c > known.c
    assert scale.degrees == 5


def test_under_five_scaffolds_a_new_one_has_the_scale_of_the_others():
    found = teaching(board(12, 20), [f"s{i % 4}" for i in range(12)])
    assert found.scale_for("other", np.arange(6)) == (found.scale_on(np.arange(6)), None)


def version(tasks, number):
    return SubsetVersion(
        number=number,
        tasks=tuple(f"t{j:03d}" for j in tasks),
        chosen_from=tuple(f"a{i:02d}" for i in range(16)),
        arrival=15,
        fixed_on=date(2026, 1, number),
        lo=0.3,
        hi=0.7,
        widened=False,
        provisional=False,
        strategy="mid_range",
        reason=f"version {number}",
        n_complete=16,
        n_tasks=60,
    )


@pytest.fixture
def outcomes():
    """16 complete agents, their band, and one that ran the band alone."""
    made = board(16, 60)
    row = np.full(60, NAN)
    row[band(made)] = np.arange(band(made).size) % 2
    return np.vstack([made, row])


def test_who_ran_an_earlier_version_is_estimated_from_it_on_all_tasks(outcomes):
    """Est ± t_20·c·se, c of the 16 full runs cut down to the version that it ran."""
    ran = band(outcomes[:16])
    second = np.sort(np.concatenate([ran[6:], np.setdiff1d(np.arange(60), ran)[:6]]))
    record = record_of(outcomes, submitted=[16])
    given = PriorDecisions(subsets=(version(ran, 1), version(second, 2)))
    line = by_name(answer(record, None, given))["a16"]
    told = line.at["full"]
    model = joint_model(outcomes[:16], in_time=False)
    score, se = by_model(model, outcomes[16], mean_before(model, None))
    z = left_out_errors(outcomes[:16], ran, range(16), in_time=False)
    half = t.ppf(0.975, 20) * np.sqrt((4 + np.sum(z**2)) / 20) * se
    assert (line.how, told.estimated) == ("estimated", True)
    assert told.score == pytest.approx(score, abs=1e-8)
    assert (told.lower, told.upper) == pytest.approx((score - half, score + half), abs=1e-7)
    assert told.rank is not None


def test_a_reselection_loses_nobody(outcomes):
    """Whatever version comes next: who had a rank on all tasks keeps the score and its error."""
    ran, record = band(outcomes[:16]), record_of(outcomes, submitted=[16])
    subsets, seen = [version(ran, 1)], []
    for number, tasks in enumerate([np.arange(30), np.arange(30, 60), np.arange(0, 60, 2)], start=2):
        subsets.append(version(tasks, number))
        seen.append(by_name(answer(record, None, PriorDecisions(subsets=tuple(subsets)))))
    before = by_name(answer(record, None, PriorDecisions(subsets=tuple(subsets[:1]))))
    assert len(before) == 17
    for after in seen:
        for name, line in before.items():
            now, then = after[name].at["full"], line.at["full"]
            assert (now.rank is None) is (then.rank is None) is False
            assert (now.score, now.se) == pytest.approx((then.score, then.se))


def test_gaps_are_completed_beside_what_is_known(outcomes):
    """Two of its 60 tasks were lost: those alone are the model's, and their error is (c·se)²."""
    made, lost = outcomes.copy(), np.zeros(outcomes.shape, bool)
    made[16], lost[16, [3, 40]] = np.arange(60) % 2, True
    made[16, [3, 40]] = NAN
    record = record_of(made, submitted=[16], lost=lost)
    completing, known = Completing(record), np.flatnonzero(~lost[16])
    found = place(record, np.arange(60), completing)[16]
    model = joint_model(made, in_time=False)  # with so few gaps it is complete, and teaches
    score, _ = by_model(model, made[16], mean_before(model, None))
    assert found.how == "completed"
    assert found.outcomes[known].tolist() == made[16, known].tolist()
    assert found.outcomes.mean() == pytest.approx(score, abs=1e-8)


def test_the_error_of_what_was_completed(outcomes):
    """Of the version that it was asked for it lost one task: v = (c·se)², c of the full runs without it."""
    ran, lost, made = band(outcomes[:16]), np.zeros(outcomes.shape, bool), outcomes.copy()
    lost[16, ran[0]], made[16, ran[0]] = True, NAN
    record = record_of(made, submitted=[16], lost=lost)
    found = place(record, ran, Completing(record))[16]
    model = joint_model(made[:16], in_time=False)
    on_all, _ = by_model(model, made[16], model[0].mean())
    expected, se = by_model(model, made[16], model[0].mean(), of=ran)
    z = left_out_errors(made[:16], ran[1:], range(16), in_time=False, of=ran)
    assert found.how == "completed"
    assert found.score == pytest.approx(expected, abs=1e-8)
    assert found.score != pytest.approx(on_all, abs=1e-3)
    assert found.v_link == pytest.approx((4 + np.sum(z**2)) / 20 * se**2, abs=1e-9)
    assert found.df_link == 20
