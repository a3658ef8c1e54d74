from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.transfer import export_benchmark
from leaderboard.studies.answers import words
from leaderboard.terminal.command import BenchmarkCommand, file_path
from leaderboard.terminal.management.commands.export import check_free, replacing


class Command(BenchmarkCommand):
    help = (
        "Write a benchmark with its whole history to a file for `import-benchmark`. Roles, tokens and "
        "webhooks are not in it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", type=file_path)
        parser.add_argument("--force", action="store_true", help="replace what is there")

    def handle(self, *, benchmark: Benchmark, file: Path, force: bool, **_: Any) -> None:
        check_free(file, force)
        with replacing(file) as part:
            exported, counts = export_benchmark(benchmark=benchmark, file=part)
        counted = ", ".join(words.counted(n, noun) for noun, n in counts.items())
        self.stdout.write(f"{file}: {benchmark}, {counted}.")
        if exported.frozen_at is None:
            self.stdout.write("Intake is not frozen: later results are not in the file.")
