"""What stands around the board, in a browser: nothing keeps people out, nothing breaks a rule of the page."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from leaderboard.catalog.models import Agent, Benchmark, Role
from leaderboard.operations.people import make_token
from leaderboard.operations.services import recompute
from leaderboard.submissions.models import Submission
from tests.browser.accessibility import violations
from tests.leaderboard.desk import person
from tests.toys import csv_text, ladder, load_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
LONG = "an agent with a long name " + "without-a-break" * 9
WIDTHS = (1440, 768, 390)
OPEN = ("/b/toy/history", "/b/toy/data", "/methods", "/b/toy/embed", "/nowhere")


@pytest.fixture
def address(browser, live_server):
    """Two boards of agents, one with a name that nowhere breaks."""
    load_text(csv_text(ladder(16, 40) | {"stopped": "1" * 9 + "." * 31}))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
    load_text(csv_text({"best": "1" * 40, LONG: "01" * 20}))
    recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF + timedelta(days=1))
    return live_server.url


def look(browser, width, scheme="light"):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


def unfold(browser):
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true })")


@pytest.mark.parametrize("path", OPEN)
def test_nothing_keeps_people_out(address, browser, path):
    browser.get(address + path)
    unfold(browser)
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            look(browser, width, scheme)
            assert violations(browser) == [], (width, scheme)


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
    assert browser.get_log("browser") == []
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


# ------------------------------------------------------------------------------------ what needs an account


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


def test_an_account_a_submission_and_a_report_keep_nobody_out(signed_in, address):
    agent = Agent.objects.get(name=LONG)
    (delivered,) = Submission.objects.filter(agent=agent)
    for path in ("/account", f"/submissions/{delivered.uuid}", f"/b/toy/agents/{agent.pk}/report"):
        signed_in.get(address + path)
        assert signed_in.find_element(By.TAG_NAME, "h1").is_displayed()
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                look(signed_in, width, scheme)
                assert violations(signed_in) == [], (path, width, scheme)
        assert signed_in.get_log("browser") == []


def test_a_submission_is_taken_back_by_its_form(signed_in, address):
    (delivered,) = Submission.objects.filter(agent__name=LONG)
    signed_in.get(f"{address}/submissions/{delivered.uuid}")
    signed_in.find_element(By.NAME, "reason").send_keys("the wrong file")
    signed_in.find_element(By.NAME, "sure").click()
    signed_in.find_element(By.CSS_SELECTOR, "#withdraw button").click()
    waiting = WebDriverWait(signed_in, 20, ignored_exceptions=[StaleElementReferenceException])
    told = "It was withdrawn and does not count any more."
    waiting.until(lambda browser: told in browser.find_element(By.TAG_NAME, "main").text)
