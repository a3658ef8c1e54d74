"""Let what an agent delivered count as another's."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.naming import agent_named, merge
from leaderboard.terminal.arguments import required_reason
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import refusals_as_errors


class Command(ServiceCommand):
    help = (
        "For two names of one agent: all that the first one delivered, and what comes under its name, counts "
        "as the second one's. Refused where both hold an outcome of the same task, setting and trial."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")
        parser.add_argument("agent")
        parser.add_argument("into", help="the agent that both are from now on")
        parser.add_argument("--reason", required=True, help="why; it is kept")

    def handle(self, *, benchmark: str, agent: str, into: str, reason: str, **_: Any) -> None:
        reason = required_reason(reason)
        with refusals_as_errors():
            stored = benchmark_of(benchmark)
            merge(
                agent=agent_named(stored, agent),
                into=agent_named(stored, into),
                by=None,
                reason=reason,
                as_of=timezone.now(),
            )
        self.stdout.write(f"{agent} counts as {into}.\nNext: {PROGRAM} recompute {benchmark}")
