"""From nothing to a board in one command."""

import os
import re
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.utils import timezone
from django.utils.text import slugify

from leaderboard.boards.presentation import as_dict
from leaderboard.boards.queries import latest_board
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.services import measure_variance, validate
from leaderboard.studies.demonstration import write_history, write_newcomers
from leaderboard.terminal.management.commands.load import notes, read, store, summary
from leaderboard.terminal.printing import progress_bar, refusals_as_errors


class Command(BaseCommand):
    help = "Load the built-in demonstration benchmark, or a file of outcomes, compute its board and print it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--file", type=Path, help="a flat file of your own")
        parser.add_argument("--serve", action="store_true", help="then serve the pages")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *, file: Path | None, serve: bool, port: int, **_: Any) -> None:
        call_command("migrate", verbosity=0)
        slug = self._load(file) if file else self._load_demonstration()
        self._study(slug)
        call_command("recompute", slug, stdout=self.stdout)
        self.stdout.write("")
        call_command("standings", slug, stdout=self.stdout)
        if serve:
            self._serve(slug, port)

    def _load_demonstration(self) -> str:
        """Select tasks on a year of full runs; then the latest agents are asked for these tasks only."""
        with tempfile.TemporaryDirectory() as folder:
            history, newcomers = Path(folder) / "history.csv", Path(folder) / "newcomers.csv"
            write_history(history)
            slug = self._load(history)
            call_command("recompute", slug, stdout=self.stdout)
            board = latest_board(benchmark_of(slug))
            write_newcomers(newcomers, tasks=as_dict(board, [])["subset"]["tasks"])
            return self._load(newcomers)

    def _load(self, file: Path) -> str:
        with refusals_as_errors():
            flat = read(file)
            slug = slugify(re.sub(r"\W", " ", flat.benchmarks[0])) or "benchmark"
            self.stdout.write(summary(store(flat, slug=slug), dry_run=False) + notes(flat))
        return slug

    def _study(self, slug: str) -> None:
        """Measure variances and validate before the board that names both."""
        benchmark, as_of = benchmark_of(slug), timezone.now()
        measure_variance(benchmark=benchmark, as_of=as_of)
        with progress_bar("Validating") as progress:
            validate(benchmark=benchmark, as_of=as_of, n_jobs=os.cpu_count() or 1, progress=progress)
        self.stdout.write("Measured where the noise comes from, and validated the subset on agents left out.")

    def _serve(self, slug: str, port: int) -> None:
        self.stdout.write(f"\nServing http://localhost:{port}/b/{slug} (Ctrl-C ends it)")
        self.stdout.flush()
        gunicorn = [sys.executable, "-m", "gunicorn", "--config", "python:leaderboard.serving"]
        os.execv(sys.executable, [*gunicorn, "--bind", f"127.0.0.1:{port}"])
