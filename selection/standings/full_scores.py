"""The full score of one that ran a part of the tasks: completed from its own outcomes, or by calibration.

The theory is in ``selection/README.md``, “Where every agent stands”.

Source: Manski, *Partial Identification of Probability Distributions*, 2003.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from analytics.errors import CoreError
from analytics.record import Record
from analytics.record.missing import MIN_COMPLETE
from selection import ridge
from selection.errors import SelectionError
from selection.folds import CompleteAgents
from selection.full_scores import FitCache, FullScores
from selection.held_out import nested_residuals
from selection.intervals import MIN_FOR_QUANTILE, NOT_CALIBRATED, Calibrator, NoInterval, calibrate, intervals
from selection.prior import FittedOn
from selection.rules import Rules
from selection.staged import model
from selection.staged.teaching import FullRun, Refits, Teaching, taught
from selection.staged.walks import Scale, Staging
from selection.standings.choice import n_complete, rule_of, teaching, training
from selection.standings.terms import CALIBRATED, ESTIMATE_NEEDS

BY_AGENT, BY_SCAFFOLD = 0, 1


class TooFewComplete(SelectionError):
    """Completing needs ten agents that ran all tasks."""


class WalkResult(NamedTuple):
    """How an agent went that was asked batch by batch.

    first, drawn: score and `model_se` (of `WalkEstimate`) after its first batch, and where it was drawn.
    share: q, the probability that it was drawn.
    """

    first: tuple[float, float] | None = None
    drawn: tuple[float, float] | None = None
    share: float = 1.0


@dataclass(frozen=True)
class FullScoreEstimate:
    """The full score of one agent that ran a part of the tasks.

    score: None where it may not be shown.
    lower, upper: 95% interval, in what the agent's outcomes leave open.
    se2, df: error for comparisons, score²; None where it is not known.
    calibration: agents with the same number share the residuals behind `se2`.
    source: where the interval comes from.
    reason: why there is no score, or no interval; else empty.
    """

    score: float | None
    lower: float | None = None
    upper: float | None = None
    se2: float | None = None
    df: float | None = None
    calibration: int = 0
    source: str = ""
    reason: str = ""


def within(value: float, bounds: tuple[float, float]) -> float:
    """Return the value, or the bound that it lies beyond."""
    return min(max(value, bounds[0]), bounds[1])


@dataclass(frozen=True, eq=False)
class Completing:
    """The fit of a record, made when it is first needed.

    Raises TooFewComplete, SelectionError (model_unfinished).
    """

    record: Record
    fits: FitCache = field(default_factory=FitCache)

    @cached_property
    def teaching(self) -> Teaching:
        """The teaching agents."""
        n = n_complete(self.record)
        if n < MIN_COMPLETE:
            there = f"there {'is' if n == 1 else 'are'} {n}"
            raise TooFewComplete(f"{ESTIMATE_NEEDS} {MIN_COMPLETE} full runs and {there}")
        return taught_by(self.record, Staging(), fits=self.fits)

    @cached_property
    def _for_trials(self) -> Callable[[int], Teaching]:
        return cache(partial(for_trials, self.record, self.teaching))

    def filled(self, i: int, tasks: IndexArray) -> tuple[FloatArray, Scale, float]:
        """Return agent i's outcomes on some tasks, completed, (k,), and c, ν and se of their mean."""
        row, of = self.record.table.means[i], self._mask(tasks)
        by = self._for_trials(n_trials_of(self.record, i))
        estimate = self._estimate(i, of, by)
        scale = by.scale_on(np.flatnonzero(~np.isnan(row)), of)
        completed = np.where(np.isnan(row), estimate.passing, row)[tasks]
        return read_only(completed), scale, estimate.se

    def estimated(self, i: int, batch: IndexArray, tasks: IndexArray, calibration: int) -> FullScoreEstimate:
        """Estimate agent i's score on the tasks from all that it ran, with the error of its batch."""
        table, of = self.record.table, self._mask(tasks)
        by = self._for_trials(n_trials_of(self.record, i))
        estimate = self._estimate(i, of, by)
        scale, is_new = by.scale_for(table.scaffolds[i], batch, of)
        score, se = estimate.score, scale.c * estimate.se
        half = scale.quantile * se
        lowest, highest, _ = self.record.bounds(np.arange(self.record.n_tasks))
        bounds = (float(lowest[i]), float(highest[i]))
        return FullScoreEstimate(
            score=within(score, bounds),
            lower=within(score - half, bounds),
            upper=within(score + half, bounds),
            se2=se**2,
            df=float(scale.degrees),
            calibration=2 * (calibration + 1) + (is_new is True),
            source=CALIBRATED + (f"; {NOT_CALIBRATED}" if is_new is None else ""),
        )

    def _estimate(self, i: int, of: Mask, by: Teaching) -> model.ModelEstimate:
        mean = by.model.mean_after(n_before(self.record, by, i))
        return model.estimate(by.of_newcomers, self.record.table.means[i], mean, of)

    def _mask(self, tasks: IndexArray) -> Mask:
        return np.isin(np.arange(self.record.n_tasks), tasks)


def taught_by(
    record: Record,
    staging: Staging,
    walks: Mapping[str, WalkResult] | None = None,
    subset: IndexArray | None = None,
    fits: FitCache | None = None,
    n_trials: int | None = None,
) -> Teaching:
    """Fit to the agents that teach, in the order in which they came.

    walks: those asked batch by batch, by name.
    subset: the version of S in use; without it the band of the teaching agents is taken.
    fits: earlier ones, of which the same is not made again.
    n_trials: asked of newcomers for each task, under each condition; None: as many as these have.
    """
    table, complete = record.table, training(record)
    scores = dict(zip(complete.names, complete.scores.tolist(), strict=True))
    rows, first = _in_order(record)
    names = [table.agents[i] for i in rows]
    full_runs = []
    for row, (i, name) in enumerate(zip(rows.tolist(), names, strict=True)):
        if name in scores:
            walk = (walks or {}).get(name, WalkResult())
            share = walk.share if walk.drawn else 1.0
            how = (share, walk.first, walk.drawn, table.scaffolds[i], record.about[i].vouched)
            full_runs.append(FullRun(row, scores[name], *how))
    known = np.array([scores.get(name, np.nan) for name in names])
    outcomes = table.means[rows]
    fitted = (fits or FitCache()).made(
        ("teaching", first.tolist(), outcomes.shape),
        outcomes,
        make=lambda: (model.fit(outcomes, first), Refits()),
    )
    made = taught(outcomes, known, full_runs, staging, first=first, subset=subset, fitted=fitted)
    return made if n_trials is None else for_trials(record, made, n_trials * max(len(record.compared), 1))


def for_trials(record: Record, teaching_agents: Teaching, n: int) -> Teaching:
    """Return the same for newcomers with so many valid trials of a task, over all conditions compared."""
    table, (rows, _) = record.table, _in_order(record)
    variances, n_trials, n_valid = table.trial_variances, table.n_trials, table.n_valid[rows]
    if variances is None or n_trials is None or not (n_valid > n).any():
        return teaching_agents if teaching_agents.noise is None else replace(teaching_agents, noise=None)
    noise = np.nan_to_num(variances[rows] / n_trials[rows]) * np.maximum(n_valid / n - 1.0, 0.0)
    return replace(teaching_agents, noise=read_only(noise))


def n_trials_of(record: Record, i: int) -> int:
    """How many valid trials agent i has of most tasks that it ran."""
    n_valid = record.table.n_valid[i]
    return int(np.median(n_valid[n_valid > 0])) if n_valid.any() else 1


def _in_order(record: Record) -> tuple[IndexArray, IndexArray]:
    """Return the teaching agents in the order in which they came, and how many came before each."""
    rows = np.flatnonzero(teaching(record))
    order, first = model.in_order(
        [record.table.dates[i] for i in rows], [record.table.agents[i] for i in rows]
    )
    return rows[order], first


def n_before(record: Record, teaching_agents: Teaching, i: int) -> int:
    """How many teaching agents came before agent i; 0 where the order is not known."""
    table = record.table
    own = (table.dates[i], table.agents[i])
    if own[0] is None or not teaching_agents.first.any():
        return 0
    rows = np.flatnonzero(teaching(record))
    return sum((table.dates[j], table.agents[j]) < own for j in rows)


def fitted_on(agents: CompleteAgents, tasks: tuple[str, ...], rules: Rules) -> FittedOn:
    """Leave out each complete agent, each scaffold, and all from each date on, the selection repeated.

    tasks: the subset in use; the residuals come from folds that choose their own.
    rules: strategy and estimator, `ridge` or `line`, are theirs.
    """
    residuals_by = list[tuple[float | None, ...]]()
    by: Literal["agent", "scaffold", "date"]
    for by in ("agent", "scaffold", "date"):
        how: dict[str, Any] = {"strategy": rules.strategy, "estimator": rules.estimator}
        left_out = nested_residuals(agents, by, rule=rule_of(rules), base_seed=rules.seed, **how)
        residuals_by.append(tuple(None if e != e else e for e in left_out.tolist()))
    residuals, by_scaffold, in_time = residuals_by
    return FittedOn(rules.estimator, tasks, agents.names, agents.dates, residuals, by_scaffold, in_time)


def calibration_on(
    fitted: FittedOn | None, agents: CompleteAgents, tasks: tuple[str, ...], rules: Rules
) -> FittedOn:
    """Return a calibration of these tasks and this estimator, its agents all complete still, or a new one."""
    of = (rules.estimator, tasks)
    if fitted and (fitted.estimator, fitted.tasks) == of and set(fitted.agents) <= set(agents.names):
        return fitted
    return fitted_on(agents, tasks, rules)


def calibrator(
    agents: CompleteAgents, tasks: IndexArray, fitted: FittedOn, sampled: Collection[str], fits: FitCache
) -> Calibrator:
    """Gather what intervals of estimated scores are made from.

    agents: all that are complete; those that `fitted` names are used.
    sampled: agents drawn at random, for a full run, from those that came after the subset was fixed.
    """
    used = np.flatnonzero(np.isin(agents.names, fitted.agents))
    taken = agents if used.size == agents.n else agents.take(used)
    made = fits.fit(fitted.estimator, taken, tasks, fitted.ridge)
    residuals, by_scaffold, in_time = (
        np.array(values, dtype=np.float64)
        for values in (fitted.residuals, fitted.scaffold_residuals, fitted.in_time)
    )
    return calibrate(
        made,
        residuals,
        in_time=in_time,
        post_selection=_of_sampled(agents, made, sampled),
        scaffolds=taken.scaffolds,
        scaffold_residuals=by_scaffold,
    )


def estimates(
    record: Record, tasks: IndexArray, rows: IndexArray, made: Calibrator
) -> dict[int, FullScoreEstimate]:
    """Estimate the full score of some agents, by position, that are ranked on these tasks."""
    scaffolds = [record.table.scaffolds[i] for i in rows]
    try:
        answers = intervals(made, record.table.means[np.ix_(rows, tasks)], scaffolds)
    except CoreError as refusal:
        return dict.fromkeys(rows.tolist(), FullScoreEstimate(None, reason=str(refusal)))
    lowest, highest, _ = record.bounds(np.arange(record.n_tasks))
    estimated = {}
    for i, answer in zip(rows.tolist(), answers, strict=True):
        bounds = (float(lowest[i]), float(highest[i]))
        if isinstance(answer, NoInterval):
            score = None if answer.point is None else within(answer.point, bounds)
            estimated[i] = FullScoreEstimate(score, reason=answer.reason)
            continue
        missed = answer.upper < bounds[0] or answer.lower > bounds[1]
        estimated[i] = FullScoreEstimate(
            score=within(answer.point, bounds),
            lower=bounds[0] if missed else within(answer.lower, bounds),
            upper=bounds[1] if missed else within(answer.upper, bounds),
            se2=answer.s_cal**2,
            df=answer.df,
            calibration=BY_SCAFFOLD if answer.source == "new scaffold" else BY_AGENT,
            source=answer.source + (f"; {NOT_CALIBRATED}" if NOT_CALIBRATED in answer.note else ""),
        )
    return estimated


def _of_sampled(agents: CompleteAgents, made: FullScores, sampled: Collection[str]) -> FloatArray | None:
    """Return y − ŷ of the sampled agents, each by a fit without it on S, which was fixed before it came.

    None under 19 of them, where they decide no interval; an agent that lacks over a tenth of S has none.
    """
    on_subset = agents.outcomes[:, made.tasks]
    rows = np.flatnonzero(np.isin(agents.names, list(sampled)) & ridge.predictable(on_subset))
    if rows.size < MIN_FOR_QUANTILE:
        return None
    predictions = made.predict(on_subset[rows])
    place = {name: i for i, name in enumerate(made.agents.names)}
    fitted = [(r, place[agents.names[i]]) for r, i in enumerate(rows) if agents.names[i] in place]
    if fitted:
        own, column = np.array(fitted, dtype=np.intp).T
        predictions[own] = made.predict_without(on_subset[rows[own]])[np.arange(own.size), column]
    return np.asarray(agents.scores[rows] - predictions, dtype=np.float64)
