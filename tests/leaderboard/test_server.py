"""`manage.py demo --serve` as a stranger starts it: real gunicorn, scheduler and HTTP, and Ctrl-C."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.leaderboard.service import Service, full_run, wait_until
from tests.toys import csv_text, graded

ROOT = Path(__file__).resolve().parents[2]
SLUG = "swe-bench-verified"
PATIENCE = 600  # nothing is measured: the demonstration is computed beside other tests


@pytest.fixture
def server():
    """Serve the demonstration from nothing; yield its process, address and home."""
    home = tempfile.mkdtemp(prefix="bst-")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    deployed = ("DATABASE_URL", "SECRET_KEY", "ALLOWED_HOSTS")
    environment = {name: value for name, value in os.environ.items() if name not in deployed}
    command = [sys.executable, "manage.py", "demo", "--serve", "--port", str(port)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment | {"BANDSTAND_HOME": home},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    yield process, f"http://127.0.0.1:{port}", home
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    shutil.rmtree(home, ignore_errors=True)


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def wait_until_served(address):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            return get(address)
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError(f"nothing answers at {address}")


def loaded_libraries(home):
    """The shared libraries in the memory of every web worker that uses this server's home."""
    text = ""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            of_home = f"BANDSTAND_HOME={home}".encode() in (folder / "environ").read_bytes().split(b"\0")
            if of_home and b"gunicorn" in (folder / "cmdline").read_bytes():
                text += (folder / "maps").read_text()
        except OSError:
            continue
    return set(re.findall(r"site-packages/(\S+\.so)", text))


def assert_shows_by_itself(address, home):
    """A submission by curl shows on the page within seconds, without another command."""
    made = subprocess.run(
        [sys.executable, "manage.py", "token", "ada@example.org", "--benchmark", SLUG],
        cwd=ROOT,
        env=os.environ | {"BANDSTAND_HOME": home},
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes = [{"task": "astropy__astropy-12907", "trial": 1, "outcome": 1}]
    body = {"agent": {"name": "Tree (M 2)", "scaffold": "Tree", "model": "M 2"}, "outcomes": outcomes}
    url = f"{address}/api/v1/benchmarks/{SLUG}/submissions"
    headers = ["-H", f"Authorization: Bearer {made.stdout.strip()}", "-H", "Content-Type: application/json"]
    command = ["curl", "--fail-with-body", "--silent", url, *headers, "-d", json.dumps(body)]
    sent = subprocess.run(command, capture_output=True, text=True)
    assert sent.returncode == 0, sent.stdout
    begin = time.monotonic()
    while "Tree (M 2)" not in get(f"{address}/b/{SLUG}")[1]:
        assert time.monotonic() - begin < PATIENCE
        time.sleep(0.1)
    print(f"\nshown after {time.monotonic() - begin:.1f} s")


@pytest.mark.slow
def test_a_stranger_walks_through_and_leaves(server):
    process, address, home = server
    assert wait_until_served(address)[0] == 200
    status, page = get(f"{address}/b/{SLUG}")
    assert (status, "153 of 500 tasks" in page) == (200, True)
    assert "Not the official leaderboard." in page
    status, page = get(f"{address}/b/{SLUG}-here")
    assert (status, "Comparison with full runs" in page, "Trials saved" in page) == (200, True, True)
    status, board = get(f"{address}/api/v1/benchmarks/{SLUG}/board")
    agents = json.loads(board)["agents"]
    assert (status, json.loads(board)["n_tasks"], json.loads(board)["n_complete"]) == (200, 500, 57)
    assert (len(agents), sum(line["at"]["full"]["rank"] is not None for line in agents)) == (57, 57)
    assert get(f"{address}/b/nope")[0] == 404
    assert get(f"{address}/static/css/bandstand.css")[0] == 200
    libraries = loaded_libraries(home)
    assert any(library.startswith("numpy/") for library in libraries)
    heavy = ("sklearn/", "pandas/", "scipy/stats/", "scipy/optimize/")
    assert not [library for library in libraries if library.startswith(heavy)]
    assert_shows_by_itself(address, home)
    os.killpg(process.pid, signal.SIGINT)
    printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"Serving http://localhost" in printed
    assert b"SWE-bench Verified: board 1, published " in printed
    assert not (Path(home) / "data" / "postmaster.pid").exists()


@pytest.mark.slow
def test_serving_is_printed_once_it_answers(tmp_path):
    service, printed = Service(), tmp_path / "printed"
    try:
        with printed.open("wb") as file:
            serve = service.start("manage.py", "serve", "--port", str(service.port), stdout=file)
        wait_until(lambda: "Serving http://localhost" in printed.read_text())
        assert service.get("/healthz")[0] == 200  # at once
        service.load(csv_text(graded(6, 12)), "toy")
        link = service.manage("invite", "eve@example.org", "--benchmark", "toy")[-1]
        assert link.startswith(f"http://localhost:{service.port}/invitation/")
        serve.send_signal(signal.SIGINT)
        assert serve.wait(PATIENCE) == 0
    finally:
        service.close()


@pytest.mark.slow
def test_a_killed_postgres_is_started_again(tmp_path):
    service, log = Service(), tmp_path / "log"
    try:
        service.load(csv_text(graded(6, 12)), "toy")
        service.manage("policy", "toy", "--set", "publish_every=0")
        secret = service.token("toy")
        with log.open("wb") as file:
            serve = service.start("manage.py", "serve", "--port", str(service.port), stderr=file)
        service.wait_until_served()
        wait_until(lambda: "leading" in log.read_text())
        told = []
        for n in range(3):
            marks = graded(6, 12, seed=n)["a03"]
            told.append(service.submit("toy", secret, full_run(f"newcomer {n}", marks)))
            service.end_postgres(signal.SIGKILL)
            seconds = wait_until(lambda: service.get("/readyz")[0] == 200)
            print(f"\nready {seconds:.1f} s after the kill")
        wait_until(lambda: all(f"newcomer {n}" in service.get("/b/toy")[2] for n in range(3)))
        assert [status for status, _, _ in told] == [201] * 3
        stored = {str(key) for (key,) in service.rows("SELECT uuid FROM submissions_submission")}
        assert {json.loads(content)["id"] for _, _, content in told} <= stored
        # A job's own process may have started it before the scheduler did; either way this leads again.
        wait_until(lambda: log.read_text().count("leading") >= 4)
        serve.send_signal(signal.SIGINT)
        assert serve.wait(PATIENCE) == 0
    finally:
        service.close()


@pytest.mark.slow
def test_serve_ends_and_says_so_where_a_killed_postgres_cannot_be_started(tmp_path):
    service, log = Service(), tmp_path / "log"
    control = Path(service.home) / "data" / "global" / "pg_control"
    try:
        with log.open("wb") as file:
            serve = service.start("manage.py", "serve", "--port", str(service.port), stderr=file)
        service.wait_until_served()
        wait_until(lambda: "leading" in log.read_text())
        control.rename(tmp_path / "pg_control")
        service.end_postgres(signal.SIGKILL)
        assert serve.wait(PATIENCE) == 1
        said = log.read_text()
        assert "PostgreSQL ended while it started." in said
        assert "The scheduler stopped with code 1, so everything was stopped." in said
    finally:
        service.close()
