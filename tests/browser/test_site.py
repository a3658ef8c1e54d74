"""A site of files in the browser, served by no more than `python -m http.server`."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from leaderboard.pages.site import write_site
from tests.browser import boards
from tests.browser.accessibility import violations
from tests.browser.looking import asked_for, emulate, rows, too_wide
from tests.browser.pages import ROWS
from tests.browser.waiting import wait_until

pytestmark = pytest.mark.django_db
PAGES = [
    "index",
    "index-view-all",
    "compare",
    "tasks",
    "validity",
    "uncertainty",
    "data",
    "history",
    "methods",
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing of each request."""


@pytest.fixture(scope="module")
def site(server, tmp_path_factory):
    """The folder of the demonstration, and where it is served."""
    folder = tmp_path_factory.mktemp("site")
    write_site(boards.demonstration(), folder, url="", progress=None)
    with ThreadingHTTPServer(("localhost", 0), partial(Quiet, directory=folder)) as files:
        threading.Thread(target=files.serve_forever, daemon=True).start()
        yield folder, f"http://localhost:{files.server_port}"
        files.shutdown()


def one_of(folder, kind):
    return next(iter(sorted((folder / kind).glob("*.html")))).relative_to(folder).with_suffix("")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_every_page_is_open_to_all_and_asks_nobody_else(browser, site, width, scheme):
    folder, address = site
    emulate(browser, width, scheme)
    for page in [*PAGES, *(one_of(folder, kind) for kind in ("agents", "tasks", "compare"))]:
        browser.get(f"{address}/{page}.html")
        assert violations(browser) == [], page
        assert too_wide(browser)[0] == 0, page
        assert all(one.startswith(f"{address}/") for one in asked_for(browser)), page
        assert browser.get_log("browser") == [], page


def test_the_board_is_within_its_budget(browser, site):
    for width, top, height in ((1440, 600, 40), (390, 560, 96)):
        emulate(browser, width)
        browser.get(f"{site[1]}/index.html")
        seen = rows(browser, ROWS)
        assert seen.n == 35
        assert seen.first <= top
        assert seen.highest <= height


def test_a_file_that_is_opened_from_the_disk_leads_on(browser, site):
    browser.get(Path(site[0], "index.html").as_uri())
    browser.find_element("link text", "Scores").click()
    wait_until(browser, lambda browser: browser.current_url.endswith("index-plot-scores.html#plot"))
    browser.find_element("css selector", "#ranking .who").click()
    wait_until(browser, lambda browser: "/agents/" in browser.current_url)
