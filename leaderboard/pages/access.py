"""What every page of a benchmark begins with: its address, who may see it, how long the answer holds."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, Subquery
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponsePermanentRedirect
from django.urls import resolve
from django.views.decorators.common import no_append_slash
from django.views.decorators.http import require_safe

from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.operations.models import Alert

FOR_ALL, FOR_ONE = "public, max-age=0, must-revalidate", "private, no-store"


def for_all(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Answer GET and HEAD, and let anybody keep the answer and ask again whether it holds.

    But not what was asked for with a token.
    """

    @require_safe
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Else a cookie that cannot be read, such as another service's of this host, would be replaced here.
        request.META.pop("CSRF_COOKIE_NEEDS_UPDATE", None)
        response = view(request, *args, **kwargs)
        response.headers.setdefault("Cache-Control", FOR_ALL)
        if "HTTP_AUTHORIZATION" in request.META:
            response["Cache-Control"] = FOR_ONE
        return response

    return answer


def visible(slug: str) -> Benchmark:
    """The benchmark as visitors see it.

    With `has_alerts`, whether a monitor ever said something, and `has_ranks`, whether the latest board does.

    Raises Http404: there is none, or none for visitors.
    """
    alerts = Alert.objects.filter(benchmark=OuterRef("pk"))
    latest = Board.objects.filter(benchmark=OuterRef(OuterRef("pk"))).order_by("-number").values("pk")[:1]
    ranked = Entry.objects.filter(board=Subquery(latest), rank__isnull=False)
    benchmark = (
        visible_benchmarks(None)
        .filter(slug=slug)
        .annotate(has_alerts=Exists(alerts), has_ranks=Exists(ranked))
        .first()
    )
    if benchmark is None:
        raise Http404("There is no such benchmark.")
    return benchmark


def number_in(text: str) -> int | None:
    """A number of a board, an agent or a task in an address; None where it is none."""
    return int(text[:12]) if text.isascii() and text.isdecimal() else None


@no_append_slash
@for_all
def unslashed(request: HttpRequest, rest: str) -> HttpResponsePermanentRedirect:
    """Lead to the page whose address this is but for slashes at its end; 404 where there is none."""
    resolve(request.path_info.rstrip("/"))
    path, mark, query = request.get_full_path().partition("?")
    return HttpResponsePermanentRedirect(f"{path.rstrip('/')}{mark}{query}")


def absolute(request: HttpRequest, path: str) -> str:
    return f"{settings.SITE_URL}{path}" if settings.SITE_URL else request.build_absolute_uri(path)
