"""kill -9 in the middle of `load`: the database is as before, and the next load works."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.toys import HEAD

ROOT = Path(__file__).resolve().parents[2]
N_KILLS = 12
COUNT = (
    "import django, json; django.setup();"
    "from django.apps import apps;"
    "from leaderboard.catalog.models import Benchmark;"
    "from leaderboard.submissions.models import Outcome;"
    "labels = ('catalog', 'submissions', 'studies', 'boards');"
    "rows = {m.__name__: m.objects.count() for l in labels for m in apps.get_app_config(l).get_models()};"
    "print(json.dumps([rows, Benchmark.objects.get().data_version]))"
)


@pytest.fixture(scope="module")
def home():
    folder = tempfile.mkdtemp(prefix="bst-")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def environment(home):
    """A server and a database of its own, as an operator has them."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL",)}
    return kept | {"BANDSTAND_HOME": home, "DJANGO_SETTINGS_MODULE": "leaderboard.settings"}


def flat_file(path, n_agents, n_tasks, n_trials, seed=1):
    draw = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{HEAD},cost_usd\n")
        for agent in range(n_agents):
            for task in range(n_tasks):
                for trial in range(n_trials):
                    outcome, cost = draw.randint(0, 1), draw.random()
                    file.write(
                        f"Toy,a{agent},Loop,M{agent},2026-01-05,t{task},{trial},{outcome},{cost:.4f}\n"
                    )
    return path


@pytest.mark.slow
def test_kill_9_during_load(environment, tmp_path):
    def run(*arguments, **options):
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            **options,
        ).stdout

    def state():
        return json.loads(run("-c", f"from leaderboard import postgres; postgres.ensure(); {COUNT}"))

    small = flat_file(tmp_path / "small.csv", 6, 20, 1)
    large = flat_file(tmp_path / "large.csv", 40, 500, 10, seed=2)
    run("manage.py", "migrate", "-v0")
    run("manage.py", "load", str(small), "--benchmark", "toy", "--replace")
    before = state()
    command = [sys.executable, "manage.py", "load", str(large), "--benchmark", "toy", "--replace"]
    begin = time.perf_counter()
    run(*command[1:], "--dry-run")
    whole = time.perf_counter() - begin
    draw = random.Random(7)
    n_killed = 0
    for _ in range(N_KILLS):
        load = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.3, 0.95) * whole)
        load.send_signal(signal.SIGKILL)
        n_killed += load.wait() == -signal.SIGKILL
        assert state() == before
    assert n_killed >= N_KILLS - 2
    assert "200,000 new" in run(*command[1:]) or "replaced" in run(*command[1:])
    assert state()[1] == before[1] + 1
