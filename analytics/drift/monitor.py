"""What a monitor says and what to do about it; looks at a series, and whom to ask for a full run.

`insufficient` is a state of its own: too little was seen to say `ok`. Where nothing changes a chart alarms at
a small rate for each new agent; a test at looks or an e-value alerts at most with a stated probability over
all its looks, however many there will be.

Look j = 1, 2, 3, … is taken when 10, 20, 40, … agents have come (the first one later where a test needs
more), at the level α_j = .01·2^−j, so that the levels add up to .01 whatever the dependence between looks.
A permutation test has 9,999 draws, more where its smallest p-value, 1/(1 + draws), would not reach the level.
It ends after 1,000, 2,000, … of them once more than a share of 10·α_j of all draws are as large as what was
observed: no level up to 5·α_j is reached then, whatever the others would be.

Source: Bonferroni over looks; Pocock, *Group sequential methods*, Biometrika 1977, for the problem. Phipson &
Smyth, *Permutation p-values should never be zero*, 2010. Besag & Clifford, *Sequential Monte Carlo p-values*,
Biometrika 1991.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, NamedTuple

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from analytics.errors import CoreError

State = Literal["ok", "warn", "alert", "insufficient"]

N_LATEST = 20
MIN_AGENTS = 10

NOTHING_TO_DO = "nothing to do"
ADVICE: dict[str, tuple[str, str]] = {}
"""By name of a monitor, what to do where it warns or alerts, and where it has seen too little."""
RunsHelp = Literal["always", "unless staged", "never"]
RUNS_HELP: dict[str, RunsHelp] = {}


def declare(name: str, raised: str, *, unseen: str = NOTHING_TO_DO, runs_help: RunsHelp = "always") -> str:
    """Declare what to do about what a monitor finds, next to its statistic; returns its name.

    runs_help: whether full runs settle an alert, so that it asks for them. Under staged assignment contenders
        are measured anyway: where tasks or agents moved, another subset settles it.
    """
    ADVICE[name], RUNS_HELP[name] = (raised, unseen), runs_help
    return name


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
    to_do: what to do about this state, where the monitor declares nothing for it; else empty.
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
        raised, unseen = ADVICE[self.name]
        of_state = {"warn": raised, "alert": raised, "insufficient": unseen, "ok": NOTHING_TO_DO}
        return self.to_do or of_state[self.state]


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


FIRST_LOOK = 10
LEVEL = 0.01
N_PERMUTATIONS = 9_999
BATCH = 1_000
CLEARLY_ABOVE = 10.0


class Look(NamedTuple):
    """One look at a series: its number from 1 on, how many agents it takes, and α_j."""

    number: int
    size: int
    level: float

    def latest(self, n: int, agents: str) -> str:
        """Name the last n of its agents; all of them where it takes no more."""
        last = "" if n >= self.size else f"the last {n:,} of "
        return f"{last}the first {self.size:,} {agents}"

    @property
    def n_permutations(self) -> int:
        """Draws of a permutation test."""
        return max(N_PERMUTATIONS, math.ceil(2 / self.level))


def last_look(n: int, *, first: int = FIRST_LOOK) -> Look | None:
    """Return the last look that `n` agents allow, the `first` at 10 to 19, then 20, …; None before."""
    if n < first:
        return None
    number = 1 + int(math.log2(max(n, FIRST_LOOK) / FIRST_LOOK))
    size = first if number == 1 else FIRST_LOOK * 2 ** (number - 1)
    return Look(number, size, LEVEL * 0.5**number)


def permutation_p(observed: float, draws: FloatArray) -> float:
    """(1 + #{draw ≥ observed}) / (1 + draws); a draw that is NaN counts as larger."""
    return (1 + _n_as_large(observed, draws)) / (1 + len(draws))


def permuted(look: Look, draw: Callable[[int], FloatArray], *observed: float) -> FloatArray:
    """Draw permuted statistics, (n_statistics, n_draws), until none observed can reach a level any more."""
    n_all, statistics = look.n_permutations, draw(min(BATCH, look.n_permutations))
    most = CLEARLY_ABOVE * look.level * (1 + n_all)
    while (n := statistics.shape[1]) < n_all:
        if all(_n_as_large(*pair) > most for pair in zip(observed, statistics, strict=True)):
            break
        statistics = np.concatenate([statistics, draw(min(BATCH, n_all - n))], axis=1)
    return statistics


def _n_as_large(observed: float, draws: FloatArray) -> int:
    return len(draws) - int(np.count_nonzero(draws < observed - 1e-12))


def members(rng: np.random.Generator, n_draws: int, n_agents: int, n_chosen: int) -> FloatArray:
    """Draw sets of `n_chosen` agents without replacement: 1 for a member, (n_draws, n_agents)."""
    chosen = np.zeros((n_draws, n_agents))
    drawn = np.argpartition(rng.random(chosen.shape), n_chosen - 1, axis=1)[:, :n_chosen]
    np.put_along_axis(chosen, drawn, 1.0, axis=1)
    return chosen


N_RERUNS = 8
N_MORE = 8  # of those tied at the top and the first of new scaffolds


class Rerun(NamedTuple):
    """One agent, by position, whose full run is requested.

    sampled: drawn uniformly at random; only these feed rank fidelity.
    inclusion: π, the probability of being drawn; 1 for the others.
    """

    agent: int
    sampled: bool
    inclusion: float
    why: str


def rerun_set(
    since: IndexArray,
    ties: IndexArray,
    new_scaffolds: IndexArray,
    rng: np.random.Generator,
    *,
    n: int = N_RERUNS,
) -> list[Rerun]:
    """Choose the agents of a rerun request: `n` of `since`, the top ties, one for each new scaffold.

    Of the latter two the first 8 of those that were not drawn are asked on top, with π = 1.
    """
    drawn = np.sort(rng.choice(since, min(n, since.size), replace=False)) if since.size else since
    chosen = {int(i): Rerun(int(i), True, min(1.0, n / since.size), "drawn at random") for i in drawn}
    for positions, why in ((ties, "tied at the top"), (new_scaffolds, "the first of its scaffold")):
        for i in positions.tolist():
            if len(chosen) < drawn.size + N_MORE:
                chosen.setdefault(i, Rerun(i, False, 1.0, why))
    return [chosen[i] for i in sorted(chosen)]
