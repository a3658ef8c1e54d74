"""The Ridge calibration of a subset to the full score, stored and refitted as complete agents come."""

import math
from datetime import datetime
from typing import Any

import numpy as np
from django.db import transaction

from analytics.errors import CoreError
from analytics.outcome_table import OutcomeTable
from leaderboard.catalog.models import Policy
from leaderboard.studies.models import ESTIMATOR_VERSION, Calibration, TaskSubset
from leaderboard.studies.subsets import task_ids
from leaderboard.studies.tables import Snapshot
from selection.folds import Rule, complete_agents
from selection.held_out import Residuals, nested_residuals
from selection.intervals import Calibrator, calibrate
from selection.ridge import RidgeFit, fit

__all__ = ["CoreError", "calibrator_of", "columns_of", "ridge_fit", "rule_of", "settle_calibration"]

SAME_FIT = 1e-9


def settle_calibration(*, snapshot: Snapshot, subset: TaskSubset, as_of: datetime) -> Calibration:
    """Return the calibration in use, refitted when `refit_every` more agents are complete.

    Raises
    ------
    CoreError
        When the complete agents do not carry a fit; it says why.
    """
    columns = columns_of(snapshot, subset)
    calibrations = subset.calibrations.filter(estimator_version=ESTIMATOR_VERSION)
    latest = calibrations.order_by("-data_version", "-policy__number").first()
    if latest and _is_current(latest, snapshot, columns):
        return latest
    return _store(_fitted(snapshot, columns, subset.policy), snapshot, subset, as_of)


def columns_of(snapshot: Snapshot, subset: TaskSubset | None) -> np.ndarray:
    """Where the ranked tasks stand in the table: the subset's active ones, or all under full runs."""
    if subset is None:
        return np.arange(snapshot.table.n_tasks)
    return np.flatnonzero(np.isin(snapshot.task_ids, task_ids(subset)))


def rule_of(policy: Policy) -> Rule:
    return Rule(policy.band_lo, policy.band_hi, policy.history_window, policy.hysteresis)


def ridge_fit(calibration: Calibration) -> RidgeFit:
    return RidgeFit(
        intercept=calibration.intercept,
        coefficients=np.array(calibration.coefficients),
        column_means=np.array(calibration.column_means),
        n=calibration.n_agents,
        alpha=calibration.alpha,
    )


def calibrator_of(calibration: Calibration, snapshot: Snapshot) -> Calibrator:
    """What intervals are made from: the agents it was fitted to, and their stored residuals."""
    trained = _trained(snapshot, calibration)
    columns = np.flatnonzero(np.isin(snapshot.task_ids, calibration.tasks))
    place = {pk: i for i, pk in enumerate(calibration.agents)}
    in_table = [place[agent.pk] for agent in snapshot.agents if agent.pk in place]
    return calibrate(
        trained.means[:, columns],
        trained.scores(),
        np.array(calibration.residuals, np.float64)[in_table],
        scaffolds=trained.scaffolds,
        scaffold_residuals=np.array(calibration.scaffold_residuals, np.float64)[in_table],
    )


def _trained(snapshot: Snapshot, calibration: Calibration) -> OutcomeTable:
    pks = [agent.pk for agent in snapshot.agents]
    return snapshot.table.restrict(agents=np.isin(pks, calibration.agents))


def _is_current(calibration: Calibration, snapshot: Snapshot, columns: np.ndarray) -> bool:
    """Whether its tasks are those in use, its agents still give this fit, and few have come since.

    Outcomes of its agents that were corrected, or a task retired outside the subset, make another fit.
    """
    complete = _complete_ids(snapshot)
    n_new = len(complete) - calibration.n_agents
    if (
        not set(calibration.agents) <= set(complete)
        or n_new >= snapshot.policy.refit_every
        or calibration.tasks != snapshot.task_ids[columns].tolist()
    ):
        return False
    trained, stored = _trained(snapshot, calibration), ridge_fit(calibration)
    again = fit(trained.means[:, columns], trained.scores())
    return math.isclose(again.intercept, stored.intercept, abs_tol=SAME_FIT) and np.allclose(
        again.coefficients, stored.coefficients, rtol=0, atol=SAME_FIT
    )


def _complete_ids(snapshot: Snapshot) -> list[int]:
    return [snapshot.agents[i].pk for i in np.flatnonzero(snapshot.table.complete())]


def _fitted(snapshot: Snapshot, columns: np.ndarray, policy: Policy) -> dict[str, Any]:
    """Fit, and leave out each agent and each scaffold with the selection made anew by the subset's policy."""
    agents = complete_agents(snapshot.table)
    ridge = fit(agents.outcomes[:, columns], agents.scores)
    by_agent, by_scaffold = (
        nested_residuals(
            agents, by, strategy=policy.strategy, rule=rule_of(policy), base_seed=policy.base_seed
        )
        for by in ("agent", "scaffold")
    )
    return {
        "n_agents": ridge.n,
        "alpha": ridge.alpha,
        "intercept": ridge.intercept,
        "tasks": snapshot.task_ids[columns].tolist(),
        "coefficients": ridge.coefficients.tolist(),
        "column_means": ridge.column_means.tolist(),
        "agents": _complete_ids(snapshot),
        "residuals": _residuals(by_agent),
        "scaffold_residuals": _residuals(by_scaffold),
    }


def _residuals(left_out: Residuals) -> list[float | None]:
    residuals = (left_out.scores - left_out.predictions).tolist()
    return [value if usable else None for value, usable in zip(residuals, left_out.usable, strict=True)]


@transaction.atomic
def _store(fitted: dict[str, Any], snapshot: Snapshot, subset: TaskSubset, as_of: datetime) -> Calibration:
    stored, _ = Calibration.objects.get_or_create(
        subset=subset,
        policy=snapshot.policy,
        data_version=snapshot.data_version,
        estimator_version=ESTIMATOR_VERSION,
        defaults=fitted | {"created_at": as_of},
    )
    return stored
