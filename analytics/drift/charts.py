"""CUSUMs as monitors: means over the subset, cost of a task, and full scores against their estimates.

Where agents become slowly better, estimates that shrink to the mean of earlier agents stay behind, a little
more with each: y − ŷ rises though nothing is wrong with the subset. At the lines of other charts, 6.2 and
7.8, a sixth of such boards warned and a twentieth alarmed; hence 7 and 9 for y − ŷ.
"""

from collections.abc import Sequence
from datetime import date

from analytics.arrays import FloatArray
from analytics.drift.cusum import N_REFERENCE, RUN_LENGTH, Cusum, cusum
from analytics.drift.monitor import MIN_AGENTS, Monitor, State, at, insufficient, iso, same_length
from analytics.text import counted

LINES = (7.0, 9.0)


def chart_monitor(
    name: str, chart: Cusum, agents: Sequence[str], dates: Sequence[date | None], what: str
) -> Monitor:
    """Say what a chart shows; an alarm stands until agents have come to see whether it is quiet again."""
    if not chart.alarms and chart.n_reference <= MIN_AGENTS:
        seen = counted(len(agents), "agent")
        return insufficient(name, f"{seen} in time order; more than {MIN_AGENTS} are needed")
    alarms = [
        {
            "agent": agents[alarm.at],
            "date": iso(dates[alarm.at]),
            "since": agents[alarm.since],
            "rising": alarm.rising,
        }
        for alarm in chart.alarms
    ]
    state: State = "warn" if chart.level > chart.warning else "ok"
    if chart.alarms:  # it stands while too few agents have come since to see if the chart is quiet again
        n_since = len(chart.scores) - chart.alarms[-1].at
        state = "alert" if min(n_since, chart.n_reference) <= MIN_AGENTS else state
    last = f"; last alarm at {alarms[-1]['agent']}" if alarms else ""
    limits = f"warns above {chart.warning} and alarms above {chart.threshold:g}"
    reason = f"the chart stands at {chart.level:.2f}, {limits}{last}"
    if state == "alert":
        reason = f"{what} since {alarms[-1]['since']}; the chart {limits}{last}"
    evidence = {
        "alarms": alarms,
        "warned": [at(position, agents, dates) for position in chart.warned],
        "n_agents": len(agents),
    }
    return Monitor(name, state, chart.level, chart.threshold, reason, evidence, 1 / RUN_LENGTH)


def capability_jump(
    subset_means: FloatArray,
    agents: Sequence[str],
    dates: Sequence[date | None],
    *,
    n_reference: int = N_REFERENCE,
) -> Monitor:
    """CUSUM of the agents' means over S, rising side; steady progress alarms too, and should.

    subset_means: (n_agents,); in time order.
    agents, dates: (n_agents,).
    n_reference: agents at the beginning that S was chosen from; 10 at least are ranked and not added up.
    """
    same_length(subset_means, agents, dates)
    chart = cusum(subset_means.tolist(), n_reference=max(n_reference, N_REFERENCE))
    return chart_monitor("capability jump", chart, agents, dates, "pass rates in the band rose")


def cost_per_task(
    costs: FloatArray,
    agents: Sequence[str],
    dates: Sequence[date | None],
    *,
    n_reference: int = N_REFERENCE,
) -> Monitor:
    """CUSUM of the agents' mean cost of a task, on both sides.

    costs: (n_agents,); in time order, any currency.
    agents, dates: (n_agents,).
    n_reference: as in `capability_jump`.
    """
    same_length(costs, agents, dates)
    chart = cusum(costs.tolist(), two_sided=True, n_reference=max(n_reference, N_REFERENCE))
    return chart_monitor("cost per task", chart, agents, dates, "cost per task moved")


def residuals(values: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """CUSUM of y − ŷ on both sides, of agents calibrated before their full run, in time order.

    values: (n_agents,).
    agents, dates: (n_agents,).
    """
    same_length(values, agents, dates)
    chart = cusum(values.tolist(), two_sided=True, lines=LINES)
    moved = "full scores moved against their estimates"
    return chart_monitor("calibration residuals", chart, agents, dates, moved)
