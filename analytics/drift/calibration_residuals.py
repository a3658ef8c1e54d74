"""Whether full scores moved against their estimates: a CUSUM of y − ŷ on both sides."""

from collections.abc import Sequence
from datetime import date

from analytics.arrays import FloatArray
from analytics.drift.chart import chart_monitor
from analytics.drift.cusum import cusum
from analytics.drift.monitor import Monitor, same_length


def residuals(values: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """CUSUM of y − ŷ on both sides, of agents calibrated before their full run, in time order.

    Parameters
    ----------
    values : float array, (n_agents,)
    agents, dates : sequences, (n_agents,)

    Raises
    ------
    SeriesMismatch, SeriesMalformed
    """
    same_length(values, agents, dates)
    chart = cusum(values.tolist(), two_sided=True)
    moved = "full scores moved against their estimates"
    return chart_monitor("calibration residuals", chart, agents, dates, moved)
