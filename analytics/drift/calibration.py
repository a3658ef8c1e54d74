"""Whether full scores keep inside the intervals that were published before they were known."""

from collections.abc import Sequence
from datetime import date

import numpy as np

from analytics.arrays import Mask
from analytics.drift.e_value import ALERT, e_state, e_text, first_alert, largest, log_e_values
from analytics.drift.monitor import Monitor, at, insufficient, same_length
from analytics.text import counted

MISSES_PROMISED = 0.05


def calibration(missed: Mask, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """Weigh full scores outside the 95% interval that was published before they were known, by e-value.

    The bound on false alerts holds if each interval rests on every residual known before it.

    missed: (n_agents,); in time order, as `agents` and `dates` are.
    """
    same_length(missed, agents, dates)
    if not len(agents):
        return insufficient("calibration", "no full run of an agent with a published interval")
    n = np.arange(1, len(agents) + 1)
    logs = log_e_values(np.cumsum(missed), n, MISSES_PROMISED)
    value = largest(logs)
    evidence = {
        "missed": [agents[i] for i in np.flatnonzero(missed).tolist()],
        "first_alert": at(first_alert(logs), agents, dates),
    }
    counts = f"{int(missed.sum())} of {counted(len(agents), 'interval')} missed; at most 5% were promised"
    reason = f"{counts}; {e_text(logs)}"
    return Monitor(
        "calibration", e_state(value), value, ALERT, reason, evidence, false_alerts_at_most=1 / ALERT
    )
