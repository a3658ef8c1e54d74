"""What needs an account, in a browser: nothing keeps people out, and a submission is taken back."""

from itertools import product

import pytest
from django.test import Client
from django.utils import timezone
from selenium.webdriver.common.by import By

from leaderboard.catalog.models import Agent, Benchmark, Role
from leaderboard.operations.people import make_token
from leaderboard.submissions.models import Submission
from tests.browser.accessibility import violations
from tests.browser.test_around import LONG, WIDTHS, look, two_boards
from tests.browser.waiting import wait_until
from tests.leaderboard.desk import person


@pytest.fixture
def address(browser, live_server):
    two_boards()
    return live_server.url


@pytest.fixture
def signed_in(address, browser):
    """An operator with a token, in the browser."""
    toy = Benchmark.objects.get()
    user = person("ada@example.org", role=Role.OPERATOR, benchmark=toy)
    make_token(user=user, name="ci", scope="submit", benchmarks=[], days=9, as_of=timezone.now())
    Agent.objects.filter(name=LONG).update(owner=user)
    client = Client()
    client.force_login(user)
    browser.get(f"{address}/methods")
    browser.add_cookie({"name": "sessionid", "value": client.cookies["sessionid"].value})
    yield browser
    browser.delete_all_cookies()


ALL_LOOKS = list(product(WIDTHS, ("light", "dark")))
TWO_LOOKS = [(max(WIDTHS), "light"), (min(WIDTHS), "dark")]


@pytest.mark.parametrize(
    "looks", [TWO_LOOKS, pytest.param(ALL_LOOKS, marks=pytest.mark.slow(each=True))], ids=["two", "all"]
)
def test_an_account_a_submission_and_a_report_keep_nobody_out(signed_in, address, looks):
    agent = Agent.objects.get(name=LONG)
    (delivered,) = Submission.objects.filter(agent=agent)
    for path in ("/account", f"/submissions/{delivered.uuid}", f"/b/toy/agents/{agent.pk}/report"):
        signed_in.get(address + path)
        assert signed_in.find_element(By.TAG_NAME, "h1").is_displayed()
        for width, scheme in looks:
            look(signed_in, width, scheme)
            assert violations(signed_in) == [], (path, width, scheme)
        assert signed_in.get_log("browser") == []


def test_a_submission_is_taken_back_by_its_form(signed_in, address):
    (delivered,) = Submission.objects.filter(agent__name=LONG)
    signed_in.get(f"{address}/submissions/{delivered.uuid}")
    signed_in.find_element(By.NAME, "reason").send_keys("the wrong file")
    signed_in.find_element(By.NAME, "sure").click()
    signed_in.find_element(By.CSS_SELECTOR, "#withdraw button").click()
    told = "It was withdrawn and no longer counts."
    wait_until(signed_in, lambda browser: told in browser.find_element(By.TAG_NAME, "main").text)
