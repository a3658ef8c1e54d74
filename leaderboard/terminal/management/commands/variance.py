from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import measure_variance
from leaderboard.terminal.command import BenchmarkCommand
from leaderboard.terminal.printing import variance_text


class Command(BenchmarkCommand):
    help = "Estimate variance components from settings and repeated trials by REML, and store the study."

    def handle(self, *, benchmark: Benchmark, **_: Any) -> None:
        study, is_new = measure_variance(benchmark=benchmark, as_of=timezone.now())
        if not is_new:
            self.stdout.write("The data have not changed since this study.\n")
        self.stdout.write(variance_text(study))
        if is_new and study.result["available"]:
            self.stdout.write(
                f"\nNext: {PROGRAM} recompute {benchmark} (a board that takes this into account)"
            )
