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
        "Confirm that the harness caused the invalid results of a submission. Until then they count as "
        "failures of the agent. Afterwards they are missing and may be delivered again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("submission", type=UUID, help="its id, as the receipt tells it")
        parser.add_argument("--reason", default="", help="what was found")

    def handle(self, *, submission: UUID, reason: str, **_: Any) -> None:
        confirmed = confirm(uuid=submission, reason=reason, as_of=timezone.now())
        agent, n = confirmed.agent, confirmed.n_invalid
        self.stdout.write(
            f"Confirmed: the harness caused {words.counted(n, 'invalid result')} of {agent.name}.\n"
            f"Next: {PROGRAM} recompute {agent.benchmark.slug}"
        )
