"""Parse, one call, answer.

Nothing on these pages depends on the visitor. Those of a board are kept (`pages.caching`); of the others
`ConditionalGetMiddleware` makes the ETag from the page itself.
"""

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from leaderboard.boards.queries import NoBoardYet, NoSuchBoard
from leaderboard.boards.signing import ALGORITHM, public_key
from leaderboard.pages.caching import kept
from leaderboard.pages.history import history_page
from leaderboard.pages.queries import board_page, listed_benchmarks
from leaderboard.pages.shown import for_all, visible
from leaderboard.pages.uncertainty import uncertainty_page
from leaderboard.pages.validity import validity_page


@require_safe
@for_all
def home(request: HttpRequest) -> HttpResponse:
    return render(request, "pages/home.html", {"listed": listed_benchmarks()})


@require_safe
@for_all
@kept("sort", "target", "since")
def board(request: HttpRequest, slug: str, number: int | None = None) -> HttpResponse:
    benchmark = visible(slug)
    asked = {name: request.GET.get(name, "") for name in ("sort", "target", "since")}
    try:
        page = board_page(benchmark, number=number, **asked)
    except NoBoardYet:
        return render(request, "pages/no_board.html", {"benchmark": benchmark, "here": "board"})
    except NoSuchBoard as missing:
        raise Http404(str(missing)) from missing
    return render(request, "pages/board.html", {"page": page, "benchmark": benchmark, "here": "board"})


@require_safe
@for_all
def history(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    page = history_page(benchmark, before=request.GET.get("before", ""))
    return render(request, "pages/history.html", {"page": page, "benchmark": benchmark, "here": "history"})


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
