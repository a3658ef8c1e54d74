"""The pages of tasks, one task and one agent in a browser: nobody is kept out, nothing slides sideways."""

import pytest

from leaderboard.catalog.models import Agent, Benchmark, Task
from leaderboard.operations.services import recompute
from tests.browser.accessibility import serious
from tests.browser.test_board import AGENTS, AS_OF, resize
from tests.browser.waiting import wait_until
from tests.toys import csv_text, load_text

PAGES = {
    "/b/toy/tasks": lambda: "/b/toy/tasks",
    "/b/toy/tasks?find=t1&subset=no": lambda: "/b/toy/tasks?find=t1&subset=no",
    "a task": lambda: f"/b/toy/tasks/{Task.objects.get(name='t20').pk}",
    "an agent": lambda: f"/b/toy/agents/{Agent.objects.get(name='a08').pk}",
    "an agent with a long name": lambda: f"/b/toy/agents/{Agent.objects.get(name__startswith='an agent').pk}",
    "an agent without a rank": lambda: f"/b/toy/agents/{Agent.objects.get(name='stopped').pk}",
}
WIDTHS = (1440, 768, 390)


@pytest.fixture(scope="module")
def shown(server):
    load_text(csv_text(AGENTS))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    return server.url


@pytest.fixture
def address(browser, shown, db):
    return shown


def test_nothing_keeps_people_out_or_scrolls_sideways(address, browser):
    """Axe looks at these states once, at a phone's width: `test_every_page` looks at the pages at each."""
    for page in PAGES.values():
        browser.get(address + page())
        for width in WIDTHS:
            resize(browser, width)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width, page()
        assert serious(browser) == [], page()
    assert browser.get_log("browser") == []


def test_names_in_the_map_lead_to_agents_and_tasks_to_tasks(address, browser):
    browser.get(f"{address}/b/toy/tasks")
    browser.execute_script("document.querySelector('.tasks-map svg a').focus()")
    browser.switch_to.active_element.send_keys("\ue007")
    assert "/agents/" in browser.current_url
    browser.back()
    browser.find_element("css selector", ".every-task tbody a").click()
    assert browser.find_element("tag name", "h1").text == "t01"  # but for the one agent, all pass it


def test_it_is_found_without_javascript(address, browser):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(f"{address}/b/toy/tasks")
    browser.find_element("name", "find").send_keys("t39\ue007")
    # The page that answers takes the place of this one, whose elements go.
    wait_until(browser, lambda it: it.find_element("css selector", ".finding output").text == "1 of 40 tasks")
