"""Whether a task costs more, or less, than it did: a CUSUM on both sides."""

from collections.abc import Sequence
from datetime import date

from analytics.arrays import FloatArray
from analytics.drift.chart import chart_monitor
from analytics.drift.cusum import N_REFERENCE, cusum
from analytics.drift.monitor import Monitor, same_length


def cost_per_task(
    costs: FloatArray,
    agents: Sequence[str],
    dates: Sequence[date | None],
    *,
    n_reference: int = N_REFERENCE,
) -> Monitor:
    """CUSUM of the agents' mean cost of a task, on both sides.

    Parameters
    ----------
    costs : float array, (n_agents,)
        In time order, any currency.
    agents, dates : sequences, (n_agents,)
    n_reference : int
        As in `capability_jump`.

    Raises
    ------
    SeriesMismatch, SeriesMalformed
    """
    same_length(costs, agents, dates)
    chart = cusum(costs.tolist(), two_sided=True, n_reference=max(n_reference, N_REFERENCE))
    return chart_monitor("cost per task", chart, agents, dates, "cost per task moved")
