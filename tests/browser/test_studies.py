"""Compare, trust, error bars and health in a browser: nothing that keeps people out, at three widths."""

from datetime import UTC, datetime, timedelta

import pytest

from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.operations.services import measure_variance, recompute
from leaderboard.studies.models import ESTIMATOR_VERSION, DriftCheck
from tests.browser.accessibility import serious
from tests.browser.test_board import resize
from tests.browser.waiting import wait_until
from tests.leaderboard.stored_validation import store
from tests.toys import csv_text, ladder, load_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)
LONG = "an agent with a long name " + "without-a-break" * 9


@pytest.fixture(scope="module")
def shown(server):
    load_text(csv_text(ladder(16, 20) | {LONG: "01" * 10}))
    found = Benchmark.objects.get()
    recompute(benchmark=found, as_of=AS_OF)
    store(found)
    measure_variance(benchmark=found, as_of=AS_OF)
    told = {
        "name": "capability jump",
        "state": "warn",
        "threshold": 7.0,
        "reason": "it rose",
        "advice": "look",
    }
    for day in (1, 40):
        DriftCheck.objects.create(
            benchmark=found,
            policy=found.policies.get(),
            subset=found.subsets.get(),
            rules="r",
            data_version=100 + day,
            estimator_version=ESTIMATOR_VERSION,
            result={"monitors": [told | {"statistic": day / 7}], "reason": "", "false_alerts_a_year": 0.1},
            created_at=AS_OF + timedelta(days=day),
        )
    return server.url


@pytest.fixture
def address(browser, shown, db):
    return shown


PAGES = ("compare", "compare?a=a15&a=a03&a=long", "validity", "uncertainty?trials=2", "health")


@pytest.mark.parametrize("page", PAGES)
def test_nothing_keeps_people_out_or_scrolls_sideways(browser, address, page):
    ids = dict(Agent.objects.values_list("name", "pk")) | {"long": Agent.objects.get(name=LONG).pk}
    for name in ("a15", "a03", "long"):
        page = page.replace(f"a={name}", f"a={ids[name]}")
    browser.get(f"{address}/b/toy/{page}")
    browser.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    for width in (1440, 768, 390):
        resize(browser, width)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert serious(browser) == []
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


def test_words_of_drawings_can_be_read_on_a_phone(browser, address):
    resize(browser, 390)
    browser.get(f"{address}/b/toy/validity")
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('.chart svg')].filter(one => one.getBoundingClientRect().width)"
        ".map(one => 12 * one.getBoundingClientRect().width / one.viewBox.baseVal.width)"
    )
    assert len(sizes) == 4  # pairs, intervals, widths, overlaps
    assert min(sizes) >= 12


def test_the_what_if_form_answers_without_a_script(browser, address):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.get(f"{address}/b/toy/uncertainty")
    field = browser.find_element("css selector", ".what-if input[name=trials]")
    field.clear()
    field.send_keys("3")
    browser.find_element("css selector", ".what-if button").click()
    # What follows a press is another page, which takes the place of this one when it comes.
    wait_until(browser, lambda it: "trials=3" in it.current_url)
    assert "These variances do not allow this design" in browser.page_source
