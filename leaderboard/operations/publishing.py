"""At which pace boards are published, and the event about a new one."""

from datetime import UTC, datetime, timedelta
from typing import Any

from leaderboard.boards.models import Board
from leaderboard.boards.presentation import without_costs
from leaderboard.boards.queries import changes_since
from leaderboard.boards.signing import identity, signed
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.operations.events import emit
from leaderboard.operations.mailing import wished_by_owners
from leaderboard.operations.models import EventKind
from leaderboard.studies.answers import Changes, Standings, words

MAX_LISTED = 100  # agents of one event; their number is always given
AT_ONCE = datetime.min.replace(tzinfo=UTC)


def pace(benchmark: Benchmark) -> timedelta:
    return timedelta(seconds=policy_in_force(benchmark).publish_every)


def may_publish_at(benchmark: Benchmark) -> datetime:
    """From when on the clock may publish another board; a person may at any time."""
    latest = benchmark.boards.order_by("-number").values_list("published_at", flat=True).first()
    return AT_ONCE if latest is None else latest + pace(benchmark)


def tell_of_board(*, board: Board, standings: Standings, as_of: datetime) -> None:
    """Tell of a new board, and of ranks beyond those that the board before let agents hold.

    For the transaction that publishes it. `standings` are what it was made from. Costs are told as visitors
    see them.
    """
    benchmark = board.benchmark
    older = benchmark.boards.filter(number__lt=board.number).order_by("-number").first()
    board_changes = changes_since(older, board) if older else None
    common = {"number": board.number, "path": f"/b/{benchmark.slug}/v{board.number}"}
    since = {"since": older.number if older else None}
    emit(
        benchmark=benchmark,
        kind=EventKind.BOARD_PUBLISHED,
        about=str(board.number),
        payload=common
        | _of_board(board, standings)
        | since
        | {"changes": _counts(board_changes) if board_changes else None},
        as_of=as_of,
        emails=wished_by_owners(benchmark, _with_another_place(standings, board_changes)),
    )
    if board_changes and board_changes.moved:
        emit(
            benchmark=benchmark,
            kind=EventKind.RANK_CHANGED,
            about=str(board.number),
            payload=common | since | _of_moved(board_changes),
            as_of=as_of,
        )


def _with_another_place(standings: Standings, board_changes: Changes | None) -> set[str]:
    """The agents whose place on this board is news to their owners: all, where it is the first."""
    if board_changes is None:
        return {line.agent for line in standings.agents}
    moved = {one.agent for one in board_changes.moved}
    return moved.union(board_changes.entered, board_changes.now_ranked, board_changes.now_unranked)


def _of_board(board: Board, standings: Standings) -> dict[str, Any]:
    if not policy_in_force(board.benchmark).show_costs:
        standings = without_costs(standings)
    target = standings.targets[standings.target]
    payload = identity(board) | signed(board)
    return {name: value for name, value in payload.items() if name != "benchmark"} | {
        "phase": standings.phase,
        "target": standings.target,
        "n_tasks": target.n_tasks,
        "n_listed": len(standings.agents),
        "n_ranked": target.n_ranked,
        "n_may_be_first": len(target.may_be_first),
        "may_be_first": list(target.may_be_first[:MAX_LISTED]),
        "headline": words.headline(standings),
    }


def _counts(board_changes: Changes) -> dict[str, Any]:
    lists = ("entered", "left", "withdrawn", "moved", "now_ranked", "now_unranked")
    return {name: len(getattr(board_changes, name)) for name in lists} | {
        "text": words.changes_text(board_changes)
    }


def _of_moved(board_changes: Changes) -> dict[str, Any]:
    plain = board_changes.as_plain()["moved"][:MAX_LISTED]
    sentences = [words.moved_text(one) for one in board_changes.moved]
    return {
        "target": board_changes.target,
        "n_agents": len(board_changes.moved),
        "agents": [one | {"text": text} for one, text in zip(plain, sentences, strict=False)],
    }
