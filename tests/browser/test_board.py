import re
from datetime import UTC, datetime

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import measure_variance, recompute
from tests.leaderboard.stored_validation import store
from tests.toys import csv_text, ladder, load_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
AGENTS = ladder(16, 40) | {
    "an agent with a long name " + "without-a-break" * 9: "01" * 20,
    "stopped": "1" * 9 + "." * 31,
}


def resize(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture
def address(browser, live_server):
    load_text(csv_text(AGENTS))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    return live_server.url


STUDIES = {
    "/b/toy/validity": store,
    "/b/toy/uncertainty": lambda benchmark: measure_variance(benchmark=benchmark, as_of=AS_OF),
}


def visit(browser, address, path):
    """Open a page; a study that it is about is there first."""
    if path in STUDIES:
        STUDIES[path](Benchmark.objects.get())
    browser.get(address + path)


@pytest.fixture
def board(address, browser):
    browser.get(f"{address}/b/toy")
    return browser


def column(browser, name):
    """The column's text, in one step: the table may be replaced at any time."""
    script = "return [...document.querySelectorAll(arguments[0])].map(cell => cell.innerText.trim())"
    return browser.execute_script(script, f"#ranking tbody .col-{name}")


def ranks(browser):
    return [int(re.match(r"\d+", text)[0]) for text in column(browser, "rank")]


def wait_until(browser, condition):
    """Wait for it; an element that is replaced while it is looked at is looked for again."""
    WebDriverWait(browser, 20, ignored_exceptions=[StaleElementReferenceException]).until(condition)


def colours(browser, selector):
    """The colours of the text and of what lies under it, as (red, green, blue)."""
    script = """
        let element = document.querySelector(arguments[0]);
        const text = getComputedStyle(element).color;
        const clear = "rgba(0, 0, 0, 0)";
        while (element.parentElement && getComputedStyle(element).backgroundColor === clear)
            element = element.parentElement;
        return [text, getComputedStyle(element).backgroundColor];"""
    return [tuple(map(int, text[4:-1].split(","))) for text in browser.execute_script(script, selector)]


def luminance(colour):
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(browser, selector):
    """As in WCAG 2.2: 21 is black on white."""
    dark, light = sorted(map(luminance, colours(browser, selector)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("path", ["/", "/b/toy", "/b/toy?sort=-date", "/b/toy?target=domain", *STUDIES])
def test_a_page_opens_without_a_word_in_the_console(address, browser, path):
    visit(browser, address, path)
    assert browser.find_element(By.TAG_NAME, "h1").is_displayed()
    assert browser.get_log("browser") == []


def test_it_asks_for_nothing_elsewhere(board, address):
    loaded = board.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert {name.rsplit("/")[-1] for name in loaded} >= {"bandstand.css", "sort.js"}
    assert all(name.startswith(address) for name in loaded)


def test_the_table_is_sorted_by_rank(board):
    assert ranks(board) == sorted(ranks(board))
    assert len(ranks(board)) == 17


def test_the_keyboard_sorts_and_keeps_its_place(board):
    link = board.find_element(By.CSS_SELECTOR, "a[data-column=agent]")
    board.execute_script("window.stayed = true; arguments[0].focus()", link)
    link.send_keys(Keys.ENTER)
    wait_until(board, lambda browser: "sort=agent" in browser.current_url)
    wait_until(board, lambda browser: column(browser, "agent") == sorted(column(browser, "agent")))
    focused = board.switch_to.active_element
    assert focused.get_attribute("data-column") == "agent"
    focused.send_keys(Keys.ENTER)
    wait_until(
        board, lambda browser: column(browser, "agent") == sorted(column(browser, "agent"), reverse=True)
    )
    head = board.find_element(By.CSS_SELECTOR, "th.col-agent[aria-sort]")
    assert head.get_attribute("aria-sort") == "descending"
    assert board.execute_script("return window.stayed")
    board.back()
    board.back()
    wait_until(board, lambda browser: ranks(browser) == sorted(ranks(browser)))
    assert board.get_log("browser") == []


def test_a_new_board_replaces_the_whole_page(board):
    load_text(csv_text({"late": "1" * 40}))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    board.find_element(By.CSS_SELECTOR, "a[data-column=subset]").click()
    wait_until(board, lambda browser: "board 2" in browser.find_element(By.CLASS_NAME, "summary").text)
    assert "sort=subset" in board.current_url


def test_it_sorts_without_javascript(address, browser):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(f"{address}/b/toy")
    browser.find_element(By.CSS_SELECTOR, "a[data-column=agent]").click()
    wait_until(browser, lambda browser: "sort=agent" in browser.current_url)
    assert column(browser, "agent") == sorted(column(browser, "agent"))


def test_the_whole_table_fits_a_desktop(board):
    resize(board, 1280)
    fits = "const box = document.querySelector('.scroll'); return box.scrollWidth <= box.clientWidth"
    assert board.execute_script(fits)


def choose(browser, text):
    browser.find_element(By.CSS_SELECTOR, "#targets").find_element(By.PARTIAL_LINK_TEXT, text).click()


@pytest.mark.parametrize("scripts", [True, False])
def test_the_switch_keeps_the_order_with_and_without_javascript(address, browser, scripts):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    browser.get(f"{address}/b/toy")
    browser.find_element(By.CSS_SELECTOR, "a[data-column=agent]").click()
    wait_until(browser, lambda browser: "sort=agent" in browser.current_url)
    choose(browser, "of the subset")
    wait_until(browser, lambda browser: "target=subset" in browser.current_url)
    assert "sort=agent" in browser.current_url
    assert column(browser, "agent") == sorted(column(browser, "agent"))
    browser.find_element(By.CSS_SELECTOR, "a[data-column=score]").click()
    wait_until(browser, lambda browser: "sort=score" in browser.current_url)
    assert "target=subset" in browser.current_url
    chosen = browser.find_element(By.CSS_SELECTOR, "#targets [aria-current]")
    assert chosen.text.endswith(" of the subset")
    assert browser.get_log("browser") == []


def test_the_switch_is_reached_and_used_by_keyboard(board):
    link = board.find_element(By.PARTIAL_LINK_TEXT, "Tasks like these")
    board.execute_script("arguments[0].focus()", link)
    link.send_keys(Keys.ENTER)
    wait_until(board, lambda browser: "target=domain" in browser.current_url)


@pytest.mark.parametrize("scripts", [True, False])
def test_ties_unfold_by_keyboard_with_and_without_javascript(address, browser, scripts):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    browser.get(f"{address}/b/toy")
    details = browser.find_element(By.CSS_SELECTOR, "#ranking .col-ties details")
    name = details.find_element(By.CSS_SELECTOR, "li")
    assert not name.is_displayed()
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert name.is_displayed()


def test_the_first_stop_of_the_keyboard_leads_to_the_content(board):
    board.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    skip = board.switch_to.active_element
    assert skip.text == "Skip to the content"
    wait_until(board, lambda browser: skip.location["y"] >= 0)
    skip.send_keys(Keys.ENTER)
    assert board.switch_to.active_element.get_attribute("id") == "main"


def test_what_has_the_focus_shows_it(board):
    for _ in range(5):
        board.switch_to.active_element.send_keys(Keys.TAB)
        focused = board.switch_to.active_element
        assert focused.value_of_css_property("outline-style") == "solid"
        assert focused.value_of_css_property("outline-width") == "3px"


@pytest.mark.parametrize("path", ["/", "/b/toy", "/b/toy?target=subset", *STUDIES, "/nowhere"])
def test_no_window_scrolls_sideways(address, browser, path):
    visit(browser, address, path)
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    for width in (320, 375, 768, 1200, 1280):
        resize(browser, width)
        seen = "return document.documentElement.clientWidth - document.documentElement.scrollWidth"
        assert browser.execute_script(seen) >= 0, width


def test_on_a_phone_rank_name_score_and_interval_are_in_sight(board):
    resize(board, 375)
    cells = [
        board.find_element(By.CSS_SELECTOR, f"#ranking tbody .col-{name}")
        for name in ("rank", "score", "plot")
    ]
    assert any(re.fullmatch(r"[\d.]+–[\d.]+", text) for text in column(board, "plot"))
    assert all(cell.rect["x"] + cell.rect["width"] <= 375 for cell in cells)


def test_on_a_phone_the_name_stays_in_sight_while_the_table_scrolls(board):
    resize(board, 375)
    board.execute_script("document.querySelector('.scroll').scrollLeft = 500")
    name = board.find_element(By.CSS_SELECTOR, "#ranking tbody .col-agent")
    assert board.execute_script("return arguments[0].getBoundingClientRect().left", name) >= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_in_the_dark(board, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    board.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    _, paper = colours(board, "h1")
    assert (luminance(paper) < 0.05) == (scheme == "dark")
    places = ("h1", ".kicker", ".lede", ".facts dt", ".phase", ".error", ".made-of", ".mark", "caption span")
    places += ("th[aria-sort] a", ".arrow", ".legend dd", "summary", "footer p", ".about a", ".reading p")
    places += (".sections a", ".sections [aria-current]", ".targets a", ".targets [aria-current]", ".under")
    for place in (*places, ".gaps li", ".col-ties summary"):
        assert contrast(board, place) >= 4.5, place


@pytest.mark.parametrize("path", STUDIES)
def test_the_other_pages_stand_out_too(address, browser, path):
    visit(browser, address, path)
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
        for place in (
            "h1",
            ".sections [aria-current]",
            ".verdict",
            ".meta",
            "summary",
            "td",
            ".about dt",
        ):
            assert contrast(browser, place) >= 4.5, (scheme, place)


def test_what_is_folded_opens_by_keyboard(board):
    digest = board.find_element(By.CSS_SELECTOR, ".digest summary")
    digest.send_keys(Keys.ENTER)
    stored = Benchmark.objects.get().boards.get().digest
    assert board.find_element(By.CSS_SELECTOR, ".digest > code").text == stored


def test_on_paper_nothing_is_folded_or_cut(board):
    board.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    unfolded = board.find_element(By.CSS_SELECTOR, ".digest > code")
    assert board.execute_script("return arguments[0].checkVisibility()", unfolded)
    assert not board.find_element(By.TAG_NAME, "nav").is_displayed()
    assert board.find_element(By.CLASS_NAME, "scroll").value_of_css_property("overflow-x") == "visible"
