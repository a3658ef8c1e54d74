"""axe-core on a page in the browser: what keeps people out."""

import hashlib
from functools import cache
from pathlib import Path

AXE = Path(__file__).with_name("axe") / "axe.min.js"
SHA256 = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
# WCAG 2.2 AA is in these, and what axe advises beyond it.
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
RUN = """
const done = arguments[arguments.length - 1];
const options = {resultTypes: ["violations"], preload: false};
if (arguments[1]) options.runOnly = {type: "tag", values: arguments[1]};
axe.run(arguments[0] || document, options).then(found => done(found.violations.map(
    one => [one.impact, one.id, one.help, one.nodes.map(node => node.target.join(" ") + ": " + node.html)])));
"""


@cache
def source():
    content = AXE.read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256
    return content.decode()


def violations(browser, within=None, *, tags=TAGS):
    """Whatever axe finds on the page, or inside of one selector: impact, rule, help, where."""
    if browser.execute_script("return typeof axe === 'undefined'"):  # a tenth of a second, once a page
        browser.execute_cdp_cmd("Runtime.evaluate", {"expression": source()})
    return browser.execute_async_script(RUN, within, tags)


def serious(browser, within=None):
    """The serious and critical violations on the page, or inside of one selector."""
    found = violations(browser, within, tags=None)
    return [one for one in found if one[0] in ("serious", "critical")]
