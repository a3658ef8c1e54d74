"""Many at once, and a process that dies: one delivery is stored once, and every answer is the same."""

import http.client
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from tests.leaderboard.service import PATIENCE, Service
from tests.toys import csv_text, graded

pytestmark = pytest.mark.slow

N_TASKS, N_TWINS, N_OTHERS, N_FIRST = 20, 20, 50, 8
BOUNDARY = "part"


@pytest.fixture(scope="module")
def service():
    service = Service()
    try:
        service.load(csv_text(graded(6, N_TASKS)), "toy")
        service.key = service.token("toy")
        bind = ["--bind", f"127.0.0.1:{service.port}"]
        service.start(
            *("-m", "gunicorn", "--config", "python:leaderboard.serving", *bind),
            "tests.leaderboard.dying:application",
            stderr=subprocess.DEVNULL,
        )
        service.wait_until_served()
        yield service
    finally:
        service.close()


def file_of(agent, trial):
    lines = ["task,trial,outcome", *(f"t{j:02d},{trial},{j % 2}" for j in range(N_TASKS))]
    fields = {"agent.name": agent, "agent.scaffold": "Loop", "agent.model": f"M {agent}"}
    parts = [
        f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}' for name, value in fields.items()
    ]
    parts.append(
        'Content-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n' + "\n".join(lines) + "\n"
    )
    return ("".join(f"--{BOUNDARY}\r\n{part}\r\n" for part in parts) + f"--{BOUNDARY}--\r\n").encode()


def post(service, agent, *, trial=1, **headers):
    """The status, the headers and the body of the answer; None where the connection broke."""
    asked = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    try:
        asked.request(
            "POST",
            "/api/v1/benchmarks/toy/submissions",
            file_of(agent, trial),
            kind | {"Authorization": f"Bearer {service.key}"} | headers,
        )
        answer = asked.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    except (http.client.HTTPException, ConnectionError):
        return None
    finally:
        asked.close()


def state(service, like):
    query = """
        SELECT count(*), (SELECT data_version FROM catalog_benchmark WHERE slug = 'toy')
        FROM submissions_submission s JOIN catalog_agent a ON a.id = s.agent_id WHERE a.name LIKE %s
    """
    ((n, version),) = service.rows(query, like)
    return n, version


def test_twenty_twins_with_one_key(service):
    _, before = state(service, "twin")
    with ThreadPoolExecutor(N_TWINS) as pool:
        answers = list(pool.map(lambda _: post(service, "twin", **{"Idempotency-Key": "k"}), range(N_TWINS)))
    assert {code for code, _, _ in answers} == {201}
    assert len({text for _, _, text in answers}) == 1
    assert sum(headers.get("Idempotent-Replayed") == "true" for _, headers, _ in answers) == N_TWINS - 1
    assert state(service, "twin") == (1, before + 1)


def test_fifty_others_at_once(service):
    _, before = state(service, "other%")
    with ThreadPoolExecutor(N_OTHERS) as pool:
        answers = list(pool.map(lambda i: post(service, f"other{i}"), range(N_OTHERS)))
    assert [(code, text[:300]) for code, _, text in answers if code != 201] == []
    left = {json.loads(text)["quota"]["account"]["left"] for _, _, text in answers}
    assert len(left) == N_OTHERS
    assert state(service, "other%") == (N_OTHERS, before + N_OTHERS)
    service.manage("recompute", "toy")
    number, version, _ = service.boards("toy")[-1]
    assert version == before + N_OTHERS
    board = json.loads(service.get("/api/v1/benchmarks/toy/board")[2])
    scores = {one["agent"]: one["at"]["full"]["score"] for one in board["agents"]}
    assert {score for agent, score in scores.items() if agent.startswith("other")} == {0.5}
    assert (number, sum(agent.startswith("other") for agent in scores)) == (1, N_OTHERS)


@pytest.mark.parametrize("again", range(4))
def test_eight_first_deliveries_of_one_agent(service, again):
    agent = f"first{again}"
    _, before = state(service, agent)
    with ThreadPoolExecutor(N_FIRST) as pool:
        answers = list(pool.map(lambda i: post(service, agent, trial=i + 1), range(N_FIRST)))
    assert [(code, text[:300]) for code, _, text in answers if code != 201] == []
    assert state(service, agent) == (N_FIRST, before + N_FIRST)


@pytest.mark.parametrize("again", range(3))
def test_kill_9_between_commit_and_answer(service, again):
    agent, key = f"killed{again}", {"Idempotency-Key": f"killed{again}"}
    _, before = state(service, agent)
    assert post(service, agent, **key, **{"X-Die": "1"}) is None
    assert state(service, agent) == (1, before + 1)
    code, headers, text = post(service, agent, **key)
    assert (code, headers["Idempotent-Replayed"]) == (201, "true")
    assert json.loads(text)["agent"] == agent
    assert state(service, agent) == (1, before + 1)
    assert json.loads(text)["quota"]["resets_at"] > f"{datetime.now(UTC):%Y-%m-%d}"
