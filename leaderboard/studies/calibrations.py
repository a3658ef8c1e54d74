"""The Ridge calibration of a subset to the full score, stored and refitted as complete agents come."""

from datetime import datetime

import numpy as np
from django.db import transaction

from analytics.errors import CoreError
from leaderboard.studies.models import ESTIMATOR_VERSION, Calibration, TaskSubset
from leaderboard.studies.subsets import task_ids
from leaderboard.studies.tables import Snapshot
from selection.ridge import RidgeFit, fit

__all__ = ["CoreError", "columns_of", "ridge_fit", "settle_calibration"]


def settle_calibration(*, snapshot: Snapshot, subset: TaskSubset, as_of: datetime) -> Calibration:
    """Return the calibration in use, refitted when `refit_every` more agents are complete.

    Raises
    ------
    CoreError
        When the complete agents do not carry a fit; it says why.
    """
    columns = columns_of(snapshot, subset)
    complete = snapshot.table.complete()
    latest = subset.calibrations.filter(estimator_version=ESTIMATOR_VERSION).order_by("-data_version").first()
    if latest and _is_current(latest, int(complete.sum()), snapshot, columns):
        return latest
    trained = snapshot.table.restrict(agents=complete)
    return _store(fit(trained.means[:, columns], trained.scores()), snapshot, subset, columns, as_of)


def columns_of(snapshot: Snapshot, subset: TaskSubset | None) -> np.ndarray:
    """Where the ranked tasks stand in the table: the subset's active ones, or all under full runs."""
    if subset is None:
        return np.arange(snapshot.table.n_tasks)
    return np.flatnonzero(np.isin(snapshot.task_ids, task_ids(subset)))


def ridge_fit(calibration: Calibration) -> RidgeFit:
    return RidgeFit(
        intercept=calibration.intercept,
        coefficients=np.array(calibration.coefficients),
        column_means=np.array(calibration.column_means),
        n=calibration.n_agents,
        alpha=calibration.alpha,
    )


def _is_current(calibration: Calibration, n_complete: int, snapshot: Snapshot, columns: np.ndarray) -> bool:
    grown = n_complete - calibration.n_agents
    return (
        0 <= grown < snapshot.policy.refit_every and calibration.tasks == snapshot.task_ids[columns].tolist()
    )


@transaction.atomic
def _store(
    ridge: RidgeFit, snapshot: Snapshot, subset: TaskSubset, columns: np.ndarray, as_of: datetime
) -> Calibration:
    stored, _ = Calibration.objects.get_or_create(
        subset=subset,
        data_version=snapshot.data_version,
        estimator_version=ESTIMATOR_VERSION,
        defaults={
            "n_agents": ridge.n,
            "alpha": ridge.alpha,
            "intercept": ridge.intercept,
            "tasks": snapshot.task_ids[columns].tolist(),
            "coefficients": ridge.coefficients.tolist(),
            "column_means": ridge.column_means.tolist(),
            "created_at": as_of,
        },
    )
    return stored
