from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.called import PROGRAM
from leaderboard.operations.transfer import import_benchmark
from leaderboard.studies.answers import words
from leaderboard.terminal.command import ServiceCommand, check_slug, file_path, reading


class Command(ServiceCommand):
    help = "Read a file of `export-benchmark` and store the benchmark with its whole history, all or nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=file_path)
        parser.add_argument("--slug", help="another name in addresses")

    def handle(self, *, file: Path, slug: str | None, **_: Any) -> None:
        if slug is not None:
            check_slug(slug)
        with reading(file, "what `export-benchmark` wrote"):
            benchmark, counts = import_benchmark(file=file, slug=slug)
        name, counted = benchmark.slug, (words.counted(n, noun) for noun, n in counts.items())
        self.stdout.write(f"{name}: {', '.join(counted)}.")
        self.stdout.write(f"Nobody has a role yet. Next: {PROGRAM} invite EMAIL --benchmark {name}")
