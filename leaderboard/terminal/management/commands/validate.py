import os
from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import validate
from leaderboard.studies.answers import progress_bar
from leaderboard.terminal.command import StudyCommand, whole
from leaderboard.terminal.printing import validation_text

MAX_JOBS = 64


class Command(StudyCommand):
    noun = "validation"
    help = "Test whether the ranking tasks order new agents as all tasks would, and store the figures."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--jobs",
            type=whole(1, MAX_JOBS),
            default=min(os.cpu_count() or 1, MAX_JOBS),
            metavar="N",
            help=f"number of processes, 1 to {MAX_JOBS}",
        )
        parser.add_argument("--full", action="store_true", help="print all figures, and what they mean")

    def handle(self, *, benchmark: Benchmark, jobs: int, full: bool, **_: Any) -> None:
        with progress_bar("validation", "folds") as progress:
            study, is_new = validate(
                benchmark=benchmark, as_of=timezone.now(), n_jobs=jobs, progress=progress
            )
        is_available = any(one["available"] for one in study.result["protocols"].values())
        self.report(study, is_new=is_new, text=validation_text(study, full=full), moves_board=is_available)
