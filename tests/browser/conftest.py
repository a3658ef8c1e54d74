"""A browser for the tests that need one."""

import os
import shutil

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.db import connections
from pytest_django.live_server_helper import LiveServer
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.conftest import empty

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session", autouse=True)
def _static_files_as_deployed():
    """Served by the middleware, not by what Django's live server puts before it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFilesHandler, "_should_handle", lambda self, path: False)
        yield


@pytest.fixture(scope="session")
def programs():
    """See that chromium and its driver are there."""
    if shutil.which("chromium") and shutil.which("chromedriver"):
        return None
    if os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail("REQUIRE_BROWSER=1, but chromium and chromedriver are not installed")
    return pytest.skip("chromium and chromedriver are not installed")


def started_browser(profile):
    """A chromium of its own, which keeps what it keeps in that folder."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


@pytest.fixture(scope="session")
def started(programs, tmp_path_factory):
    browser = started_browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.quit()


@pytest.fixture
def browser(started, monkeypatch):
    """A browser at a desktop's size with nothing left of the test before it."""
    # A server thread lives as long as the browser's connection and would keep its own to the database.
    monkeypatch.setitem(connections.databases["default"], "CONN_MAX_AGE", 0)
    size = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    started.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    started.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    started.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    started.get_log("browser")
    yield started
    started.get("about:blank")


@pytest.fixture(scope="module")
def server(programs, django_db_setup, django_db_blocker):
    """A live server over what a module stores once, outside of any test's transaction, to look at it."""
    with django_db_blocker.unblock():
        server = LiveServer("localhost")
        yield server
        server.stop()
        empty()
