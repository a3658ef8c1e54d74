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
from leaderboard.pages.addresses import absolute
from leaderboard.pages.shown import for_all, visible
from leaderboard.studies.answers import words

N_ENTRIES = 10


@require_safe
@for_all
def feed(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    told = _feed(request, benchmark)
    return HttpResponse(told.writeString("utf-8"), content_type=told.content_type)


class Feed(Atom1Feed):
    """One that was last changed with its latest board; without one, when the benchmark was made."""

    def latest_post_date(self) -> datetime:
        dates: list[datetime] = [item["updateddate"] for item in self.items]
        return max(dates, default=self.feed["made_at"])


def _feed(request: HttpRequest, benchmark: Benchmark) -> Feed:
    found, _ = versions(benchmark, most=N_ENTRIES)
    keys = [one.board.pk for one in found]
    boards = {board.pk: board for board in boards_of(benchmark).filter(pk__in=keys)}
    told_of, gone = outlines(list(boards.values())), withdrawn_since(boards.values())
    told = Feed(
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
    for one in found:
        link = absolute(request, reverse("pages:version", args=[benchmark.slug, one.board.number]))
        _add(
            told,
            boards[one.board.pk],
            link,
            words.could_be_first(told_of[one.board.pk]),
            _sentences(words.headline(told_of[one.board.pk]), gone.get(one.board.pk, ()), one),
        )
    return told


def _sentences(headline: str, gone: Sequence[str], one: Version) -> list[str]:
    return [part for part in (headline, words.withdrawn_text(gone), _changed(one)) if part]


def _changed(one: Version) -> str:
    return words.changes_text(one.changes) if one.changes else "The first board."


def _add(told: Feed, board: Board, link: str, short: str, sentences: Sequence[str]) -> None:
    told.add_item(
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
