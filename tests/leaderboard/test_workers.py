"""Real gunicorn under odd requests: no fault of ours, no header that moves the address, bounded memory."""

import gzip
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from leaderboard.catalog.models import Task
from leaderboard.operations.quotas import MAX_ATTEMPTS
from leaderboard.operations.services import measure_variance, recompute
from leaderboard.submissions.models import Submission
from tests.leaderboard.api.test_body_fields import DEEP, ODD, PATHS, body, body_with
from tests.leaderboard.desk import person
from tests.leaderboard.service import migrated_home, wait_until
from tests.toys import AS_OF, csv_text, ladder, load_text

ROOT = Path(__file__).resolve().parents[2]
SUBMISSIONS = "/api/v1/benchmarks/toy/submissions"
PATIENCE = 60
MIB = 2**20


def manage(environment, *arguments):
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""


@pytest.fixture(scope="module")
def environment():
    deployed = ("DATABASE_URL", "SECRET_KEY", "ALLOWED_HOSTS", "SCRIPT_NAME")
    kept = {name: value for name, value in os.environ.items() if name not in deployed}
    return kept | {"BANDSTAND_HOME": migrated_home()}


@pytest.fixture(scope="module")
def served(tmp_path_factory, environment):
    """Gunicorn with one worker over a database of its own: its port, its process and a token."""
    home = environment["BANDSTAND_HOME"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ["--config", "python:leaderboard.serving", "--bind", f"127.0.0.1:{port}", "--workers", "1"]
    command = [sys.executable, "-m", "gunicorn", *settings]
    outcomes = tmp_path_factory.mktemp("files") / "toy.csv"
    outcomes.write_text(csv_text(ladder(16, 20)))
    manage(environment, "load", str(outcomes), "--benchmark", "toy")
    token = manage(environment, "token", "ada@example.org", "--benchmark", "toy")
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_for(port)
        yield port, process, token
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=PATIENCE)
        shutil.rmtree(home, ignore_errors=True)


def wait_for(port):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nothing listens on port {port}")


def ask(port, method, path, content=None, headers=(), kind="application/json"):
    """The status, media type and body of the answer."""
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        asked.putrequest(method, path)
        if content is not None:
            asked.putheader("Content-Length", str(len(content)))
            asked.putheader("Content-Type", kind)
        for name, value in headers:
            asked.putheader(name, value)
        asked.endheaders(content)
        answer = asked.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read()
    finally:
        asked.close()


WAITS_FOR_ITSELF = """
import os, signal, threading, time
from types import SimpleNamespace
from leaderboard import serving
serving.QUIT_WITHIN = 1
lock = threading.Lock()
lock.acquire()
serving.post_worker_init(SimpleNamespace(handle_quit=lambda *_: lock.acquire()))
os.kill(os.getpid(), signal.SIGINT)
"""


def test_a_worker_ends_though_its_answer_to_ctrl_c_waits_for_a_lock_that_it_holds_itself():
    ended = subprocess.run(
        [sys.executable, "-c", WAITS_FOR_ITSELF], cwd=ROOT, capture_output=True, timeout=PATIENCE
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGALRM, b"")


@pytest.mark.parametrize(
    "header", ["SCRIPT_NAME", "Script_Name", "SCRIPT-NAME", "PATH_INFO", "PATH-INFO", "REMOTE_USER"]
)
@pytest.mark.parametrize("value", ["/elsewhere", "/api", "", "x" * 500])
def test_no_header_moves_the_application(served, header, value):
    port, _, _ = served
    assert ask(port, "GET", "/", headers=[(header, value)])[0] == 200
    status, kind, content = ask(port, "GET", "/api/v1/benchmarks/none/board", headers=[(header, value)])
    assert (status, kind, json.loads(content)["status"]) == (404, "application/problem+json", 404)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/", 404),
        ("/api/nowhere", 404),
        ("/api/v1/benchmarks/toy/submissions", 401),
        ("/api/v1/benchmarks/none/board", 404),
        ("/api/v1/benchmarks/%00/board", 404),
        ("/api/v1/benchmarks/%ff/board", 404),
    ],
)
def test_every_refusal_under_api_is_a_problem(served, path, status):
    found, kind, content = ask(served[0], "GET", path)
    assert (found, kind) == (status, "application/problem+json")
    assert json.loads(content)["status"] == status


def test_a_content_type_that_cannot_be_read_is_none(served):
    port, _, token = served
    odd = [("Content-Type", "multipart/form-data; boundary*=none''x"), ("Content-Length", "0")]
    status, kind, _ = ask(port, "POST", SUBMISSIONS, headers=[*odd, ("Authorization", f"Bearer {token}")])
    assert (status, kind) == (400, "application/problem+json")  # of no bytes
    assert ask(port, "GET", "/", headers=odd)[0] == 200


def test_a_foreign_host_under_api_gets_a_problem(served):
    asked = http.client.HTTPConnection("127.0.0.1", served[0], timeout=PATIENCE)
    asked.request("GET", "/api/v1/benchmarks/toy/board", headers={"Host": "elsewhere.example"})
    answer = asked.getresponse()
    assert (answer.status, answer.getheader("Content-Type")) == (400, "application/problem+json")
    asked.close()


def resident(process):
    """Bytes of memory of each worker, at its highest since it began."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(status(pid)["VmHWM"].split()[0]) * 1024 for pid in children]


def status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def odd_bodies():
    """Five hundred bodies: every odd value in every place, and large ones of very many values."""
    rng = random.Random(5)
    texts = [body_with(path, odd) for path in PATHS for odd in (*ODD.values(), *DEEP.values())]
    rng.shuffle(texts)
    yield from (text.encode() for text in texts[:450])
    row = {"task": "t01", "trial": 1, "outcome": 1}
    large = [
        b"[" + b"[]," * 5_000_000 + b"0]",
        b'{"outcomes": [' + b"{}," * 5_000_000 + b"{}]}",
        b'{"outcomes": [' + b"1.5," * 3_900_000 + b"1]}",
        b'{"outcomes": [' + b'{"a":[0,0,0]},' * 370_000 + b"{}]}",
        b'"' + b"\\u00e9" * 2_700_000 + b'"',
        b'{"a": "' + "é😀".encode() * 2_500_000 + b'"}',
        json.dumps(body() | {"outcomes": [row | {"note": "x" * 4000}] * 4000}).encode(),
        json.dumps(body() | {"outcomes": [row | {f"c{j}": "" for j in range(60)}] * 18_000}).encode(),
        json.dumps(body() | {"outcomes": [row | {f"c{j}": "" for j in range(25)}] * 20_000}).encode(),
        json.dumps(body() | {"outcomes": [row | {"task": f"t{i}"} for i in range(20_000)]}).encode(),
        json.dumps(body() | {"outcomes": [{f"k{i}": 1} for i in range(20_000)]}).encode(),
    ]
    yield from (large * 5)[:50]


@pytest.mark.slow
def test_probes_are_answered_while_more_files_come_than_there_are_threads(served):
    """One is read and one waits; all others are told at once to come again."""
    port, _, token = served
    faulty = gzip.compress(b'{"a":}\n' * 2_000_000)
    part = b'Content-Disposition: form-data; name="file"; filename="a.ndjson.gz"'
    content = b"--B\r\n" + part + b"\r\n\r\n" + faulty + b"\r\n--B--\r\n"
    headers, kind = [("Authorization", f"Bearer {token}")], "multipart/form-data; boundary=B"
    answers = []

    def deliver():
        answers.append(ask(port, "POST", f"{SUBMISSIONS}?dry_run=true", content, headers, kind)[0])

    senders = [threading.Thread(target=deliver) for _ in range(12)]
    for sender in senders:
        sender.start()
    wait_until(lambda: len(answers) >= 10)
    assert ask(port, "GET", "/healthz")[0] == 200
    assert answers == [503] * 10
    for sender in senders:
        sender.join()
    assert set(answers[10:]) <= {422, 503}  # the second where it waited for too long
    assert 422 in answers


@pytest.mark.slow
def test_a_worker_stays_small_under_five_hundred_odd_bodies(served, environment):
    """No token sends so many that the next are refused unread."""
    port, process, _ = served
    tokens = [
        manage(environment, "token", "ada@example.org", "--benchmark", "toy", "--name", f"token {i}")
        for i in range(500 // MAX_ATTEMPTS + 1)
    ]
    before = resident(process)
    answers = [
        ask(port, "POST", SUBMISSIONS, text, [("Authorization", f"Bearer {tokens[i // MAX_ATTEMPTS]}")])
        for i, text in enumerate(odd_bodies())
    ]
    after = resident(process)
    print(f"\nhighest resident memory: {before[0] / MIB:.0f} MiB before, {after[0] / MIB:.0f} MiB after")
    assert len(answers) == 500
    assert not [found for found in answers if found[0] >= 500]
    assert {found[0] for found in answers} <= {201, 400, 409, 413, 422}
    assert {kind for code, kind, _ in answers if code != 201} == {"application/problem+json"}
    assert max(after) < 450 * MIB


WALK = """
import json, sys
from django.conf import settings
settings.DATABASES["default"].update(json.loads(sys.argv[1]))
from leaderboard.wsgi import application
from django.test import Client
client = Client(headers={"host": "localhost"})
client.cookies["sessionid"] = sys.argv[5]
answered = []
for path in json.loads(sys.argv[2]):
    answer = client.get(path)
    content = b"".join(answer) if answer.streaming else answer.content
    answered.append(f"{path} {answer.status_code}")
answer = client.post(
    "/api/v1/benchmarks/toy/submissions", sys.argv[3], content_type="application/json",
    headers={"Authorization": "Bearer " + sys.argv[4]},
)
def loaded():
    return sorted(name for name, module in sys.modules.items() if module is not None)
walked = loaded()
said = json.loads(sys.argv[6])
preview = client.post(said.pop("path"), said)
for path in json.loads(sys.argv[7]):
    answered.append(f"{path} {client.get(path).status_code}")
print(json.dumps([answer.status_code, walked, loaded(), answered, preview.content.decode()]))
"""
# What is computed in a request; these import what ranks and what fits, but use of it only what is light.
COMPUTED = ["/api/v1/benchmarks/toy/compare?agents=a01&agents=a02", "/api/v1/benchmarks/toy/dstudy?N=40"]
GIVEN = {"secret": "none", "slug": "toy", "name": "a01", "number": 1, "n": 1, "agent": "a01", "task": "t01"}


def routes(patterns, before=""):
    """The addresses of all routes, with what they ask for filled in."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, before + str(pattern.pattern))
        elif isinstance(pattern, URLPattern):
            path = "/" + before + str(pattern.pattern)
            if "(?P" in path:  # allauth's keys in mails, and the admin's addresses of nothing
                continue
            yield re.sub(r"<(?:\w+:)?(\w+)>", lambda asked: str(GIVEN.get(asked[1], 1)), path)


@pytest.mark.django_db(transaction=True)
def test_web_workers_import_no_statistics(db):
    load_text(csv_text(ladder(16, 20)))
    toy = Submission.objects.first().agent.benchmark
    recompute(benchmark=toy, as_of=AS_OF)
    measure_variance(benchmark=toy, as_of=AS_OF)
    from tests.leaderboard.api.deliver import token_for

    database = {key: connection.settings_dict[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")}
    computed = {path.partition("?")[0] for path in COMPUTED}
    paths = sorted(set(routes(get_resolver().url_patterns)) - computed)
    assert len(paths) >= 5
    assert not [path for path in paths if "<" in path]
    staff = person("staff@example.org", staff=True)
    client = Client()
    client.force_login(staff)
    task = Task.objects.get(name="t01")
    preview = {"path": f"/admin/catalog/task/{task.pk}/retire/", "reason": "its checker is broken"}
    arguments = [
        *(json.dumps(database), json.dumps(paths), json.dumps(body()), token_for("ada@example.org")),
        *(client.cookies["sessionid"].value, json.dumps(preview), json.dumps(COMPUTED)),
    ]
    done = subprocess.run(
        [sys.executable, "-c", WALK, *arguments],
        cwd=ROOT,
        env=os.environ
        | {"DJANGO_SETTINGS_MODULE": "leaderboard.settings", "SECRET_KEY": settings.SECRET_KEY},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    code, modules, with_preview, walked, previewed = json.loads(done.stdout.splitlines()[-1])
    assert code == 201
    answered = dict(line.rsplit(" ", 1) for line in walked)
    assert {"/": "200", "/b/toy": "200", "/api/v1/benchmarks/toy/board": "200"}.items() <= answered.items()
    assert answered.pop("/readyz") == "503"  # no scheduler runs
    assert not [path for path, status in answered.items() if status.startswith(("400", "5"))]
    assert {answered[path] for path in (*COMPUTED, "/api/schema/", "/api/docs/")} == {"200"}
    assert answered["/admin/catalog/task/"] == answered["/admin/audit/"] == "200"
    assert "19 tasks would count instead of 20" in previewed
    assert {"numpy", "pyarrow"} <= set(modules)
    heavy = ("scipy.stats", "scipy.optimize", "sklearn", "pandas", "joblib", "matplotlib")
    assert not [name for name in with_preview if name.startswith(heavy)]
    light = subprocess.run([sys.executable, "-c", SPECIAL], capture_output=True, text=True, check=True)
    assert {name for name in modules if name.startswith("scipy.")} <= set(light.stdout.split())


# What scipy.special imports itself: from scipy 1.18 on also scipy.linalg.
SPECIAL = "import sys, scipy.special; print(*sys.modules)"
