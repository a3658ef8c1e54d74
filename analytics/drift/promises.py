"""Whether estimated full scores keep what their intervals promised."""

from collections.abc import Sequence
from datetime import date

import numpy as np

from analytics.arrays import FloatArray, Mask
from analytics.drift.chart import chart_monitor
from analytics.drift.cusum import cusum
from analytics.drift.e_value import WARN, e_state, excess
from analytics.drift.monitor import Monitor, at, insufficient, same_length
from analytics.text import counted

MISSES_PROMISED = 0.05


def calibration(missed: Mask, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """Weigh full scores outside the 95% interval that was published before they were known, by e-value.

    Parameters
    ----------
    missed : bool array, (n_agents,)
        In time order.
    agents, dates : sequences, (n_agents,)

    Raises
    ------
    SeriesMismatch
    """
    same_length(missed, agents, dates)
    if not len(agents):
        return insufficient("calibration", "no full run of an agent with a published interval")
    n = np.arange(1, len(agents) + 1)
    value, first = excess(np.cumsum(missed), n, MISSES_PROMISED)
    evidence = {
        "missed": [agents[i] for i in np.flatnonzero(missed).tolist()],
        "first_alert": at(first, agents, dates),
    }
    reason = f"{int(missed.sum())} of {counted(len(agents), 'interval')} missed; at most 5% were promised"
    return Monitor("calibration", e_state(value), value, WARN, reason, evidence)


def residuals(values: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """CUSUM of y − ŷ on both sides, of agents calibrated before their full run, in time order."""
    same_length(values, agents, dates)
    chart = cusum(values.tolist(), two_sided=True)
    return chart_monitor(
        "calibration residuals", chart, agents, dates, "full scores moved against their calibration"
    )
