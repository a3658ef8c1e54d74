"""The log line of each request: its id, which address was asked for, how it was answered, in what time.

The id stands in every line that the request leads to, in the answer's head, in the audit, and is that of the
proxy in front where one is known and gives one. Of a query the names of its parameters are logged, not what
they say; of the visitor no address, and no account that the view did not ask for itself.
"""

import re
from collections.abc import Callable
from time import monotonic
from uuid import uuid4

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from leaderboard.counters import count_request

HEAD = "X-Request-ID"
KNOWN = re.compile(r"[\w.:-]{8,64}")
N_NAMED = 20  # parameters

logger = structlog.get_logger(__name__)


def request_id(request: HttpRequest) -> str:
    return str(getattr(request, "request_id", ""))


class RequestIdMiddleware:
    """The first of all: what follows is logged under its id."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        header, begun = request.headers.get(HEAD, ""), monotonic()
        known = settings.PROXIES and KNOWN.fullmatch(header)
        request.request_id = header if known else uuid4().hex  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=request_id(request)):
            response = self._get_response(request)
            seconds = monotonic() - begun
            status = response.status_code
            count_request(method=request.method, route=_route(request), status=status, seconds=seconds)
            broken = status >= 500
            (logger.error if broken else logger.info)(
                "request",
                method=request.method,
                path=request.path,
                asked=sorted(request.GET)[:N_NAMED],
                status=status,
                seconds=round(seconds, 4),
            )
        response[HEAD] = request_id(request)
        return response


def _route(request: HttpRequest) -> str:
    """The name of the route; of the admin and of signing in, which have many, the beginning."""
    if request.resolver_match is None:
        return "none"
    first = request.path.split("/", 2)[1]
    return first if first in ("admin", "accounts") else request.resolver_match.view_name
