"""Let what an agent delivered count as another's."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.naming import agent_named, merge
from leaderboard.terminal.command import BenchmarkCommand


class Command(BenchmarkCommand):
    help = (
        "For two names of one agent: all that the first one delivered, and what comes under its name, counts "
        "as the second one's. Refused where both hold an outcome of the same task, setting and trial."
    )
    reason = "why; it is kept"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("agent")
        parser.add_argument("into", help="the agent that both are from now on")

    def handle(self, *, benchmark: Benchmark, agent: str, into: str, reason: str, **_: Any) -> None:
        merge(
            agent=agent_named(benchmark, agent),
            into=agent_named(benchmark, into),
            by=None,
            reason=reason,
            as_of=timezone.now(),
        )
        self.stdout.write(f"{agent} counts as {into}.\nNext: {PROGRAM} recompute {benchmark}")
