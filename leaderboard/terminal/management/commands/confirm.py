from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.operations.corrections import confirm
from leaderboard.studies.answers import words
from leaderboard.terminal.command import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Confirm that the invalid outcomes of a submission are failures of the harness. Until then they "
        "count as failures of the agent; from then on they are missing, and may be delivered again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("submission", type=UUID, help="its id, as the receipt tells it")
        parser.add_argument("--reason", default="", help="what was found")

    def handle(self, *, submission: UUID, reason: str, **_: Any) -> None:
        confirmed = confirm(uuid=submission, reason=reason, as_of=timezone.now())
        agent, n = confirmed.agent, confirmed.n_invalid
        outcomes, are = words.counted(n, "invalid outcome"), "is a failure" if n == 1 else "are failures"
        self.stdout.write(
            f"Confirmed: {outcomes} of {agent.name} {are} of the harness.\n"
            f"Next: {PROGRAM} recompute {agent.benchmark.slug}"
        )
