"""Whether the harness fails more often than it did."""

from collections.abc import Sequence
from datetime import date

import numpy as np
import numpy.typing as npt

from analytics.drift.e_value import ALERT, e_state, evidence_against, upper_share
from analytics.drift.monitor import Monitor, at, insufficient, same_length


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
    value, first = evidence_against(np.cumsum(n_invalid), np.cumsum(n_trials), promised)
    shares = f"{int(n_invalid.sum())} of {int(n_trials.sum())} trials invalid; up to {promised:.2%} before"
    reason = f"{shares}; e-value {value:.3g}"
    evidence = {"first_alert": at(first, agents, dates), "promised": promised}
    return Monitor(name, e_state(value), value, ALERT, reason, evidence, false_alerts_at_most=1 / ALERT)
