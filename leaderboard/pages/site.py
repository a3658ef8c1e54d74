"""The pages of one benchmark as files that any web server, such as GitHub Pages, can serve.

They are the pages of the service. From the board on, each link is followed that has a place among the files,
and becomes relative. What needs the service, such as a form, is left out; of a link that leads there the text
stays.
"""

import re
from collections.abc import Iterator
from html import escape, unescape
from http import HTTPStatus
from pathlib import Path
from posixpath import dirname, relpath
from urllib.parse import parse_qsl, urljoin, urlsplit

from django.conf import settings
from django.test import Client
from django.urls import reverse

from leaderboard.boards.queries import latest_board
from leaderboard.catalog.models import Benchmark
from leaderboard.pages.ordered_outcomes import read_once

ANCHOR = re.compile(r'<a\b([^>]*?)\s+href="([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)
SOURCE = re.compile(r'(<(?:link|script|img)\b[^>]*?\s(?:href|src)=")([^"]*)(")')
SOURCE_IN_CSS = re.compile(r"url\(\"?([^)\"]+)\"?\)")
NEEDS_SERVICE = re.compile(r"<form\b.*?</form>", re.DOTALL)
VIEWS = ("target", "view", "rows")  # what may be asked of the board
EXPORTS = ("board", "outcomes.csv", "outcomes.ndjson", "outcomes.parquet", "board.csv", "board.ndjson")
EXPORTS += ("board.parquet", "subsets.json", "data-dictionary")
PAGES = ("history", "validity", "uncertainty", "health", "tasks", "data", "compare")
FILES = {"feed": "feed.xml", "board.md": "board.md", "badge.svg": "badge.svg", "card.png": "card.png"}
ONE = re.compile(r"(?:agents|tasks)/\d+")
DRAWING = re.compile(r"plots/([\w-]+)\.svg")


class PageRefused(RuntimeError):
    """The service did not answer with a page."""


def write_site(benchmark: Benchmark, folder: Path) -> Iterator[Path]:
    """Write the pages into a folder; yields each file when it is there.

    Raises NoBoardYet and PageRefused.
    """
    board = latest_board(benchmark)
    ranked = board.entries.filter(rank__isnull=False).order_by("position")
    site = Site(benchmark, board.number)
    site.reach(site.board)
    leader, *others = ranked.values_list("agent", flat=True) or [None]
    for other in others:
        site.reach(f"{site.board}/compare?a={leader}&a={other}")
    with read_once():
        while site.waiting:
            address, place = site.waiting.popitem()
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(site.content(address))
            yield path


class Site:
    """Which addresses have a place among the files, and what lies there."""

    def __init__(self, benchmark: Benchmark, number: int) -> None:
        self.board = reverse("pages:board", args=[benchmark.slug])
        self.api = reverse("api:benchmark", args=[benchmark.slug])
        self.number = number
        self.waiting: dict[str, str] = {}
        self._reached: set[str] = set()
        self._client = Client(SERVER_NAME="localhost", raise_request_exception=False)

    def reach(self, address: str) -> str:
        """The place of an address, to be written; empty where it has none."""
        place = self.place(address)
        if place and place not in self._reached:
            self._reached.add(place)
            self.waiting[address] = place
        return place

    def place(self, address: str) -> str:
        path, _, query = address.partition("?")
        asked = parse_qsl(query)
        names = {name for name, _ in asked}
        rest = path.removeprefix(self.board).removeprefix("/")
        if path.startswith(settings.STATIC_URL):
            return path.removeprefix("/")
        if path == reverse("pages:methods"):
            return "methods.html"
        if path.startswith(f"{self.api}/"):
            name = path.removeprefix(f"{self.api}/").replace(f"boards/{self.number}", "board")
            return f"data/{name}{'' if '.' in name else '.json'}" if name in EXPORTS and not query else ""
        if path != self.board and not path.startswith(f"{self.board}/"):
            return ""
        if rest in ("", f"v{self.number}") and names <= {*VIEWS}:
            return f"{'-'.join(['index', *(value for _, value in asked)])}.html"
        if drawing := DRAWING.fullmatch(rest):
            return f"plots/{'-'.join([drawing[1], *(value for _, value in asked)])}.svg"
        if rest == "compare" and names == {"a"} and len(asked) == 2:
            return f"compare/{asked[0][1]}-{asked[1][1]}.html"
        if rest == "badge.svg" and names == {"agent"}:
            return f"badges/{asked[0][1]}.svg"
        if query:
            return ""
        return FILES.get(rest) or (f"{rest}.html" if rest in PAGES or ONE.fullmatch(rest) else "")

    def content(self, address: str) -> bytes:
        response = self._client.get(address)
        content = b"".join(response) if response.streaming else response.content  # type: ignore[arg-type]
        if response.status_code != HTTPStatus.OK:
            raise PageRefused(f"{address} answered {response.status_code}.")
        kind = response.headers["Content-Type"].partition(";")[0]
        if kind == "text/css":
            for source in SOURCE_IN_CSS.findall(content.decode()):
                self.reach(urljoin(address, source))
        if kind not in ("text/html", "image/svg+xml"):
            return content
        text = NEEDS_SERVICE.sub("", content.decode())
        text = ANCHOR.sub(lambda found: self._anchor(found, address), text)
        return SOURCE.sub(
            lambda found: found[1] + self._relative(found[2], address) + found[3], text
        ).encode()

    def _anchor(self, found: re.Match[str], address: str) -> str:
        before, target, after, text = found.groups()
        link = self._relative(target, address)
        return f'<a{before} href="{link}"{after}>{text}</a>' if link else text

    def _relative(self, target: str, address: str) -> str:
        """A link of a page as it leads from file to file; empty where it leads to the service."""
        if urlsplit(target).scheme or target.startswith("#"):
            return target
        whole, mark, fragment = urljoin(address, unescape(target)).partition("#")
        place = self.reach(whole)
        return place and escape(relpath(place, dirname(self.place(address)) or ".") + mark + fragment)
