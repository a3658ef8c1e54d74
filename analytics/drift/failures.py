"""Whether the harness fails more often than it did.

Source: Waudby-Smith & Ramdas, *Estimating means of bounded random variables by betting*, JRSS B 2024. Clopper
& Pearson, Biometrika 1934.
"""

import math
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, stdtrit

from analytics.arrays import FloatArray
from analytics.drift.e_value import ALERT, e_state, e_text, first_alert, largest, upper_share
from analytics.drift.monitor import MIN_AGENTS, Monitor, at, insufficient, same_length
from analytics.errors import CoreError

NAME = "harness failures"
LEVEL_OF_TRIALS, LEVEL_OF_AGENTS = 0.90, 0.975
STAKES = ((np.arange(100) + 0.5) / 100) ** 2


class Invalid(NamedTuple):
    """Invalid trials and trials of agents, (n_agents,) each, in time order; every agent has a trial."""

    n_invalid: npt.NDArray[np.int64]
    n_trials: npt.NDArray[np.int64]

    @property
    def shares(self) -> FloatArray:
        """x, (n_agents,)."""
        return np.asarray(self.n_invalid / self.n_trials, dtype=np.float64)


def harness_failures(
    reference: Invalid, since: Invalid, agents: Sequence[str], dates: Sequence[date | None]
) -> Monitor:
    """Bet that agents have larger shares of invalid trials than the upper limit of the reference agents.

    reference, since: of agents before and since the subset was fixed.
    agents, dates: (n_agents,); of those since.
    """
    same_length(*since, agents, dates)
    same_length(*reference)
    n_before = len(reference.n_trials)
    if n_before < MIN_AGENTS or not len(agents):
        counts = f"{n_before} agents with trials before the subset was chosen and {len(agents)} since"
        return insufficient(NAME, f"{counts}; {MIN_AGENTS} and 1 are needed")
    promised = _promised(reference)
    if promised >= 1.0:
        return insufficient(NAME, "all trials were invalid before: no share is larger")
    logs = log_bets(since.shares, promised)
    value = largest(logs)
    shares = f"{since.shares.mean():.2%} of an agent's trials are invalid, at most {promised:.2%} were before"
    evidence = {
        "first_alert": at(first_alert(logs), agents, dates),
        "promised": promised,
        "agents": [agents[i] for i in np.flatnonzero(since.shares > promised).tolist()],
    }
    reason = f"{shares}; {e_text(logs)}"
    return Monitor(NAME, e_state(value), value, ALERT, reason, evidence, false_alerts_at_most=1 / ALERT)


def _promised(reference: Invalid) -> float:
    n_invalid, n_trials = int(reference.n_invalid.sum()), int(reference.n_trials.sum())
    if n_invalid == n_trials:
        return 1.0
    x, n = reference.shares, len(reference.n_trials)
    of_agents = x.mean() + stdtrit(n - 1, LEVEL_OF_AGENTS) * x.std(ddof=1) / math.sqrt(n)
    return float(max(upper_share(n_invalid, n_trials, level=LEVEL_OF_TRIALS), of_agents))


def log_bets(shares: FloatArray, promised: float) -> FloatArray:
    """Natural logarithm of E after each value.

    shares: (n,); 0 to 1, in time order.
    promised: p₀, strictly between 0 and 1.
    """
    if not 0.0 < promised < 1.0:
        raise CoreError(
            f"a promised share lies strictly between 0 and 1, not at {promised}", code="share_malformed"
        )
    if not ((shares >= 0.0) & (shares <= 1.0)).all():
        raise CoreError("a share lies from 0 to 1", code="share_malformed")
    gains = np.log1p(STAKES * ((shares[:, None] - promised) / promised))
    sums = np.cumsum(gains, axis=0)
    return np.asarray(logsumexp(sums, axis=1) - math.log(STAKES.size), dtype=np.float64)
