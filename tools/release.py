"""Keep what this release stores, for later ones to be tested on: `python tools/release.py`.

Writes tests/releases/VERSION.dump, by `manage.py backup` from a database that was filled through the commands
and the interface, and VERSION.json with the digests of its boards. tests/leaderboard/test_releases.py
restores each, migrates it and computes it anew. Run it when a release is cut; before the first one also after
a change of models (tools/migrations.py does).
"""

import atexit
import json
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
for deployed in ("DATABASE_URL", "SECRET_KEY", "ALLOWED_HOSTS"):
    os.environ.pop(deployed, None)
os.environ["BANDSTAND_HOME"] = tempfile.mkdtemp(prefix="bst-")
atexit.register(shutil.rmtree, os.environ["BANDSTAND_HOME"], ignore_errors=True)
os.environ["WEBHOOKS_MAY_BE_PRIVATE"] = "on"  # its webhook is of this machine: nothing is looked up
os.environ["DJANGO_SETTINGS_MODULE"] = "leaderboard.settings"
FOLDER = ROOT / "tests" / "releases"
SLUG = "toy"


def main() -> None:
    """Fill a database of its own, and write it."""
    import django

    from leaderboard import postgres

    postgres.ensure(durable=False)
    django.setup()
    from django.core.management import call_command

    from leaderboard.boards.models import Board
    from leaderboard.studies.models import ESTIMATOR_VERSION

    call_command("migrate", verbosity=0)
    fill()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    FOLDER.mkdir(exist_ok=True)
    call_command("backup", str(FOLDER / f"{version}.dump"), "--force")
    boards = Board.objects.order_by("number").values_list("digest", flat=True)
    told = {"estimator_version": ESTIMATOR_VERSION, "boards": list(boards)}
    (FOLDER / f"{version}.json").write_text(json.dumps(told, indent=1) + "\n")


def fill() -> None:
    """Make history, a subset, an agent that was asked for it, corrections and studies: four boards."""
    from django.core.management import call_command

    from tests.toys import csv_text, graded, in_subset, load_text, only, recomputed

    reason = ("--reason", "as an operator would")
    load_text(csv_text(graded(16, 20)), slug=SLUG)
    tasks = in_subset(recomputed(SLUG))
    call_command("webhooks", SLUG, "--add", "https://127.0.0.1/bandstand", verbosity=0)
    (marks,) = graded(1, 20, seed=1, prefix="b").values()
    deliver("b00", only(marks, tasks))
    recomputed(SLUG)
    call_command("rename", SLUG, "a03", "An Agent", *reason)
    call_command("retire", SLUG, "t19", *reason)
    recomputed(SLUG)
    call_command("variance", SLUG)
    call_command("validate", SLUG)
    call_command("drift", SLUG)
    recomputed(SLUG)


def deliver(agent: str, marks: str) -> None:
    """Submit outcomes by the interface, as somebody who has an account and a token."""
    from datetime import UTC, datetime, timedelta

    from django.test import Client

    from leaderboard.operations.services import issue_token

    who = {"email": "ada@example.org", "slug": SLUG, "scope": "submit", "name": "ci"}
    _, token = issue_token(**who, as_of=datetime.now(UTC), life=timedelta(days=1))
    outcomes = [
        {"task": f"t{j:02d}", "trial": 1, "outcome": int(mark)} for j, mark in enumerate(marks) if mark != "."
    ]
    body = {"agent": {"name": agent, "scaffold": "Loop", "model": "M"}, "outcomes": outcomes}
    answer = Client(headers={"Authorization": f"Bearer {token}", "Host": "localhost"}).post(
        f"/api/v1/benchmarks/{SLUG}/submissions", body, content_type="application/json", secure=True
    )
    assert answer.status_code == 201, answer.content


if __name__ == "__main__":
    main()
