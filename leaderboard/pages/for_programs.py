"""Boards for programs: how to cite one, the feed of them, and what is listed for those that walk the web."""

import re
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from django.db.models import Count, Max, Q, Sum
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape

from leaderboard.boards.queries import (
    NoBoardYet,
    NoSuchBoard,
    board_numbered,
    boards_of,
    boards_with_changes,
    latest_board,
    outlines,
    withdrawn_since,
)
from leaderboard.boards.signing import ALGORITHM, public_key
from leaderboard.catalog.models import Benchmark, Visibility
from leaderboard.catalog.queries import policy_in_force, visible_benchmarks
from leaderboard.pages.access import absolute, for_all, number_in, visible
from leaderboard.studies.answers import words
from leaderboard.submissions.export.columns import KNOWN
from leaderboard.submissions.models import Status, Submission


def printable(text: str) -> str:
    """What XML can hold: a control character makes a document that nobody reads."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


# --------------------------------------------------------------------------------------------------- citation

TEXT = """\
{title}, board {number}. Bandstand, {day}. {address}
Digest of the board (SHA-256): {digest}

The benchmark itself: {citation}
Licence of the results: {licence}

@misc{{{key},
  title = {{{{{bib_title}: leaderboard, board {number}}}}},
  howpublished = {{Bandstand, \\url{{{address}}}}},
  year = {{{year}}},
  month = {{{month}}},
  note = {{SHA-256 {digest}}}
}}
"""
OF_TEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


@for_all
def cite(request: HttpRequest, slug: str) -> HttpResponse:
    """The latest board, or that of `?board=`: a sentence, the benchmark's own citation, BibTeX."""
    benchmark, number = visible(slug), number_in(request.GET.get("board", ""))
    try:
        board = latest_board(benchmark) if number is None else board_numbered(benchmark, number)
    except (NoBoardYet, NoSuchBoard) as missing:
        raise Http404(str(missing)) from missing
    title = printable(benchmark.title)
    text = TEXT.format(
        title=title,
        bib_title="".join(OF_TEX.get(sign, sign) for sign in title),
        number=board.number,
        day=f"{board.published_at.day} {board.published_at:%B %Y}",
        year=board.published_at.year,
        month=f"{board.published_at:%b}".lower(),
        address=absolute(request, reverse("pages:version", args=[slug, board.number])),
        digest=board.digest,
        key=f"{re.sub(r'[^a-z0-9-]', '-', benchmark.slug.lower())}-board-{board.number}",
        citation=benchmark.citation.strip() or "not stated",
        licence=benchmark.licence.strip() or "not stated",
    )
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


# ------------------------------------------------------------------------------------------------------- feed

N_ENTRIES = 10


class Feed(Atom1Feed):
    """One that was last changed with its latest board; without one, when the benchmark was made."""

    def latest_post_date(self) -> datetime:
        dates: list[datetime] = [item["updateddate"] for item in self.items]
        return max(dates, default=self.feed["made_at"])


@for_all
def feed(request: HttpRequest, slug: str) -> HttpResponse:
    """An entry for each board, with who could be the best and what changed."""
    benchmark = visible(slug)
    latest, _ = boards_with_changes(benchmark, most=N_ENTRIES)
    boards = {one.pk: one for one in boards_of(benchmark).filter(pk__in=[one.board.pk for one in latest])}
    standings, withdrawn = outlines(list(boards.values())), withdrawn_since(boards.values())
    atom = Feed(
        title=f"{printable(benchmark.title)}: boards",
        subtitle=printable(benchmark.description) or None,
        link=absolute(request, reverse("pages:board", args=[slug])),
        feed_url=absolute(request, reverse("pages:feed", args=[slug])),
        feed_guid=_identity(f"{slug} {benchmark.created_at.isoformat()}"),
        description="",
        author_name="Bandstand",
        language="en",
        made_at=benchmark.created_at,
    )
    for one in latest:
        board = boards[one.board.pk]
        sentences = (
            words.headline(standings[board.pk]),
            words.withdrawn_text(withdrawn.get(board.pk, ())),
            words.changes_text(one.changes) if one.changes else "The first board.",
        )
        atom.add_item(
            title=f"Board {board.number}: {words.could_be_first(standings[board.pk])}",
            link=absolute(request, reverse("pages:version", args=[slug, board.number])),
            description=escape(printable(" ".join(filter(None, sentences)))),
            unique_id=_identity(f"{slug} {board.number} {board.published_at.isoformat()}"),
            pubdate=board.published_at,
            updateddate=board.published_at,
        )
    return HttpResponse(atom.writeString("utf-8"), content_type=atom.content_type)


def _identity(text: str) -> str:
    """An id that stays under whatever host the feed is read."""
    return uuid5(NAMESPACE_OID, f"bandstand {text}").urn


# --------------------------------------------------------------------------------------------------- crawling

OF_BENCHMARK = ("board", "tasks", "compare", "validity", "uncertainty", "history", "data")
CLOSED = ("/account", "/accounts/", "/admin/", "/api/", "/invitation/", "/submissions/")
MAX_ADDRESSES = 50_000  # addresses that a sitemap may hold


@for_all
def sitemap(request: HttpRequest) -> HttpResponse:
    """The pages of public benchmarks; what is unlisted, private or hidden has no address here."""
    addresses = [(absolute(request, reverse(f"pages:{name}")), "") for name in ("home", "methods", "submit")]
    listed = visible_benchmarks(None).filter(visibility=Visibility.PUBLIC)
    benchmarks = listed.annotate(changed=Max("boards__published_at")).order_by("slug")
    for slug, changed in benchmarks.values_list("slug", "changed"):
        paths = [reverse(f"pages:{name}", args=[slug]) for name in OF_BENCHMARK]
        addresses += [(absolute(request, path), changed.isoformat() if changed else "") for path in paths]
    context = {"addresses": addresses[:MAX_ADDRESSES]}
    return render(request, "pages/sitemap.xml", context, content_type="application/xml")


@for_all
def robots(request: HttpRequest) -> HttpResponse:
    """Pages are open; what belongs to an account, and the interface for programs, is not for walking."""
    closed = "\n".join(f"Disallow: {path}" for path in CLOSED)
    text = f"User-agent: *\n{closed}\n\nSitemap: {absolute(request, reverse('pages:sitemap'))}\n"
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


# -------------------------------------------------------------------------------------------------- downloads


def data_page(benchmark: Benchmark, *, server: str) -> dict[str, Any]:
    """Four queries: the latest board, what is accepted, the tasks, the policy."""
    accepted = Submission.objects.filter(agent__benchmark=benchmark, status=Status.ACCEPTED)
    whose = Coalesce("agent__merged_into", "agent")
    n = accepted.aggregate(outcomes=Sum("n_outcomes"), agents=Count(whose, distinct=True))
    is_retired = Q(retired_at__isnull=False)
    tasks = benchmark.tasks.aggregate(
        active=Count("pk", filter=~is_retired), retired=Count("pk", filter=is_retired)
    )
    board = benchmark.boards.defer("content").order_by("-number").first()
    at = {
        name: f"{server}{reverse(f'pages:{name}', args=[benchmark.slug])}"
        for name in ("feed", "badge", "board", "embed")
    }
    return {
        "board": board,
        "server": server,
        "n_outcomes": n["outcomes"],
        "n_agents": n["agents"],
        "n_tasks": tasks["active"],
        "n_retired": tasks["retired"],
        "tells_costs": policy_in_force(benchmark).show_costs,
        "kinds": {"csv": "CSV", "ndjson": "NDJSON", "parquet": "Parquet"},
        "columns": [column.as_plain() for column in KNOWN],
        "feed": at["feed"],
        "badge": f"[![board]({at['badge']})]({at['board']})",  # in Markdown
        # A slug needs no escaping, and the title stands nowhere in it.
        "frame": f'<iframe src="{at["embed"]}?n=10" width="640" height="480" title="board"></iframe>',
    }


@for_all
def data(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    page = data_page(benchmark, server=absolute(request, "/").removesuffix("/"))
    return render(request, "pages/data.html", {"page": page, "benchmark": benchmark, "here": "data"})


@for_all
def signing_key(request: HttpRequest) -> HttpResponse:
    """The key that boards are signed with; `null` where this server signs none."""
    return JsonResponse({"algorithm": ALGORITHM, "key": public_key()})
