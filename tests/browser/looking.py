"""What is seen of a page in the browser: its sizes, what it asked for, its numbers, and how it prints."""

import base64
import re
import subprocess
from dataclasses import dataclass

SIZES = {1440: 900, 768: 1024, 390: 844}  # CSS pixels
SCHEMES = ("light", "dark")
STATE = """
const rows = [...document.querySelectorAll(arguments[0])];
const boxes = rows.map(row => row.getBoundingClientRect());
return {
    n: rows.length,
    first: boxes.length ? boxes[0].top + scrollY : 0,
    highest: Math.max(0, ...boxes.map(box => box.height)),
    nodes: Math.max(0, ...rows.map(row => row.querySelectorAll("*").length + 1)),
    all: document.querySelectorAll("*").length,
};
"""


def emulate(browser, width, scheme="light", *, media=""):
    size = {"width": width, "height": SIZES[width], "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def scripts(browser, *, on):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not on})


@dataclass(frozen=True)
class Rows:
    """The rows of a table: their number, where the first begins, the highest (CSS pixels), and elements.

    Of a table without rows all is 0.
    """

    n: int
    first: float
    highest: float
    nodes: int
    all: int


def rows(browser, selector):
    return Rows(**browser.execute_script(STATE, selector))


def asked_for(browser):
    """The addresses of everything that the page asked for, itself included."""
    return browser.execute_script(
        "return performance.getEntries().map(entry => entry.name).filter(name => /^[a-z]+:/.test(name))"
    )


def too_wide(browser):
    """How far the window scrolls sideways, with everything unfolded, and what reaches out."""
    return browser.execute_script("""
        for (const one of document.querySelectorAll("details")) one.open = true;
        const width = document.documentElement.clientWidth;
        const out = [...document.body.querySelectorAll("*")].filter(
            one => one.getBoundingClientRect().right > width + 1 && !one.closest(".scroll, svg"));
        return [document.documentElement.scrollWidth - width,
                out.slice(0, 5).map(one => one.tagName + "." + one.getAttribute("class"))];""")


def numbers(browser):
    """Every number that is in sight on the page, in order."""
    text = browser.execute_script("return document.querySelector('main').innerText")
    return re.findall(r"\d[\d.,]*", text)


def first_paint(browser):
    """Seconds from asking for the page to its first content."""
    painted = browser.execute_async_script("""
        const done = arguments[0];
        new PerformanceObserver(list => done(list.getEntriesByName("first-contentful-paint")[0].startTime))
            .observe({type: "paint", buffered: true});""")
    return painted / 1000


def printed_pages(browser, folder):
    """How many pages of A4 it takes on paper."""
    options = {"paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": True}
    path = folder / "page.pdf"
    path.write_bytes(base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", options)["data"]))
    told = subprocess.run(["pdfinfo", path], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^Pages:\s+(\d+)", told, re.MULTILINE)[1])
