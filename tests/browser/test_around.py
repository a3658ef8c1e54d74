"""What stands around the board, in a browser: nothing keeps people out, nothing breaks a rule of the page."""

from datetime import UTC, datetime, timedelta

import pytest
from selenium.webdriver.common.by import By

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import recompute
from tests.toys import csv_text, ladder, load_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
LONG = "an agent with a long name " + "without-a-break" * 9
WIDTHS = (1440, 768, 390)
OPEN = ("/b/toy/history", "/b/toy/data", "/methods", "/b/toy/embed", "/nowhere")


def two_boards():
    """Of agents, one with a name that nowhere breaks."""
    load_text(csv_text(ladder(16, 40) | {"stopped": "1" * 9 + "." * 31}))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    load_text(csv_text({"best": "1" * 40, LONG: "01" * 20}))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF + timedelta(days=1))


@pytest.fixture(scope="module")
def shown(server):
    two_boards()
    return server.url


@pytest.fixture
def address(browser, shown, db):
    return shown


def look(browser, width, scheme="light"):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


def unfold(browser):
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")


@pytest.mark.parametrize("path", OPEN)
def test_it_never_scrolls_sideways(address, browser, path):
    browser.get(address + path)
    unfold(browser)
    for width in (*WIDTHS, 320):
        look(browser, width)
        script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(script) <= 0, width


@pytest.mark.parametrize("path", [*OPEN[:-1], "/b/toy/badge.svg", "/b/toy/cite"])
def test_it_opens_without_a_word_in_the_console_and_asks_nobody_else(address, browser, path):
    browser.get(address + path)
    # Where no page of HTML names an icon the browser looks for one by itself, at any later time.
    assert [one for one in browser.get_log("browser") if "/favicon.ico" not in one["message"]] == []
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert all(name.startswith(address) for name in loaded)


def test_a_name_of_a_method_leads_to_it(address, browser):
    browser.get(f"{address}/methods")
    browser.find_element(By.CSS_SELECTOR, 'a[href="#rank-sets"]').click()
    heading = browser.find_element(By.ID, "rank-sets")
    assert browser.execute_script("return arguments[0].getBoundingClientRect().top", heading) < 100


def test_another_site_may_frame_the_table_and_nothing_else(address, browser):
    other = address.replace("localhost", "127.0.0.1")
    assert other != address
    browser.get(f"{other}/static/css/bandstand.css")  # a document without rules of its own
    for path, is_shown in (("/b/toy/embed", True), ("/b/toy/history", False)):
        browser.execute_script(
            "document.body.innerHTML = ''; const frame = document.createElement('iframe');"
            "frame.src = arguments[0]; document.body.append(frame);"
            "return new Promise(done => { frame.onload = done })",
            address + path,
        )
        browser.switch_to.frame(0)
        found = browser.find_elements(By.CSS_SELECTOR, "h1 bdi")
        assert bool(found) == is_shown, path
        browser.switch_to.default_content()
