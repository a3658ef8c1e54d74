"""Every address of the service."""

import sys
from collections.abc import Callable
from copy import copy
from http import HTTPStatus
from typing import Any

from allauth.account.views import LoginView
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.middleware import http
from django.template.loader import render_to_string
from django.urls import include, path
from django.utils.cache import patch_vary_headers
from django.views import defaults

from leaderboard.api.errors import MEDIA_TYPE, RETRY_AFTER, problem_page, unavailable_problem
from leaderboard.api.views.catalog import DocsView, SchemaView
from leaderboard.monitoring import metrics
from leaderboard.probes import healthz, readyz

sign_in = LoginView.as_view(extra_context={"registration": settings.OPEN_REGISTRATION})
urlpatterns = [
    path("", include("leaderboard.pages.urls")),  # first, as what is asked for most
    path("api/v1/", include("leaderboard.api.urls")),
    path("api/schema/", SchemaView.as_view(), name="schema"),
    path("api/docs/", DocsView.as_view(), name="docs"),
    path("metrics", metrics, name="metrics"),
    path("accounts/login/", sign_in, name="account_login"),
    path("accounts/", include("allauth.account.urls")),
    path("accounts/2fa/", include("allauth.mfa.urls")),
    path("healthz", healthz, name="healthz"),  # a middleware answers both before they come here
    path("readyz", readyz, name="readyz"),
    path("", include("leaderboard.admin.urls")),
]


def _page_or_problem(status: HTTPStatus, page: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Errors outside of a view: problem+json under /api/, a page elsewhere."""

    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.path.startswith("/api/"):
            return problem_page(status)
        return page(request, *args, **kwargs)

    return answer


_broken = _page_or_problem(HTTPStatus.INTERNAL_SERVER_ERROR, defaults.server_error)


def handler500(request: HttpRequest) -> HttpResponse:
    """Called while the error is handled: a database that is away is no fault of ours, and comes back."""
    error = sys.exception()
    return unavailable(request, error) if isinstance(error, OperationalError) else _broken(request)


handler400 = _page_or_problem(HTTPStatus.BAD_REQUEST, defaults.bad_request)
handler403 = _page_or_problem(HTTPStatus.FORBIDDEN, defaults.permission_denied)
handler404 = _page_or_problem(HTTPStatus.NOT_FOUND, defaults.page_not_found)


class ConditionalGetMiddleware(http.ConditionalGetMiddleware):
    """Django's answer to If-Match has no body; under /api/ it is problem+json, too.

    Tags are sent as weak, as content may be compressed, and If-Match with one would never match. Nothing is
    written on that condition, so it is compared like If-None-Match.
    The gzip middleware adds Vary only to what it compresses; here a 304 and the whole have the same.
    """

    def process_request(self, request: HttpRequest) -> None:
        if tags := request.META.get("HTTP_IF_MATCH"):
            request.META["HTTP_IF_MATCH"] = tags.replace('W/"', '"')

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        as_get = copy(request)  # a view renders the same for HEAD, whose content the server leaves out
        as_get.method = "GET" if request.method == "HEAD" else request.method
        response = super().process_response(as_get, response)
        if response.get("ETag", "").startswith('"'):
            response["ETag"] = f"W/{response['ETag']}"
        if response.has_header("ETag"):
            patch_vary_headers(response, ("Accept-Encoding",))
        status = HTTPStatus.PRECONDITION_FAILED
        is_empty = response.status_code == status and request.path.startswith("/api/")
        return problem_page(status) if is_empty else response


# ------------------------------------------------------------------------------------ a database that is away


class DatabaseErrorMiddleware:
    """Answers in place of a view that could not reach the database: problem+json under /api/, else a page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return unavailable(request, error) if isinstance(error, OperationalError | InterfaceError) else None


def unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    content, status = unavailable_problem(error), HTTPStatus.SERVICE_UNAVAILABLE
    headers = {"Retry-After": RETRY_AFTER, "Cache-Control": "no-store"}
    if request.path.startswith("/api/"):
        return JsonResponse(content, status=status, content_type=MEDIA_TYPE, headers=headers)
    return HttpResponse(render_to_string("503.html", request=request), status=status, headers=headers)
