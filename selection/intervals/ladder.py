"""The interval of an agent by the first source that applies, or the reason why it has none.

Model and symbols: those of `selection.intervals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analytics.arrays import FloatArray
from selection import ridge
from selection.errors import SelectionError
from selection.intervals.calibrator import MIN_FOR_NORMAL, Calibrator, Source
from selection.intervals.quantiles import jackknife_plus
from selection.intervals.scaffolds import LEVEL, MIN_SCAFFOLDS, NOT_CALIBRATED

WIDEST = 1.96


@dataclass(frozen=True)
class ScoreInterval:
    """A prediction interval for the score of a full run.

    lower, upper: clipped to [0, 1]; score.
    point: ŷ, not clipped.
    half_width: before clipping; score.
    source: {"post-selection", "in time", "jackknife+", "normal", "new scaffold"}.
    s_cal, df: standard error for comparisons, score, and its degrees of freedom.
    note: what it rests on, with the numbers.
    level: nominal, 0.95.
    """

    lower: float
    upper: float
    point: float
    half_width: float
    source: Source
    s_cal: float
    df: float
    note: str
    level: float = LEVEL


@dataclass(frozen=True)
class NoInterval:
    """Why there is no interval.

    point: ŷ where it may be shown without an interval; None where it may not.
    """

    reason: str
    point: float | None


def intervals(
    calibrator: Calibrator, outcomes: FloatArray, scaffolds: Sequence[str | None] | None = None
) -> tuple[ScoreInterval | NoInterval, ...]:
    """Give each agent its interval, or the reason why it has none.

    outcomes: (q, k); mean outcomes on the active subset; NaN where missing.
    scaffolds: length q; None: not known, so not new.
    Raises SelectionError (shape, outcome_range).
    Raises and what the estimator refuses.
    """
    outcomes = np.asarray(outcomes, dtype=np.float64)
    predictable = ridge.predictable(outcomes)
    scaffolds = [None] * len(outcomes) if scaffolds is None else scaffolds
    if len(scaffolds) != len(outcomes):
        raise SelectionError(f"{len(scaffolds)} scaffolds for {len(outcomes)} agents", code="shape")
    points, ends = np.full(len(outcomes), np.nan), np.full((2, len(outcomes)), np.nan)
    points[predictable] = calibrator.fitted.predict(outcomes[predictable])
    ends[:, predictable] = _ends(calibrator, outcomes[predictable], points[predictable])
    return tuple(
        _answer(calibrator, float(point), (float(lower), float(upper)), scaffold)
        if has_enough
        else _unpredictable(row)
        for row, has_enough, point, lower, upper, scaffold in zip(
            outcomes, predictable, points, *ends, scaffolds, strict=True
        )
    )


def interval(
    calibrator: Calibrator, outcomes: FloatArray, scaffold: str | None = None
) -> ScoreInterval | NoInterval:
    """Give one agent its interval, as `intervals` does.

    outcomes: (k,).
    """
    return intervals(calibrator, np.asarray(outcomes, dtype=np.float64)[None, :], [scaffold])[0]


# ---------------------------------------------------------------------------------------------- arithmetic


def _ends(calibrator: Calibrator, outcomes: FloatArray, points: FloatArray) -> FloatArray:
    """Lower and upper ends by the source of known scaffolds, shape (2, q); NaN where there is none."""
    source = calibrator.source
    if source is None or not points.size:
        return np.full((2, points.size), np.nan)
    if source == "jackknife+":
        predictions = calibrator.fitted.predict_without(outcomes)[:, ~np.isnan(calibrator.residuals)]
        return np.array(jackknife_plus(predictions, calibrator.left_out))
    half_width = calibrator.half_width(source)
    return np.array([points - half_width, points + half_width])


def _answer(
    calibrator: Calibrator, point: float, ends: tuple[float, float], scaffold: str | None
) -> ScoreInterval | NoInterval:
    """Return the interval, that of a new scaffold where it is wider, unless it is wider than the scores."""
    source, is_new, parts = calibrator.source, calibrator.is_new(scaffold), calibrator.scaffold_components
    if source is None:
        n = calibrator.left_out.size
        return NoInterval(f"residuals of {n} agents; an interval needs at least {MIN_FOR_NORMAL}", point)
    half_width = (ends[1] - ends[0]) / 2
    if is_new and parts is not None and parts.half_width > half_width:
        source, half_width = "new scaffold", parts.half_width
        ends = (point - half_width, point + half_width)
    widest = WIDEST * calibrator.sd_scores
    if half_width > widest:
        return NoInterval(
            f"{source}: a half-width of {half_width:.4f} exceeds 1.96 standard deviations of the training "
            f"scores, {widest:.4f}",
            None,
        )
    lower, upper = (min(max(end, 0.0), 1.0) for end in ends)
    note = _note(calibrator, source) + _not_calibrated(calibrator, is_new)
    return ScoreInterval(lower, upper, point, half_width, source, *calibrator.error(source), note)


# ------------------------------------------------------------------------------------------------- reasons


def _note(calibrator: Calibrator, source: Source) -> str:
    parts = calibrator.scaffold_components
    if source == "new scaffold" and parts is not None:
        alone = "" if parts.separated else ", one agent in each"
        return f"scaffold unseen in training; residuals of {parts.n_scaffolds} scaffolds held out{alone}"
    n = calibrator.residuals_of(source).size
    if source == "post-selection":
        return f"residuals of {n} agents drawn after activation"
    if source == "in time":
        return f"residuals of {n} agents, each predicted from those that came before it"
    return f"leave-one-agent-out residuals of {n} agents"


def _not_calibrated(calibrator: Calibrator, is_new: bool) -> str:
    if not is_new or calibrator.scaffold_components is not None:
        return ""
    return (
        f"; {NOT_CALIBRATED} (residuals from {calibrator.n_scaffolds} scaffolds, at least "
        f"{MIN_SCAFFOLDS} are needed)"
    )


def _unpredictable(outcomes: FloatArray) -> NoInterval:
    n_missing, k = int(np.count_nonzero(np.isnan(outcomes))), outcomes.size
    return NoInterval(f"{n_missing} of {k} tasks of the subset are missing; at most {k // 10} may be", None)
