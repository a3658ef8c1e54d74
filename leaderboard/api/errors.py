"""Every error of the API as RFC 9457 problem+json."""

import logging
from dataclasses import asdict
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, JsonResponse
from psycopg.errors import DiskFull
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from leaderboard.counters import count_faults, count_refusal
from leaderboard.errors import (
    Busy,
    Conflict,
    Exhausted,
    Faulty,
    Forbidden,
    Frozen,
    Missing,
    Refusal,
    lacks_resources,
    of_database,
)

logger = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = "5"  # seconds
OWN_WORDS = {
    HTTPStatus.BAD_REQUEST: "The request is malformed, or its Host is not a name of this service.",
    HTTPStatus.NOT_FOUND: "Nothing is at this address. Check the path.",
    HTTPStatus.PRECONDITION_FAILED: "The content is not what If-Match or If-Unmodified-Since states. "
    "Get it again without these headers.",
}
WITHOUT_TOKEN = "This needs a token. Send it in the header: Authorization: Bearer bst_…"
STATUS = (
    (Missing, HTTPStatus.NOT_FOUND),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (Conflict, HTTPStatus.CONFLICT),
    (Faulty, HTTPStatus.UNPROCESSABLE_ENTITY),
    (Frozen, HTTPStatus.LOCKED),
    (Busy, HTTPStatus.SERVICE_UNAVAILABLE),
    (Exhausted, HTTPStatus.TOO_MANY_REQUESTS),
)


def problem(status: int, code: str, detail: str, **more: Any) -> dict[str, Any]:
    return {
        "type": f"urn:bandstand:problem:{code}",
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "detail": detail,
        **more,
    }


DATABASE_UNAVAILABLE = problem(
    HTTPStatus.SERVICE_UNAVAILABLE, "database_unavailable", "The database does not answer. Try again soon."
)


def unavailable_problem(error: Exception) -> dict[str, Any]:
    """What a client reads of a database that is away; what only an operator can mend is logged."""
    if not (isinstance(error, DatabaseError) and lacks_resources(error)):
        return DATABASE_UNAVAILABLE
    why = of_database(error)
    logger.error("%s", why)
    if isinstance(error.__cause__, DiskFull):
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, "disk_full", why)
    return DATABASE_UNAVAILABLE


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """The exception handler of the framework; None leaves the error to Django's 500."""
    if isinstance(error, exceptions.UnsupportedMediaType):
        taken = " and ".join(parser.media_type for parser in context["request"].parsers)
        error = exceptions.UnsupportedMediaType("", detail=f"{error.detail} Send {taken}.")
    elif type(error) is exceptions.NotAuthenticated:
        error.detail = exceptions.ErrorDetail(WITHOUT_TOKEN, error.default_code)
    elif isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    headers: dict[str, str] = {}
    if isinstance(error, Refusal):
        status = next((status for kind, status in STATUS if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)
        more = dict(error.details)
        if isinstance(error, Faulty):
            count_faults(fault.rule for fault in error.faults)
            more |= {"n_faults": error.n_faults, "faults": [asdict(fault) for fault in error.faults]}
        content = problem(status, error.code, str(error), **more)
        headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Exhausted) else {}
    elif isinstance(error, OperationalError | InterfaceError):
        content, headers = unavailable_problem(error), {"Retry-After": RETRY_AFTER}
    elif isinstance(error, RecursionError):
        content = problem(HTTPStatus.BAD_REQUEST, "parse_error", "The body is nested too deeply.")
    elif isinstance(error, exceptions.APIException):
        code = str(getattr(error.detail, "code", error.default_code))
        content = problem(error.status_code, code, str(error.detail))
        header = getattr(error, "auth_header", None)
        headers = {"WWW-Authenticate": header} if header else {}
    else:
        return None
    count_refusal(content["type"].rpartition(":")[2])
    set_rollback()
    return Response(content, status=content["status"], headers=headers, content_type=MEDIA_TYPE)


def problem_page(status: HTTPStatus) -> JsonResponse:
    code = status.phrase.lower().replace(" ", "_")
    detail = OWN_WORDS.get(status, status.description)
    return JsonResponse(problem(status, code, detail), status=status, content_type=MEDIA_TYPE)
