from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import check_drift
from leaderboard.terminal.command import StudyCommand
from leaderboard.terminal.printing import drift_text


class Command(StudyCommand):
    noun = "check"
    help = "Check whether the ranking tasks still work, store the result and print it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--full", action="store_true", help="print every monitor with its reason")

    def handle(self, *, benchmark: Benchmark, full: bool, **_: Any) -> None:
        check, is_new = check_drift(benchmark=benchmark, as_of=timezone.now())
        self.report(check, is_new=is_new, text=drift_text(check, full=full))
