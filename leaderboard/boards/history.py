"""The boards of a benchmark through time, and what changed between two of them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import F

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import entries_of, withdrawn_agents
from leaderboard.boards.reading import standings_with
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.answers import Changes, Place, changes, compared

Named = dict[int, str]


def changes_since(
    older: Board, newer: Board, *, entries: Sequence[Entry] | None = None, gone: Collection[int] | None = None
) -> Changes:
    """What changed from one board to a later one, withdrawals as of today.

    Queries: the entries of both boards and the ids of the agents withdrawn, but for what is given of these.
    """
    before, now = entries_of(older), entries if entries is not None else entries_of(newer)
    named = {entry.agent_id: entry.name for entry in before}
    return changes(
        standings_with(older, before),
        standings_with(newer, now),
        withdrawn=_names(named, withdrawn_agents(newer.benchmark) if gone is None else gone),
        renamed=_renamed(named, {entry.agent_id: entry.name for entry in now}),
    )


@dataclass(frozen=True)
class Version:
    """A board as the history lists it, and what changed since the one before; None for the first."""

    board: Board
    n_ranked: int
    n_listed: int
    changes: Changes | None


def versions(benchmark: Benchmark, *, before: int | None = None, most: int) -> tuple[list[Version], bool]:
    """The latest boards, or those before a number, newest first, and whether there are older ones.

    Entries are read with their places alone, for a board of many agents is a megabyte: three queries.
    """
    boards = benchmark.boards.select_related("subset").defer("content").order_by("-number")
    if before is not None:
        boards = boards.filter(number__lt=before)
    found = list(boards[: most + 1])
    entries = _placed(found)
    gone = withdrawn_agents(benchmark) if len(found) > 1 else set()
    told = [_version(newer, older, entries, gone) for newer, older in pairwise([*found, None]) if newer]
    return told[:most], len(found) > most


Placed = dict[int, dict[int, tuple[str, dict[str, Place]]]]


def _version(newer: Board, older: Board | None, entries: Placed, gone: Collection[int]) -> Version:
    now = entries.get(newer.pk, {})
    ranked = [told for _, told in now.values() if told[newer.target].rank is not None]
    return Version(
        newer,
        len(ranked),
        len(now),
        _compared(newer, entries.get(older.pk, {}), now, gone) if older else None,
    )


def _compared(
    newer: Board,
    before: dict[int, tuple[str, dict[str, Place]]],
    now: dict[int, tuple[str, dict[str, Place]]],
    gone: Collection[int],
) -> Changes:
    named = {agent: name for agent, (name, _) in before.items()}
    return compared(
        {name: told[newer.target] for name, told in before.values()},
        {name: told[newer.target] for name, told in now.values()},
        target=newer.target,
        withdrawn=_names(named, gone),
        renamed=_renamed(named, {agent: name for agent, (name, _) in now.items()}),
    )


def _placed(boards: Sequence[Board]) -> Placed:
    """By board and agent: its name there, and its place for each target that a board is ordered by."""
    targets = sorted({board.target for board in boards})
    fields = {f"{t}_{field}": F(f"at__{t}__{field}") for t in targets for field in Place._fields}
    rows = Entry.objects.filter(board__in=boards).values_list("board", "agent", "name", *fields.values())
    found: Placed = {}
    width = len(Place._fields)
    for board, agent, name, *told in rows.iterator():
        of_target = {t: Place(*told[i * width : (i + 1) * width]) for i, t in enumerate(targets)}
        found.setdefault(board, {})[agent] = (name, of_target)
    return found


def _names(named: Named, agents: Iterable[int]) -> set[str]:
    return {named[agent] for agent in agents if agent in named}


def _renamed(before: Named, now: Named) -> dict[str, str]:
    return {name: now[agent] for agent, name in before.items() if agent in now and now[agent] != name}
