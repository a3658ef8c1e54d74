"""What is done to memberships, invitations, tokens and accounts."""

from functools import partial

from django import forms
from django.utils import timezone

from leaderboard.accounts.models import User
from leaderboard.actions.base import Action, ActionRequest, ActionResult, Preview, ReasonForm, action
from leaderboard.catalog.models import Benchmark, Membership, Role
from leaderboard.operations import erasing, people
from leaderboard.operations.corrections import trust_account
from leaderboard.submissions.queries import trusted_accounts


class RoleForm(ReasonForm):
    role = forms.ChoiceField(label="Role", choices=Role.choices)


def _trust(request: ActionRequest, *, trusted: bool) -> ActionResult:
    row = request.row
    trust_account(benchmark=row.benchmark, account=row.user, trusted=trusted, **request.decision)
    return ActionResult(f"{row.user} is {'trusted' if trusted else 'no longer trusted'} on {row.benchmark}.")


def _is_trusted(membership: Membership) -> bool:
    return membership.user_id in trusted_accounts(membership.benchmark)


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


def give_role(request: ActionRequest, benchmark: Benchmark, email: str) -> Membership:
    role = Role(request.cleaned_data["role"])
    return people.set_role(benchmark=benchmark, email=email, role=role, by=request.by, reason=request.reason)


@action("role", "Change the role", "May be more or less than now.", form=RoleForm)
def set_role(request: ActionRequest) -> ActionResult:
    membership = give_role(request, request.row.benchmark, request.row.user.email)
    return ActionResult(f"{membership.user} is {membership.role}.")


trust = Action(
    "trust",
    "Trust",
    "Trust an account, for example your own CI. Pass rates, calibration and alerts then use all its agents, "
    "not only two. The ranking tasks in use stay.",
    partial(_trust, trusted=True),
    is_open=lambda membership: not _is_trusted(membership),
    moves_board=True,
)

untrust = Action(
    "untrust",
    "Trust no longer",
    "Pass rates, calibration and alerts use only two agents of the account again.",
    partial(_trust, trusted=False),
    is_open=_is_trusted,
    moves_board=True,
)


@action("remove", "Remove", "Takes role and trust away; tokens end with the role.", is_dangerous=True)
def remove(request: ActionRequest) -> ActionResult:
    people.remove_member(membership=request.row, **request.decision)
    return ActionResult(f"{request.row.user} has no role on {request.row.benchmark} any more.")


@action(
    "revoke",
    "Revoke",
    "The link stops working.",
    is_open=lambda invitation: not people.why_over(invitation, as_of=timezone.now()),
    is_dangerous=True,
)
def revoke_invitation(request: ActionRequest) -> ActionResult:
    people.revoke_invitation(invitation=request.row, **request.decision)
    return ActionResult("Its link works no more.")


@action(
    "revoke",
    "Revoke",
    "The token stops working. Its owner can create another.",
    is_open=lambda token: token.revoked_at is None,
    is_dangerous=True,
)
def revoke_token(request: ActionRequest) -> ActionResult:
    people.revoke_token(token=request.row, **request.decision)
    return ActionResult("The token is revoked. Requests that use it are refused.")


@action(
    "erase",
    "Close and erase the account",
    "Removes address and name. This cannot be undone.",
    preview=_what_erasing_does,
    staff_only=True,
    is_dangerous=True,
)
def erase_account(request: ActionRequest) -> ActionResult:
    erasure = erasing.erase_account(user=request.row, **request.decision)
    return ActionResult(f"The account is closed, and is {erasure.tombstone} from now on.")
