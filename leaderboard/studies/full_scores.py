"""The score on all tasks: measured, or calibrated from the subset with an interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.outcome_table import naive_standard_error
from leaderboard.studies.calibrations import calibrator_of, ridge_fit
from leaderboard.studies.models import Calibration
from leaderboard.studies.tables import Snapshot
from selection.intervals import Interval, NoInterval, intervals
from selection.ridge import predict, predictable


@dataclass(frozen=True)
class FullScore:
    """`interval` holds its ends and source, or the reason why there is none; `s_loo` is for differences."""

    score: float | None = None
    source: str = ""
    naive_se: float | None = None
    interval: dict[str, Any] | None = None
    s_loo: float | None = None
    df: int | None = None
    note: str = ""


def full_scores(
    *, snapshot: Snapshot, columns: np.ndarray, calibration: Calibration | None
) -> list[FullScore]:
    """Measured for complete agents; calibrated for those with at least 90% of the subset; else none."""
    full = [FullScore(note="no full run, and no calibration")] * snapshot.table.n_agents
    if calibration:
        _calibrate(full, snapshot, columns, calibration)
    complete = snapshot.table.complete()
    measured = snapshot.table.restrict(agents=complete)
    where, n_valid = np.flatnonzero(complete).tolist(), measured.n_valid_tasks().tolist()
    for i, score, n in zip(where, measured.scores().tolist(), n_valid, strict=True):
        full[i] = FullScore(score, "measured", naive_standard_error(score, n))
    return full


def _calibrate(
    full: list[FullScore], snapshot: Snapshot, columns: np.ndarray, calibration: Calibration
) -> None:
    calibrator = calibrator_of(calibration, snapshot)
    on_subset, fit = snapshot.table.means[:, columns], ridge_fit(calibration)
    which = np.flatnonzero(~snapshot.table.complete())
    answers = intervals(calibrator, on_subset[which], [snapshot.table.scaffolds[i] for i in which])
    can = predictable(on_subset[which])
    for i, answer, has_point in zip(which.tolist(), answers, can, strict=True):
        if not isinstance(answer, Interval) and answer.point is None:
            full[i] = FullScore(note=answer.reason)
        elif has_point:
            point = float(predict(fit, on_subset[i : i + 1])[0])
            full[i] = FullScore(
                point,
                "calibrated",
                interval=_told(answer),
                s_loo=calibrator.s_loo if isinstance(answer, Interval) else None,
                df=calibrator.n - 1 if calibrator.n > 1 else None,
            )


def _told(answer: Interval | NoInterval) -> dict[str, Any]:
    if not isinstance(answer, Interval):
        return {"reason": answer.reason}
    lower, upper = answer.shown
    return {
        "lower": lower,
        "upper": upper,
        "source": answer.source,
        "level": answer.level,
        "note": answer.note,
    }
