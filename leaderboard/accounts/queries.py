"""Reads of accounts."""

import hmac
from datetime import datetime

from leaderboard.accounts import secrets
from leaderboard.accounts.models import ApiToken, User
from leaderboard.errors import Refusal


def token_of(text: str, *, as_of: datetime) -> ApiToken:
    """Return the token with this secret, or refuse it and say why."""
    try:
        secret = secrets.parse(text)
    except secrets.MalformedTokenError as error:
        raise Refusal(str(error), code="token_unknown") from None
    token = ApiToken.objects.select_related("user").filter(public_id=secret.public_id).first()
    if token is None or not hmac.compare_digest(bytes(token.sha256), secret.sha256):
        raise Refusal("This token is not known here.", code="token_unknown")
    if token.revoked_at:
        raise Refusal(f"This token was revoked on {token.revoked_at:%Y-%m-%d}.", code="token_revoked")
    if token.expires_at <= as_of:
        raise Refusal(f"This token expired on {token.expires_at:%Y-%m-%d}.", code="token_expired")
    if not token.user.is_active:
        raise Refusal("The account of this token is closed.", code="account_closed")
    return token


def has_confirmed_address(user: User) -> bool:
    """Whether mail to the account has reached its owner."""
    from allauth.account.models import EmailAddress  # its tables come after those of accounts

    return EmailAddress.objects.filter(user=user, verified=True).exists()
