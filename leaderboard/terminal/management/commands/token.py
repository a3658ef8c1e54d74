from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.core.validators import validate_email
from django.utils import timezone

from leaderboard.accounts.models import Scope, User
from leaderboard.accounts.services import MAX_LIFE
from leaderboard.catalog.models import NAME_LENGTH
from leaderboard.operations.people import issue_token
from leaderboard.terminal.command import ServiceCommand


class Command(ServiceCommand):
    help = "Print a new API token for a person, once. Creates the account and its role if they do not exist."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--benchmark", required=True, metavar="SLUG")
        parser.add_argument("--scope", choices=Scope.values, default=Scope.SUBMIT.value)
        parser.add_argument("--name", default="made on the command line", help="what the token is for")
        parser.add_argument(
            "--days", type=int, default=90, help=f"how long it lives, 1 to {MAX_LIFE.days} (default 90)"
        )

    def handle(self, *, email: str, benchmark: str, scope: str, name: str, days: int, **_: Any) -> None:
        if not 1 <= days <= MAX_LIFE.days:
            raise CommandError(f"--days is {days}. Use 1 to {MAX_LIFE.days}.")
        try:
            validate_email(email)
            User._meta.get_field("email").run_validators(email)
        except ValidationError:
            raise CommandError(f"Invalid e-mail address: {email!r}.") from None
        if len(name) > NAME_LENGTH:
            raise CommandError(f"--name has {len(name):,} characters. Use at most {NAME_LENGTH}.")
        token, secret = issue_token(
            email=email,
            slug=benchmark,
            scope=Scope(scope),
            name=name,
            as_of=timezone.now(),
            life=timedelta(days=days),
        )
        self.stderr.write(
            f"{token.user} may {scope} on {benchmark} until {token.expires_at:%Y-%m-%d}. "
            "This token is shown only once:"
        )
        self.stdout.write(secret)
