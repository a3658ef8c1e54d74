"""The pages of one benchmark as files that any web server, such as GitHub Pages, can serve.

They are the pages of the service. From the board on, each link is followed that has a place among the files,
and becomes relative. Templates leave out what needs the service where `request.META.IS_FILE`, the address of
the board, is set; of any other link to the service the text stays.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from html import escape, unescape
from http import HTTPStatus
from pathlib import Path
from posixpath import dirname, relpath
from secrets import token_hex
from urllib.parse import parse_qsl, urljoin, urlsplit

from django.conf import settings
from django.test import Client, override_settings
from django.urls import reverse

from leaderboard.boards.queries import latest_board
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import merged_agents
from leaderboard.errors import Refusal
from leaderboard.operations.runs import Progress
from leaderboard.pages.ordered_outcomes import read_once

ORIGIN = f"http://{token_hex(16)}.invalid"  # of addresses in full; nobody who delivers a text knows it
ANCHOR = re.compile(r'<a\b([^>]*?)\s+href="([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)
LABEL = re.compile(r'\s+aria-label="[^"]*"')
SOURCE = re.compile(r'(<(?:link|script|img)\b[^>]*?\s(?:href|src)=")([^"]*)(")')
SOURCE_IN_CSS = re.compile(r"url\(\"?([^)\"]+)\"?\)")
IN_FULL = re.compile(re.escape(ORIGIN) + r"(/[^\s\"'<>)&]*(?:&amp;[^\s\"'<>)&]*)*)?")
META_IN_FULL = re.compile(r'\n *<meta property="og:(?:url|image[^"]*)"[^>]*>')
VIEWS = {"target", "view", "rows", "plot"}  # what may be asked of the board
MAX_CHOICES = 2  # of them, in one address
EXPORTS = ["board", "subsets.json", "data-dictionary"]
EXPORTS += [f"{table}.{kind}" for table in ("board", "outcomes") for kind in ("csv", "ndjson", "parquet")]
PAGES = ("history", "validity", "uncertainty", "health", "tasks", "data", "compare")
FILES = {"feed": "feed.xml", "board.md": "board.md", "badge.svg": "badge.svg", "card.png": "card.png"}
ONE = re.compile(r"(?:agents|tasks)/\d+")
WORD = re.compile(r"[a-z0-9]+")
TEXTS = ("text/html", "image/svg+xml", "application/atom+xml", "text/markdown", "text/plain")
MANIFEST = ".bandstand-site"  # the names of all files of a site, a line each


class PageRefused(Refusal):
    """The service did not answer with a page."""


@override_settings(PAGES_KEPT=0, SITE_URL=ORIGIN)
def write_site(benchmark: Benchmark, folder: Path, *, url: str, progress: Progress | None) -> int:
    """Write the pages into a folder, and return how many files they are.

    url: where they will be served, for addresses that must be whole; without one these are relative, and
    other sites have no picture of the board to show.

    Raises NoBoardYet and PageRefused.
    """
    site, names, root = Site(benchmark, url), [MANIFEST], folder.resolve()
    for address in site.beginning:
        site.reach(address)
    with read_once():
        while site.waiting:
            address, place = site.waiting.popitem()
            path = root / place
            if not path.resolve().is_relative_to(root):
                raise PageRefused(f"Nothing was written: {address} leads out of the folder.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(site.content(address))
            names.append(place)
            if progress:
                progress(len(names), len(names) + len(site.waiting))
    (folder / MANIFEST).write_text("".join(f"{name}\n" for name in names))
    return len(names)


class Site:
    """Which addresses have a place among the files, and what lies there."""

    def __init__(self, benchmark: Benchmark, url: str) -> None:
        board = latest_board(benchmark)
        ranked = board.entries.filter(rank__isnull=False).order_by("position")
        leader, *others = map(str, ranked.values_list("agent", flat=True)) if ranked else ("",)
        self.board = reverse("pages:board", args=[benchmark.slug])
        self.api = reverse("api:benchmark", args=[benchmark.slug])
        self.number, self.leader, self.url = board.number, leader, url
        self.beginning = [self.board, f"{self.api}/board", f"{self.board}/badge.svg"]
        self.beginning += [f"{self.board}/card.png"] * bool(url)
        self.beginning += [f"{self.board}/compare?a={leader}&a={other}" for other in others]
        self._merged = {
            f"{self.board}/agents/{source}": f"{self.board}/agents/{target}"
            for source, target in merged_agents(benchmark, None).items()
        }
        self.waiting: dict[str, str] = {}
        self._reached: set[str] = set()
        self._client = Client(
            SERVER_NAME="localhost", IS_FILE=self.board, FILE_URL=url, raise_request_exception=False
        )

    def reach(self, address: str) -> str:
        """The place of an address, to be written; empty where it has none."""
        address = self._merged.get(address, address)
        place = self.place(address)
        if place and place not in self._reached:
            self._reached.add(place)
            self.waiting[address] = place
        return place

    def place(self, address: str) -> str:
        path, _, query = address.partition("?")
        if path.startswith(settings.STATIC_URL):
            return path.removeprefix("/")
        if path == reverse("pages:methods"):
            return "methods.html"
        if path.startswith(f"{self.api}/"):
            name = path.removeprefix(f"{self.api}/").replace(f"boards/{self.number}", "board")
            return f"data/{name}{'' if '.' in name else '.json'}" if name in EXPORTS and not query else ""
        if path == self.board or path.startswith(f"{self.board}/"):
            return self._place_of_page(path.removeprefix(self.board).removeprefix("/"), parse_qsl(query))
        return ""

    def _place_of_page(self, name: str, asked: list[tuple[str, str]]) -> str:
        asks_for = {parameter for parameter, _ in asked}
        if not all(WORD.fullmatch(value) for _, value in asked):
            return ""
        if name in ("", f"v{self.number}") and asks_for <= VIEWS and len(asked) <= MAX_CHOICES:
            return f"{'-'.join(['index', *(f'{one}-{value}' for one, value in sorted(asked))])}.html"
        if name == "compare" and len(asked) == 2 and asked[0] == ("a", self.leader) and asked[1][0] == "a":
            return f"compare/{self.leader}-{asked[1][1]}.html"
        if name == "tasks" and asked == [("rows", "all")]:
            return "tasks-rows-all.html"
        if name == "badge.svg" and asks_for == {"agent"}:
            return f"badges/{asked[0][1]}.svg"
        if name == "cite" and asks_for <= {"board"} and self.url:
            return "cite.txt"
        if asked:
            return ""
        return FILES.get(name) or (f"{name}.html" if name in PAGES or ONE.fullmatch(name) else "")

    def content(self, address: str) -> bytes:
        response = self._client.get(address)
        content = b"".join(response) if response.streaming else response.content
        if response.status_code != HTTPStatus.OK:
            raise PageRefused(f"Nothing was written: the page {address} answered {response.status_code}.")
        kind = response.headers["Content-Type"].partition(";")[0]
        if kind == "text/css":
            for source in SOURCE_IN_CSS.findall(content.decode()):
                self.reach(urljoin(address, source))
        if kind == "application/json":
            return content.replace(f'"{self.api}/'.encode(), b'"')  # its neighbours
        if kind not in TEXTS:
            return content
        link = cache(partial(self._link, address))
        text = content.decode() if self.url else META_IN_FULL.sub("", content.decode())
        text = IN_FULL.sub(partial(self._in_full, address), text)
        text = ANCHOR.sub(partial(_anchor, link), text)
        return SOURCE.sub(lambda found: found[1] + link(found[2]) + found[3], text).encode()

    def _in_full(self, address: str, found: re.Match[str]) -> str:
        target = unescape(found[1] or self.board)
        if not self.url:
            return escape(target) if "html" in self.place(address) else self._link(address, target)
        return escape(f"{self.url}/{self.reach(target)}")

    def _link(self, address: str, target: str) -> str:
        """A link of a page as it leads from file to file; empty where it leads to the service."""
        if urlsplit(target).scheme or target.startswith("#"):
            return target
        whole, mark, fragment = urljoin(address, unescape(target)).partition("#")
        place = self.reach(whole)
        return place and escape(relpath(place, dirname(self.place(address)) or ".") + mark + fragment)


def _anchor(link: Callable[[str], str], found: re.Match[str]) -> str:
    before, target, after, text = found.groups()
    if place := link(target):
        return f'<a{before} href="{place}"{after}>{text}</a>'
    others = LABEL.sub("", before + after)
    is_drawn = "<" in text or "class" in others  # what has a look of its own keeps its place
    return f"<a{others}>{text}</a>" if is_drawn else text
