"""Trust an account on a benchmark."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.corrections import trust_account
from leaderboard.operations.people import account_of
from leaderboard.terminal.arguments import required_reason
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import refusals_as_errors


class Command(ServiceCommand):
    help = (
        "Trust an account, such as that of your own CI. Pass rates, calibration and alerts then take all of "
        "its agents; of other accounts they take two each. The subset in use stays as it is."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")
        parser.add_argument("email")
        parser.add_argument("--undo", action="store_true", help="trust it no longer")
        parser.add_argument("--reason", required=True, help="why; it is kept")

    def handle(self, *, benchmark: str, email: str, undo: bool, reason: str, **_: Any) -> None:
        reason = required_reason(reason)
        with refusals_as_errors():
            account = account_of(email)
            trust_account(
                benchmark=benchmark_of(benchmark),
                account=account,
                reason=reason,
                as_of=timezone.now(),
                trusted=not undo,
            )
        is_now = "no longer trusted" if undo else "trusted"
        self.stdout.write(
            f"{account.email} is {is_now} on {benchmark}.\nNext: {PROGRAM} recompute {benchmark}"
        )
