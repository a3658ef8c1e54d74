from typing import Any

from django.utils import timezone

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import measure_variance
from leaderboard.terminal.command import StudyCommand
from leaderboard.terminal.printing import variance_text


class Command(StudyCommand):
    noun = "study"
    help = "Estimate the sources of error (variance components by REML) and store the study."

    def handle(self, *, benchmark: Benchmark, **_: Any) -> None:
        study, is_new = measure_variance(benchmark=benchmark, as_of=timezone.now())
        self.report(study, is_new=is_new, text=variance_text(study), moves_board=study.result["available"])
