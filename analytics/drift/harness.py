"""Whether the harness still behaves: its failures, the noise of its runs, and what they cost."""

import math
from collections.abc import Sequence
from datetime import date

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.drift.chart import chart_monitor
from analytics.drift.cusum import cusum
from analytics.drift.e_value import WARN, e_state, excess, upper_share
from analytics.drift.monitor import (
    FIRST_LOOK,
    LOOK_LEVEL,
    Monitor,
    at,
    insufficient,
    same_length,
)
from analytics.text import counted

N_PERMUTATIONS = 20_000


def harness_failures(
    n_invalid: npt.NDArray[np.int64],
    n_trials: npt.NDArray[np.int64],
    reference: tuple[int, int],
    agents: Sequence[str],
    dates: Sequence[date | None],
) -> Monitor:
    """Weigh invalid trials against the upper 90% limit of their share among reference agents, by e-value.

    Parameters
    ----------
    n_invalid, n_trials : int arrays, (n_agents,)
        Of each agent after the reference, in time order.
    reference : (int, int)
        Invalid trials and trials of the reference agents.
    agents, dates : sequences, (n_agents,)

    Raises
    ------
    SeriesMismatch, ShareMalformed
    """
    name = "harness failures"
    same_length(n_invalid, n_trials, agents, dates)
    if reference[1] == 0 or not len(agents):
        return insufficient(name, "no trials before, or none since, the subset was chosen")
    promised = upper_share(*reference)
    value, first = excess(np.cumsum(n_invalid), np.cumsum(n_trials), promised)
    of = counted(int(n_trials.sum()), "trial")
    reason = f"{int(n_invalid.sum())} of {of} invalid; before, up to {promised:.2%}"
    return Monitor(name, e_state(value), value, WARN, reason, {"first_alert": at(first, agents, dates)})


def run_variance(
    reference: FloatArray, since: FloatArray, agents: Sequence[str], rng: np.random.Generator
) -> Monitor:
    """Test by permutation whether trials of one task vary as they do among the reference agents.

    It is looked at after 10, 20, 40, … agents, look j at the level .01·2^−j, so that all looks together
    alarm in at most 1% of histories. The statistic is the difference of the agents' mean variance of a trial.

    Parameters
    ----------
    reference, since : float arrays, (n_reference,), (n_agents,)
        Each agent's variance of trials, averaged over its tasks, before and since, in time order.
    agents : sequence of str, (n_agents,)
    rng : numpy.random.Generator
    """
    name = "run-to-run variance"
    same_length(since, agents)
    if len(reference) < FIRST_LOOK or len(since) < FIRST_LOOK:
        counts = f"{counted(len(reference), 'agent')} with repeated trials before and {len(since)} since"
        return insufficient(name, f"{counts}; {FIRST_LOOK} each are needed")
    looks = [FIRST_LOOK * 2**j for j in range(int(math.log2(len(since) / FIRST_LOOK)) + 1)]
    tests = [
        (_permutation_p(reference, since[:n], rng), LOOK_LEVEL * 0.5 ** (j + 1)) for j, n in enumerate(looks)
    ]
    p, level = min(tests, key=lambda test: test[0] / test[1])
    alerts = [n for n, (at, limit) in zip(looks, tests, strict=True) if at <= limit]
    reason = f"variance of a trial {np.mean(since):.3f} since, {np.mean(reference):.3f} before; p {p:.2g}"
    evidence = {"first_alert": agents[alerts[0] - 1] if alerts else None, "looks": looks}
    return Monitor(name, "alert" if alerts else "ok", p, level, reason, evidence)


def _permutation_p(reference: FloatArray, since: FloatArray, rng: np.random.Generator) -> float:
    """(1 + #{|difference| ≥ observed}) / (1 + draws)."""
    both, n = np.concatenate([since, reference]), len(since)
    order = rng.permuted(np.tile(np.arange(both.size), (N_PERMUTATIONS, 1)), axis=1)[:, :n]
    sums = both[order].sum(axis=1)
    differences = np.abs(sums / n - (both.sum() - sums) / (both.size - n))
    observed = abs(float(since.mean() - reference.mean()))
    return float(1 + np.count_nonzero(differences >= observed - 1e-12)) / (1 + N_PERMUTATIONS)


def cost_per_task(costs: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """CUSUM of mean cost per task on both sides, (n_agents,), in time order."""
    same_length(costs, agents, dates)
    return chart_monitor(
        "cost per task", cusum(costs.tolist(), two_sided=True), agents, dates, "cost per task moved"
    )
