"""The pages of one benchmark as files that any web server, or GitHub Pages, can serve.

The pages are those of the service. From the board on, each link that has a place among the files is followed;
links between the files are relative. What needs the service, such as a form, is left out; of a link that leads
to it the text stays.
"""

import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from posixpath import dirname, relpath
from urllib.parse import parse_qsl, urljoin, urlsplit

from django.conf import settings
from django.test import Client
from django.urls import reverse

from leaderboard.boards.queries import latest_board
from leaderboard.catalog.models import Benchmark

LINK = re.compile(r'<a\b([^>]*?)\bhref="([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)
SOURCE = re.compile(r'(<(?:link|script|img)\b[^>]*?\b(?:href|src)=")([^"]*)(")')
IN_CSS = re.compile(r"url\(\"?([^)\"]+)\"?\)")
NEEDS_SERVICE = re.compile(
    r'<form\b.*?</form>|<link rel="alternate" type="application/json[^>]*>', re.DOTALL
)
VIEWS = ("target", "view", "rows")  # what may be asked of the board and the tasks
TYPES = {"text/html": ".html", "application/json": ".json", "application/atom+xml": ".xml"}
LEFT_OUT = ("embed", "cite", "submissions", "assignments", "report", "freeze")


class SiteError(Exception):
    """A page that the service could not make."""


def write_site(benchmark: Benchmark, folder: Path) -> Iterator[str]:
    """Write the pages below a folder, and yield the path of each file when it is there.

    Raises NoBoardYet and SiteError.
    """
    board = latest_board(benchmark)
    ranked = board.entries.filter(rank__isnull=False).order_by("position").values_list("agent", flat=True)
    site = _Site(benchmark, board.number)
    leader, *others = [*ranked] or [None]
    compare = reverse("pages:compare", args=[benchmark.slug])
    site.reach(site.root)
    for other in others:
        site.reach(f"{compare}?a={leader}&a={other}")
    while site.waiting:
        address, path = site.waiting.popitem()
        content = site.content(address, path)
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        yield path


class _Site:
    def __init__(self, benchmark: Benchmark, latest: int) -> None:
        self.root = reverse("pages:board", args=[benchmark.slug])
        self.api = reverse("api:benchmark", args=[benchmark.slug])
        self.version = f"v{latest}"
        self.client = Client(SERVER_NAME="localhost", BANDSTAND_SITE="1")
        self.waiting, self.paths = dict[str, str](), set[str]()

    def reach(self, address: str) -> str:
        """The path of the file for an address of the service, to be written; empty where there is none."""
        path = self._place(address)
        if path and path not in self.paths:
            self.paths.add(path)
            self.waiting[address] = path
        return path

    def _place(self, address: str) -> str:
        path, _, query = address.partition("?")
        asked = parse_qsl(query)
        if path.startswith(settings.STATIC_URL):
            return path.removeprefix("/")
        if path == reverse("pages:methods"):
            return "methods.html"
        for root, start in ((f"{self.api}/", "data/"), (f"{self.root}/", ""), (self.root, "")):
            if path.startswith(root):
                name = path.removeprefix(root)
                break
        else:
            return ""
        if name == self.version:
            name = ""
        if set(name.split("/")) & set(LEFT_OUT) or (start and query):
            return ""
        names = {field for field, _ in asked}
        if not (names <= set(VIEWS) or name.startswith("plots/") or names == {"a"} or names == {"agent"}):
            return ""
        values = [value for _, value in asked]
        if names == {"a"}: 
            values = values[1:] if len(values) == 2 else values
        stem, dot, ending = (name or "index").partition(".")
        stem = "-".join([stem, *(re.sub(r"\W+", "-", value) for value in values)])
        return f"{start}{stem}{dot}{ending}" if dot else f"{start}{stem}" + (".json" if start else ".xml" if name == "feed" else ".html")

    def content(self, address: str, path: str) -> bytes:
        response = self.client.get(address)
        content = b"".join(response) if response.streaming else response.content
        if response.status_code != HTTPStatus.OK:
            raise SiteError(f"{address} answered {response.status_code}.")
        kind = response.headers["Content-Type"].partition(";")[0]
        if kind == "text/css":
            base = address
            for found in IN_CSS.findall(content.decode()):
                self.reach(urljoin(base, found))
        if kind not in ("text/html", "image/svg+xml"):
            return content
        text = NEEDS_SERVICE.sub("", content.decode())
        text = LINK.sub(lambda found: self._link(found, address, path), text)
        return SOURCE.sub(lambda found: found[1] + self._relative(found[2], address, path) + found[3], text).encode()

    def _link(self, found: re.Match[str], address: str, path: str) -> str:
        before, target, after, text = found.groups()
        place = self._relative(target, address, path)
        return f'<a{before}href="{place}"{after}>{text}</a>' if place else text

    def _relative(self, target: str, address: str, path: str) -> str:
        if urlsplit(target).scheme or target.startswith("#"):
            return target
        whole, _, fragment = urljoin(address, target.replace("&amp;", "&")).partition("#")
        place = self.reach(whole)
        mark = f"#{fragment}" if fragment else ""
        return place and relpath(place, dirname(path) or ".") + mark
