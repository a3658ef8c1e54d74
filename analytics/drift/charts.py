"""CUSUMs as monitors: means over the subset, cost of a task, and full scores against their estimates.

Where agents become slowly better, estimates that shrink to the mean of earlier agents stay behind, a little
more with each: y − ŷ rises though nothing is wrong with the subset. At the lines of other charts, 6.2 and
7.8, a sixth of such boards warned and a twentieth alarmed; hence 7 and 9 for y − ŷ.

Source: Conover, Tercero-Gómez & Cordero-Franco, *The sequential normal scores transformation*, 2017. Page,
*Continuous inspection schemes*, Biometrika 1954.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from scipy.special import ndtri

from analytics.arrays import DECIMALS, FloatArray
from analytics.drift.monitor import MIN_AGENTS, Monitor, State, at, declare, insufficient, iso, same_length
from analytics.errors import CoreError
from analytics.text import counted

ALLOWANCE = 0.5
ONE_SIDED, TWO_SIDED = (5.5, 7.0), (6.2, 7.8)
N_REFERENCE = 10
RUN_LENGTH = 7_500  # values to a false alarm, on average and at least, at either threshold
RESIDUAL_LINES = (7.0, 9.0)


class Alarm(NamedTuple):
    """The chart passed its threshold `at` a position; the move is likely not older than `since`."""

    at: int
    since: int
    rising: bool


class Cusum:
    """A chart read up to its last value.

    up, down: C⁺ and C⁻ after each value, before an alarm sets them to 0; C⁻ stays 0 on one side.
    scores: z_t.
    warned: positions at which the chart passed its warning line: once on each way up.
    n_reference: values that the next one would be ranked among.
    """

    def __init__(self, two_sided: bool, n_reference: int, lines: tuple[float, float]) -> None:
        self.warning, self.threshold = lines
        self.up: list[float] = []
        self.down: list[float] = []
        self.scores: list[float] = []
        self.alarms: list[Alarm] = []
        self.warned: list[int] = []
        self._two_sided, self._n_wanted = two_sided, n_reference
        self._ranked: list[float] = []
        self._recent: list[float] = []
        self._up = self._down = 0.0
        self._up_since = self._down_since = 0
        self._above = False

    @property
    def n_reference(self) -> int:
        """Values that are ranked."""
        return len(self._ranked)

    @property
    def level(self) -> float:
        """The larger of C⁺ and C⁻ after the last value; 0 without one."""
        return max(self.up[-1], self.down[-1]) if self.up else 0.0

    def add(self, position: int, value: float) -> None:
        """Take the next value in."""
        is_reference = len(self._ranked) < self._n_wanted
        insort(self._ranked, value)
        midrank = (bisect_left(self._ranked, value) + 1 + bisect_right(self._ranked, value)) / 2
        z = float(ndtri((midrank - 0.5) / len(self._ranked)))
        self._recent.append(value)
        if is_reference:
            self._up_since = self._down_since = position + 1
        else:
            self._up = max(0.0, self._up + z - ALLOWANCE)
            self._down = max(0.0, self._down - z - ALLOWANCE) if self._two_sided else 0.0
            if self._up == 0.0:
                self._up_since = position + 1
            if self._down == 0.0:
                self._down_since = position + 1
        self.up.append(self._up)
        self.down.append(self._down)
        self.scores.append(z)
        level, was_above = max(self._up, self._down), self._above
        self._above = level > self.warning
        if self._above and not was_above:
            self.warned.append(position)
        if level > self.threshold:
            rising = self._up > self._down
            since = self._up_since if rising else self._down_since
            self.alarms.append(Alarm(position, since, rising))
            self._recent = self._recent[len(self._recent) - (position + 1 - since) :]
            self._ranked = sorted(self._recent)
            self._n_wanted = min(self._n_wanted, N_REFERENCE)
            self._up, self._down, self._above = 0.0, 0.0, False
            self._up_since = self._down_since = position + 1


def cusum(
    values: Sequence[float],
    *,
    two_sided: bool = False,
    n_reference: int = N_REFERENCE,
    lines: tuple[float, float] | None = None,
) -> Cusum:
    """Run the chart over finite values in time order.

    two_sided: look for falling values too, at a threshold of 7.8 instead of 7.
    n_reference: values ranked before any is added up, at least 1; after an alarm 10 of the new level are.
    """
    if n_reference < 1:
        raise CoreError(
            f"a reference of {n_reference} values ranks nothing; at least 1 is needed",
            code="series_malformed",
        )
    chart = Cusum(two_sided, n_reference, lines or (TWO_SIDED if two_sided else ONE_SIDED))
    for position, value in enumerate(values):
        if not math.isfinite(value):
            raise CoreError(
                f"value {position} is {value}; a chart needs finite values", code="series_malformed"
            )
        chart.add(position, round(float(value), DECIMALS))
    return chart


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
    limits = f"warning above {chart.warning}, alert above {chart.threshold:g}"
    reason = f"level {chart.level:.2f} ({limits}){last}"
    if state == "alert":
        reason = f"{what} since {alarms[-1]['since']} ({limits}){last}"
    evidence = {
        "alarms": alarms,
        "warned": [at(position, agents, dates) for position in chart.warned],
        "n_agents": len(agents),
    }
    return Monitor(name, state, chart.level, chart.threshold, reason, evidence, 1 / RUN_LENGTH)


JUMP = declare(
    "capability jump",
    "look at the runs of the agents named; where they are sound, ask them for full runs and choose new "
    "ranking tasks",
    runs_help="unless staged",
)
COST = declare(
    "cost per task",
    "look at the prices and budgets of the agents named",
    unseen="state costs with the outcomes, to have them watched",
    runs_help="never",
)
RESIDUALS = declare(
    "calibration residuals",
    "ask 8 agents drawn at random for full runs, then recompute to fit the calibration anew",
    unseen="ask agents drawn at random for full runs, until there are 11",
)


def capability_jump(
    subset_means: FloatArray,
    agents: Sequence[str],
    dates: Sequence[date | None],
    *,
    n_reference: int = N_REFERENCE,
) -> Monitor:
    """CUSUM of the agents' means over S, rising side; steady progress alarms too, and should.

    n_reference: agents at the beginning that S was chosen from; 10 at least are ranked and not added up.
    """
    same_length(subset_means, agents, dates)
    chart = cusum(subset_means.tolist(), n_reference=max(n_reference, N_REFERENCE))
    return chart_monitor(JUMP, chart, agents, dates, "pass rates in the band rose")


def cost_per_task(
    costs: FloatArray, agents: Sequence[str], dates: Sequence[date | None], *, n_reference: int = N_REFERENCE
) -> Monitor:
    """CUSUM of the agents' mean cost of a task, on both sides; `n_reference` as in `capability_jump`."""
    same_length(costs, agents, dates)
    chart = cusum(costs.tolist(), two_sided=True, n_reference=max(n_reference, N_REFERENCE))
    return chart_monitor(COST, chart, agents, dates, "cost per task moved")


def residuals(values: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """CUSUM of y − ŷ on both sides, of agents calibrated before their full run, in time order."""
    same_length(values, agents, dates)
    chart = cusum(values.tolist(), two_sided=True, lines=RESIDUAL_LINES)
    moved = "full scores moved against their estimates"
    return chart_monitor(RESIDUALS, chart, agents, dates, moved)
