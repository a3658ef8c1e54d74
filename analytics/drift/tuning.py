"""Whether newcomers do worse outside the subset than their outcomes on it predict: the subset is public.

Source: This project's own. Efron & Tibshirani, *An Introduction to the Bootstrap*, 1993, ch. 16 (tests);
Student, *The probable error of a mean*, Biometrika 1908.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from analytics.arrays import FloatArray, IndexArray
from analytics.drift.monitor import (
    LEVEL,
    MIN_AGENTS,
    N_LATEST,
    Look,
    Monitor,
    State,
    at,
    declare,
    insufficient,
    last_look,
    permutation_p,
    permuted,
    same_length,
)
from analytics.resampling import generator

NAME = declare(
    "tuning to the subset",
    "ask the agents named for full runs; their rank on the ranking tasks alone is in doubt",
)
WARN_TIMES, ALERT_TIMES = 5.0, 1.5
FLAGGED_BELOW, N_TASKS_FLAGGED = -3.0, 5
MIN_AUDIT_TASKS = 2


class Audit(NamedTuple):
    """Outcomes on tasks outside S and what S predicts of them, (n_agents, n_tasks) each; NaN: not audited."""

    outcomes: FloatArray
    expected: FloatArray

    @property
    def residuals(self) -> FloatArray:
        """Return x − P."""
        return self.outcomes - self.expected


def n_audit_tasks(k: int, share: float) -> int:
    """Return how many tasks outside S a newcomer gets: share·k, and two at least if share > 0.

    Agents that know a subset of six tasks were noticed on .75 of boards by one task each, on .85 by two.

    share: 0 to 1.
    """
    return max(MIN_AUDIT_TASKS, round(share * k)) if share > 0.0 else 0


def subset_tuning(
    reference: Audit, since: Audit, agents: Sequence[str], dates: Sequence[date | None], seed: int
) -> Monitor:
    """Test whether newcomers do worse on audit tasks than S predicts; name those far worse.

    reference: of the agents that S was chosen from, each predicted by S and difficulties made without it.
    since: of newcomers, `agents`, in time order.
    """
    same_length(*since, agents, dates)
    same_length(*reference)
    audited, known = (np.flatnonzero((~np.isnan(part.residuals)).any(axis=1)) for part in (since, reference))
    if not audited.size:
        return insufficient(NAME, "no audit task was run")
    look, flagged = last_look(audited.size), [agents[i] for i in _flagged(since).tolist()]
    evidence: dict[str, Any] = {"agents": flagged, "n_audited": audited.size}
    if look is None or known.size < MIN_AGENTS:
        counts = f"agents before: {known.size}; newcomers with audit tasks: {audited.size}"
        return insufficient(NAME, f"{counts}; {MIN_AGENTS} each are needed", evidence)
    window = audited[: look.size][-max(N_LATEST, look.size // 2) :]
    latest, before = since.residuals[window], reference.residuals[known]
    gap = float(np.nanmean(latest, axis=1).mean() - np.nanmean(before, axis=1).mean())
    draw = _draws(before, latest, generator(seed, NAME, look.number))
    p = permutation_p(-gap, permuted(look, draw, -gap)[0])
    reason = (
        f"on audit tasks, {look.latest(len(latest), 'newcomers')} differ by {100 * gap:+.1f} points from "
        "what the ranking tasks predict, compared with earlier agents"
    )
    evidence |= {"look": at(int(audited[look.size - 1]), agents, dates), "gap": gap}
    return _monitor(p, look, reason, evidence)


def _monitor(p: float, look: Look, reason: str, evidence: dict[str, Any]) -> Monitor:
    limit, bound = ALERT_TIMES * look.level, ALERT_TIMES * LEVEL
    state: State = "alert" if p <= limit else "warn" if p <= WARN_TIMES * look.level else "ok"
    return Monitor(NAME, state, p, limit, f"{reason}; p {p:.2g}", evidence, false_alerts_at_most=bound)


def first_batch_tuning(z: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """Test whether newcomers do worse on later tasks than their first batches say; name those far worse."""
    same_length(z, agents, dates)
    look, flagged = last_look(z.size), [agents[i] for i in np.flatnonzero(z < FLAGGED_BELOW).tolist()]
    evidence: dict[str, Any] = {"agents": flagged, "n_audited": z.size}
    if look is None:
        lacking = f"agents that ran tasks beyond a first batch: {z.size}; {MIN_AGENTS} are needed"
        return insufficient(NAME, lacking, evidence)
    window = z[: look.size][-max(N_LATEST, look.size // 2) :]
    pooled = float(window.sum() / np.sqrt(window.size))
    p = float(ndtr(pooled))
    reason = (
        f"after their first batches, {look.latest(window.size, 'newcomers')} differ by {pooled:+.1f} "
        "standard errors from what these batches predict"
    )
    evidence |= {"look": at(look.size - 1, agents, dates)}
    return _monitor(p, look, reason, evidence)


def _draws(before: FloatArray, latest: FloatArray, rng: np.random.Generator) -> Callable[[int], FloatArray]:
    """−D*, (1, n_draws): newcomers, and the mean that they are compared with, from the reference agents."""
    n_known = np.count_nonzero(~np.isnan(before), axis=1)
    packed = np.take_along_axis(before, np.argsort(np.isnan(before), axis=1, kind="stable"), axis=1)
    means, n_before = np.nanmean(before, axis=1), len(before)
    centre = means.mean()
    n_asked = np.count_nonzero(~np.isnan(latest), axis=1).tolist()

    def draw(n_draws: int) -> FloatArray:
        total = np.zeros(n_draws)
        for n in n_asked:
            who = rng.integers(n_before, size=(n_draws, 1))
            tasks = (rng.random((n_draws, n)) * n_known[who]).astype(np.intp)
            total += packed[who, tasks].mean(axis=1)
        off = means[rng.integers(n_before, size=(n_draws, n_before))].mean(axis=1) - centre
        against = centre + off * np.sqrt(n_before / rng.chisquare(n_before - 1, n_draws))
        return np.asarray([against - total / len(latest)], dtype=np.float64)

    return draw


def _flagged(audit: Audit) -> IndexArray:
    known = ~np.isnan(audit.residuals)
    beyond = np.where(known, audit.residuals, 0.0).sum(axis=1)
    variance = np.where(known, audit.expected * (1.0 - audit.expected), 0.0).sum(axis=1)
    enough = (np.count_nonzero(known, axis=1) >= N_TASKS_FLAGGED) & (variance > 0)
    z = np.divide(beyond, np.sqrt(variance), out=np.zeros(len(beyond)), where=enough)
    return np.flatnonzero(z < FLAGGED_BELOW)
