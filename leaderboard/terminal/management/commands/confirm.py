"""Confirm failures of the harness."""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand
from django.utils import timezone

from leaderboard.operations.corrections import confirm
from leaderboard.terminal.printing import refusals_as_errors


class Command(BaseCommand):
    help = (
        "Confirm that the invalid outcomes of a submission are failures of the harness. Until then they "
        "count as failures of the agent; from then on they are missing, and may be delivered again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("submission", type=UUID, help="its id, as the receipt tells it")
        parser.add_argument("--reason", default="", help="what was found")

    def handle(self, *, submission: UUID, reason: str, **_: Any) -> None:
        with refusals_as_errors():
            confirmed = confirm(uuid=submission, reason=reason, as_of=timezone.now())
        agent = confirmed.agent
        self.stdout.write(
            f"Confirmed: {confirmed.n_invalid:,} invalid outcomes of {agent.name} are failures of the harness"
            f".\nNext: manage.py recompute {agent.benchmark.slug}"
        )
