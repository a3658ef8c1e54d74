"""An operator's week in a browser, from signing in to taking a task out and back."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.jobs import JOBS
from leaderboard.operations.models import JobRun
from leaderboard.operations.services import recompute
from tests.browser.accessibility import serious
from tests.browser.waiting import wait_until
from tests.toys import FIRST, LATER, S_PLAIN, csv_text, passing

PASSWORD = "a long road to the fair"
SHOTS = os.environ.get("SCREENSHOTS")


class Operator:
    """A person at the browser. What the scheduler would do meanwhile is done by `scheduler`."""

    def __init__(self, browser, address):
        self.browser, self.address, self.n_shots = browser, address, 0

    def open(self, path):
        self.browser.get(self.address + path)

    def follow(self, text):
        self.browser.find_element(By.LINK_TEXT, text).click()

    def fill(self, **values):
        for name, value in values.items():
            field = self.browser.find_element(By.NAME, name)
            if field.tag_name == "select":
                Select(field).select_by_value(value)
            else:
                field.clear() if field.get_attribute("type") != "file" else None
                field.send_keys(value)

    def do(self, shot=""):
        """Press the button of the page and wait for the next one."""
        button = self.browser.find_element(By.CSS_SELECTOR, "#do, .account button")
        if shot:
            self.look(shot)
        self.browser.execute_script("arguments[0].scrollIntoView()", button)
        button.click()
        wait_until(self.browser, lambda _: self._is_gone(button))

    @staticmethod
    def _is_gone(element):
        try:
            element.is_enabled()
        except StaleElementReferenceException:
            return True
        return False

    def text(self, selector="body"):
        return self.browser.find_element(By.CSS_SELECTOR, selector).text

    def look(self, name, within="#content, .account"):
        """Keep a picture, and find nothing in our part of the page that keeps people out."""
        self.shoot(name)
        assert serious(self.browser, within) == [], name

    def shoot(self, name):
        """Keep a picture where SCREENSHOTS names a folder."""
        self.n_shots += 1
        if SHOTS:
            self.browser.save_screenshot(str(Path(SHOTS) / f"{self.n_shots:02d}-{name}.png"))

    def of(self, benchmark):
        return f"/admin/catalog/benchmark/{benchmark.pk}"


@pytest.fixture
def operator(browser, live_server, transactional_db):
    size = {"width": 1440, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    User.objects.create_superuser("ada@example.org", PASSWORD)
    return Operator(browser, live_server.url)


def scheduler():
    """What runs by itself: jobs that were asked for, and the board."""
    now = datetime.now(UTC)
    for run in JobRun.objects.filter(status="queued"):
        JOBS[run.kind].run(run, now, lambda done, total: None)
        JobRun.objects.filter(pk=run.pk).update(status="done", ended_at=now, told="done")
    for benchmark in Benchmark.objects.all():
        recompute(benchmark=benchmark, as_of=now)


def file_of(folder, name, outcomes, **options):
    path = folder / name
    path.write_text(csv_text(outcomes, **options))
    return str(path)


def sign_in(operator):
    operator.open("/admin/")
    assert "/accounts/login/" in operator.browser.current_url
    operator.fill(login="ada@example.org", password=PASSWORD)
    operator.do("sign-in")


@pytest.mark.slow
def test_a_week_at_the_desk(operator, tmp_path):
    sign_in(operator)
    assert "Create one" in operator.text("#steps")
    operator.look("dashboard-empty")

    operator.follow("Create one")
    operator.fill(slug="fair", title="The Fair", pasted="name\nt00\nt01\n", reason="we need a board")
    operator.do("create")
    benchmark = Benchmark.objects.get(slug="fair")
    assert operator.browser.current_url.endswith(f"{operator.of(benchmark)}/change/")
    operator.look("benchmark", "#content > :first-child")

    operator.follow("Upload outcomes")
    operator.fill(file=file_of(tmp_path, "first.csv", passing(FIRST)), reason="last year")
    operator.do("upload")
    assert "320 outcomes would be stored as 16 submissions of 16 agents." in operator.text("#preview")
    operator.do("upload-preview")
    assert "were stored" in operator.text()

    scheduler()
    operator.open("/b/fair")
    assert "The Fair" in operator.text("h1")
    operator.shoot("board")

    operator.open(f"{operator.of(benchmark)}/policy/")
    assert not operator.browser.find_element(By.NAME, "rerun_days").is_displayed()
    operator.browser.find_element(By.CSS_SELECTOR, ".desk-action summary").click()
    operator.fill(rerun_days="10", missing="zero", reason="shorter deadlines")
    operator.do("policy")
    assert "rerun days: 21 → 10" in operator.text("#preview")
    operator.do("policy-preview")
    assert "Policy 3 is in force" in operator.text()

    operator.open(f"{operator.of(benchmark)}/upload/")
    later = file_of(tmp_path, "later.csv", passing(LATER, seed=1, prefix="b"), day="2026-02-05")
    operator.fill(file=later, reason="this year")
    operator.do()
    operator.do()
    scheduler()
    operator.open(f"{operator.of(benchmark)}/propose/")
    operator.fill(reason="many new agents")
    operator.do()
    scheduler()
    operator.open("/admin/")
    assert "another subset is proposed" in operator.text("#steps")
    operator.look("dashboard")
    operator.follow("Compare and decide")
    operator.look("comparison", "#comparison")
    operator.follow("Approve")
    operator.fill(variant="plain", reason="pass rates have moved")
    operator.do("approve")
    assert "Ranking tasks, version 2, are active" in operator.text()
    scheduler()
    subset = benchmark.subsets.get(number=2)
    assert sorted(subset.tasks.values_list("name", flat=True)) == S_PLAIN

    task = benchmark.tasks.get(name="t00")
    before = benchmark.boards.order_by("-number").first().digest
    operator.open(f"/admin/catalog/task/{task.pk}/retire/")
    operator.fill(reason="its checker is broken")
    operator.do("retire")
    assert "19 tasks would count instead of 20" in operator.text("#preview")
    operator.do("retire-preview")
    scheduler()
    assert benchmark.boards.order_by("-number").first().n_tasks == 19
    operator.open(f"/admin/catalog/task/{task.pk}/restore/")
    operator.fill(reason="its checker is mended")
    operator.do()
    operator.do("restore-preview")
    scheduler()
    assert benchmark.boards.order_by("-number").first().digest == before

    operator.open(f"{operator.of(benchmark)}/undo-load/")
    operator.fill(reason="the wrong file")
    operator.do()
    assert "16 submissions of 16 agents" in operator.text("#preview")
    operator.do("undo")
    assert "Withdrew 16 submissions" in operator.text()
    operator.open("/admin/audit/")
    assert "its checker is mended" in operator.text("#audit")
    assert "pass rates have moved" in operator.text("#audit")
    operator.look("audit")
    faults = [line for line in operator.browser.get_log("browser") if line["level"] == "SEVERE"]
    assert [line["message"] for line in faults] == []
