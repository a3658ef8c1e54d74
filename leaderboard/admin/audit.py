"""Who changed what, when and why: what is kept of a request, and the recorded changes in one list."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from operator import attrgetter
from typing import Any

import pghistory
from django.apps import apps
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.acting import RECORDED
from leaderboard.requests import request_id
from leaderboard.submissions.models import AccountTrust, Verification

N_SHOWN = 200
SIGNED_IN = ("/admin/", "/account", "/invitation/")
BY_ITSELF = "the command line or the clock"
KEPT_BY_HISTORY = {"id", "pgh_id", "pgh_created_at", "pgh_label", "pgh_obj", "pgh_context"}


@dataclass(frozen=True)
class AuditEntry:
    """One recorded change: what row became how, through whom, and why."""

    at: datetime
    what: str
    about: str
    became: str
    by: str
    reason: str
    request_id: str


def recorded_changes(operated: QuerySet[Benchmark], *, is_staff: bool) -> list[AuditEntry]:
    rows: list[Any] = []
    for label, path in RECORDED.items():
        if path or is_staff:
            recorded = apps.get_model(label)._default_manager.select_related("pgh_context", "pgh_obj")
            shown = recorded.all() if is_staff else recorded.filter(**{f"{path}__in": operated.values("pk")})
            rows += shown.order_by("-pgh_id")[:N_SHOWN]
    latest = nlargest(N_SHOWN, rows, key=lambda row: (row.pgh_created_at, row.pgh_id))
    contexts = [(row.pgh_context.metadata if row.pgh_context else {}) for row in latest]
    people = [context["user"] for context in contexts if context.get("user")]
    emails = dict(User.objects.filter(pk__in=people).values_list("pk", "email"))
    changes = [_change(row, context, emails) for row, context in zip(latest, contexts, strict=True)]
    return nlargest(N_SHOWN, [*changes, *_vouched(operated, is_staff=is_staff)], key=attrgetter("at"))


def _vouched(operated: QuerySet[Benchmark], *, is_staff: bool) -> Iterator[AuditEntry]:
    """What operators vouched for or no longer do; these logs say themselves through whom and why."""
    accounts, submissions = AccountTrust.objects.all(), Verification.objects.all()
    if not is_staff:
        accounts = accounts.filter(benchmark__in=operated)
        submissions = submissions.filter(submission__agent__benchmark__in=operated)
    for one in accounts.select_related("account", "benchmark", "by").order_by("-id")[:N_SHOWN]:
        became = "trusted" if one.trusted else "no longer trusted"
        about = f"{one.account} on {one.benchmark}"
        yield AuditEntry(one.at, "AccountTrust", about, became, _name(one.by), one.reason, "")
    for verification in submissions.select_related("submission__agent", "by").order_by("-id")[:N_SHOWN]:
        became = "verified" if verification.verified else "no longer verified"
        about = str(verification.submission)
        yield AuditEntry(
            verification.at, "Verification", about, became, _name(verification.by), verification.note, ""
        )


def _name(by: User | None) -> str:
    return by.email if by else BY_ITSELF


def _change(row: Any, context: dict[str, Any], people: dict[int, str]) -> AuditEntry:
    texts = {
        field.name: field.value_from_object(row)
        for field in row._meta.concrete_fields
        if field.name not in KEPT_BY_HISTORY
    }
    return AuditEntry(
        at=row.pgh_created_at,
        what=f"{type(row).__name__.removesuffix('AuditEntry')} {row.pgh_label}",
        about=str(row.pgh_obj) if row.pgh_obj else "(gone)",
        became=", ".join(f"{name} {value}" for name, value in texts.items() if value not in (None, "", [])),
        by=people.get(context.get("user", 0), BY_ITSELF),
        reason=context.get("reason", ""),
        request_id=context.get("request_id", ""),
    )


class AuditMiddleware:
    """Binds person, address and a request id to what changes where people are signed in.

    Elsewhere no session is read: a public page depends on nobody, and the interface knows its own tokens.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method != "POST" or not request.path.startswith(SIGNED_IN):
            return self._get_response(request)
        # Of an address with a secret only its beginning is kept
        path = "/invitation/" if request.path.startswith("/invitation/") else request.path
        user = request.user.pk if request.user.is_authenticated else None
        with pghistory.context(user=user, path=path, request_id=request_id(request)):
            return self._get_response(request)
