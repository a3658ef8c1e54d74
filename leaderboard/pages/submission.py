"""The page of a submission, for whoever delivered it, its agent's owner and operators; and taking it back."""

from typing import Any
from uuid import UUID

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from leaderboard.accounts.models import User
from leaderboard.errors import Refusal
from leaderboard.operations.corrections import NoSuchSubmission, has_been_shown, may_withdraw, withdraw_by
from leaderboard.operations.following import follow, followed_by
from leaderboard.pages.account import personal
from leaderboard.submissions.models import Submission

LONGEST = 2_000  # characters of a reason


class TakeBack(forms.Form):
    reason = forms.CharField(
        label="Why",
        max_length=LONGEST,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="It is kept with the submission.",
    )
    sure = forms.BooleanField(label="Yes, its outcomes are to count no more. This is not undone by a button.")


@require_safe
@personal
def submission(request: HttpRequest, user: User, uuid: UUID) -> HttpResponse:
    return _render_submission(request, user, _submission_of(user, uuid))


@require_POST
@personal
def withdraw_submission(request: HttpRequest, user: User, uuid: UUID) -> HttpResponse:
    """Take it back; what is refused is said above the page as it stands."""
    own, form = _submission_of(user, uuid), TakeBack(request.POST)
    if not form.is_valid():
        return _render_submission(request, user, own, form=form, status=422)
    try:
        withdraw_by(uuid=uuid, user=user, reason=form.cleaned_data["reason"], as_of=timezone.now())
    except Refusal as refusal:
        return _render_submission(request, user, own, refusal=refusal, status=409)
    return redirect("pages:submission", uuid)


def _submission_of(user: User, uuid: UUID) -> Submission:
    try:
        return followed_by(user, uuid)
    except NoSuchSubmission as missing:
        raise Http404(str(missing)) from missing


def _render_submission(
    request: HttpRequest, user: User, own: Submission, *, status: int = 200, **more: Any
) -> HttpResponse:
    page = follow(own, token=None, as_of=timezone.now())
    context = {"page": page, "submission": own, "form": None}
    if may_withdraw(own, user):
        context |= {"form": TakeBack(), "was_shown": has_been_shown(own.agent)}
    return render(request, "pages/submission.html", context | more, status=status)
