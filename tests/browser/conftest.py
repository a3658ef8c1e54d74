"""A browser for the tests that need one."""

import os
import shutil

import pytest
from django.db import connections
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

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


@pytest.fixture(scope="session")
def programs():
    """The paths of chromium and its driver."""
    found = shutil.which("chromium"), shutil.which("chromedriver")
    if all(found):
        return found
    if os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail("REQUIRE_BROWSER=1, but chromium and chromedriver are not installed")
    return pytest.skip("chromium and chromedriver are not installed")


@pytest.fixture(scope="session")
def started(programs, tmp_path_factory):
    chromium, driver = programs
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
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
