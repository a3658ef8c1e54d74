"""Whether the harness fails more often than it did.

Model
-----
x_i is the share of agent i's trials that are invalid. What is promised is the larger of two upper limits of
the mean share among the n reference agents: of all their trials together, as if each failed by itself
(Clopper and Pearson, 90%), and of the agents, which differ (x̄ + t_{n−1,.975}·s/√n). The shares since are bet
on lying above it (`analytics.drift.bets`).

Trials of one agent fail together: a long run meets more time-outs. Counted one by one they alerted on .37 of
boards on which nothing changed but agents differed (mean 2%, standard deviation 2%, 300 trials each).

Not done here
-------------
Which task, or which part of the harness, fails.

Source
------
As in `analytics.drift.bets`. Clopper & Pearson, Biometrika 1934.
"""

import math
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from analytics.arrays import FloatArray
from analytics.drift.bets import log_bets
from analytics.drift.e_value import ALERT, e_state, e_text, first_alert, largest, upper_share
from analytics.drift.monitor import N_FEWEST, Monitor, at, insufficient, same_length

NAME = "harness failures"
LEVEL_OF_TRIALS, LEVEL_OF_AGENTS = 0.90, 0.975


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

    Parameters
    ----------
    reference, since : Invalid
        Of agents before and since the subset was fixed.
    agents, dates : sequences, (n_agents,)
        Of those since.

    Raises
    ------
    SeriesMismatch, ShareMalformed
    """
    same_length(*since, agents, dates)
    same_length(*reference)
    n_before = len(reference.n_trials)
    if n_before < N_FEWEST or not len(agents):
        counts = f"{n_before} agents with trials before the subset was chosen and {len(agents)} since"
        return insufficient(NAME, f"{counts}; {N_FEWEST} and 1 are needed")
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
    """Return the larger upper limit, of trials or of agents."""
    n_invalid, n_trials = int(reference.n_invalid.sum()), int(reference.n_trials.sum())
    if n_invalid == n_trials:
        return 1.0
    x, n = reference.shares, len(reference.n_trials)
    of_agents = x.mean() + stdtrit(n - 1, LEVEL_OF_AGENTS) * x.std(ddof=1) / math.sqrt(n)
    return float(max(upper_share(n_invalid, n_trials, level=LEVEL_OF_TRIALS), of_agents))
