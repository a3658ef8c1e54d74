from typing import Any

from django.utils import timezone

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import check_drift
from leaderboard.terminal.command import StudyCommand
from leaderboard.terminal.printing import drift_text


class Command(StudyCommand):
    noun = "check"
    help = "Evaluate the drift monitors on the present outcomes, store what they say and print it."

    def handle(self, *, benchmark: Benchmark, **_: Any) -> None:
        check, is_new = check_drift(benchmark=benchmark, as_of=timezone.now())
        self.report(check, is_new=is_new, text=drift_text(check))
