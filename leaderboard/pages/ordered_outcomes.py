"""Outcomes of now in the order of the latest board: what the pages on tasks and on agents are made from."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import boards_of, entries_of, visible_standings
from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.plots.heat_map import Outcome
from leaderboard.studies.answers import Line, Standings, SubsetLine, words
from leaderboard.studies.outcomes import OutcomeGrid, read_outcomes, single_tasks


def plain(values: np.ndarray) -> list[Outcome]:
    """As floats, None for NaN."""
    return np.where(np.isnan(values), None, values).tolist()  # type: ignore[call-overload]


@dataclass(frozen=True, eq=False)
class OrderedOutcomes:
    """Agents stand as on the board, those that it does not list last; `ranks` are for the board's target."""

    benchmark: Benchmark
    outcomes: OutcomeGrid
    board: Board | None
    standings: Standings | None
    entries: dict[int, Entry]

    @property
    def subset(self) -> SubsetLine | None:
        return self.standings.subset if self.standings else None

    @cached_property
    def tells_trust(self) -> bool:
        return self.standings is not None and words.tells_trust(self.standings)

    @cached_property
    def in_subset(self) -> list[bool]:
        """Whether each task is of the subset that the board ranks or estimates by."""
        chosen = frozenset(self.subset.tasks) if self.subset else frozenset()
        return [task.name in chosen for task in self.outcomes.tasks]

    @property
    def band(self) -> tuple[float, float]:
        policy = self.outcomes.policy
        return (self.subset.lo, self.subset.hi) if self.subset else (policy.band_lo, policy.band_hi)

    @property
    def band_text(self) -> str:
        lo, hi = (f"{round(100 * edge, 4):g}%" for edge in self.band)
        return f"{lo} to {hi}"

    @property
    def rate(self) -> str:
        """What the mean of a task is called."""
        return "mean score" if self.outcomes.is_graded else "pass rate"

    @cached_property
    def rates(self) -> np.ndarray:
        return single_tasks.rates(self.outcomes.means[self.outcomes.voice])

    @cached_property
    def easiest(self) -> np.ndarray:
        return single_tasks.by_rate(self.rates)

    @cached_property
    def in_band(self) -> np.ndarray:
        return single_tasks.in_band(self.rates, *self.band)

    @cached_property
    def n_rating(self) -> int:
        return int(single_tasks.nearly_complete(self.outcomes.means[self.outcomes.voice]).sum())

    @property
    def n_agents(self) -> int:
        return len(self.outcomes.agents)

    @property
    def n_tasks(self) -> int:
        return len(self.outcomes.tasks)

    @cached_property
    def ranks(self) -> np.ndarray:
        ranks = [self.rank_of(agent) for agent in self.outcomes.agents]
        return np.array([np.nan if rank is None else rank for rank in ranks], dtype=np.float64)

    def rank_of(self, agent: Agent) -> int | None:
        entry = self.entries.get(agent.pk)
        return entry.rank if entry else None

    def line_of(self, agent: Agent) -> Line | None:
        entry = self.entries.get(agent.pk)
        return self.standings.agents[entry.position] if entry and self.standings else None

    @property
    def is_behind(self) -> bool:
        """Whether outcomes and ranks are of two moments."""
        return self.board is not None and self.board.data_version != self.benchmark.data_version

    @property
    def rated_by(self) -> str:
        agents, rest = words.counted(self.n_rating, "agent"), self.n_agents - self.n_rating
        rates = "Mean scores are over" if self.outcomes.is_graded else "Pass rates are means over"
        n_valid = np.count_nonzero(~np.isnan(self.outcomes.means[self.outcomes.voice]), axis=1)
        if 20 * n_valid.max(initial=0) < 19 * self.n_tasks:
            return f"{rates} {agents}. None of them has run all tasks."
        most = "" if self.outcomes.voice.all() else ", at most two per untrusted account"
        left_out = f" {words.counted(rest, 'other')} {'is' if rest == 1 else 'are'} left out." if rest else ""
        lines = self.standings.agents if rest and self.standings else ()
        if any("chosen tasks" in line.marks for line in lines):
            left_out += " Ranking tasks are chosen with estimates for those of them that stopped early."
        missing_fail = self.standings and self.standings.n_missing_failed
        failed = ", missing ones counted as failures" if missing_fail else ""
        whose = f"the {agents} with results on at least 95% of the tasks{failed}{most}"
        return f"{rates} {whose}.{left_out}"


Known = dict[tuple[int, int], OrderedOutcomes]
MAX_BYTES = 64 << 20  # of outcomes that a process keeps
_read: ContextVar[Known | None] = ContextVar("_read", default=None)
_latest: tuple[object, Known] = (None, {})


@contextmanager
def read_once(known: Known | None = None) -> Iterator[Known]:
    """Read the outcomes of a benchmark once for many pages, which must all be of one moment."""
    known = {} if known is None else known
    token = _read.set(known)
    try:
        yield known
    finally:
        _read.reset(token)


def known_of(state: object) -> Known:
    """Return what this process read of a state of a benchmark, where that was read last."""
    of, known = _latest
    return known if of == state else {}


def keep(state: object, known: Known) -> None:
    """Keep what was read of a state in the place of that of another."""
    global _latest
    if known and sum(one.outcomes.means.nbytes for one in known.values()) <= MAX_BYTES:
        _latest = state, known


def ordered_outcomes(benchmark: Benchmark) -> OrderedOutcomes:
    known, key = _read.get(), (benchmark.pk, benchmark.data_version)
    if known is None:
        return _ordered(benchmark)
    if key not in known:
        known[key] = _ordered(benchmark)
    return known[key]


def _ordered(benchmark: Benchmark) -> OrderedOutcomes:
    outcomes = read_outcomes(benchmark)
    board = boards_of(benchmark).order_by("-number").first()
    entries = entries_of(board) if board else []
    standings = visible_standings(board, entries) if board else None
    at = {entry.agent_id: entry.position for entry in entries}
    rows = sorted(
        range(len(outcomes.agents)),
        key=lambda row: (at.get(outcomes.agents[row].pk, len(at)), outcomes.agents[row].name),
    )
    return OrderedOutcomes(
        benchmark=benchmark,
        outcomes=outcomes.in_order(rows),
        board=board,
        standings=standings,
        entries={entry.agent_id: entry for entry in entries},
    )
