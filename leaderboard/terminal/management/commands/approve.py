"""Let an agent be ranked again."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.corrections import approve
from leaderboard.terminal.arguments import required_reason
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import refusals_as_errors


class Command(ServiceCommand):
    help = (
        "Let an agent be ranked again whose owner took outcomes back after a board had shown it, or let one "
        "count in pass rates and calibration whose outcomes are the same as another's on every task."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")
        parser.add_argument("agent")
        parser.add_argument("--reason", required=True, help="why this is no second try; it is kept")

    def handle(self, *, benchmark: str, agent: str, reason: str, **_: Any) -> None:
        reason = required_reason(reason)
        with refusals_as_errors():
            approve(benchmark=benchmark_of(benchmark), agent=agent, reason=reason, as_of=timezone.now())
        self.stdout.write(f"{agent} may be ranked, and counts.\nNext: {PROGRAM} recompute {benchmark}")
