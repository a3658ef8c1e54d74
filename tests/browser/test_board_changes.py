"""A board that is made while another is looked at."""

from selenium.webdriver.common.by import By

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import recompute
from tests.browser.test_board import AGENTS, AS_OF
from tests.browser.waiting import wait_until
from tests.toys import csv_text, load_text


def test_a_new_board_replaces_the_whole_page(browser, live_server):
    load_text(csv_text(AGENTS))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    browser.get(f"{live_server.url}/b/toy")
    load_text(csv_text({"late": "1" * 40}))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    browser.find_element(By.CSS_SELECTOR, "a[data-column=subset]").click()
    wait_until(browser, lambda browser: "Board 2" in browser.find_element(By.CLASS_NAME, "metas").text)
    assert "sort=subset" in browser.current_url
