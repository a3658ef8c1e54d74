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
N_KILLS = 4
N_ROWS = 200_000
COUNT = """
import json
from leaderboard import postgres
postgres.ensure()
import django
django.setup()
from django.apps import apps
labels = ("catalog", "submissions", "studies", "boards")
models = [model for label in labels for model in apps.get_app_config(label).get_models()]
print(json.dumps({model.__name__: model.objects.count() for model in models}))
"""


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


def flat_file(path, *, n_agents, n_tasks, n_trials, seed=1):
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
@pytest.mark.parametrize("seed", [7, 8, 9])
def test_kill_9_during_load(environment, tmp_path, seed):
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
        return json.loads(run("-c", COUNT))

    file = flat_file(tmp_path / "large.csv", n_agents=40, n_tasks=500, n_trials=10)
    run("manage.py", "migrate", "-v0")
    begin = time.perf_counter()
    run("manage.py", "load", str(file), "--benchmark", f"whole{seed}")
    whole = time.perf_counter() - begin
    draw = random.Random(seed)
    killed = []
    for i in range(N_KILLS):
        before = state()
        command = [sys.executable, "manage.py", "load", str(file), "--benchmark", f"toy{seed}-{i}"]
        load = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.2, 0.9) * whole)
        load.send_signal(signal.SIGKILL)
        load.wait()
        after = state()
        n_stored = after["Outcome"] - before["Outcome"]
        assert n_stored in (0, N_ROWS)  # it may have committed just before
        if n_stored == 0:
            assert after == before
            killed.append(f"toy{seed}-{i}")
    print(f"killed in the middle: {len(killed)} of {N_KILLS}")
    assert len(killed) >= N_KILLS / 3
    assert f"{N_ROWS:,} new results" in run("manage.py", "load", str(file), "--benchmark", killed[-1])
    assert f"0 new results, {N_ROWS:,} already stored" in run(
        "manage.py", "load", str(file), "--benchmark", killed[-1]
    )
