from leaderboard.actions.people import trust, untrust
from leaderboard.catalog.models import Benchmark, Membership
from leaderboard.operations.people import account_of
from leaderboard.terminal.command import ActionCommand


class Command(ActionCommand):
    action, row, undo_action = trust, "email", untrust

    @staticmethod
    def find(benchmark: Benchmark, email: str) -> Membership:
        """Stored or not: an account without a role is trusted, too."""
        return Membership(benchmark=benchmark, user=account_of(email))
