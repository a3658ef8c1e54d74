"""The boards of a benchmark through time, and what changed between two of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from django.db.models import F

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import withdrawn_agents
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.answers import Changes, Place, compared


def changes_since(
    older: Board,
    newer: Board,
    *,
    entries: Sequence[Entry] | None = None,
    withdrawn_ids: Collection[int] | None = None,
) -> Changes:
    """What changed from one board to a later one, withdrawals as of today.

    Queries: the places of both boards and the ids of the agents withdrawn, but for what is given of these.
    """
    target = newer.target
    places = _places([older, newer] if entries is None else [older], target)
    now = places.get(newer.pk, {})
    if entries is not None:
        ats = ((entry, entry.at.get(target, {})) for entry in entries)
        now = {
            entry.agent_id: (entry.name, {target: Place(*(at.get(field) for field in Place._fields))})
            for entry, at in ats
        }
    withdrawn_ids = withdrawn_agents(newer.benchmark) if withdrawn_ids is None else withdrawn_ids
    return _compare(newer, places.get(older.pk, {}), now, withdrawn_ids)


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
    latest = list(boards[: most + 1])
    entries = _places(latest, *{board.target for board in latest})
    withdrawn_ids = withdrawn_agents(benchmark) if len(latest) > 1 else set()
    found = []
    for newer, older in zip_longest(latest, latest[1:]):
        now = entries.get(newer.pk, {})
        n_ranked = sum(places[newer.target].rank is not None for _, places in now.values())
        changes = _compare(newer, entries.get(older.pk, {}), now, withdrawn_ids) if older else None
        found.append(Version(newer, n_ranked, len(now), changes))
    return found[:most], len(latest) > most


OnBoard = dict[int, tuple[str, dict[str, Place]]]  # by agent: its name there, and its place for each target


def _compare(newer: Board, before: OnBoard, now: OnBoard, withdrawn_ids: Collection[int]) -> Changes:
    names_before = {agent: name for agent, (name, _) in before.items()}
    return compared(
        {name: places[newer.target] for name, places in before.values()},
        {name: places[newer.target] for name, places in now.values()},
        target=newer.target,
        withdrawn={names_before[agent] for agent in withdrawn_ids if agent in names_before},
        renamed={
            name: now[agent][0]
            for agent, name in names_before.items()
            if agent in now and now[agent][0] != name
        },
    )


def _places(boards: Sequence[Board], *targets: str) -> dict[int, OnBoard]:
    fields = {f"{t}_{field}": F(f"at__{t}__{field}") for t in targets for field in Place._fields}
    rows = Entry.objects.filter(board__in=boards).values_list("board", "agent", "name", *fields.values())
    places: dict[int, OnBoard] = {}
    width = len(Place._fields)
    for board, agent, name, *values in rows.iterator():
        of_target = {t: Place(*values[i * width : (i + 1) * width]) for i, t in enumerate(targets)}
        places.setdefault(board, {})[agent] = (name, of_target)
    return places
