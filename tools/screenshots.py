"""Take pictures of every public page of a demonstration, at three widths, in light and in the dark.

`python tools/screenshots.py [FOLDER]` makes the demonstration in a home of its own, serves it as it is
deployed, and writes <page>-<width>-<scheme>.png into FOLDER ("screenshots" if none is named). Of a page the
whole length is taken.
"""

import atexit
import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
SLUG = "demonstration"


def main() -> None:
    """Make the demonstration, serve it, and take the pictures."""
    into = Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots").resolve()
    into.mkdir(parents=True, exist_ok=True)
    home = os.environ["BANDSTAND_HOME"] = tempfile.mkdtemp(prefix="bst-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for name in ("DATABASE_URL", "SECRET_KEY", "ALLOWED_HOSTS"):
        os.environ.pop(name, None)
    from leaderboard import postgres

    postgres.ensure()
    addresses = demonstration()
    from perf.export import free_port, wait_until_served
    from tests.browser.conftest import started_browser

    os.environ["BANDSTAND_HOME"] = home  # the tests have one of their own
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:leaderboard.serving"]
    web = subprocess.Popen([*command, "--bind", f"127.0.0.1:{port}"], cwd=ROOT, stderr=subprocess.DEVNULL)
    browser = started_browser(tempfile.mkdtemp(prefix="bst-", dir=home))
    try:
        wait_until_served(port)
        for name, path in addresses.items():
            take(browser, f"http://127.0.0.1:{port}{path}", into, re.sub(r"\W+", "-", name))
    finally:
        browser.quit()
        web.terminate()
        web.wait()
    print(f"{len(list(into.glob('*.png')))} pictures in {into}")


def demonstration() -> dict[str, str]:
    """Make it, and return the addresses of its pages by name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections

    from leaderboard.catalog.models import Benchmark
    from tests.browser.pages import PAGES, SHOWN

    call_command("demo")
    benchmark = Benchmark.objects.get(slug=SLUG)
    addresses = {name: PAGES[name](benchmark) for name in SHOWN}
    connections.close_all()
    return addresses


def take(browser: Any, address: str, into: Path, name: str) -> None:
    """Write the pictures of one page."""
    from tests.browser.looking import SCHEMES, SIZES, emulate

    for width, scheme in product(SIZES, SCHEMES):
        emulate(browser, width, scheme)
        browser.get(address)
        size = browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        options = {"captureBeyondViewport": True, "clip": size | {"scale": 1}}
        whole = browser.execute_cdp_cmd("Page.captureScreenshot", options)
        (into / f"{name}-{width}-{scheme}.png").write_bytes(base64.b64decode(whole["data"]))


if __name__ == "__main__":
    main()
