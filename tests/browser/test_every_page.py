"""Every public page in the browser: open to all, calm, complete without scripts, a board within its budget.

That is: where the first row begins and how high rows are, how much there is of them, how soon they are
seen, and how much paper they take.
"""

import gzip
import math
import urllib.request
from itertools import product

import pytest

from leaderboard.settings import folder
from tests.browser import boards
from tests.browser.accessibility import violations
from tests.browser.looking import (
    SCHEMES,
    SIZES,
    asked_for,
    emulate,
    first_paint,
    numbers,
    printed_pages,
    rows,
    scripts,
    too_wide,
)
from tests.browser.pages import NOT_PAGES, PAGES, ROUTES, ROWS, SHOWN

pytestmark = pytest.mark.django_db
EXPECTED = {"nowhere": ["404 (Not Found)"]}  # in the console
TWO_LOOKS = {(1440, "light"), (390, "dark")}
MOST_SCRIPT = 6 * 1024  # bytes


@pytest.fixture(scope="module")
def demonstration(server):
    return boards.demonstration()


@pytest.fixture(
    scope="module",
    params=[
        boards.REAL[0],
        *(pytest.param(name, marks=pytest.mark.slow(each=True)) for name in boards.REAL[1:]),
    ],
)
def real(server, real_data, request):
    return boards.real(real_data, request.param)


@pytest.fixture(scope="module")
def large(server):
    return boards.large()


@pytest.fixture
def opened(browser, server, demonstration):
    """Open a page of the demonstration by its name."""

    def do(name):
        browser.get(server.url + PAGES[name](demonstration))
        return browser

    return do


def test_every_route_is_a_page_or_something_else():
    listed = {name.split(",")[0] for name in PAGES}
    assert not ROUTES - listed - NOT_PAGES
    assert not listed & NOT_PAGES


def test_the_scripts_are_small():
    assert sum(path.stat().st_size for path in folder("static").glob("js/*.js")) <= MOST_SCRIPT


def kept_out(browser, looks):
    """By width and scheme whatever violates a rule, of any impact. What is folded is open."""
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    found = {}
    for width, scheme in looks:
        emulate(browser, width, scheme)
        if told := violations(browser):
            found[width, scheme] = told
    return found


@pytest.mark.parametrize("name", SHOWN)
def test_nobody_is_kept_out(opened, name):
    assert not kept_out(opened(name), TWO_LOOKS), name


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SHOWN if "," not in name])
def test_nobody_is_kept_out_at_any_width_in_light_and_in_the_dark(opened, name):
    assert not kept_out(opened(name), set(product(SIZES, SCHEMES)) - TWO_LOOKS), name


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_calm_fits_a_phone_and_is_complete_without_scripts(opened, server, name):
    browser = opened(name)
    told = [entry["message"] for entry in browser.get_log("browser")]
    with_scripts = numbers(browser)
    elsewhere = [one for one in asked_for(browser) if not one.startswith((server.url, "data:"))]
    scripts(browser, on=False)
    opened(name)
    browser.get_log("browser")
    without = numbers(browser)
    emulate(browser, 390)
    wide = too_wide(browser)
    expected = EXPECTED.get(name, [])
    assert len(told) == len(expected), (name, told)
    assert all(one in message for one, message in zip(expected, told, strict=True)), (name, told)
    assert not elsewhere, name
    assert with_scripts == without, name
    assert wide[0] <= 0, (name, wide)


def within_budget(browser, address, folder):
    """Each figure of a board beyond its budget; `address` is of the table as it is first shown."""
    browser.get(address)
    told = {}
    for width, first, highest in ((1440, 600, 40), (390, 560, 96)):
        emulate(browser, width)
        seen = rows(browser, ROWS)
        told |= {
            f"first row at {width} px begins at": (seen.first, first),
            f"highest row at {width} px": (seen.highest, highest),
            f"elements of a row at {width} px": (seen.nodes, 25),
        }
    emulate(browser, 1440, media="print")
    on_paper = rows(browser, "table tbody tr").n
    emulate(browser, 1440)
    told["printed pages"] = printed_pages(browser, folder), math.ceil(on_paper / 25)
    return {what: figures for what, figures in told.items() if figures[0] > figures[1]}


def test_the_demonstration_is_within_its_budget(browser, server, demonstration, tmp_path):
    assert not within_budget(browser, f"{server.url}/b/{demonstration.slug}", tmp_path)


@pytest.mark.parametrize("name", ["agent", "validity"])
def test_on_paper_it_takes_two_pages_with_its_folds_closed(opened, name, tmp_path):
    browser = opened(name)
    assert browser.execute_script("return document.querySelectorAll('main details').length")
    emulate(browser, 1440, media="print")
    assert printed_pages(browser, tmp_path) <= 2
    folded = "return [...document.querySelectorAll('main details')].filter(one => one.offsetHeight).length"
    assert not browser.execute_script(folded)


LONG_NAME = " ".join(["An agent whose name is as long as a line"] * 6)


def test_a_long_name_takes_three_lines_on_a_phone(opened):
    """What the test itself stores the server does not see: the name is written into the page."""
    browser = opened("agent")
    emulate(browser, 390)
    script = """
        const title = document.querySelector("h1"), line = parseFloat(getComputedStyle(title).lineHeight);
        title.querySelector("bdi").textContent = arguments[0];
        return [title.clientHeight, title.scrollHeight, line];"""
    height, whole, line = browser.execute_script(script, LONG_NAME)
    assert whole > 3 * line + 1
    assert height <= 3 * line + 1


def test_a_real_board_is_within_its_budget(browser, server, real, tmp_path):
    assert not within_budget(browser, f"{server.url}/b/{real.slug}", tmp_path), real.slug


@pytest.mark.slow
def test_a_board_of_500_agents_is_within_its_budget(browser, server, large, tmp_path):
    """Also with all of its rows: then it may be large, but not slow."""
    address = f"{server.url}/b/{large.slug}"
    beyond = within_budget(browser, address, tmp_path)
    n_elements = rows(browser, ROWS).all
    every = f"{address}?rows=all"
    painted = []
    for _ in range(3):  # the quickest: other tests run beside
        browser.get(every)
        painted.append(first_paint(browser))
    seen = rows(browser, ROWS)
    sent = urllib.request.urlopen(urllib.request.Request(every, headers={"Accept-Encoding": "gzip"})).read()
    assert seen.n == boards.N_AGENTS
    assert gzip.decompress(sent).startswith(b"<!doctype html>")
    told = {
        "seconds until the first paint": (min(painted), 1),
        "elements of the first rows": (n_elements, 5_000),
        "elements": (seen.all, 15_000),
        "elements of a row": (seen.nodes, 25),
        "bytes, compressed": (len(sent), 60 * 1024),
    }
    beyond |= {what: figures for what, figures in told.items() if figures[0] > figures[1]}
    emulate(browser, 390)
    assert too_wide(browser)[0] <= 0
    assert not beyond
