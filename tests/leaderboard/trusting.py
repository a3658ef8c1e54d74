"""Accounts that are trusted from the start."""

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.submissions.models import AccountTrust
from tests.toys import AS_OF


def trusted(email, slug="toy"):
    """Trust an account as if before its first delivery, without an event of its own in their order."""
    benchmark, account = Benchmark.objects.get(slug=slug), User.objects.get(email=email)
    AccountTrust.objects.get_or_create(
        benchmark=benchmark,
        account=account,
        trusted=True,
        defaults={"data_version": benchmark.data_version, "at": AS_OF, "reason": "our own CI"},
    )
    return account
