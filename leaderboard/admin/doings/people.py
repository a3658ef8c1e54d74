"""What is done to memberships, invitations, tokens and accounts."""

from functools import partial

from django import forms
from django.utils import timezone

from leaderboard.accounts.models import User
from leaderboard.admin.doing import Asked, Doing, Preview, Told
from leaderboard.admin.forms import ReasonForm
from leaderboard.catalog.models import Membership, Role
from leaderboard.operations.erasing import erase_account
from leaderboard.operations.people import (
    remove_member,
    revoke_invitation,
    revoke_token,
    set_role,
    why_over,
)
from leaderboard.operations.verifying import trust_account
from leaderboard.submissions.queries import trusted_accounts


class RoleForm(ReasonForm):
    role = forms.ChoiceField(label="Role", choices=Role.choices)


def _trust(asked: Asked, *, trusted: bool) -> Told:
    row = asked.row
    trust_account(
        benchmark=row.benchmark,
        account=row.user,
        reason=asked.reason,
        as_of=asked.as_of,
        by=asked.by,
        trusted=trusted,
    )
    return Told(f"{row.user} is {'trusted' if trusted else 'no longer trusted'} on {row.benchmark}.")


def _is_trusted(membership: Membership) -> bool:
    return membership.user_id in trusted_accounts(membership.benchmark)


def _set_role(asked: Asked) -> Told:
    membership = set_role(
        benchmark=asked.row.benchmark,
        email=asked.row.user.email,
        role=Role(asked.said["role"]),
        by=asked.by,
        reason=asked.reason,
    )
    return Told(f"{membership.user} is {membership.role}.")


def _remove(asked: Asked) -> Told:
    remove_member(membership=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told(f"{asked.row.user} has no role on {asked.row.benchmark} any more.", url="../../")


def _revoke_invitation(asked: Asked) -> Told:
    revoke_invitation(invitation=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told("Its link works no more.")


def _revoke_token(asked: Asked) -> Told:
    revoke_token(token=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told("The token is revoked; whoever uses it is told so.")


def _erase(asked: Asked) -> Told:
    erasure = erase_account(user=asked.row, by=asked.by, reason=asked.reason, as_of=asked.as_of)
    return Told(f"The account is closed, and is {erasure.tombstone} from now on.")


def _what_erasing_does(asked: Asked) -> Preview:
    user: User = asked.row
    sentences = [
        "Address and name would be replaced by a tombstone, "
        f"and {user.memberships.count():,} memberships would end.",
        f"{user.tokens.filter(revoked_at=None).count():,} tokens would be revoked, and nobody could sign in.",
        f"{user.agents.count():,} agents stay, with what they delivered; an agent is erased on its own page.",
        "This cannot be undone. Do not write the address into the reason: the reason is kept.",
    ]
    return Preview(sentences)


SET_ROLE = Doing("role", "Change the role", "May be more or less than now.", _set_role, form=RoleForm)
TRUST = Doing(
    "trust",
    "Trust",
    "Pass rates, calibration and alerts take all agents of the account, not two.",
    partial(_trust, trusted=True),
    is_open=lambda membership: not _is_trusted(membership),
)
UNTRUST = Doing(
    "untrust",
    "Trust no longer",
    "Pass rates, calibration and alerts take two agents of the account from now on.",
    partial(_trust, trusted=False),
    is_open=_is_trusted,
)
REMOVE = Doing(
    "remove", "Remove", "Takes role and trust away; tokens end with the role.", _remove, is_dangerous=True
)
REVOKE_INVITATION = Doing(
    "revoke",
    "Revoke",
    "The link works no more.",
    _revoke_invitation,
    is_open=lambda invitation: not why_over(invitation, as_of=timezone.now()),
    is_dangerous=True,
)
REVOKE_TOKEN = Doing(
    "revoke",
    "Revoke",
    "The token works no more; its owner makes another one.",
    _revoke_token,
    is_open=lambda token: token.revoked_at is None,
    is_dangerous=True,
)
ERASE_ACCOUNT = Doing(
    "erase",
    "Close and erase the account",
    "Replaces address and name by a tombstone, for good.",
    _erase,
    preview=_what_erasing_does,
    staff_only=True,
    is_dangerous=True,
)
