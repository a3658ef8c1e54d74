"""Store a benchmark that another installation wrote."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.called import PROGRAM
from leaderboard.operations.transfer import import_benchmark
from leaderboard.studies.answers import words
from leaderboard.terminal.arguments import check_slug, reading
from leaderboard.terminal.command import ServiceCommand


class Command(ServiceCommand):
    help = "Store a benchmark that `export-benchmark` wrote, with its whole history, whole or not at all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--slug", help="its name in addresses, where it is to be another")

    def handle(self, *, file: Path, slug: str | None, **_: Any) -> None:
        if slug is not None:
            check_slug(slug)
        with reading(file, "what `export-benchmark` wrote"):
            done = import_benchmark(file=file, slug=slug)
        counts = (done.n_outcomes, "outcome"), (done.n_boards, "board"), (done.n_accounts, "account")
        name = done.benchmark.slug
        self.stdout.write(f"{name}: {', '.join(words.counted(n, noun) for n, noun in counts)}.")
        self.stdout.write(f"Nobody has a role in it yet. Next: {PROGRAM} invite EMAIL --benchmark {name}")
