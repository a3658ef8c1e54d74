"""By keyboard alone: find an agent, make it the reference, compare it with the leader."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from leaderboard.catalog.models import Agent
from tests.browser.test_board import address, board, shown  # noqa: F401 - fixtures
from tests.browser.waiting import wait_until

MOST_STOPS = 80


def tab_to(browser, selector):
    """Press Tab until the element has the focus."""
    for _ in range(MOST_STOPS):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.execute_script("return document.activeElement.matches(arguments[0])", selector):
            return browser.switch_to.active_element
    raise AssertionError(f"{selector} is not reached by Tab")


def wait_for(browser, selector):
    wait_until(browser, lambda it: it.find_elements(By.CSS_SELECTOR, selector))


@pytest.mark.slow
def test_an_agent_is_found_made_the_reference_and_compared(board):  # noqa: F811 - the fixture
    agent = Agent.objects.get(name="a07")
    tab_to(board, "#bar [name=find]").send_keys("a07")
    wait_until(board, lambda it: it.find_element(By.ID, "count").text.startswith("1 of "))
    tab_to(board, ".c-held a").send_keys(Keys.ENTER)
    wait_for(board, ".meta.reference, tr.lead")
    wait_until(board, lambda it: f"vs={agent.pk}" in it.current_url)

    board.get(board.current_url.split("?")[0] + "?view=all")
    tab_to(board, "#ranking tbody tr:first-child input").send_keys(Keys.SPACE)
    tab_to(board, f"#ranking input[value='{agent.pk}']").send_keys(Keys.SPACE)
    board.switch_to.active_element.send_keys(Keys.ENTER)  # sends the form that the box belongs to
    wait_until(board, lambda it: "/compare?" in it.current_url)
    assert f"a={agent.pk}" in board.current_url
    assert "Compare with" in board.find_element(By.TAG_NAME, "h1").text
