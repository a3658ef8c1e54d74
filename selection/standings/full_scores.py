"""The full score of an agent that ran the subset alone, by `ridge` or `line`, where the rules name one.

Model
-----
ŷ is that of `selection.full_scores` on S, fitted to the complete agents; its interval is that of
`selection.intervals`. ŷ and both ends lie within what its missing outcomes leave open, as in
`selection.standings.completing`; an interval that lies outside has missed, and the bounds stand in its place.

For comparisons ŷ has the error of its calibration, s_cal of `selection.intervals` with its degrees of
freedom: one estimate for all agents, and one for those of a scaffold that no complete agent has.

Symbols: ŷ ``score``, s_cal² ``se2`` score², ν ``df``.

Source: As in `selection.full_scores` and `selection.intervals`.
"""

from collections.abc import Collection, Mapping

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from analytics.errors import CoreError
from analytics.record import Record
from selection import ridge
from selection.folds import CompleteAgents
from selection.full_scores import FitCache, FullScores
from selection.held_out import Residuals, nested_residuals
from selection.intervals import (
    MIN_FOR_QUANTILE,
    NOT_CALIBRATED,
    Calibrator,
    NoInterval,
    ScoreInterval,
    calibrate,
    intervals,
    prequential,
)
from selection.prior import FittedOn
from selection.rules import Rules
from selection.schema.board import CoverageLine
from selection.standings.choice import rule_of
from selection.standings.completing import FullScoreEstimate, within

BY_AGENT, BY_SCAFFOLD = 0, 1


def fitted_on(agents: CompleteAgents, tasks: tuple[str, ...], rules: Rules) -> FittedOn:
    """Leave out each complete agent, each scaffold, and all from each date on, the selection repeated.

    agents: whom to calibrate on.
    tasks: the subset in use; the residuals come from folds that choose their own.
    rules: strategy and estimator, `ridge` or `line`, are theirs.
    Raises SelectionError.
    """
    by_agent, by_scaffold, in_time = (
        nested_residuals(
            agents,
            by,
            strategy=rules.strategy,
            estimator=rules.estimator,
            rule=rule_of(rules),
            base_seed=rules.seed,
        )
        for by in ("agent", "scaffold", "date")
    )
    return FittedOn(
        estimator=rules.estimator,
        tasks=tasks,
        agents=agents.names,
        dates=agents.dates,
        residuals=_residuals(by_agent),
        scaffold_residuals=_residuals(by_scaffold),
        in_time=_residuals(in_time),
    )


def is_current(fitted: FittedOn | None, agents: CompleteAgents, tasks: tuple[str, ...], rules: Rules) -> bool:
    """Whether a calibration is of these tasks, by no other estimator, its agents all complete still."""
    if fitted is None or rules.estimator != fitted.estimator:
        return False
    return fitted.tasks == tasks and set(fitted.agents) <= set(agents.names)


def calibrator(
    agents: CompleteAgents,
    tasks: IndexArray,
    fitted: FittedOn,
    sampled: Collection[str] = (),
    fits: FitCache | None = None,
) -> Calibrator:
    """Gather what intervals of estimated scores are made from.

    agents: all that are complete; those that `fitted` names are used.
    tasks: (k,).
    sampled: agents drawn at random, for a full run, from those that came after the subset was fixed.
    fits: of earlier answers.
    Raises As `selection.intervals.calibrate`..
    """
    used = np.flatnonzero(np.isin(agents.names, fitted.agents))
    taken = agents if used.size == agents.n else agents.take(used)
    made = (fits or FitCache()).fit(fitted.estimator, taken, tasks, fitted.ridge)
    return calibrate(
        made,
        _numbers(fitted.residuals),
        in_time=_numbers(fitted.in_time),
        post_selection=_of_sampled(agents, made, sampled),
        scaffolds=taken.scaffolds,
        scaffold_residuals=_numbers(fitted.scaffold_residuals),
    )


def coverage(fitted: FittedOn, estimated: Mapping[int, FullScoreEstimate]) -> CoverageLine | None:
    """Tell how often intervals in time held the scores that came later; None where no interval is shown."""
    if all(one.lower is None for one in estimated.values()):
        return None
    result = prequential(_numbers(fitted.in_time), fitted.dates)
    return CoverageLine(
        estimator=fitted.estimator,
        n=result.n,
        n_covered=result.n_covered,
        share=result.share,
        upper=result.upper,
        falls_short=result.falls_short,
    )


def estimates(
    record: Record, tasks: IndexArray, rows: IndexArray, made: Calibrator
) -> Mapping[int, FullScoreEstimate]:
    """Estimate the full score of some agents.

    tasks: (k,).
    rows: positions of agents that are ranked on them directly or completed.
    """
    scaffolds = [record.table.scaffolds[i] for i in rows]
    try:
        answers = intervals(made, record.table.means[np.ix_(rows, tasks)], scaffolds)
    except CoreError as refusal:
        return {int(i): FullScoreEstimate(None, reason=str(refusal)) for i in rows}
    lowest, highest, _ = record.bounds(np.arange(record.n_tasks))
    return {
        int(i): _estimated(answer, (float(lowest[i]), float(highest[i])))
        for i, answer in zip(rows, answers, strict=True)
    }


# ---------------------------------------------------------------------------------------------- arithmetic


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


def _numbers(residuals: tuple[float | None, ...]) -> FloatArray:
    """Residuals with NaN where there is none."""
    return np.array(residuals, dtype=np.float64)


def _residuals(left_out: Residuals) -> tuple[float | None, ...]:
    residuals = (left_out.scores - left_out.predictions).tolist()
    return tuple(value if usable else None for value, usable in zip(residuals, left_out.usable, strict=True))


def _estimated(answer: ScoreInterval | NoInterval, bounds: tuple[float, float]) -> FullScoreEstimate:
    if isinstance(answer, NoInterval):
        score = None if answer.point is None else within(answer.point, bounds)
        return FullScoreEstimate(score, reason=answer.reason)
    missed = answer.upper < bounds[0] or answer.lower > bounds[1]
    return FullScoreEstimate(
        score=within(answer.point, bounds),
        lower=bounds[0] if missed else within(answer.lower, bounds),
        upper=bounds[1] if missed else within(answer.upper, bounds),
        se2=answer.s_cal**2,
        df=answer.df,
        calibration=BY_SCAFFOLD if answer.source == "new scaffold" else BY_AGENT,
        source=answer.source + (f"; {NOT_CALIBRATED}" if NOT_CALIBRATED in answer.note else ""),
        note=answer.note,
    )
