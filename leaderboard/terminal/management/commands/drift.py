"""Ask the monitors whether the subset still ranks like the whole."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.services import check_drift
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import drift_text, refusals_as_errors


class Command(ServiceCommand):
    help = "Evaluate the drift monitors on the present outcomes, store what they say and print it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")

    def handle(self, *, benchmark: str, **_: Any) -> None:
        with refusals_as_errors():
            check, is_new = check_drift(benchmark=benchmark_of(benchmark), as_of=timezone.now())
        if not is_new:
            self.stdout.write("The data have not changed since this check.\n")
        self.stdout.write(drift_text(check))
