"""Let an agent be ranked again."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.corrections import approve
from leaderboard.terminal.command import BenchmarkCommand


class Command(BenchmarkCommand):
    help = (
        "Let an agent be ranked again whose owner took outcomes back after a board had shown it, or let one "
        "count in pass rates and calibration whose outcomes are the same as another's on every task."
    )
    reason = "why this is no second try; it is kept"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("agent")

    def handle(self, *, benchmark: Benchmark, agent: str, reason: str, **_: Any) -> None:
        approve(benchmark=benchmark, agent=agent, reason=reason, as_of=timezone.now())
        self.stdout.write(f"{agent} may be ranked, and counts.\nNext: {PROGRAM} recompute {benchmark}")
