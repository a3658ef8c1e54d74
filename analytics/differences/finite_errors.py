"""The error of one agent's score on given tasks: how far trials, completion and calibration may move it.

Source: Neyman 1923 and Imbens & Rubin, *Causal Inference*, 2015, §6.5. Satterthwaite, *Biometrics Bulletin* 2
(1946) 110-114. Agresti & Coull, *American Statistician* 52 (1998) 119-126 (p̃). c₀ and the rules are this
project's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np

from analytics.arrays import FloatArray, Mask
from analytics.differences.rows import (
    NEVER_MEASURED,
    OF_FACETS,
    ErrorTerm,
    Facet,
    Row,
    agent_variance,
    cell_variance,
    satterthwaite,
)
from analytics.differences.trial_variances import N_TASKS_OMEGA, trial_variance_ratio
from analytics.errors import CoreError

Method = Literal["repeated trials", "variance function", "neyman", "calibration"]
N_PSEUDO = 4
MIN_DF_REPEATS = 4
MIN_DF, MAX_DF = 1.0, 1e6
NOT_CALIBRATED = -1
refuse = partial(CoreError, code="agent_error")


@dataclass(frozen=True)
class TrialNoise:
    """Noise of trials by complete agents: ω̂ above 0, q̄ in score²; None where too few, nobody repeat."""

    omega: float | None = None
    mean_q: float | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """An agent with outcomes on the target's tasks, 0 to 1, and its cells there, NaN where completed."""

    name: str
    outcomes: FloatArray
    row: Row

    @cached_property
    def score(self) -> float:
        """Mean outcome; the same to the last bit in any order of tasks."""
        is_whole = bool((self.outcomes == np.rint(self.outcomes)).all())
        return (float(self.outcomes.sum()) if is_whole else math.fsum(self.outcomes)) / self.outcomes.size


@dataclass(frozen=True)
class Calibrated:
    """An agent whose full score is estimated from a subset.

    score: ŷ.
    se2, df: s²_cal, score², and its degrees of freedom.
    calibration: which residuals, 0 or above: agents of the same ones share the error of s_cal.
    v_link, df_link: linking variance, score², and its degrees of freedom.
    row: its cells on the target's tasks, NaN where it did not run; without them its trials have no noise.
    """

    name: str
    score: float
    se2: float
    df: float
    calibration: int = 0
    v_link: float = 0.0
    df_link: float = math.inf
    row: Row | None = None


class AgentError(NamedTuple):
    """The error of one agent's score.

    variance, df: V_a without s²_cal, score², and ν_a.
    calibrated, calibration_df: s²_cal, score², and its degrees of freedom; 0 for a measured agent.
    calibration: −1 for a measured agent.
    added, own: the terms of v_a, and those of V_a but for it.
    method: ``neyman`` where its differences with measured agents are judged by their spread over tasks.
    """

    variance: float
    df: float
    calibrated: float
    calibration_df: float
    calibration: int
    added: tuple[ErrorTerm, ...]
    own: tuple[ErrorTerm, ...]
    method: Method

    @property
    def beyond(self) -> float:
        """v_a, score²."""
        return math.fsum(term.variance for term in self.added)

    @property
    def facets(self) -> tuple[ErrorTerm, ...]:
        """The terms of V_a that were estimated once for all agents."""
        return tuple(term for term in (*self.own, *self.added) if term.name.startswith(OF_FACETS))

    @property
    def alone(self) -> ErrorTerm:
        """The rest of V_a."""
        parts = [term for term in (*self.own, *self.added) if not term.name.startswith(OF_FACETS)]
        return ErrorTerm("alone", math.fsum(part.variance for part in parts), _clipped(satterthwaite(parts)))

    @property
    def total(self) -> float:
        """V_a with s²_cal."""
        return self.variance + self.calibrated


def trial_noise(
    means: FloatArray,
    trial_variances: FloatArray | None,
    n_trials: FloatArray | None,
    *,
    one_trial: Mask | None = None,
    vouched: Mask | None = None,
) -> TrialNoise:
    """Return ω̂ and q̄ of complete agents on the target's tasks, (n_complete, k), R of some counting as 1.

    vouched: without ω̂ of these alone there is none, and it is no less; by default all are vouched for.
    """
    omega = trial_variance_ratio(means, trial_variances, n_trials, one_trial=one_trial)
    if trial_variances is None or n_trials is None:
        return TrialNoise()
    if omega is not None and vouched is not None and not vouched.all():
        others = ~vouched if one_trial is None else ~vouched | one_trial
        least = trial_variance_ratio(means, trial_variances, n_trials, one_trial=others)
        omega = least and max(omega, least)
    q = trial_variances / n_trials
    if one_trial is not None:
        q = q[~one_trial]
    own = [math.fsum(row[known]) / known.sum() for row in q if (known := ~np.isnan(row)).any()]
    return TrialNoise(omega or None, math.fsum(own) / len(own) if own else None)


def error_of(
    agent: Measured | Calibrated, noise: TrialNoise, facets: Sequence[Facet] = NEVER_MEASURED
) -> AgentError:
    """Return V_a, ν_a and how they were found; facets never measured are left out."""
    error = _calibrated(agent, noise) if isinstance(agent, Calibrated) else _measured(agent, noise, facets)
    if not (math.isfinite(error.total) and error.total > 0):
        raise refuse(f"agent {agent.name!r}: a variance of {error.total} is not finite and above 0")
    return error


def _calibrated(agent: Calibrated, noise: TrialNoise) -> AgentError:
    if not (agent.se2 > 0 and agent.df >= 1 and agent.calibration >= 0 and agent.v_link >= 0):
        raise refuse(
            f"agent {agent.name!r}: calibration {agent.calibration} with an error of {agent.se2}, "
            f"{agent.df} degrees of freedom and {agent.v_link} of linking"
        )
    link = [ErrorTerm("linking", agent.v_link, agent.df_link)] if agent.v_link else []
    own: list[ErrorTerm] = []
    if agent.row is not None:
        n_run = int(np.count_nonzero(~np.isnan(agent.row.means)))
        own, _ = _own(agent.name, agent.score, agent.row, noise, n_run)
    total = _summed(own, link, "calibration")
    return total._replace(calibrated=agent.se2, calibration_df=agent.df, calibration=agent.calibration)


def _measured(agent: Measured, noise: TrialNoise, facets: Sequence[Facet]) -> AgentError:
    k = agent.outcomes.size
    if k < 1 or not ((agent.outcomes >= 0) & (agent.outcomes <= 1)).all():
        raise refuse(f"agent {agent.name!r}: outcomes on {k} tasks that are not all from 0 to 1")
    if agent.row.means.shape != (k,):
        raise refuse(f"agent {agent.name!r}: cells that are not those of its {k} outcomes")
    own, method = _own(agent.name, agent.score, agent.row, noise, k)
    if method == "neyman":
        rate = (agent.score * k + 2) / (k + 4)
        own = [ErrorTerm("upper bound", rate * (1 - rate) / k, max(k - 1, 1))]
    else:
        own = [*own, *cell_variance(agent.row, facets)]
    return _summed(own, agent_variance(agent.row, facets), method)


def _own(
    name: str, score: float, row: Row, noise: TrialNoise, n_cells: int
) -> tuple[list[ErrorTerm], Method]:
    arrays, k = [row.trial_variances, row.n_trials], row.means.size
    if any(array is not None and array.shape != row.means.shape for array in arrays):
        raise refuse(f"agent {name!r}: cells that are not those of its {k} outcomes")
    valid = ~np.isnan(row.means)
    s2, n_trials, n_one = np.empty(0), np.empty(0), int(valid.sum())
    if row.trial_variances is not None and row.n_trials is not None and not row.one_trial:
        known = valid & ~np.isnan(row.trial_variances)
        s2, n_trials, n_one = row.trial_variances[known], row.n_trials[known], int((valid & ~known).sum())
    is_whole = not n_one or (noise.omega is None and 2 * s2.size >= n_cells)
    repeats = _with_repeats(s2, n_trials, n_one if is_whole else 0, noise.mean_q, k)
    if s2.size >= N_TASKS_OMEGA and not MIN_DF_REPEATS <= repeats[0].df < math.inf:
        # They would widen the rank ranges of all others; or, never different, order equal agents.
        return _own(name, score, replace(row, one_trial=True), noise, n_cells)
    if is_whole:
        return repeats, "repeated trials"
    rate, omega = (score * k + 2) / (k + 4), 1.0 if noise.omega is None else noise.omega
    kind = "upper bound" if noise.omega is None else "variance function"
    single = ErrorTerm(kind, n_one * omega * rate * (1 - rate) / k**2, max(k - 1, 1))
    return [*repeats, single], "neyman" if noise.omega is None else "variance function"


def _with_repeats(
    s2: FloatArray, n_trials: FloatArray, n_one: int, mean_q: float | None, k: int
) -> list[ErrorTerm]:
    n_rep = s2.size
    if not n_rep:
        return []
    q, fill = s2 / n_trials, n_one / n_rep
    prior = mean_q or max(math.fsum(q) / n_rep, 0.25 * n_rep / (math.fsum(n_trials) * k))
    shrunk = (math.fsum(q) + N_PSEUDO * prior) * n_rep / (n_rep + N_PSEUDO)
    inverse_df = math.fsum((q + fill * s2) ** 2 / (n_trials - 1)) / k**4
    variance = (shrunk + fill * math.fsum(s2)) / k**2
    return [ErrorTerm("repeated trials", variance, variance**2 / inverse_df if inverse_df > 0 else math.inf)]


def _summed(parts: Sequence[ErrorTerm], terms: Sequence[ErrorTerm], method: Method) -> AgentError:
    variance = math.fsum(term.variance for term in (*parts, *terms))
    df = _clipped(satterthwaite((*parts, *terms)))
    return AgentError(variance, df, 0.0, 0.0, NOT_CALIBRATED, tuple(terms), tuple(parts), method)


def _clipped(df: float) -> float:
    return min(max(df, MIN_DF), MAX_DF)
