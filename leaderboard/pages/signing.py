"""The key that boards are signed with."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from leaderboard.boards.signing import ALGORITHM, public_key
from leaderboard.pages.shown import for_all


@require_safe
@for_all
def signing_key(request: HttpRequest) -> HttpResponse:
    """The key that boards are signed with; `null` where this server signs none."""
    return JsonResponse({"algorithm": ALGORITHM, "key": public_key()})
