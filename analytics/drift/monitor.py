"""What a monitor says, and what to do about it.

Every monitor is a function of arrays in time order; it looks at the past only and answers a `Monitor`: a
statistic, its threshold, evidence in names and dates, and a state. `insufficient` is a state of its own: too
little was seen to say `ok`.

False alerts
------------
On a board where nothing changes a chart alarms at a small rate for each new agent; a test at looks or an
e-value alerts at most with a stated probability over all its looks, however many there will be. A year of
`agents_a_year` new agents then has at most::

    Σ over charts of rate · agents_a_year  +  Σ over the others of their bound
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from analytics.errors import CoreError

State = Literal["ok", "warn", "alert", "insufficient"]

N_LATEST = 20
MIN_AGENTS = 10

NOTHING_TO_DO = "nothing to do"
MORE_TRIALS = "repeat trials: run the best agents again on the subset"
ADVICE = {
    "rank fidelity": "ask 8 agents drawn at random for full runs; where they confirm it, choose the subset "
    "anew from the complete agents",
    "published order": "look at the verdict: choose the subset anew, let more agents run on (policy podium), "
    "or ask for full runs",
    "capability jump": "look at the runs of the agents named; where they are sound, ask them for full runs "
    "and choose the subset anew",
    "band erosion": "choose the subset anew from the latest complete agents",
    "calibration": "ask 8 agents drawn at random for full runs, then recompute to fit the calibration anew",
    "calibration residuals": "ask 8 agents drawn at random for full runs, then recompute to fit "
    "the calibration anew",
    "saturation": "add harder tasks, or close the benchmark",
    "tuning to the subset": "ask the agents named for full runs; their rank on the subset alone is in doubt",
    "scaffold novelty": "ask one agent of each new scaffold for a full run",
    "harness failures": "look at the invalid trials of the agents named: the harness, or a task, is broken",
    "run-to-run noise": "run one of the first agents again, twice: the harness or a provider has changed",
    "cost per task": "look at the prices and budgets of the agents named",
}
WANTED = {
    "rank fidelity": "ask agents drawn at random for full runs, until there are 12",
    "calibration": "ask agents drawn at random for full runs",
    "calibration residuals": "ask agents drawn at random for full runs, until there are 11",
    "run-to-run noise": "repeat the trials of new agents, to have their noise watched",
    "cost per task": "state costs with the outcomes, to have them watched",
}


@dataclass(frozen=True)
class Monitor:
    """What one monitor says.

    state: {"ok", "warn", "alert", "insufficient"}.
    statistic, threshold: what was computed, and the value at which it alerts; None with `insufficient`.
    reason: the state as a sentence with its numbers.
    evidence: plain values: agents, tasks, dates, counts.
    false_alerts_per_agent: expected false alerts for each new agent without any change; 0 where a bound holds
        over all time.
    false_alerts_at_most: the probability of ever a false alert, over all looks, where there is such a bound;
        else 0.
    to_do: what to do about a state that `ADVICE` and `WANTED` do not know; else empty.
    """

    name: str
    state: State
    statistic: float | None
    threshold: float | None
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    false_alerts_per_agent: float = 0.0
    false_alerts_at_most: float = 0.0
    to_do: str = ""

    @property
    def advice(self) -> str:
        """What to do now: nothing, which command, or which runs."""
        if self.state in ("warn", "alert"):
            return self.to_do or ADVICE[self.name]
        wanted = WANTED.get(self.name, "") if self.state == "insufficient" else ""
        return self.to_do or wanted or NOTHING_TO_DO


def insufficient(
    name: str, reason: str, evidence: Mapping[str, Any] | None = None, *, to_do: str = ""
) -> Monitor:
    """Return the monitor that has seen too little to say more."""
    return Monitor(name, "insufficient", None, None, reason, evidence or {}, to_do=to_do)


def false_alerts_a_year(monitors: Sequence[Monitor], agents_a_year: float) -> float:
    """Add up the most false alerts to expect in a year of `agents_a_year` new agents without any change."""
    charts = sum(one.false_alerts_per_agent for one in monitors) * agents_a_year
    return charts + sum(one.false_alerts_at_most for one in monitors)


def same_length(*series: Any) -> None:
    """Refuse series of one monitor that differ in length."""
    lengths = sorted({len(one) for one in series})
    if len(lengths) > 1:
        raise CoreError(
            f"series of one monitor have lengths {', '.join(map(str, lengths))}", code="series_mismatch"
        )


def iso(day: date | None) -> str | None:
    """Write a day as text; None stays None."""
    return day.isoformat() if day else None


def at(position: int | None, agents: Sequence[str], dates: Sequence[date | None]) -> dict[str, Any] | None:
    """Name the agent at a position with its day."""
    return None if position is None else {"agent": agents[position], "date": iso(dates[position])}
