"""Invitations, memberships and tokens: who may do what on a benchmark."""

import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from analytics.names import mark_in
from leaderboard.accounts.models import ApiToken, Scope, User
from leaderboard.accounts.services import create_token, get_or_create_user, lock_account, open_account
from leaderboard.catalog.models import Agent, Benchmark, Invitation, Membership, Role
from leaderboard.catalog.queries import benchmark_of, role_of
from leaderboard.catalog.services import grant
from leaderboard.errors import Conflict, Missing, Refusal
from leaderboard.operations.acting import acting
from leaderboard.operations.corrections import trust_account
from leaderboard.operations.events import LOCAL
from leaderboard.submissions.parsing.flat import name_rule
from leaderboard.submissions.queries import trusted_accounts

VALID_FOR = timedelta(days=14)
ROLE_FOR = {Scope.READ: Role.VIEWER, Scope.SUBMIT: Role.SUBMITTER, Scope.OPERATE: Role.OPERATOR}
MAX_TOKENS = 100  # in use, of one account


@transaction.atomic
def invite(
    *,
    benchmark: Benchmark,
    email: str,
    role: Role,
    by: User | None,
    reason: str,
    as_of: datetime,
    trusted: bool = False,
) -> tuple[Invitation, str]:
    """Return an invitation and the secret of its link, which is kept as a hash alone."""
    address = email.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise Refusal(f"Invalid e-mail address: {email!r}.", code="not_an_address") from None
    secret = secrets.token_urlsafe(32)
    with acting(by=by, reason=reason):
        invitation = Invitation.objects.create(
            benchmark=benchmark,
            email=address,
            role=role,
            trusted=trusted,
            sha256=_sha256(secret),
            created_by=by,
            created_at=as_of,
            expires_at=as_of + VALID_FOR,
        )
    return invitation, secret


def link_of(secret: str) -> str:
    return f"{settings.SITE_URL or LOCAL}/invitation/{secret}"


def invitation_of(secret: str, *, as_of: datetime, locked: bool = False) -> Invitation:
    invitations = Invitation.objects.select_related("benchmark")
    if locked:
        invitations = invitations.select_for_update(of=("self",))
    invitation = invitations.filter(sha256=_sha256(secret)).first()
    if invitation is None:
        raise Missing("Unknown invitation. Check the link.", code="no_such_invitation")
    if why := why_over(invitation, as_of=as_of):
        raise Conflict(f"This invitation {why}. Ask for another one.", code="invitation_over")
    return invitation


def why_over(invitation: Invitation, *, as_of: datetime) -> str:
    if invitation.accepted_at:
        return f"was used on {invitation.accepted_at:%Y-%m-%d}"
    if invitation.revoked_at:
        return f"was revoked on {invitation.revoked_at:%Y-%m-%d}"
    if invitation.expires_at <= as_of:
        return f"expired on {invitation.expires_at:%Y-%m-%d}"
    by = invitation.created_by  # None: at the command line
    if by and not (by.is_active and role_of(by, invitation.benchmark) == Role.OPERATOR):
        return "was made by somebody who operates the benchmark no more"
    return ""


@transaction.atomic
def accept_invitation(
    *, secret: str, user: User | None, as_of: datetime, name: str = "", password: str = ""
) -> User:
    """Give role and trust to the account of the invited address, which is opened where there is none.

    A link shows nothing of the mailbox: the address counts as confirmed where staff made it, or the command
    line; else its owner confirms it. An account that has a password already, or more than whoever made the
    link operates, must be signed in to (`user`).
    """
    invitation = invitation_of(secret, as_of=as_of, locked=True)
    if user is not None and user.email != invitation.email:
        raise Conflict(
            "This invitation is for another address; sign out first, or ask for one of your own.",
            code="for_another",
        )
    if user is None and _holds_more(invitation):
        raise Conflict(
            "The account of this address holds more than whoever invited it operates: set its password by"
            " mail (forgotten password), sign in, and come back here.",
            code="holds_more",
        )
    name = name.strip()
    _require_name(name, "a person's name")
    guest = user or open_account(
        email=invitation.email,
        name=name,
        password=password,
        is_confirmed=invitation.created_by is None or invitation.created_by.is_staff,
    )
    benchmark, reason = invitation.benchmark, f"invitation {invitation.pk}"
    with acting(by=guest, reason=reason):
        grant(user=guest, benchmark=benchmark, role=Role(invitation.role))
    if invitation.trusted and guest.pk not in trusted_accounts(benchmark):
        inviter = invitation.created_by
        trust_account(benchmark=benchmark, account=guest, reason=reason, as_of=as_of, by=inviter)
    invitation.accepted_by, invitation.accepted_at = guest, as_of
    invitation.save(update_fields=["accepted_by", "accepted_at"])
    return guest


def _holds_more(invitation: Invitation) -> bool:
    """Whether who made the link would gain by opening the account of this address, which has no password."""
    known, inviter = User.objects.filter(email=invitation.email).first(), invitation.created_by
    if known is None or inviter is None or inviter.is_staff:
        return False
    elsewhere = Membership.objects.filter(user=known).exclude(benchmark=invitation.benchmark)
    theirs = Agent.objects.filter(owner=known).exclude(benchmark=invitation.benchmark)
    return known.is_staff or elsewhere.exists() or theirs.exists()


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, by: User | None, reason: str, as_of: datetime) -> None:
    locked = Invitation.objects.select_for_update().get(pk=invitation.pk)
    if why := why_over(locked, as_of=as_of):
        raise Conflict(f"This invitation {why} already.", code="invitation_over")
    with acting(by=by, reason=reason):
        locked.revoked_at = as_of
        locked.save(update_fields=["revoked_at"])


def account_of(email: str) -> User:
    user = User.objects.filter(email=email.strip().lower()).first()
    if user is None:
        raise Missing("No account has this address. Invite it first.", code="no_such_account")
    return user


@transaction.atomic
def set_role(*, benchmark: Benchmark, email: str, role: Role, by: User | None, reason: str) -> Membership:
    user = account_of(email)
    with acting(by=by, reason=reason):
        membership, is_new = Membership.objects.get_or_create(
            user=user, benchmark=benchmark, defaults={"role": role}
        )
        if not is_new and membership.role != role:
            membership.role = role
            membership.save(update_fields=["role"])
    return membership


@transaction.atomic
def remove_member(*, membership: Membership, by: User | None, reason: str, as_of: datetime) -> None:
    """Take a person's role and trust away; tokens allow no more than their owner's roles, so they end too."""
    benchmark, account = membership.benchmark, membership.user
    with acting(by=by, reason=reason):
        membership.delete()
    if account.pk in trusted_accounts(benchmark):
        trust_account(benchmark=benchmark, account=account, reason=reason, as_of=as_of, by=by, trusted=False)


@transaction.atomic
def make_token(
    *, user: User, name: str, scope: Scope, benchmarks: list[str], days: int, as_of: datetime
) -> tuple[ApiToken, str]:
    """Make a token for oneself, and return its secret too; a scope includes the lesser ones."""
    _require_name(name, "a token's name")
    lock_account(user=user)
    if user.tokens.filter(revoked_at=None, expires_at__gt=as_of).count() >= MAX_TOKENS:
        raise Conflict(
            f"This account has {MAX_TOKENS} tokens, the maximum. Revoke one first.", code="too_many_tokens"
        )
    with acting(by=user, reason="made on the account's page"):
        return _create_token(user, name, scope, benchmarks, as_of, timedelta(days=days))


def wish_for_mail(*, user: User, wanted: bool) -> None:
    User.objects.filter(pk=user.pk).update(told_by_mail=wanted)


@transaction.atomic
def revoke_token(*, token: ApiToken, by: User | None, reason: str, as_of: datetime) -> None:
    locked = ApiToken.objects.select_for_update().get(pk=token.pk)
    if locked.revoked_at:
        raise Conflict("This is already revoked.", code="revoked_already")
    with acting(by=by, reason=reason):
        locked.revoked_at = as_of
        locked.save(update_fields=["revoked_at"])


@transaction.atomic
def issue_token(
    *, email: str, slug: str, scope: Scope, name: str, as_of: datetime, life: timedelta
) -> tuple[ApiToken, str]:
    """Make a token for one benchmark, with account and role where they are absent; return its secret too."""
    _require_name(name, "a token's name")
    benchmark = benchmark_of(slug)
    user, _ = get_or_create_user(email=email)
    grant(user=user, benchmark=benchmark, role=ROLE_FOR[scope])
    return _create_token(user, name, scope, [slug], as_of, life)


def _create_token(
    user: User, name: str, scope: Scope, benchmarks: list[str], as_of: datetime, life: timedelta
) -> tuple[ApiToken, str]:
    scopes = [*Scope.values][: [*Scope].index(scope) + 1]  # one includes the lesser ones
    stamp = {"created_at": as_of, "expires_at": as_of + life}
    return create_token(user=user, name=name, scopes=scopes, benchmarks=benchmarks, **stamp)


def _require_name(name: str, what: str) -> None:
    """Refuse what cannot be seen, such as marks that turn the direction of what follows; empty is no name."""
    if name and (rule := name_rule(name, what)):
        raise Refusal(f"{rule[0].upper()}{rule[1:]}.", code="odd_name")
    if sign := mark_in(name):
        raise Refusal(f"{what[0].upper()}{what[1:]} has no {sign}. Use plain letters.", code="odd_name")


def _sha256(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
