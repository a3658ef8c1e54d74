"""A board that is made while it is looked at, and one of very many agents."""

from urllib.request import Request, urlopen

from selenium.webdriver.common.by import By

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import recompute
from tests.browser.test_board import AGENTS, AS_OF, ranks, wait_until
from tests.toys import csv_text, graded, load_text


def test_a_new_board_replaces_the_whole_page(browser, live_server):
    load_text(csv_text(AGENTS))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    browser.get(f"{live_server.url}/b/toy")
    load_text(csv_text({"late": "1" * 40}))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    browser.find_element(By.CSS_SELECTOR, "a[data-column=subset]").click()
    wait_until(browser, lambda browser: "Board 2" in browser.find_element(By.CLASS_NAME, "metas").text)
    assert "sort=subset" in browser.current_url


def test_500_agents_are_one_light_page(browser, live_server):
    load_text(csv_text(graded(500, 20)))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    request = Request(f"{live_server.url}/b/toy?rows=all", headers={"Accept-Encoding": "gzip"})
    with urlopen(request) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert len(response.read()) <= 60 * 1024
    browser.get(f"{live_server.url}/b/toy?rows=all")
    assert len(ranks(browser)) == 500
    assert browser.execute_script("return document.querySelectorAll('*').length") <= 15_000
