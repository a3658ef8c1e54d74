"""The page of a submission, for whoever delivered it, its agent's owner, and operators."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from leaderboard.accounts.models import User
from leaderboard.operations.corrections import NoSuchSubmission
from leaderboard.operations.following import followed, followed_by
from leaderboard.pages.account import personal


@require_safe
@personal
def submission(request: HttpRequest, user: User, uuid: UUID) -> HttpResponse:
    try:
        found = followed(followed_by(user, uuid), token=None, as_of=timezone.now())
    except NoSuchSubmission as missing:
        raise Http404(str(missing)) from missing
    return render(request, "pages/submission.html", {"page": found, "submission": found.submission})
