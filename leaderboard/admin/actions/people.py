"""What is done to memberships, invitations, tokens and accounts."""

from functools import partial

from django import forms
from django.utils import timezone

from leaderboard.accounts.models import User
from leaderboard.admin.actions.base import Action, ActionRequest, ActionResult, Preview
from leaderboard.admin.forms import ReasonForm
from leaderboard.catalog.models import Membership, Role
from leaderboard.operations.corrections import trust_account
from leaderboard.operations.erasing import erase_account
from leaderboard.operations.people import (
    remove_member,
    revoke_invitation,
    revoke_token,
    set_role,
    why_over,
)
from leaderboard.submissions.queries import trusted_accounts


class RoleForm(ReasonForm):
    role = forms.ChoiceField(label="Role", choices=Role.choices)


def _trust(request: ActionRequest, *, trusted: bool) -> ActionResult:
    row = request.row
    trust_account(benchmark=row.benchmark, account=row.user, trusted=trusted, **request.decision)
    return ActionResult(f"{row.user} is {'trusted' if trusted else 'no longer trusted'} on {row.benchmark}.")


def _is_trusted(membership: Membership) -> bool:
    return membership.user_id in trusted_accounts(membership.benchmark)


def _set_role(request: ActionRequest) -> ActionResult:
    membership = set_role(
        benchmark=request.row.benchmark,
        email=request.row.user.email,
        role=Role(request.cleaned_data["role"]),
        by=request.by,
        reason=request.reason,
    )
    return ActionResult(f"{membership.user} is {membership.role}.")


def _remove(request: ActionRequest) -> ActionResult:
    remove_member(membership=request.row, **request.decision)
    return ActionResult(f"{request.row.user} has no role on {request.row.benchmark} any more.", url="../../")


def _revoke_invitation(request: ActionRequest) -> ActionResult:
    revoke_invitation(invitation=request.row, **request.decision)
    return ActionResult("Its link works no more.")


def _revoke_token(request: ActionRequest) -> ActionResult:
    revoke_token(token=request.row, **request.decision)
    return ActionResult("The token is revoked; whoever uses it is told so.")


def _erase(request: ActionRequest) -> ActionResult:
    erasure = erase_account(user=request.row, **request.decision)
    return ActionResult(f"The account is closed, and is {erasure.tombstone} from now on.")


def _what_erasing_does(request: ActionRequest) -> Preview:
    user: User = request.row
    sentences = [
        "Address and name would be replaced by a tombstone, "
        f"and {user.memberships.count():,} memberships would end.",
        f"{user.tokens.filter(revoked_at=None).count():,} tokens would be revoked, and nobody could sign in.",
        f"{user.agents.count():,} agents stay, with what they delivered; an agent is erased on its own page.",
        "This cannot be undone. Do not write the address into the reason: the reason is kept.",
    ]
    return Preview(sentences)


SET_ROLE = Action("role", "Change the role", "May be more or less than now.", _set_role, form=RoleForm)
TRUST = Action(
    "trust",
    "Trust",
    "Pass rates, calibration and alerts take all agents of the account, not two.",
    partial(_trust, trusted=True),
    is_open=lambda membership: not _is_trusted(membership),
)
UNTRUST = Action(
    "untrust",
    "Trust no longer",
    "Pass rates, calibration and alerts take two agents of the account from now on.",
    partial(_trust, trusted=False),
    is_open=_is_trusted,
)
REMOVE = Action(
    "remove", "Remove", "Takes role and trust away; tokens end with the role.", _remove, is_dangerous=True
)
REVOKE_INVITATION = Action(
    "revoke",
    "Revoke",
    "The link works no more.",
    _revoke_invitation,
    is_open=lambda invitation: not why_over(invitation, as_of=timezone.now()),
    is_dangerous=True,
)
REVOKE_TOKEN = Action(
    "revoke",
    "Revoke",
    "The token works no more; its owner makes another one.",
    _revoke_token,
    is_open=lambda token: token.revoked_at is None,
    is_dangerous=True,
)
ERASE_ACCOUNT = Action(
    "erase",
    "Close and erase the account",
    "Replaces address and name by a tombstone, for good.",
    _erase,
    preview=_what_erasing_does,
    staff_only=True,
    is_dangerous=True,
)
