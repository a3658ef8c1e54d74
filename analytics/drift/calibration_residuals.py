"""Whether full scores moved against their estimates: a CUSUM of y − ŷ on both sides.

Where agents become slowly better, estimates that shrink to the mean of earlier agents stay behind, a little
more with each: y − ŷ rises though nothing is wrong with the subset. At the lines of other charts, 6.2 and
7.8, a sixth of such boards warned and a twentieth alarmed; hence 7 and 9.
"""

from collections.abc import Sequence
from datetime import date

from analytics.arrays import FloatArray
from analytics.drift.chart import chart_monitor
from analytics.drift.cusum import cusum
from analytics.drift.monitor import Monitor, same_length

LINES = (7.0, 9.0)


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
    chart = cusum(values.tolist(), two_sided=True, lines=LINES)
    moved = "full scores moved against their estimates"
    return chart_monitor("calibration residuals", chart, agents, dates, moved)
