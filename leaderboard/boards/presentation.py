"""A board as plain values, the same for the API and for `standings --format json`."""

from collections.abc import Iterable
from typing import Any

from leaderboard.boards.models import Board, Entry


def as_dict(board: Board, entries: Iterable[Entry]) -> dict[str, Any]:
    return {
        "benchmark": board.benchmark.slug,
        "number": board.number,
        "published_at": board.published_at.isoformat(),
        "data_version": board.data_version,
        "phase": board.phase,
        "why": board.why,
        "n_tasks": board.n_tasks,
        "n_complete": board.n_complete,
        "subset": _subset(board),
        "targets": board.targets,
        "not_measured": board.not_measured,
        "savings": board.savings,
        "digest": board.digest,
        "entries": [_entry(entry) for entry in entries],
    }


def _subset(board: Board) -> dict[str, Any] | None:
    if board.subset is None:
        return None
    tasks = list(board.subset.members.order_by("task__name").values_list("task__name", flat=True))
    return {
        "number": board.subset.number,
        "lo": board.subset.lo,
        "hi": board.subset.hi,
        "widened": board.subset.widened,
        "provisional": board.subset.provisional,
        "size": len(tasks),
        "tasks": tasks,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        **{field: getattr(entry, field) for field in ("rank", "name", "scaffold", "model")},
        "submitted_at": entry.submitted_at.isoformat() if entry.submitted_at else None,
        **{field: getattr(entry, field) for field in Entry.COMPUTED},
        "full_score_source": entry.full_score_source or None,
        "unranked": entry.unranked or None,
    }
