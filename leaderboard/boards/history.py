"""The boards of a benchmark through time, and what changed between two of them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import F

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import withdrawn_agents
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.answers import Changes, Place, compared

Named = dict[int, str]


def changes_since(
    older: Board, newer: Board, *, entries: Sequence[Entry] | None = None, gone: Collection[int] | None = None
) -> Changes:
    """What changed from one board to a later one, withdrawals as of today.

    Queries: the places of both boards and the ids of the agents withdrawn, but for what is given of these.
    """
    target = newer.target
    placed = _placed([older, newer] if entries is None else [older], target)
    now = placed.get(newer.pk, {}) if entries is None else _placed_by(entries, target)
    gone = withdrawn_agents(newer.benchmark) if gone is None else gone
    return _compared(newer, placed.get(older.pk, {}), now, gone)


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
    entries = _placed(found, *{board.target for board in found})
    gone = withdrawn_agents(benchmark) if len(found) > 1 else set()
    told = [_version(newer, older, entries, gone) for newer, older in pairwise([*found, None]) if newer]
    return told[:most], len(found) > most


OnBoard = dict[int, tuple[str, dict[str, Place]]]  # by agent: its name there, and its place for each target


def _version(
    newer: Board, older: Board | None, entries: dict[int, OnBoard], gone: Collection[int]
) -> Version:
    now = entries.get(newer.pk, {})
    ranked = [told for _, told in now.values() if told[newer.target].rank is not None]
    return Version(
        newer,
        len(ranked),
        len(now),
        _compared(newer, entries.get(older.pk, {}), now, gone) if older else None,
    )


def _compared(newer: Board, before: OnBoard, now: OnBoard, gone: Collection[int]) -> Changes:
    named = {agent: name for agent, (name, _) in before.items()}
    return compared(
        {name: told[newer.target] for name, told in before.values()},
        {name: told[newer.target] for name, told in now.values()},
        target=newer.target,
        withdrawn=_names(named, gone),
        renamed=_renamed(named, {agent: name for agent, (name, _) in now.items()}),
    )


def _placed(boards: Sequence[Board], *targets: str) -> dict[int, OnBoard]:
    """By board, who stands where for some targets."""
    fields = {f"{t}_{field}": F(f"at__{t}__{field}") for t in targets for field in Place._fields}
    rows = Entry.objects.filter(board__in=boards).values_list("board", "agent", "name", *fields.values())
    found: dict[int, OnBoard] = {}
    width = len(Place._fields)
    for board, agent, name, *told in rows.iterator():
        of_target = {t: Place(*told[i * width : (i + 1) * width]) for i, t in enumerate(targets)}
        found.setdefault(board, {})[agent] = (name, of_target)
    return found


def _placed_by(entries: Sequence[Entry], target: str) -> OnBoard:
    """The same of one board, by entries that were read already."""
    return {
        entry.agent_id: (
            entry.name,
            {target: Place(*(entry.at.get(target, {}).get(field) for field in Place._fields))},
        )
        for entry in entries
    }


def _names(named: Named, agents: Iterable[int]) -> set[str]:
    return {named[agent] for agent in agents if agent in named}


def _renamed(before: Named, now: Named) -> dict[str, str]:
    return {name: now[agent] for agent, name in before.items() if agent in now and now[agent] != name}
