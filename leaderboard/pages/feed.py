"""The feed of a benchmark: an entry for each board, with who could be the best and what changed."""

from collections.abc import Sequence
from datetime import datetime
from uuid import NAMESPACE_OID, uuid5

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape
from django.views.decorators.http import require_safe

from leaderboard.boards.headlines import outlines
from leaderboard.boards.history import Version, versions
from leaderboard.boards.models import Board
from leaderboard.boards.queries import boards_of, withdrawn_since
from leaderboard.catalog.models import Benchmark
from leaderboard.pages.access import absolute, for_all, visible
from leaderboard.studies.answers import words

N_ENTRIES = 10


@require_safe
@for_all
def feed(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    atom = _build_feed(request, benchmark)
    return HttpResponse(atom.writeString("utf-8"), content_type=atom.content_type)


class Feed(Atom1Feed):
    """One that was last changed with its latest board; without one, when the benchmark was made."""

    def latest_post_date(self) -> datetime:
        dates: list[datetime] = [item["updateddate"] for item in self.items]
        return max(dates, default=self.feed["made_at"])


def _build_feed(request: HttpRequest, benchmark: Benchmark) -> Feed:
    latest, _ = versions(benchmark, most=N_ENTRIES)
    keys = [one.board.pk for one in latest]
    boards = {board.pk: board for board in boards_of(benchmark).filter(pk__in=keys)}
    standings, withdrawn_names = outlines(list(boards.values())), withdrawn_since(boards.values())
    atom = Feed(
        title=f"{printable(benchmark.title)}: boards",
        subtitle=printable(benchmark.description) or None,
        link=absolute(request, reverse("pages:board", args=[benchmark.slug])),
        feed_url=absolute(request, reverse("pages:feed", args=[benchmark.slug])),
        feed_guid=_identity(f"{benchmark.slug} {benchmark.created_at.isoformat()}"),
        description="",
        author_name="Bandstand",
        language="en",
        made_at=benchmark.created_at,
    )
    for one in latest:
        link = absolute(request, reverse("pages:version", args=[benchmark.slug, one.board.number]))
        _add(
            atom,
            boards[one.board.pk],
            link,
            words.could_be_first(standings[one.board.pk]),
            _sentences(words.headline(standings[one.board.pk]), withdrawn_names.get(one.board.pk, ()), one),
        )
    return atom


def _sentences(headline: str, withdrawn_names: Sequence[str], one: Version) -> list[str]:
    return [part for part in (headline, words.withdrawn_text(withdrawn_names), _changes_text(one)) if part]


def _changes_text(one: Version) -> str:
    return words.changes_text(one.changes) if one.changes else "The first board."


def _add(atom: Feed, board: Board, link: str, short: str, sentences: Sequence[str]) -> None:
    atom.add_item(
        title=f"Board {board.number}: {short}",
        link=link,
        description=escape(printable(" ".join(sentences))),
        unique_id=_identity(f"{board.benchmark.slug} {board.number} {board.published_at.isoformat()}"),
        pubdate=board.published_at,
        updateddate=board.published_at,
    )


def _identity(text: str) -> str:
    """An id that stays under whatever host the feed is read."""
    return uuid5(NAMESPACE_OID, f"bandstand {text}").urn


def printable(text: str) -> str:
    """What XML can hold: a control character makes a document that nobody reads."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
