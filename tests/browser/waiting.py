"""Waiting for a page that takes the place of another, or changes."""

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.support.wait import WebDriverWait

SECONDS = 20


def wait_until(browser, condition):
    """Wait for it; an element that goes while it is looked at is looked for again.

    The driver does not call each of them stale: some are a node that does not belong to the document.
    """
    WebDriverWait(browser, SECONDS, ignored_exceptions=[WebDriverException]).until(condition)
