"""Give an agent another name."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.naming import agent_named, rename
from leaderboard.terminal.command import BenchmarkCommand


class Command(BenchmarkCommand):
    help = (
        "Call an agent by another name from now on. Deliveries under the old name stay its own, and boards "
        "that were published keep it."
    )
    reason = "why; it is kept"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("agent")
        parser.add_argument("name", help="the new one")

    def handle(self, *, benchmark: Benchmark, agent: str, name: str, reason: str, **_: Any) -> None:
        rename(agent=agent_named(benchmark, agent), name=name, by=None, reason=reason, as_of=timezone.now())
        self.stdout.write(f"{agent} is {name} from now on.\nNext: {PROGRAM} recompute {benchmark}")
