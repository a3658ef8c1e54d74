"""Accounts and tokens: how they come about, and whose a token is."""

import hmac
from datetime import datetime, timedelta
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.forms import SignupForm
from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest

from leaderboard.accounts import secrets
from leaderboard.accounts.models import ApiToken, User
from leaderboard.errors import Conflict, Refusal
from leaderboard.visitors import address_of, network_of

MAX_LIFE = timedelta(days=365)
NOTED_EVERY = timedelta(hours=1)


def get_or_create_user(*, email: str) -> tuple[User, bool]:
    return User.objects.get_or_create(email=email.strip().lower(), defaults={"password": "!"})


@transaction.atomic
def open_account(*, email: str, name: str, password: str, is_confirmed: bool) -> User:
    """Give the account of this address its name and first password; it is opened where there is none.

    `is_confirmed`: the caller vouches for it that mail to the address reaches whoever asks. Else signing in
    begins with a mail.
    """
    user, _ = get_or_create_user(email=email)
    user = User.objects.select_for_update().get(pk=user.pk)
    if not user.is_active:
        raise Conflict("The account with this address is closed.", code="closed_account")
    if user.has_usable_password():
        raise Conflict("An account with this address exists. Sign in first.", code="has_account")
    user.name = name.strip()
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Refusal(" ".join(error.messages), code="weak_password") from None
    user.set_password(password)
    user.save(update_fields=["name", "password"])
    if is_confirmed:
        confirm_address(user=user)
    else:
        EmailAddress.objects.get_or_create(user=user, email=user.email, defaults={"primary": True})
    return user


def confirm_address(*, user: User) -> None:
    EmailAddress.objects.update_or_create(
        user=user, email=user.email, defaults={"verified": True, "primary": True}
    )


def lock_account(*, user: User) -> None:
    """Let what the account does at the same time wait until the transaction ends.

    Rows are locked in one order, so that nobody waits in a circle: the account, agents by id, and the
    benchmark last.
    """
    User.objects.select_for_update(no_key=True).get(pk=user.pk)


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
    if expires_at - created_at > MAX_LIFE:
        raise ValueError("a token lives for at most a year")
    secret = secrets.mint()
    public_id, sha256 = secrets.parse(secret)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        public_id=public_id,
        sha256=sha256,
        scopes=scopes,
        benchmarks=benchmarks,
        created_at=created_at,
        expires_at=expires_at,
    )
    return token, secret


def token_of(text: str, *, as_of: datetime) -> ApiToken:
    try:
        public_id, sha256 = secrets.parse(text)
    except secrets.MalformedTokenError as error:
        raise Refusal(str(error), code="token_unknown") from None
    token = ApiToken.objects.select_related("user").filter(public_id=public_id).first()
    if token is None or not hmac.compare_digest(bytes(token.sha256), sha256):
        raise Refusal("Unknown token. Create one on your account page.", code="token_unknown")
    if token.revoked_at:
        raise Refusal(f"This token was revoked on {token.revoked_at:%Y-%m-%d}.", code="token_revoked")
    if token.expires_at <= as_of:
        raise Refusal(f"This token expired on {token.expires_at:%Y-%m-%d}.", code="token_expired")
    if not token.user.is_active:
        raise Refusal("The account of this token is closed.", code="account_closed")
    return token


def note_use(*, token: ApiToken, as_of: datetime) -> None:
    """Keep when a token was used, to the hour, so that not every request writes."""
    if token.last_used_at is None or as_of - token.last_used_at >= NOTED_EVERY:
        hour = as_of.replace(minute=0, second=0, microsecond=0)
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=hour)


# -------------------------------------------------------------------------------------- what allauth asks for


class Adapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.OPEN_REGISTRATION)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Tries are counted by it, those of one network together, and those whose address is not known."""
        address = address_of(request)
        return network_of(address) if address else "unknown"


class SignUp(SignupForm):
    """Takes as long for an address that has an account as for a new one, so that the time tells nothing."""

    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])  # a new account has its password hashed
        return super().try_save(request)
