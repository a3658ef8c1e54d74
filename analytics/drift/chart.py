"""A CUSUM as a monitor."""

from collections.abc import Sequence
from datetime import date

from analytics.drift.cusum import RUN_LENGTH, Cusum
from analytics.drift.monitor import N_FEWEST, Monitor, State, at, insufficient, iso
from analytics.text import counted


def chart_monitor(
    name: str, chart: Cusum, agents: Sequence[str], dates: Sequence[date | None], what: str
) -> Monitor:
    """Say what a chart shows; an alarm stands until agents have come to see whether it is quiet again."""
    if not chart.alarms and chart.n_reference <= N_FEWEST:
        seen = counted(len(agents), "agent")
        return insufficient(name, f"{seen} in time order; more than {N_FEWEST} are needed")
    alarms = [
        {
            "agent": agents[alarm.at],
            "date": iso(dates[alarm.at]),
            "since": agents[alarm.since],
            "rising": alarm.rising,
        }
        for alarm in chart.alarms
    ]
    state: State = "alert" if _stands(chart) else "warn" if chart.level > chart.warning else "ok"
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


def _stands(chart: Cusum) -> bool:
    """Whether too few agents have come since the last alarm to see if the chart is quiet again."""
    if not chart.alarms:
        return False
    return len(chart.scores) - chart.alarms[-1].at <= N_FEWEST or chart.n_reference <= N_FEWEST
