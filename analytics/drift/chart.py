"""A CUSUM as a monitor."""

from collections.abc import Sequence
from datetime import date

from analytics.drift.cusum import RUN_LENGTH, Cusum
from analytics.drift.monitor import FIRST_LOOK, Monitor, insufficient, iso
from analytics.text import counted


def chart_monitor(
    name: str, chart: Cusum, agents: Sequence[str], dates: Sequence[date | None], what: str
) -> Monitor:
    """Say what a chart shows; an alarm stands until agents have come to see whether it is quiet again."""
    if not chart.alarms and chart.n_reference <= FIRST_LOOK:
        seen = counted(len(agents), "agent")
        return insufficient(name, f"{seen} in time order; more than {FIRST_LOOK} are needed")
    alarms = [
        {
            "agent": agents[alarm.at],
            "date": iso(dates[alarm.at]),
            "since": agents[alarm.since],
            "rising": alarm.rising,
        }
        for alarm in chart.alarms
    ]
    standing = bool(alarms) and chart.n_reference <= FIRST_LOOK
    last = f"; last alarm at {alarms[-1]['agent']}" if alarms else ""
    reason = (
        f"{what}: see {alarms[-1]['agent']}" if standing else f"the chart stands at {chart.level:.2f}{last}"
    )
    return Monitor(
        name,
        "alert" if standing else "ok",
        chart.level,
        chart.threshold,
        reason,
        {"alarms": alarms, "n_agents": len(agents)},
        1 / RUN_LENGTH,
    )
