"""Whether agents became better at once: a CUSUM of their means over the subset."""

from collections.abc import Sequence
from datetime import date

from analytics.arrays import FloatArray
from analytics.drift.chart import chart_monitor
from analytics.drift.cusum import N_REFERENCE, cusum
from analytics.drift.monitor import Monitor, same_length


def capability_jump(
    subset_means: FloatArray,
    agents: Sequence[str],
    dates: Sequence[date | None],
    *,
    n_reference: int = N_REFERENCE,
) -> Monitor:
    """CUSUM of the agents' means over S, rising side; steady progress alarms too, and should.

    Parameters
    ----------
    subset_means : float array, (n_agents,)
        In time order.
    agents, dates : sequences, (n_agents,)
    n_reference : int
        Agents at the beginning that S was chosen from; 10 at least are ranked and not added up.

    Raises
    ------
    SeriesMismatch, SeriesMalformed
    """
    same_length(subset_means, agents, dates)
    chart = cusum(subset_means.tolist(), n_reference=max(n_reference, N_REFERENCE))
    return chart_monitor("capability jump", chart, agents, dates, "pass rates in the band rose")
