"""Pages of a benchmark that are rendered once, kept compressed, and rendered again when they would differ.

A page is kept under the digest of all that it is made from: the benchmark's row, the policy in force, the
board, what was read and who was withdrawn since, whether alerts are shown, the parameters that the page
knows, the address of the server, and the code. So nothing is ever cleared: what changed has another key, and
what nobody can ask for any more grows old and is culled. The digest is the ETag too, so that a visitor who
has the page is answered after one query; another takes two.

A view says by `cached_page` which parameters it reads, and what it reads beside the board. It must not read
the clock or the visitor; an answer that did read the visitor is not kept. See
docs/decisions/pages-and-charts.md.
"""

import gzip
import hashlib
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from threading import Lock
from typing import Any, cast
from weakref import WeakKeyDictionary

import django
from cachetools import LRUCache
from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models import Case, Exists, F, Model, OuterRef, Subquery, When
from django.db.models.fields.json import KeyTextTransform
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import re_accepts_gzip
from django.utils.cache import get_conditional_response

from leaderboard.boards.models import Board
from leaderboard.boards.queries import withdrawn_among
from leaderboard.boards.signing import public_key
from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.operations.models import Alert
from leaderboard.pages.access import FOR_ONE
from leaderboard.pages.models import RenderedPage
from leaderboard.pages.ordered_outcomes import keep, known_of, read_once
from leaderboard.studies.models import AgentScores

logger = logging.getLogger(__name__)
View = Callable[..., HttpResponseBase]
Tables = tuple[type[Model], ...]
Page = tuple[bytes, str]  # what is sent, compressed, and its type

MAX_IN_MEMORY = 4 << 20  # bytes of pages in each process
MAX_PARAMETERS = 200  # characters of known parameters; a page that was asked for with more is not kept
LEVEL = 6  # of gzip, as the middleware has it
RENDERS = (".py", ".html", ".xml", ".svg")  # what a page is made from, of the files of the project
VARY = {"Vary": "Accept-Encoding"}


def cached_page(*known: str, of_data: bool = False, reads: Tables = ()) -> Callable[[View], View]:
    """Keep what a view of a benchmark answers: it takes `slug`, and `number` where it shows one board.

    known: the parameters of the address that the view reads; no other becomes part of the key.
    of_data: whether the page changes with every delivery, and not with the board alone.
    reads: append-only tables with a `benchmark` of which it shows something: the studies.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, slug: str, **place: Any) -> HttpResponseBase:
            number = place.get("number")
            state = state_of(slug, number, reads) if settings.PAGES_KEPT else None
            if state is None or state[0] is None:
                return view(request, slug, **place)
            parameters = [(name, request.GET.getlist(name)) for name in known if name in request.GET]
            shown = state if of_data else (state[0], state[-1])
            parts = [version(), _signs_as(settings.SIGNING_KEY), settings.SITE_URL, view.__module__]
            parts += [view.__qualname__, place, parameters, request.scheme, request.get_host(), shown]
            key = hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
            tag = f'"{key[:32]}"'  # of the page, not of bytes that may be compressed: sent as weak
            if unchanged := get_conditional_response(request, etag=tag):
                unchanged["ETag"] = tag
                return unchanged
            page = _stored_page(key)
            if page is None:
                with read_once(known_of(state)) as outcomes:
                    response = view(request, slug, **place)
                page = _page_of(request, response)
                if page is None:
                    return response
                # Of what state it is nobody knows, where that changed meanwhile.
                if state_of(slug, number, reads) != state:
                    return _sent(request, page)
                keep(state, outcomes)
                if len(str(parameters)) > MAX_PARAMETERS:
                    return _sent(request, page)
                _keep(key, page)
            return _sent(request, page, tag)

        return answer

    return decorate


def _page_of(request: HttpRequest, response: HttpResponseBase) -> Page | None:
    """What is kept of an answer; nothing of one that read the visitor, and then is for nobody else."""
    if not isinstance(response, HttpResponse) or response.status_code != 200:
        return None
    session = getattr(request, "session", None)
    reads_session = session is not None and session.accessed
    if response.cookies or reads_session or "CSRF_COOKIE_NEEDS_UPDATE" in request.META:
        response["Cache-Control"] = FOR_ONE
        return None
    return gzip.compress(response.content, LEVEL, mtime=0), response["Content-Type"]


def _sent(request: HttpRequest, page: Page, tag: str = "") -> HttpResponse:
    content, content_type = page
    headers = VARY | ({"ETag": tag} if tag else {})
    if re_accepts_gzip.search(request.META.get("HTTP_ACCEPT_ENCODING", "")):
        return HttpResponse(content, content_type, headers=headers | {"Content-Encoding": "gzip"})
    return HttpResponse(gzip.decompress(content), content_type, headers=headers)


class Recent:
    """The pages that this process sent last, by key, as far as they take no more room than that."""

    def __init__(self, n_bytes: int) -> None:
        self._pages = LRUCache[str, Page](n_bytes, lambda page: len(page[0]))
        self._one_at_a_time = Lock()

    def get(self, key: str) -> Page | None:
        with self._one_at_a_time:
            return self._pages.get(key)

    def put(self, key: str, page: Page) -> None:
        with self._one_at_a_time, suppress(ValueError):  # it is larger than all may be
            self._pages[key] = page


RECENT = Recent(MAX_IN_MEMORY)


@cache
def _signs_as(seed: str) -> str | None:
    """The public key of the setting; without one, of the embedded server's own, which stays."""
    return public_key()


@cache
def version() -> str:
    """The digest of what renders; leaderboard.wsgi asks for it at the start, before any file is replaced."""
    digest = hashlib.sha256(django.__version__.encode())
    inside: Path = settings.PACKAGE
    templates = [folder for engine in settings.TEMPLATES for folder in cast("list[Path]", engine["DIRS"])]
    for folder in (inside, *(inside.parent / core for core in ("analytics", "selection")), *templates):
        for path in sorted(one for one in folder.rglob("*.*") if one.suffix in RENDERS):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _stored_page(key: str) -> Page | None:
    if page := RECENT.get(key):
        return page
    row = RenderedPage.objects.filter(key=key).values_list("content", "content_type").first()
    if row is None:
        return None
    page = bytes(row[0]), row[1]
    RECENT.put(key, page)
    return page


def _keep(key: str, page: Page) -> None:
    """Keep a page; where the database does not take it, as with a full disk, this process remembers it."""
    RECENT.put(key, page)
    try:
        _store(key, page)
    except DatabaseError as error:
        if connection.in_atomic_block:
            raise
        logger.warning("a rendered page was not stored: %s", str(error).strip())


def _store(key: str, page: Page) -> None:
    new = RenderedPage(key=key, content=page[0], content_type=page[1])
    with transaction.atomic(savepoint=False):
        RenderedPage.objects.bulk_create([new], ignore_conflicts=True)
        by_age = RenderedPage.objects.order_by("-rendered_at", "key").values_list("key", flat=True)
        if old := list(by_age[settings.PAGES_KEPT :]):
            # Skipping what another worker deletes just now, for two would wait for each other. Sliced and
            # locked at once, the rows that stay would be locked, which writes every one of them.
            free = RenderedPage.objects.filter(key__in=old).select_for_update(skip_locked=True)
            RenderedPage.objects.filter(key__in=list(free.values_list("key", flat=True))).delete()


# What a page of a benchmark may show of its row as it stands there, its own version among it.
FIELDS = tuple(field.attname for field in Benchmark._meta.concrete_fields if field.name != "data_version")
ANY_SLUG, ANY_NUMBER = "any slug", 2**31 - 1
# What visitors are shown of a benchmark: its board, or None without one of that number, its data version, and
# a digest of all else.
PageState = tuple[int | None, int, str]


def state_of(slug: str, number: int | None, reads: Tables = ()) -> PageState | None:
    """What decides what visitors are shown of a benchmark, in one query; None where they see none."""
    # A connection that broke while it was idle says so by itself: no other query need try it before.
    connection.health_check_done = True  # type: ignore[attr-defined]
    try:
        return _read_state(slug, number, reads)
    except OperationalError:
        if connection.in_atomic_block:
            raise
        connection.close()
        return _read_state(slug, number, reads)


def _read_state(slug: str, number: int | None, reads: Tables) -> PageState | None:
    with connection.cursor() as cursor:
        statement = _prepare(number is not None, reads)
        cursor.execute(f"EXECUTE {statement} (%s, %s)", [slug, number and min(number, ANY_NUMBER)])
        state: PageState | None = cursor.fetchone()
    return state


_PREPARED: WeakKeyDictionary[Any, dict[Any, str]] = WeakKeyDictionary()


def _prepare(is_numbered: bool, reads: Tables) -> str:
    """The name of the statement on this connection, planned once: that takes longer than to run it."""
    known = _PREPARED.setdefault(connection.connection, {})
    if (is_numbered, reads) not in known:
        name = f"page_state_{len(known)}"
        text = _statement(is_numbered, reads)
        with connection.wrap_database_errors:  # what goes past Django's cursor keeps its own errors else: 500
            connection.connection.execute(f"PREPARE {name} (text, bigint) AS {text}")
        known[is_numbered, reads] = name
    return known[is_numbered, reads]


@cache
def _statement(is_numbered: bool, reads: Tables) -> str:
    """What Django asks for them, of any benchmark and board, with all but two columns as one digest."""
    annotations = _annotations(ANY_NUMBER if is_numbered else None, reads)
    benchmarks = visible_benchmarks(None).filter(slug=ANY_SLUG).annotate(**annotations)
    query = benchmarks.values(*FIELDS, *annotations, "data_version").query
    with connection.cursor() as cursor:
        text = cursor.mogrify(*query.sql_with_params())
    text = text.replace(f"'{ANY_SLUG}'", "$1").replace(str(ANY_NUMBER), "$2")
    columns = ", ".join(f'state."{name}"' for name in (*FIELDS, *annotations))
    digest = f"encode(sha256(convert_to(ROW({columns})::text, 'UTF8')), 'hex')"
    return f"SELECT state.board, state.data_version, {digest} FROM ({text}) AS state"


def _annotations(number: int | None, reads: Tables) -> dict[str, Any]:
    boards = Board.objects.filter(benchmark=OuterRef("pk")).order_by("-number")
    chosen = boards if number is None else boards.filter(number=number)
    policies = Policy.objects.filter(benchmark=OuterRef("pk")).order_by("-number")
    agents = withdrawn_among(Agent.objects.filter(benchmark=OuterRef("pk"))).order_by("pk")
    read = AgentScores.objects.filter(agent__benchmark=OuterRef("pk")).order_by("-data_version")
    replayed = KeyTextTransform("of", OuterRef("replay"))
    annotations = {
        "has_alerts": Exists(Alert.objects.filter(benchmark=OuterRef("pk"))),
        "shows_full_runs": Exists(visible_benchmarks(None).filter(slug=replayed)),
        "policy": Subquery(policies.values("number")[:1]),
        "latest": Subquery(boards.values("number")[:1]),
        "board": Subquery(chosen.values("pk")[:1]),
        "read_at": Subquery(read.values("data_version")[:1]),
        "made_at": Subquery(chosen.values("data_version")[:1]),
        "withdrawn": Case(When(data_version__gt=F("made_at"), then=ArraySubquery(agents.values("pk")))),
    }
    for table in reads:
        rows = table._default_manager.filter(benchmark=OuterRef("pk")).order_by("-pk")
        annotations[f"latest_{table._meta.model_name}"] = Subquery(rows.values("pk")[:1])
    return annotations
