"""Find out where the noise in the scores comes from."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.services import measure_variance
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import refusals_as_errors, variance_text


class Command(ServiceCommand):
    help = "Estimate variance components from settings and repeated trials by REML, and store the study."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")

    def handle(self, *, benchmark: str, **_: Any) -> None:
        with refusals_as_errors():
            study, is_new = measure_variance(benchmark=benchmark_of(benchmark), as_of=timezone.now())
        if not is_new:
            self.stdout.write("The data have not changed since this study.\n")
        self.stdout.write(variance_text(study))
        if is_new and study.result["available"]:
            self.stdout.write(
                f"\nNext: {PROGRAM} recompute {benchmark} (a board that takes this into account)"
            )
