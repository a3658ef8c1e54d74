import os
from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import validate
from leaderboard.terminal.command import BenchmarkCommand
from leaderboard.terminal.printing import progress_bar, validation_text


class Command(BenchmarkCommand):
    help = (
        "Validate the selection of tasks by nested protocols on the present outcomes, and store the figures."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at work")

    def handle(self, *, benchmark: Benchmark, jobs: int, **_: Any) -> None:
        with progress_bar("validation", "folds") as progress:
            study, is_new = validate(
                benchmark=benchmark, as_of=timezone.now(), n_jobs=jobs, progress=progress
            )
        if not is_new:
            self.stdout.write("The data have not changed since this validation.\n")
        self.stdout.write(validation_text(study))
        if is_new and any(one["available"] for one in study.result["protocols"].values()):
            self.stdout.write(
                f"\nNext: {PROGRAM} recompute {benchmark} (a board that takes this into account)"
            )
