"""Writes to accounts."""

from datetime import datetime, timedelta

from django.db import transaction

from leaderboard.accounts import secrets
from leaderboard.accounts.models import ApiToken, User

LONGEST_LIFE = timedelta(days=365)


def get_or_create_user(*, email: str) -> tuple[User, bool]:
    """Find the account of this address, or open one that has no password yet."""
    return User.objects.get_or_create(email=email.strip().lower(), defaults={"password": "!"})


@transaction.atomic
def create_token(
    *,
    user: User,
    name: str,
    scopes: list[str],
    benchmarks: list[str],
    created_at: datetime,
    expires_at: datetime,
) -> tuple[ApiToken, str]:
    """Store a new token and return it with its secret, which is nowhere else."""
    if expires_at - created_at > LONGEST_LIFE:
        raise ValueError("a token lives for at most a year")
    secret = secrets.mint()
    token = ApiToken.objects.create(
        user=user,
        name=name,
        public_id=secret.public_id,
        sha256=secret.sha256,
        scopes=scopes,
        benchmarks=benchmarks,
        created_at=created_at,
        expires_at=expires_at,
    )
    return token, secret.text
