"""Print a board."""

import csv
import json
import shutil
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.boards.presentation import as_dict
from leaderboard.boards.queries import entries_of, latest_board
from leaderboard.boards.reading import is_available, why_not
from leaderboard.catalog.models import Target
from leaderboard.catalog.queries import benchmark_of
from leaderboard.terminal.printing import board_text, refusals_as_errors

NESTED = ("targets", "full_interval", "icc", "flags", "marks")
TARGET_FIELDS = ("score", "naive_se", "se", "lower", "upper", "rank_lower", "rank_upper", "method", "reason")
INTERVAL_FIELDS = ("lower", "upper", "source", "note", "reason")
ICC_FIELDS = ("icc", "lower", "upper", "trials_per_task", "note", "reason")


class Command(BaseCommand):
    help = "Print the latest board of a benchmark."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG")
        parser.add_argument("--format", choices=["table", "csv", "json"], default="table")
        parser.add_argument(
            "--target",
            choices=Target.values,
            help="what the table's intervals, ranks and ties are about; csv and json hold all targets",
        )

    def handle(self, *, benchmark: str, format: str, target: str | None, **_: Any) -> None:
        with refusals_as_errors():
            board = latest_board(benchmark_of(benchmark))
        if target and not is_available(board, target):
            raise CommandError(f"The board says nothing about the target {target}: {why_not(board, target)}.")
        entries = entries_of(board)
        if format == "table":
            width = shutil.get_terminal_size((160, 24)).columns
            self.stdout.write(board_text(board, entries, width=width, target=target or ""))
        elif format == "json":
            self.stdout.write(json.dumps(as_dict(board, entries), ensure_ascii=False, indent=2))
        else:
            lines = [_flat(entry) for entry in as_dict(board, entries)["entries"]]
            writer = csv.DictWriter(self.stdout, lines[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """One level of columns: `target_full_se` for a target's standard error, and lists of names as JSON."""
    flat = {name: value for name, value in entry.items() if name not in NESTED}
    for target in Target.values:
        told = entry["targets"].get(target)
        flat |= {f"target_{target}_{field}": _part(told, field) for field in TARGET_FIELDS}
        flat[f"target_{target}_tied_with"] = _json(_part(told, "tied_with"))
    flat |= {f"full_interval_{field}": _part(entry["full_interval"], field) for field in INTERVAL_FIELDS}
    flat |= {f"icc_{field}": _part(entry["icc"], field) for field in ICC_FIELDS}
    return flat | {"flags": _json(entry["flags"]), "marks": " ".join(entry["marks"])}


def _part(told: dict[str, Any] | None, field: str) -> Any:
    return (told or {}).get(field)


def _json(texts: list[str] | None) -> str | None:
    return json.dumps(texts, ensure_ascii=False) if texts else None
