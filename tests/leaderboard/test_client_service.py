"""The client and the downloads against the real service: gunicorn over a database of its own."""

import json
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest

import bandstand_client
from bandstand_client import main
from tests.leaderboard.service import Service, full_run, wait_until
from tests.toys import csv_text, graded


@pytest.fixture(scope="module")
def service():
    service = Service()
    service.load(csv_text(graded(16, 20)), "toy")
    service.manage("policy", "toy", "--set", "publish_every=0")
    service.manage("recompute", "toy")
    service.web()
    yield service
    service.close()


@pytest.fixture(autouse=True)
def settings(service, monkeypatch, tmp_path):
    monkeypatch.setenv("BANDSTAND_SERVER", service.address)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_delivering_and_downloading(service, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BANDSTAND_TOKEN", service.token("toy"))
    (tmp_path / "run.json").write_text(json.dumps(full_run("new", "1" * 20)))
    said = []
    for _ in range(2):
        assert main(["submit", "run.json", "--benchmark", "toy", "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert (said[0]["status"], said[0]["n_outcomes"]) == ("accepted", 20)
    assert said[1] == said[0] | {"replayed": True}
    (tmp_path / "bad.json").write_text(json.dumps(full_run("bad", "12")))
    assert main(["submit", "bad.json", "--benchmark", "toy"]) == 1
    assert 'row 2, outcome "2": ' in capsys.readouterr().err
    service.manage("recompute", "toy")
    digest = service.boards("toy")[-1][2]
    ((version,),) = service.rows("SELECT data_version FROM catalog_benchmark WHERE slug = 'toy'")
    for kind in bandstand_client.FORMATS:
        assert main(["export", "toy", "--format", kind, "--with-subsets", "--force"]) == 0
        assert f"toy.{kind}: 340 outcomes, data version {version}." in capsys.readouterr().out
    lines = (tmp_path / "toy.ndjson").read_text().splitlines()
    assert {json.loads(line)["agent"] for line in lines} == {"new", *graded(16, 20)}
    assert len(digest) == 64


@pytest.mark.slow
def test_from_the_question_to_the_board(service, monkeypatch, tmp_path, capsys):
    """Tasks → an agent runs them → check → submit → status → the scheduler publishes → the board shows it."""
    monkeypatch.setenv("BANDSTAND_TOKEN", service.token("toy"))

    def said(*arguments):
        assert main([*arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    agent = {"name": "walker", "scaffold": "Loop", "model": "Model w"}
    asked = said("tasks", "toy", "--agent", "walker", "--scaffold", "Loop", "--model", "Model w")
    assert asked["mode"] == "staged"
    outcomes = [{"task": task, "trial": 1, "outcome": i % 2} for i, task in enumerate(asked["tasks"])]
    (tmp_path / "run.json").write_text(json.dumps({"agent": agent, "outcomes": outcomes}))
    assert said("check", "run.json", "--benchmark", "toy")["id"] is None
    receipt = said("submit", "run.json", "--benchmark", "toy")
    assert receipt["assignment"]["status"] in ("open", "fulfilled")  # open: it is asked for more
    assert said("status", receipt["id"])["board"] is None
    scheduler = service.scheduler()
    wait_until(lambda: said("status", receipt["id"])["board"] is not None)
    scheduler.send_signal(signal.SIGTERM)
    assert scheduler.wait(120) == 0
    entry = said("status", receipt["id"])["entry"]
    assert (entry["agent"], entry["n_tasks"]) == ("walker", len(outcomes))
    assert said("withdraw", receipt["id"], "--reason", "a bug")["status"] == "withdrawn"
    run_a_harness("toy", capsys)


def run_a_harness(slug, capsys):
    """One that forgets a task stops before anything is delivered; one that does not runs to the end."""
    harness = (
        "import sys\n"
        "tasks = open(sys.argv[1]).read().split()[int(sys.argv[3]) :]\n"
        "rows = [f'{task},1,{int(task[1:]) % 4 == 0:d}' for task in tasks]\n"
        "open(sys.argv[2], 'w').write('\\n'.join(['task,trial,outcome', *rows]))\n"
    )
    command = [
        "run",
        slug,
        "--agent",
        "runner",
        "--scaffold",
        "Loop",
        "--model",
        "Model r",
        "--",
        sys.executable,
    ]
    command += ["-c", harness, "{tasks}", "{outcomes}"]
    capsys.readouterr()
    assert main([*command, "1"]) == 1
    folder = Path(f"bandstand-{slug}-runner/batch-1")
    forgotten = (folder / "tasks.txt").read_text().split()[0]
    told = capsys.readouterr().err
    assert "Outcomes are missing; nothing was delivered." in told
    assert forgotten in told.splitlines()[-1]
    (folder / "outcomes").unlink()
    assert main([*command, "0"]) == 0
    printed = capsys.readouterr()
    assert "is accepted: " in printed.err + printed.out
    # Who is drawn to run the rest runs all tasks.
    assert any(end in printed.out for end in ("othing is left to run", "ll tasks are run"))
    assert main([*command, "0"]) == 0
    printed = capsys.readouterr().out
    assert printed in (
        "Nothing is left to run.\n",
        "This agent already ran all its tasks.\n",
    )


@pytest.mark.slow
def test_batch_after_batch_until_enough_is_known(service, monkeypatch, tmp_path, capsys):
    """Tasks → submit → tasks … → done, and the board ranks the agent by its estimate."""
    service.load(csv_text(graded(20, 100)), "walked")
    service.manage("policy", "walked", "--set", "draw_share=0", "publish_every=0")
    service.manage("recompute", "walked")
    monkeypatch.setenv("BANDSTAND_TOKEN", service.token("walked"))
    # What it passes has nothing to do with what others pass, and would be held for review.
    service.manage("trust", "walked", "ada@example.org", "--reason", "a test")
    described = ("--agent", "walker", "--scaffold", "Loop", "--model", "Model w")

    def next_batch():
        assert main(["tasks", "walked", *described]) == 0
        told = capsys.readouterr()
        return told.out, told.err

    n_run, told = 0, ""
    while (batch := next_batch())[0]:  # not even an empty line at the end: `[ -s batch ]` of docs/client.md
        tasks = batch[0].split()
        assert batch[0] == next_batch()[0]  # asked again before it is there, the same
        rows = [f"{task},1,{int(task[1:]) % 3 == 0:d}" for task in tasks]
        (tmp_path / "batch.csv").write_text("\n".join(["task,trial,outcome", *rows]) + "\n")
        assert main(["submit", "batch.csv", "--benchmark", "walked", *described]) == 0
        told = capsys.readouterr().out
        n_run += len(tasks)
    assert n_run < 100
    assert "stimated at" in told
    assert "nothing is left to run" in told
    assert "nothing is left to run" in batch[1]
    assert "ask again" not in batch[1]
    assert main(["status", told.split()[0]]) == 0
    assert "nothing is left to run" in capsys.readouterr().out
    service.manage("recompute", "walked")
    assert any("walker" in line and "~" in line for line in service.manage("standings", "walked"))
    run_a_harness("walked", capsys)


@pytest.fixture(scope="module")
def large(service):
    service.load(csv_text(graded(40, 3_000)), "large")


@pytest.mark.slow
def test_a_stream_whose_database_goes_away_is_reset(service, large):
    """No prefix passes for the whole, not even for a client that reads up to the end of the connection."""
    path = "/api/v1/benchmarks/large/outcomes.ndjson"
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        assert b" 200 " in wire.recv(100)
        ended = service.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state <> 'idle'"
            " AND starts_with(query, 'COPY (SELECT')"
        )
        assert ended == [(True,)]
        with pytest.raises(ConnectionResetError):
            read_to_the_end(wire)


def read_to_the_end(wire):
    while wire.recv(1 << 20):
        pass


@pytest.mark.slow
def test_places_come_back_when_readers_leave(service, large):
    """More readers than there are places, of whom each leaves in the middle: the next one is served."""

    def leave():
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as wire:
            path = "/api/v1/benchmarks/large/outcomes.csv"
            wire.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            wire.recv(1000)

    leaving = [threading.Thread(target=leave) for _ in range(8)]
    for thread in leaving:
        thread.start()
    for thread in leaving:
        thread.join()
    wait_until(lambda: main(["export", "large", "--tries", "1", "--force"]) == 0, seconds=60)
