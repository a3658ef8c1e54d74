"""Whether agents became better at once: a CUSUM of their means over the subset."""

from collections.abc import Sequence
from datetime import date

from analytics.arrays import FloatArray
from analytics.drift.chart import chart_monitor
from analytics.drift.cusum import cusum
from analytics.drift.monitor import Monitor, same_length


def capability_jump(subset_means: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """CUSUM of the agents' means over S, rising side; steady progress alarms too, and should.

    Parameters
    ----------
    subset_means : float array, (n_agents,)
        In time order.
    agents, dates : sequences, (n_agents,)

    Raises
    ------
    SeriesMismatch, SeriesMalformed
    """
    same_length(subset_means, agents, dates)
    return chart_monitor(
        "capability jump", cusum(subset_means.tolist()), agents, dates, "pass rates in the band rose"
    )
