"""Trust an account on a benchmark."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.corrections import trust_account
from leaderboard.operations.people import account_of
from leaderboard.terminal.command import BenchmarkCommand


class Command(BenchmarkCommand):
    help = (
        "Trust an account, such as that of your own CI. Pass rates, calibration and alerts then take all of "
        "its agents; of other accounts they take two each. The subset in use stays as it is."
    )
    reason = "why; it is kept"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email")
        parser.add_argument("--undo", action="store_true", help="trust it no longer")

    def handle(self, *, benchmark: Benchmark, email: str, undo: bool, reason: str, **_: Any) -> None:
        account = account_of(email)
        trust_account(
            benchmark=benchmark,
            account=account,
            reason=reason,
            as_of=timezone.now(),
            trusted=not undo,
        )
        is_now = "no longer trusted" if undo else "trusted"
        self.stdout.write(
            f"{account.email} is {is_now} on {benchmark}.\nNext: {PROGRAM} recompute {benchmark}"
        )
