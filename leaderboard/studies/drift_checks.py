"""The drift monitors of a benchmark's subset on its present data, stored as a check."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime

import numpy as np

from analytics.drift import monitors as drift
from analytics.drift.fidelity import rho_null
from analytics.drift.monitors import Monitor
from analytics.resampling import generator
from leaderboard.studies.models import DriftCheck, TaskSubset
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import keep, kept
from leaderboard.studies.subsets import active_subset, columns_of
from selection.bands import latest_agents, pass_rates

DAYS_A_YEAR = 365.25


@dataclass(frozen=True)
class Promise:
    """What a board said of an agent's full score before the agent ran all tasks."""

    score: float
    lower: float
    upper: float


def settle_drift_check(
    *, snapshot: Snapshot, promises: Mapping[int, Promise], as_of: datetime
) -> tuple[DriftCheck, bool]:
    """Return the check of the present data and whether it was made just now; `promises` by agent id."""
    subset = active_subset(snapshot.benchmark)
    if subset and not columns_of(snapshot, subset).size:
        subset = None  # every task of it is retired
    if check := kept(DriftCheck, snapshot=snapshot, subset=subset):
        return check, False
    monitors = _Watch(snapshot, subset, promises).monitors() if subset else []
    result = {
        "reason": "" if subset else "no subset is in use, so nothing can drift away from it",
        "monitors": [asdict(monitor) for monitor in monitors],
        "false_alerts_a_year": drift.false_alerts_a_year(monitors, _agents_a_year(snapshot)),
    }
    return keep(DriftCheck, snapshot=snapshot, subset=subset, result=result, as_of=as_of), True


class _Watch:
    """Agents in time order, and which of them came after the subset was chosen."""

    def __init__(self, snapshot: Snapshot, subset: TaskSubset, promises: Mapping[int, Promise]) -> None:
        table = snapshot.record.table
        self.snapshot, self.record, self.table = snapshot, snapshot.record, table
        self.subset, self.promises = subset, promises
        self.columns = columns_of(snapshot, subset)
        self.on_subset = table.means[:, self.columns]
        self.order = sorted(range(table.n_agents), key=lambda i: (table.dates[i] or date.min, i))
        self.is_new = self.record.arrival > subset.data_version
        self.complete = self.record.complete & ~np.isnan(self.on_subset).all(axis=1)
        self.has_all = np.asarray(~np.isnan(self.on_subset).any(axis=1))

    def monitors(self) -> list[Monitor]:
        return [
            self._fidelity(),
            self._jump(),
            self._erosion(),
            self._calibration(),
            self._residuals(),
            self._saturation(),
            self._novelty(),
            self._failures(),
            self._run_variance(),
            self._costs(),
        ]

    def _fidelity(self) -> Monitor:
        runs = self._spontaneous()
        null = self._rho_null() if len(runs) >= drift.N_FIDELITY_ALERT else None
        means = np.array([np.nanmean(self.on_subset[i]) for i in runs])
        scores = np.array([np.nanmean(self.table.means[i]) for i in runs])
        return drift.fidelity(means, scores, null, self._names(runs))

    def _rho_null(self) -> float | None:
        member = np.isin(np.arange(self.table.n_tasks), self.columns)
        reference = self.table.means[self.complete]
        return rho_null(reference, member[None, :], seed=self.snapshot.policy.base_seed)[0]

    def _spontaneous(self) -> list[int]:
        """New agents that came complete; who was asked for more is no random draw."""
        at_once = np.asarray(self.record.completed == self.record.arrival)
        return self._in_time(np.asarray(self.complete & self.is_new & at_once))

    def _jump(self) -> Monitor:
        agents = self._in_time(self.has_all)
        values = self.on_subset[agents].mean(axis=1)
        return drift.capability_jump(values, self._names(agents), self._dates(agents))

    def _erosion(self) -> Monitor:
        complete = np.flatnonzero(self.complete)
        window = self.snapshot.policy.history_window or drift.N_LATEST
        latest = complete[latest_agents([self.table.dates[i] for i in complete], window)]
        rates = pass_rates(self.table.means[latest][:, self.columns])
        tasks = [self.table.tasks[j] for j in self.columns]
        return drift.band_erosion(rates, tasks, self.subset.lo, self.subset.hi)

    def _calibration(self) -> Monitor:
        agents, scores = self._kept_promises()
        missed = [not p.lower <= y <= p.upper for p, y in zip(self._promised(agents), scores, strict=True)]
        return drift.calibration(np.array(missed, bool), self._names(agents), self._dates(agents))

    def _residuals(self) -> Monitor:
        agents, scores = self._kept_promises()
        errors = scores - np.array([p.score for p in self._promised(agents)])
        return drift.residuals(errors, self._names(agents), self._dates(agents))

    def _kept_promises(self) -> tuple[list[int], np.ndarray]:
        """Agents that have run all tasks since a board calibrated them, and their full scores."""
        ids = [agent.pk for agent in self.snapshot.agents]
        agents = self._in_time(self.complete & np.isin(ids, list(self.promises)))
        return agents, np.array([np.nanmean(self.table.means[i]) for i in agents])

    def _promised(self, agents: list[int]) -> list[Promise]:
        return [self.promises[self.snapshot.agents[i].pk] for i in agents]

    def _saturation(self) -> Monitor:
        ranked = np.flatnonzero(self.has_all)
        rates = pass_rates(self.table.means[self.complete][:, self.columns])
        rates = rates[~np.isnan(rates)]
        means = self.on_subset[ranked].mean(axis=1)
        return drift.saturation(means, self.columns.size, self._names(ranked.tolist()), rates)

    def _novelty(self) -> Monitor:
        agents = self._in_time(self.is_new)
        known = frozenset(s for s, new in zip(self.table.scaffolds, self.is_new, strict=True) if not new)
        return drift.scaffold_novelty([self.table.scaffolds[i] for i in agents], known, self._names(agents))

    def _failures(self) -> Monitor:
        n_delivered = self.record.n_places.sum(axis=1)
        n_invalid = self.record.n_gaps.sum(axis=1)
        agents, before = self._in_time(self.is_new), ~self.is_new
        reference = int(n_invalid[before].sum()), int(n_delivered[before].sum())
        return drift.harness_failures(
            n_invalid[agents], n_delivered[agents], reference, self._names(agents), self._dates(agents)
        )

    def _run_variance(self) -> Monitor:
        variances = np.array([one.sigma_w2 for one in self.record.repeats], np.float64)
        known = ~np.isnan(variances)
        since = self._in_time(known & self.is_new)
        rng = generator(self.snapshot.policy.base_seed, "run variance")
        return drift.run_variance(variances[known & ~self.is_new], variances[since], self._names(since), rng)

    def _costs(self) -> Monitor:
        spent = self.record.costs
        agents = self._in_time(np.asarray(~np.isnan(spent).all(axis=1)))
        means = np.array([np.nanmean(spent[i]) for i in agents])
        return drift.cost_per_task(means, self._names(agents), self._dates(agents))

    def _in_time(self, mask: np.ndarray) -> list[int]:
        return [i for i in self.order if mask[i]]

    def _names(self, agents: list[int]) -> list[str]:
        return [self.table.agents[i] for i in agents]

    def _dates(self, agents: list[int]) -> list[date | None]:
        return [self.table.dates[i] for i in agents]


def _agents_a_year(snapshot: Snapshot) -> float:
    """New agents in a year, from the dates there are; 0 where they span no time."""
    days = sorted(day for day in snapshot.record.table.dates if day)
    span = (days[-1] - days[0]).days if days else 0
    return (len(days) - 1) * DAYS_A_YEAR / span if span else 0.0
