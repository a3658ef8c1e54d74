"""Find out what staged assignments would do on this board."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.services import study_staged
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import progress_bar, refusals_as_errors, staged_text


class Command(ServiceCommand):
    help = (
        "Replay staged assignment on the present outcomes beside as many tasks chosen otherwise, and store "
        "what assignments would rest on."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")

    def handle(self, *, benchmark: str, **_: Any) -> None:
        with refusals_as_errors(), progress_bar("replay", "agents") as progress:
            study, is_new = study_staged(
                benchmark=benchmark_of(benchmark), as_of=timezone.now(), progress=progress
            )
        if not is_new:
            self.stdout.write("The data have not changed since this replay.\n")
        self.stdout.write(staged_text(study))
        if is_new and study.result["available"]:
            self.stdout.write(
                f"\nNext: manage.py policy {benchmark} --set assignment=staged (where it serves the board)"
            )
