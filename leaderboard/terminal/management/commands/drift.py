from typing import Any

from django.utils import timezone

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import check_drift
from leaderboard.terminal.command import BenchmarkCommand
from leaderboard.terminal.printing import drift_text


class Command(BenchmarkCommand):
    help = "Evaluate the drift monitors on the present outcomes, store what they say and print it."

    def handle(self, *, benchmark: Benchmark, **_: Any) -> None:
        check, is_new = check_drift(benchmark=benchmark, as_of=timezone.now())
        if not is_new:
            self.stdout.write("The data have not changed since this check.\n")
        self.stdout.write(drift_text(check))
