"""While the database does not answer: 503, and when to try again."""

from collections.abc import Callable
from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from leaderboard.api.errors import DATABASE_UNAVAILABLE, MEDIA_TYPE, RETRY_AFTER


class WhileUnavailable:
    """Answers in place of a view that could not reach the database: problem+json under /api/, else a page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return unavailable(request) if isinstance(error, OperationalError | InterfaceError) else None


def unavailable(request: HttpRequest) -> HttpResponse:
    status = HTTPStatus.SERVICE_UNAVAILABLE
    headers = {"Retry-After": RETRY_AFTER, "Cache-Control": "no-store"}
    if request.path.startswith("/api/"):
        return JsonResponse(DATABASE_UNAVAILABLE, status=status, content_type=MEDIA_TYPE, headers=headers)
    return HttpResponse(render_to_string("503.html", request=request), status=status, headers=headers)
