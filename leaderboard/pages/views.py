"""Parse, one call, answer.

Nothing on these pages depends on the visitor. `ConditionalGetMiddleware` makes the ETag from the page itself,
so that it changes with the board, the order, the templates and the state of intake.
"""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.boards.signing import ALGORITHM, public_key
from leaderboard.pages.shown import for_all, visible
from leaderboard.pages.uncertainty import uncertainty_page
from leaderboard.pages.validity import validity_page


@require_safe
@for_all
def signing_key(request: HttpRequest) -> HttpResponse:
    """The key that boards are signed with; `null` where this server signs none."""
    return JsonResponse({"algorithm": ALGORITHM, "key": public_key()})


@require_safe
@for_all
def validity(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    return render(
        request,
        "pages/validity.html",
        {"page": validity_page(benchmark), "benchmark": benchmark, "here": "validity"},
    )


@require_safe
@for_all
def uncertainty(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    return render(
        request,
        "pages/uncertainty.html",
        {"page": uncertainty_page(benchmark), "benchmark": benchmark, "here": "uncertainty"},
    )
