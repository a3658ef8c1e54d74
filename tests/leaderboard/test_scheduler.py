"""Real schedulers on a real server: who leads, who takes over, what a signal does, and what the web says."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.leaderboard.service import (
    PATIENCE,
    Service,
    answer_to,
    free_port,
    full_run,
    is_alive,
    wait_until,
)
from tests.toys import csv_text, graded

LONG = 300  # seconds: a long run takes only what processor time others leave
LEFT_RUNNING = """
INSERT INTO operations_jobrun
    (kind, lane, benchmark_id, about, status, reason, claim, created_at, started_at, heartbeat_at,
     n_done, n_total, told, error)
SELECT %s, %s, id, '', 'running', '', gen_random_uuid(), now(), now(), now(), 0, 0, '', ''
FROM catalog_benchmark WHERE slug = %s
"""


@pytest.fixture(scope="module")
def service():
    """Pages are served, six agents are loaded, and boards may follow each other at once."""
    service = Service()
    try:
        service.load(csv_text(graded(6, 12)), "toy")
        service.manage("policy", "toy", "--set", "publish_every=0", "subset_from=5")
        service.web()
        yield service
    finally:
        service.close()


@pytest.fixture
def scheduler(service):
    """One scheduler, that leads."""
    process = service.scheduler()
    wait_until(lambda: "leading" in process.log.read_text())
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def claims(service):
    """The claims of those whose runs lie in the table, in the order in which they came."""
    return list(dict.fromkeys(claim for _, claim, _, _ in service.runs("reconcile")))


def deliver(service, name, seed):
    """Submit an agent that ran all twelve tasks."""
    if not hasattr(service, "secret"):
        service.secret = service.token("toy")
    marks = graded(6, 12, seed=seed)["a03"]
    status, _, content = service.submit("toy", service.secret, full_run(name, marks))
    assert status == 201, content
    return json.loads(content)


def has_board_of_now(service):
    (version,) = service.rows("SELECT data_version FROM catalog_benchmark WHERE slug = 'toy'")[0]
    return any(of == version for _, of, _ in service.boards("toy"))


@pytest.mark.slow
def test_a_submission_shows_on_the_page_by_itself(service, scheduler):
    wait_until(lambda: has_board_of_now(service))
    deliver(service, "newcomer", 1)
    seconds = wait_until(lambda: "newcomer" in service.get("/b/toy")[2])
    print(f"\nshown after {seconds:.1f} s")
    assert ("done", "") in {(status, error) for status, _, error, _ in service.runs("reconcile")}


@pytest.mark.slow
def test_what_runs_tells_that_it_lives_and_studies_come_by_themselves(service, scheduler):
    wait_until(lambda: service.runs("validate") and service.runs("validate")[-1][0] == "done", seconds=LONG)
    ((n_done, n_total),) = service.rows(
        "SELECT n_done, n_total FROM operations_jobrun WHERE kind = 'validate' ORDER BY id DESC LIMIT 1"
    )
    assert 0 < n_done <= n_total
    wait_until(lambda: service.is_current("toy"))


@pytest.mark.slow
def test_one_leads_and_another_takes_over(service, scheduler):
    wait_until(lambda: has_board_of_now(service))
    second = service.scheduler()
    try:
        wait_until(lambda: "another scheduler leads" in second.log.read_text())
        scheduler.kill()
        killed = time.monotonic()
        wait_until(lambda: "leading" in second.log.read_text(), seconds=30, every=0.05)
        deliver(service, f"after {scheduler.pid}", 2)
        wait_until(lambda: has_board_of_now(service))
        seconds = time.monotonic() - killed
        print(f"\nfail-over, with a board of what came after it: {seconds:.1f} s")
        scheduler.wait()
        assert len(claims(service)) >= 2
    finally:
        second.send_signal(signal.SIGTERM)
        assert second.wait(PATIENCE) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "lane"), [("reconcile", "prompt"), ("variance", "long")])
def test_what_a_dead_scheduler_left_running_is_taken_over(service, kind, lane):
    with service.connect() as connection:
        connection.execute(LEFT_RUNNING, [kind, lane, "toy"])
    (_, _, _, left) = service.runs(kind)[-1]
    process = service.scheduler()
    wait_until(lambda: {run[3]: run[0] for run in service.runs(kind)}[left] == "abandoned")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0


@pytest.mark.slow
def test_a_long_run_ends_with_its_scheduler(service, scheduler):
    for number in (signal.SIGTERM, signal.SIGKILL):
        pid = long_run(service, scheduler)
        wait_until(lambda pid=pid: gives_way(pid, 10))
        assert gives_way(scheduler.pid, 5)
        scheduler.send_signal(number)
        code = scheduler.wait(PATIENCE)
        wait_until(lambda pid=pid: not is_alive(pid), seconds=15)
        if number == signal.SIGTERM:
            assert code == 0
            assert service.runs("validate")[-1][0] in ("queued", "abandoned")
        scheduler = service.scheduler()
    wait_until(lambda: "leading" in scheduler.log.read_text())
    scheduler.send_signal(signal.SIGTERM)
    assert scheduler.wait(PATIENCE) == 0


def long_run(service, scheduler):
    """Have a validation of new data begun, and return its process."""
    deliver(service, f"long {time.monotonic()}", 3)
    with service.connect() as connection:
        connection.execute(
            """
            INSERT INTO operations_jobrun
                (kind, lane, benchmark_id, about, status, reason, created_at, n_done, n_total, told, error)
            SELECT 'validate', 'long', id, '', 'queued', 'asked', now(), 0, 0, '', ''
            FROM catalog_benchmark WHERE slug = 'toy' ON CONFLICT DO NOTHING
            """
        )

    def child():
        return [int(pid) for pid in children(scheduler.pid) if b"run-job" in command_line(pid)]

    wait_until(child)
    return child()[0]


def gives_way(pid, niceness):
    """Where the kernel shares processor time among sessions, the session of the process gives way too."""
    group = Path(f"/proc/{pid}/autogroup")
    return os.getpriority(os.PRIO_PROCESS, pid) == niceness and (
        not group.exists() or group.read_text().endswith(f"nice {niceness}\n")
    )


def children(pid):
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as file:
            found += file.read().split()
    return found


def command_line(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


@pytest.mark.slow
def test_postgres_stops_and_comes_back(service, scheduler):
    wait_until(lambda: has_board_of_now(service))
    with service.without_postgres():
        status, headers, content = service.get("/b/toy")
        assert (status, headers["Retry-After"], "Back in a moment" in content) == (503, "5", True)
        status, headers, content = service.get("/api/v1/benchmarks/toy/board")
        assert (status, headers["Retry-After"]) == (503, "5")
        assert headers["Content-Type"] == "application/problem+json"
        assert json.loads(content)["title"] == "Database unavailable"
        status, headers, content = service.get("/readyz")
        why = "does not answer: start PostgreSQL, or correct DATABASE_URL"
        assert (status, json.loads(content)["database"]) == (503, why)
        assert service.get("/healthz")[0] == 200
        before = cpu_seconds(scheduler.pid)
        time.sleep(5)
        spent = cpu_seconds(scheduler.pid) - before
        assert scheduler.log.read_text().count("leading") == 1
    seconds = wait_until(lambda: scheduler.log.read_text().count("leading") == 2)
    assert service.get("/b/toy")[0] == 200
    print(f"\nwithout a database for 5 s: {spent:.2f} s of processor time; led again {seconds:.1f} s later")
    assert spent < 1
    deliver(service, "after the stop", 4)
    wait_until(lambda: has_board_of_now(service))
    assert service.get("/readyz")[0] == 200


@pytest.mark.slow
def test_web_and_scheduler_start_on_matching_tables_only(service, monkeypatch, tmp_path):
    monkeypatch.setitem(service.environment, "TMPDIR", str(tmp_path))
    with service.connect() as database:
        database.execute("UPDATE django_migrations SET name = '0001_of_yesterday' WHERE app = 'pages'")
    gunicorn = ["-m", "gunicorn", "--config", "python:leaderboard.serving"]
    for arguments in ([*gunicorn, "--bind", f"127.0.0.1:{free_port()}"], ["manage.py", "scheduler"]):
        process = service.start(*arguments, stderr=subprocess.PIPE)
        said = process.communicate(timeout=PATIENCE)[1].decode()
        assert process.returncode == 1, said
        assert "The tables do not match this version: 1 migration not applied (pages.0001_initial)" in said
        assert "Traceback" not in said
    assert not list(tmp_path.iterdir())  # of those that did not start
    with service.connect() as database:
        database.execute("UPDATE django_migrations SET name = '0001_initial' WHERE app = 'pages'")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_sigterm_ends_an_idle_scheduler_at_once(service):
    process = service.scheduler()
    wait_until(lambda: "leading" in process.log.read_text())
    wait_until(lambda: service.is_current("toy"))
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    assert not service.rows("SELECT id FROM operations_jobrun WHERE status = 'running'")


# ---------------------------------------------------------------------------------------- both in one command


@pytest.fixture
def serve(service):
    """`manage.py serve` beside what the module serves; yields it, its address, and its children by name."""
    port = free_port()
    with (Path(service.home) / f"serve-{port}.log").open("wb") as log:
        process = service.start("manage.py", "serve", "--port", str(port), stdout=log, stderr=log)
    process.address, process.log = f"http://127.0.0.1:{port}", Path(log.name)
    wait_until(lambda: "Booting worker" in process.log.read_text())
    wait_until(lambda: "leading" in process.log.read_text())
    process.parts = {
        name: int(pid)
        for pid in children(process.pid)
        for name in (b"gunicorn", b"scheduler")
        if name in command_line(pid)
    }
    return process


def gone(*pids):
    return not any(map(is_alive, pids))


@pytest.mark.slow
@pytest.mark.parametrize("to_all", [True, False], ids=["Ctrl-C in a terminal", "a signal to one"])
def test_one_signal_ends_both(serve, to_all):
    assert answer_to(f"{serve.address}/")[0] == 200
    assert len(serve.parts) == 2
    os.killpg(serve.pid, signal.SIGINT) if to_all else serve.send_signal(signal.SIGTERM)
    assert serve.wait(PATIENCE) == 0
    assert gone(*serve.parts.values())
    log = serve.log.read_text()
    assert ("Traceback" in log, "SIGKILL" in log) == (False, False)


@pytest.mark.slow
def test_both_end_after_a_serve_that_was_killed(serve):
    serve.kill()
    serve.wait(PATIENCE)
    wait_until(lambda: gone(*serve.parts.values()))


@pytest.mark.slow
@pytest.mark.parametrize(("part", "named"), [(b"gunicorn", "web server"), (b"scheduler", "scheduler")])
def test_when_one_dies_the_other_ends_with_a_message(serve, part, named):
    os.kill(serve.parts[part], signal.SIGKILL)
    assert serve.wait(PATIENCE) == 1
    assert gone(*serve.parts.values())
    assert f"The {named} stopped with code -9, so everything was stopped." in serve.log.read_text()
