"""What a monitor says, and what to do about it.

Every monitor is a function of arrays in time order; it looks at the past only and answers a `Monitor`: a
statistic, its threshold, evidence in names and dates, and a state. `insufficient` is a state of its own: too
little was seen to say `ok`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from analytics.errors import CoreError

State = Literal["ok", "warn", "alert", "insufficient"]

N_LATEST = 20
FIRST_LOOK, LOOK_LEVEL = 10, 0.01

NOTHING_TO_DO = "nothing to do"
ADVICE = {
    "rank fidelity": "ask 8 agents drawn at random for full runs, or choose the subset anew",
    "capability jump": "look at the agents named; where they are sound, choose the subset anew",
    "band erosion": "choose the subset anew from the latest complete agents",
    "calibration": "ask agents drawn at random for full runs, and fit the calibration anew",
    "calibration residuals": "ask agents drawn at random for full runs, and fit the calibration anew",
    "saturation": "add harder tasks, or close the benchmark",
    "scaffold novelty": "ask one agent of each new scaffold for a full run",
    "harness failures": "look at the invalid trials of the agents named: the harness, or a task, is broken",
    "run-to-run variance": "run one of the first agents again: the harness or a provider has changed",
    "cost per task": "look at the prices and budgets of the agents named",
}


class SeriesMismatch(CoreError):
    """Series of one monitor differ in length."""


@dataclass(frozen=True)
class Monitor:
    """What one monitor says.

    Attributes
    ----------
    name : str
    state : {"ok", "warn", "alert", "insufficient"}
    statistic, threshold : float or None
        What was computed, and what it may not pass; None with `insufficient`.
    reason : str
        The state as a sentence with its numbers.
    evidence : mapping
        Plain values: agents, tasks, dates, counts.
    false_alerts_per_agent : float
        Expected false alerts for each new agent without any change; 0 where the bound holds over all time.
    """

    name: str
    state: State
    statistic: float | None
    threshold: float | None
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    false_alerts_per_agent: float = 0.0

    @property
    def advice(self) -> str:
        """What to do now."""
        return ADVICE[self.name] if self.state in ("warn", "alert") else NOTHING_TO_DO


def insufficient(name: str, reason: str) -> Monitor:
    """Return the monitor that has seen too little to say more."""
    return Monitor(name, "insufficient", None, None, reason)


def false_alerts_a_year(monitors: Sequence[Monitor], agents_a_year: float) -> float:
    """Add up the false alerts expected in a year of `agents_a_year` new agents, if nothing changes."""
    return sum(m.false_alerts_per_agent for m in monitors) * agents_a_year


def same_length(*series: Any) -> None:
    """Refuse series of one monitor that differ in length.

    Raises
    ------
    SeriesMismatch
    """
    lengths = sorted({len(one) for one in series})
    if len(lengths) > 1:
        raise SeriesMismatch(f"series of one monitor have lengths {', '.join(map(str, lengths))}")


def iso(day: date | None) -> str | None:
    """Write a day as text; None stays None."""
    return day.isoformat() if day else None


def at(position: int | None, agents: Sequence[str], dates: Sequence[date | None]) -> dict[str, Any] | None:
    """Name the agent at a position with its day."""
    return None if position is None else {"agent": agents[position], "date": iso(dates[position])}
