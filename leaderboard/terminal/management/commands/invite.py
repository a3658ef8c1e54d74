from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.utils import timezone

from leaderboard.catalog.models import Role
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.acting import AT_COMMAND_LINE
from leaderboard.operations.events import LOCAL
from leaderboard.operations.people import VALID_FOR, invite, link_of
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.management.commands.serve import served_at


class Command(ServiceCommand):
    help = (
        "Print a link that opens an account or gives an existing account a role. "
        f"The link works once, for {VALID_FOR.days} days."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--role", choices=Role.values, default=Role.SUBMITTER.value)
        parser.add_argument("--trusted", action="store_true", help="trust the account as `trust` does")
        parser.add_argument("--reason", default=AT_COMMAND_LINE, help="why; it is kept")

    def handle(self, *, email: str, benchmark: str, role: str, trusted: bool, reason: str, **_: Any) -> None:
        invitation, secret = invite(
            benchmark=benchmark_of(benchmark),
            email=email,
            role=Role(role),
            trusted=trusted,
            by=None,
            reason=reason,
            as_of=timezone.now(),
        )
        self.stderr.write(
            f"{invitation.email} is invited as {role} of {benchmark} until {invitation.expires_at:%Y-%m-%d}. "
            "This link is shown only once:"
        )
        link = link_of(secret)
        self.stdout.write(link if settings.SITE_URL else link.replace(LOCAL, served_at()))
