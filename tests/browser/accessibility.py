"""axe-core on a page in the browser: what keeps people out."""

import hashlib
from pathlib import Path

AXE = Path(__file__).with_name("axe") / "axe.min.js"
SHA256 = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
RUN = """
const done = arguments[arguments.length - 1];
axe.run(arguments[0] || document, {resultTypes: ["violations"]}).then(found => done(found.violations.map(
    one => [one.impact, one.id, one.help, one.nodes.map(node => node.target.join(" ") + ": " + node.html)])));
"""


def serious(browser, within=None):
    """The serious and critical violations on the page, or inside of one selector."""
    source = AXE.read_bytes()
    assert hashlib.sha256(source).hexdigest() == SHA256
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": source.decode()})
    found = browser.execute_async_script(RUN, within)
    return [one for one in found if one[0] in ("serious", "critical")]
