"""Probes: `/healthz` of this process, `/readyz` of all that the service needs.

They are answered before any other middleware: who probes knows the machine's address, not the host names that
pages answer to, and comes without TLS.
"""

from collections.abc import Callable
from http import HTTPStatus

from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse

from leaderboard import schema
from leaderboard.operations.scheduler import leadership

WELL = "ok"
NOT_KNOWN = "not known"
NEVER_KEPT = {"Cache-Control": "no-store"}


def healthz(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"status": WELL}, headers=NEVER_KEPT)


def readyz(request: HttpRequest) -> HttpResponse:
    """Database, migrations and the scheduler's heartbeat: 200 where all are well, else 503."""
    checks = found_out()
    ready = all(answer == WELL for answer in checks.values())
    status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
    return JsonResponse({"ready": ready} | checks, status=status, headers=NEVER_KEPT)


def found_out() -> dict[str, str]:
    """What is said of each; the message of a database names hosts and accounts, and stays here."""
    try:
        tables = schema.mismatch()
        scheduler = NOT_KNOWN if tables else leadership.trouble()
    except Error:
        why = "does not answer: start PostgreSQL, or correct DATABASE_URL"
        return {"database": why, "migrations": NOT_KNOWN, "scheduler": NOT_KNOWN}
    return {"database": WELL, "migrations": tables or WELL, "scheduler": scheduler or WELL}


PROBES = {"/healthz": healthz, "/readyz": readyz}


class ProbeMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = PROBES.get(request.path, self._get_response)(request)
        if request.method == "HEAD" and not response.streaming:
            response.content = b""  # gunicorn would log each; the length stays that of GET
        return response
