"""Give an agent another name."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.naming import agent_named, rename
from leaderboard.terminal.arguments import required_reason
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import refusals_as_errors


class Command(ServiceCommand):
    help = (
        "Call an agent by another name from now on. Deliveries under the old name stay its own, and boards "
        "that were published keep it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")
        parser.add_argument("agent")
        parser.add_argument("name", help="the new one")
        parser.add_argument("--reason", required=True, help="why; it is kept")

    def handle(self, *, benchmark: str, agent: str, name: str, reason: str, **_: Any) -> None:
        reason = required_reason(reason)
        with refusals_as_errors():
            stored = agent_named(benchmark_of(benchmark), agent)
            rename(agent=stored, name=name, by=None, reason=reason, as_of=timezone.now())
        self.stdout.write(f"{agent} is {name} from now on.\nNext: {PROGRAM} recompute {benchmark}")
