from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.accounts.models import User
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.erasing import COMES_BACK, erase_account, erase_agent
from leaderboard.operations.naming import agent_named
from leaderboard.terminal.command import USAGE, ServiceCommand


class Command(ServiceCommand):
    help = (
        "Remove the name of an agent everywhere, also from published boards, or close an account and remove "
        "its address and name. Scores, ranks and digests stay. This cannot be undone."
    )
    reason = "why, without the name: it is kept"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("benchmark", nargs="?", metavar="SLUG", help="of the agent")
        parser.add_argument("agent", nargs="?")
        parser.add_argument("--account", metavar="EMAIL", help="the account of this address instead")

    def handle(
        self, *, benchmark: str | None, agent: str | None, account: str | None, reason: str, **_: Any
    ) -> None:
        if (account is None) == (benchmark is None or agent is None):
            raise CommandError("Name a benchmark and an agent, or use --account EMAIL.", returncode=USAGE)
        by_whom: dict[str, Any] = {"by": None, "reason": reason, "as_of": timezone.now()}
        if account is None:
            stored = agent_named(benchmark_of(f"{benchmark}"), f"{agent}")
            erasure = erase_agent(agent=stored, **by_whom)
        elif user := User.objects.filter(email=account.strip().lower()).first():
            erasure = erase_account(user=user, **by_whom)
        else:
            raise CommandError(f"Unknown account {account!r}. Check the address.")
        lines = [f"Erased. The new name is {erasure.tombstone}.", *([COMES_BACK] if account is None else ())]
        self.stdout.write("\n".join(lines))
