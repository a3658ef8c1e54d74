import re
from datetime import UTC, datetime

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import measure_variance, recompute
from tests.browser.waiting import wait_until
from tests.leaderboard.stored_validation import store
from tests.toys import csv_text, ladder, load_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
AGENTS = ladder(16, 40) | {
    "an agent with a long name " + "without-a-break" * 9: "01" * 20,
    "stopped": "1" * 9 + "." * 31,
}


def resize(browser, width, height=900):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


STUDIES = ("/b/toy/validity", "/b/toy/uncertainty")


@pytest.fixture(scope="module")
def shown(server):
    """A board, and studies that came after it."""
    load_text(csv_text(AGENTS))
    benchmark = Benchmark.objects.get()
    recompute(benchmark=benchmark, as_of=AS_OF)
    store(benchmark)
    measure_variance(benchmark=benchmark, as_of=AS_OF)
    return server.url


@pytest.fixture
def address(browser, shown, db):
    return shown


@pytest.fixture
def board(address, browser):
    browser.get(f"{address}/b/toy")
    return browser


def column(browser, name):
    """The column's text, in one step: the table may be replaced at any time."""
    script = "return [...document.querySelectorAll(arguments[0])].map(cell => cell.innerText.trim())"
    return browser.execute_script(script, f"#ranking tbody .c-{name}")


def ranks(browser):
    return [int(re.match(r"\d+", text)[0]) for text in column(browser, "rank")]


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
    head = board.find_element(By.CSS_SELECTOR, "th.c-agent[aria-sort]")
    assert head.get_attribute("aria-sort") == "descending"
    assert board.execute_script("return window.stayed")
    board.back()
    board.back()
    wait_until(board, lambda browser: ranks(browser) == sorted(ranks(browser)))
    assert board.get_log("browser") == []


def test_it_sorts_without_javascript(address, browser):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(f"{address}/b/toy")
    browser.find_element(By.CSS_SELECTOR, "a[data-column=agent]").click()
    wait_until(browser, lambda browser: "sort=agent" in browser.current_url)
    assert column(browser, "agent") == sorted(column(browser, "agent"))


def test_the_whole_table_fits_a_desktop(board):
    resize(board, 1280)
    fits = "const box = document.querySelector('.rows'); return box.scrollWidth <= box.clientWidth"
    assert board.execute_script(fits)


def type_in(browser, name, text):
    field = browser.find_element(By.CSS_SELECTOR, f"#bar [name={name}]")
    field.send_keys(text)
    return field


PLACES = """
const svg = document.querySelector("#plot svg.plot");
const box = (one) => { const b = one.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
const seen = [...svg.querySelectorAll("text")].filter((one) => one.getClientRects().length);
return {
  all: box(svg),
  names: seen.filter((one) => one.matches(".f-ink")).map(box),
  sizes: seen.map((one) => parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a),
  dots: [...svg.querySelectorAll("circle")].map(box),
  whiskers: [...svg.querySelectorAll(".whiskers")].map(box),
  words: seen.map(box),
};"""


class TestPlot:
    @pytest.mark.parametrize("width", [360, 768, 1440])
    @pytest.mark.parametrize("plot", ["date", "scores"])
    def test_names_cover_no_dot_words_can_be_read_and_lines_stay_inside(self, address, browser, plot, width):
        resize(browser, width)
        browser.get(f"{address}/b/toy?plot={plot}")
        seen = browser.execute_script(PLACES)
        left, top, right, bottom = seen["all"]
        assert seen["names"]
        assert min(seen["sizes"]) >= 12
        for name in seen["names"]:
            assert not any(
                name[0] < dot[2] and name[2] > dot[0] and name[1] < dot[3] and name[3] > dot[1]
                for dot in seen["dots"]
            )
        for one in seen["whiskers"] + seen["words"]:
            assert left - 1 <= one[0] < one[2] + 1 <= right + 2, one
            assert top - 1 <= one[1] < one[3] + 1 <= bottom + 2, one

    def test_the_switch_works_in_place_and_without_scripts(self, board, address):
        board.execute_script("window.stayed = true")
        board.find_element(By.LINK_TEXT, "Scores").click()
        wait_until(board, lambda browser: browser.find_elements(By.CSS_SELECTOR, "#plot svg.scores"))
        assert "plot=scores" in board.current_url
        assert board.switch_to.active_element.text == "Scores"
        assert board.execute_script("return window.stayed")
        board.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        board.get(f"{address}/b/toy")
        board.find_element(By.LINK_TEXT, "Scores").click()
        wait_until(board, lambda browser: "plot=scores" in browser.current_url)
        assert board.find_elements(By.CSS_SELECTOR, "#plot svg.scores")

    def test_a_row_that_has_the_focus_is_read_and_lights_its_dot(self, board):
        link = board.find_element(By.LINK_TEXT, "a03 Model a03 · Loop")
        board.execute_script("arguments[0].focus()", link)
        reading = board.find_element(By.ID, "reading")
        assert re.fullmatch(r"a03: [\d.]+ ± [\d.]+%, 2026-01-05", reading.text)
        assert board.find_element(By.CSS_SELECTOR, "#ranking tr.lit .who") == link
        dot = board.find_element(By.CSS_SELECTOR, "#plot a.lit")
        assert link.get_attribute("href").endswith(dot.get_dom_attribute("href"))

    def test_a_dot_that_is_pointed_at_lights_its_row(self, board):
        dot = board.find_element(By.CSS_SELECTOR, "#plot svg a:last-of-type circle")
        ActionChains(board).move_to_element(dot).perform()
        name = board.find_element(By.CSS_SELECTOR, "#ranking tr.lit .who bdi").text
        assert board.find_element(By.ID, "reading").text.startswith(f"{name}: ")


class TestTicked:
    def tick(self, browser, *names):
        for name in names:
            browser.find_element(By.CSS_SELECTOR, f"[aria-label='Compare {name}']").click()

    @pytest.mark.parametrize("view", ["", "?view=all"])
    def test_without_javascript_the_bar_counts_and_compares(self, address, browser, view):
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        browser.get(f"{address}/b/toy{view}")
        bar = browser.find_element(By.ID, "compare")
        assert not bar.is_displayed()
        self.tick(browser, "a15", "a13")
        assert bar.is_displayed()
        assert not bar.find_element(By.ID, "copy").is_displayed()
        bar.find_element(By.TAG_NAME, "button").click()
        wait_until(browser, lambda browser: "/compare?a=" in browser.current_url)
        assert [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".compared bdi")][:1] != []

    def test_what_is_ticked_stays_when_the_rows_change(self, board):
        self.tick(board, "a15")
        type_in(board, "find", "a03")
        wait_until(board, lambda browser: len(ranks(browser)) == 1)
        self.tick(board, "a03")
        ticked = board.find_elements(By.CSS_SELECTOR, "[name=a]:checked")
        assert [box.get_attribute("aria-label") for box in ticked] == ["Compare a03", "Compare a15"]
        count = "return getComputedStyle(document.querySelector('#compare button'), '::after').content"
        assert "counter(ticked)" in board.execute_script(count)
        copy = board.find_element(By.ID, "copy")
        assert copy.is_displayed()
        board.find_element(By.CSS_SELECTOR, "#bar [name=find]").send_keys(Keys.BACKSPACE * 3)
        wait_until(board, lambda browser: len(ranks(browser)) == 17)
        assert len(board.find_elements(By.CSS_SELECTOR, "#ranking [name=a]:checked")) == 2
        assert board.get_log("browser") == []


class TestInPlace:
    def test_what_is_typed_is_found_counted_and_read_out(self, board):
        board.execute_script("window.stayed = true")
        field = type_in(board, "find", "a03")
        wait_until(board, lambda browser: len(ranks(browser)) == 1)
        count = board.find_element(By.ID, "count")
        assert count.text.startswith("1 of 17 agents; ranks are among all 17. 0 of the ")
        assert count.get_attribute("aria-live") == "polite"
        assert board.switch_to.active_element == field
        assert board.current_url.endswith("/b/toy?find=a03")
        field.send_keys(Keys.BACKSPACE * 3)
        wait_until(board, lambda browser: len(ranks(browser)) == 17)
        assert board.current_url.endswith("/b/toy?")
        assert board.execute_script("return window.stayed")

    def test_the_keyboard_alone_finds_an_agent_and_makes_it_the_reference(self, board):
        board.execute_script("window.stayed = true")
        type_in(board, "find", "a05")
        wait_until(board, lambda browser: len(ranks(browser)) == 1)
        bar = board.find_element(By.CSS_SELECTOR, "#ranking tbody .c-held a")
        number = bar.get_attribute("href").split("vs=")[1].removesuffix("#ranking")
        bar.send_keys(Keys.ENTER)
        wait_until(board, lambda browser: f"vs={number}" in browser.current_url)
        assert "tied with a05" in board.find_element(By.CLASS_NAME, "reference").text
        assert f"vs={number}#" in board.switch_to.active_element.get_attribute("href")
        board.find_element(By.CSS_SELECTOR, "#bar [name=find]").send_keys(Keys.BACKSPACE * 3)
        wait_until(board, lambda browser: len(ranks(browser)) == 17)
        assert f"vs={number}" in board.current_url  # the form carries it along
        assert len(board.find_elements(By.CSS_SELECTOR, "#ranking tr.reference")) == 1
        assert board.execute_script("return window.stayed")
        assert board.get_log("browser") == []

    def test_without_javascript_the_form_asks(self, address, browser):
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        browser.get(f"{address}/b/toy?target=subset")
        type_in(browser, "find", "a03" + Keys.ENTER)
        wait_until(browser, lambda browser: "find=a03" in browser.current_url)
        assert "target=subset" in browser.current_url
        assert len(browser.find_elements(By.CSS_SELECTOR, "#ranking tbody tr")) == 1


def choose(browser, text):
    browser.find_element(By.CSS_SELECTOR, "#targets").find_element(By.PARTIAL_LINK_TEXT, text).click()


@pytest.mark.parametrize("scripts", [True, False])
def test_the_switch_keeps_the_order_with_and_without_javascript(address, browser, scripts):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    browser.get(f"{address}/b/toy")
    browser.find_element(By.CSS_SELECTOR, "a[data-column=agent]").click()
    wait_until(browser, lambda browser: "sort=agent" in browser.current_url)
    choose(browser, "ranking tasks")
    wait_until(browser, lambda browser: "target=subset" in browser.current_url)
    assert "sort=agent" in browser.current_url
    assert column(browser, "agent") == sorted(column(browser, "agent"))
    browser.find_element(By.CSS_SELECTOR, "a[data-column=score]").click()
    wait_until(browser, lambda browser: "sort=score" in browser.current_url)
    assert "target=subset" in browser.current_url
    chosen = browser.find_element(By.CSS_SELECTOR, "#targets [aria-current]")
    assert chosen.text.endswith(" ranking tasks")
    assert browser.get_log("browser") == []


def test_the_switch_is_reached_and_used_by_keyboard(board):
    link = board.find_element(By.PARTIAL_LINK_TEXT, "Tasks like these")
    board.execute_script("arguments[0].focus()", link)
    link.send_keys(Keys.ENTER)
    wait_until(board, lambda browser: "target=domain" in browser.current_url)


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
    browser.get(address + path)
    browser.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    for width in (320, 375, 768, 1200, 1280):
        resize(browser, width)
        seen = "return document.documentElement.clientWidth - document.documentElement.scrollWidth"
        assert browser.execute_script(seen) >= 0, width


def test_on_a_phone_a_row_tells_rank_name_score_and_the_ranks_it_may_hold(board):
    resize(board, 375)
    cells = [
        board.find_element(By.CSS_SELECTOR, f"#ranking tbody .c-{name}")
        for name in ("rank", "agent", "score", "held")
    ]
    assert all(re.fullmatch(r"\d+(–\d+)?", text) for text in column(board, "held"))
    assert all(cell.rect["x"] + cell.rect["width"] <= 375 for cell in cells)


def test_on_a_phone_ten_rows_come_before_the_plot_and_the_others_before_what_explains(board):
    resize(board, 375)
    row = "#ranking tbody tr:nth-child({})"
    order = (".verdict", ".figures", "#bar", row.format(1), row.format(10), "#plot", row.format(11), ".metas")
    tops = [board.find_element(By.CSS_SELECTOR, place).rect["y"] for place in order]
    assert tops == sorted(tops)


def test_the_dark_scheme_is_dark(board):
    def paper(scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        board.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
        ground = board.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", ground)[:3])) / 3

    assert paper("dark") < 60 < 200 < paper("light")


def test_what_is_folded_opens_by_keyboard(board):
    about = board.find_element(By.CSS_SELECTOR, "#about summary")
    digest = board.find_element(By.CSS_SELECTOR, "#about code")
    assert not digest.is_displayed()
    about.send_keys(Keys.ENTER)
    assert digest.text == Benchmark.objects.get().boards.get().digest


def test_on_paper_the_board_stands_alone_with_its_reference_and_date(board):
    board.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    for place in ("nav", "#bar", ".fold", "footer.site"):
        assert not board.find_element(By.CSS_SELECTOR, place).is_displayed()
    foot = board.find_element(By.CSS_SELECTOR, "#ranking tfoot").text
    assert "board 1 · 1 June 2026 · scores on all 40 tasks · outlined: not clearly worse than a15" in foot
