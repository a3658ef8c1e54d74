"""`bandstand run` against a real HTTP server that keeps what it is sent: walks, crashes, refusals."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import bandstand_client
from bandstand_client import main

CLIENT = Path(__file__).resolve().parents[1] / "bandstand_client.py"
WALK = (("parse/quotes", "größe ✓", "--help"), ("a b", "'=1+1"), ("#7/../x",))
AGENT = ("--agent", "Ada", "--scaffold", "S", "--model", "M")
FOLDER = Path("bandstand-toy-Ada")

# Writes its first line to ran.log, and a row for each task; what stands in the file `mode` goes wrong.
HARNESS = """
import json, os, signal, sys, time
from pathlib import Path
tasks, outcomes = sys.argv[1:3]
mode = Path("mode").read_text() if Path("mode").exists() else ""
names = Path(tasks).read_text(encoding="utf-8").splitlines()
with open("ran.log", "a") as log:
    log.write(json.dumps(names) + "\\n")
rows = ['"%s",1,%d' % (name, len(name) % 2) for name in names]
if mode == "lacks":
    rows = rows[1:]
if mode == "faulty":
    rows[0] = rows[0][:-1] + "2"
if mode == "nothing":
    sys.exit()
with open(outcomes, "w", encoding="utf-8") as file:
    file.write("task,trial,outcome\\n" + rows[0])
    if mode in ("half", "patient"):
        if mode == "patient":
            signal.signal(signal.SIGINT, lambda *_: Path("go on").touch())
        file.flush()
        Path("half").write_text(str(os.getpid()))
        end = time.monotonic() + 60
        while not Path("go on").exists() and time.monotonic() < end:
            time.sleep(0.01)
    file.write("\\n" + "".join(row + "\\n" for row in rows[1:]))
if mode == "7":
    sys.exit(7)
if mode == "signal":
    os.kill(os.getpid(), signal.SIGTERM)
"""


class Service(ThreadingHTTPServer):
    """A benchmark with one agent; `batches` come one after the other where the mode is staged.

    `hang_at` = (n, "before" | "after"): the n-th request is held before or after the service acts on it, and
    dropped once `release` is set.
    """

    daemon_threads = True

    def __init__(self, mode="staged", batches=WALK):
        super().__init__(("127.0.0.1", 0), Handler)
        self.mode, self.batches, self.n_asked = mode, batches, 0
        self.rows, self.keys, self.stored, self.requests = {}, {}, [], []
        self.hang_at, self.hanging, self.release = None, threading.Event(), threading.Event()
        self.undecided, self.lock = 0, threading.Lock()
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request, client_address): ...

    @property
    def expected(self):
        return {name: len(name) % 2 for batch in self.batches for name in batch}

    def asked(self):
        return [name for batch in self.batches[: self.n_asked] for name in batch]

    def staged(self, rows, undecided=False):
        waiting = [name for name in self.asked() if name not in rows]
        done = not waiting and self.n_asked == len(self.batches)
        if done:
            told = "nothing is left to run: the score is known"
        else:
            told = f"{len(waiting)} tasks are still to be run"
        return {
            "stage": "stopped" if done else "running",
            "score": 0.5,
            "lower": 0.4,
            "upper": 0.6,
            "se": 0.05,
            "podium": 0.7,
            "best": 0.8,
            "n_run": len(rows),
            "n_tasks": 6,
            "waiting": [] if undecided else waiting,
            "done": done,
            "told": told,
        }

    def assignment(self, _):
        is_staged = self.mode == "staged"
        if not is_staged and set(self.expected) <= set(self.rows):
            return problem(409, "nothing_lacks", "This agent already ran all its tasks.")
        undecided, self.undecided = self.undecided > 0, self.undecided - 1
        if not undecided and set(self.asked()) <= set(self.rows):
            self.n_asked = min(self.n_asked + 1, len(self.batches)) if is_staged else len(self.batches)
        more = {"staged": self.staged(self.rows, undecided)} if is_staged else {"staged": None}
        return 200, {
            "id": "as-1",
            "mode": self.mode,
            "status": "open",
            "reason": "New.",
            "tasks": self.asked(),
            "n_trials": 1,
            "n_trials_recommended": 1,
            "expires_at": "2026-12-01",
            **more,
        }

    def submission(self, path, headers, body):
        message = BytesParser().parsebytes(f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode() + body)
        parts = {part.get_param("name", header="content-disposition"): part for part in message.get_payload()}
        said = json.loads(parts["submission"].get_payload())
        assert said["assignment"] == "as-1"
        text = parts["file"].get_payload(decode=True).decode()
        key, content, dry = headers.get("Idempotency-Key"), (json.dumps(said), text), "dry_run=true" in path
        if not dry and key in self.keys:
            first, receipt = self.keys[key]
            return (201, receipt) if first == content else problem(409, "key_reused", "Another body.")
        found = re.findall(r'^"(.*)",1,(\d)$', text, re.MULTILINE)
        rows = {name: int(outcome) for name, outcome in found}
        if faults := [name for name, outcome in rows.items() if outcome > 1]:
            fault = {"row": 1, "field": "outcome", "value": "2", "rule": "an outcome is a number from 0 to 1"}
            return problem(
                422, "faulty", "The delivery has faults.", faults=[fault] * len(faults), n_faults=1
            )
        if any((content == one) for one, _ in self.keys.values()):
            return problem(409, "already_delivered", "A live submission holds exactly these outcomes.")
        if set(rows) & set(self.rows):
            return problem(409, "duplicate_outcomes", "Live submissions hold outcomes of these keys.")
        after = self.rows | rows
        lacks = [name for name in self.asked() if name not in after]
        told = f"{len(lacks)} of the {len(self.asked())} tasks asked for have no outcome ({lacks})"
        coverage = {"name": "coverage", "level": "warned" if lacks else "passed", "told": told}
        receipt = {
            "id": None if dry else f"sub-{len(self.stored) + 1}",
            "status": "accepted",
            "n_outcomes": len(rows),
            "warnings": [],
            "checks": [coverage],
            "assignment": {"id": "as-1", "mode": self.mode, "status": "open"}
            | ({"staged": self.staged(after)} if self.mode == "staged" else {}),
        }
        if not dry:
            self.rows = after
            self.stored.append(sorted(rows))
            self.keys[key] = (content, receipt)
        return (200 if dry else 201), receipt


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments): ...

    def do_POST(self):
        service = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        service.requests.append((self.path, json.loads(body) if body[:1] == b"{" else None))
        at = len(service.requests)
        if service.hang_at == (at, "before"):
            self.hang()
            return
        with service.lock:
            n_stored = len(service.stored)
            if self.path.endswith("/assignments"):
                status, content = service.assignment(body)
            else:
                status, content = service.submission(self.path, self.headers, body)
        if service.hang_at == (at, "after"):
            self.hang()
            return
        replayed = status == 201 and len(service.stored) == n_stored
        self.answer(status, content, {"Idempotent-Replayed": "true"} if replayed else {})

    def do_GET(self):
        self.answer(200, {"id": self.path.rpartition("/")[2], "status": "accepted"}, {})

    def answer(self, status, content, headers):
        content = json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def hang(self):
        self.server.hanging.set()
        self.server.release.wait(60)


def problem(status, code, detail, **more):
    return status, {"type": f"urn:bandstand:problem:{code}", "status": status, "detail": detail, **more}


@pytest.fixture
def serve(monkeypatch, tmp_path):
    """Start a service that the commands of this test ask."""
    monkeypatch.setenv("BANDSTAND_TOKEN", "bst_secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "harness.py").write_text(HARNESS)
    started = []

    def start(*arguments, **named):
        started.append(Service(*arguments, **named))
        monkeypatch.setenv("BANDSTAND_SERVER", started[-1].address)
        return started[-1]

    yield start
    for service in started:
        service.release.set()
        service.shutdown()
        service.server_close()


@pytest.fixture
def service(serve):
    return serve()


def arguments(*more, agent=AGENT):
    harness = (sys.executable, "-I", "-S", "harness.py", "{tasks}", "{outcomes}")
    return ["run", "toy", *agent, *more, "--", *harness]


def process(*more, **named):
    return subprocess.Popen(
        [sys.executable, str(CLIENT), *arguments(*more)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **named,
    )


def kill(started):
    started.kill()
    started.wait()


def ran():
    """The tasks of each run of the harness."""
    path = Path("ran.log")
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(path, seconds=30):
    end = time.monotonic() + seconds
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end, path
        time.sleep(0.01)
    return path.read_text()


# ------------------------------------------------------------------------------------------------------ walks


def test_the_example_for_continuous_integration_delivers_every_batch(service, tmp_path):
    text = (CLIENT.parent / "docs" / "examples" / "github-actions.yml").read_text()
    command = " ".join(re.search(r"run: >-\n((?: {10}.*\n)+)", text)[1].split())
    (tmp_path / "evaluate.py").write_text(HARNESS)
    (tmp_path / "bandstand_client.py").symlink_to(CLIENT)
    given = {"BENCHMARK": "toy", "GITHUB_REF_NAME": "v2", "GITHUB_SERVER_URL": "https://example.org"}
    given |= {
        "GITHUB_REPOSITORY": "ada/ada",
        "GITHUB_SHA": "4f1a",
        "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
    }
    subprocess.run(["bash", "-ec", command], env=os.environ | given, check=True)
    assert service.stored == [sorted(batch) for batch in WALK]
    agent = {"name": "Ada v2", "scaffold": "Ada", "model": "model-x", "version": "v2"}
    assert service.requests[0][1] == {"agent": agent}


def test_a_whole_walk(service, capfd):
    """Each batch runs once, with its tasks as the server names them, and is delivered once."""
    assert main(arguments()) == 0
    out, err = capfd.readouterr()
    assert ran() == list(WALK)
    assert service.rows == service.expected
    assert service.stored == [sorted(batch) for batch in WALK]
    assert out == "sub-3 is accepted: 1 outcome.\n  nothing is left to run: the score is known.\n"
    assert "3 tasks are still to be run.\nstaged: 3 tasks, 1 trial each" in err
    assert "sub-1 is accepted: 3 outcomes." in err
    assert service.requests[0] == (
        "/api/v1/benchmarks/toy/assignments",
        {"agent": {"name": "Ada", "scaffold": "S", "model": "M"}},
    )
    assert sorted(path.name for path in FOLDER.iterdir()) == ["batch-1", "batch-2", "batch-3", "run.json"]
    for n, batch in enumerate(WALK, 1):
        folder = FOLDER / f"batch-{n}"
        assert sorted(path.name for path in folder.iterdir()) == ["outcomes", "receipt.json", "tasks.txt"]
        assert (folder / "tasks.txt").read_text(encoding="utf-8") == "".join(f"{name}\n" for name in batch)
        assert json.loads((folder / "receipt.json").read_text())["id"] == f"sub-{n}"
    assert main(arguments()) == 0
    assert capfd.readouterr() == (
        "Nothing is left to run.\n",
        "nothing is left to run: the score is known.\n",
    )
    assert (len(ran()), len(service.stored)) == (3, 3)


def test_without_run_only_what_waits_is_printed(service, capfd):
    tasks = ["tasks", "toy", *AGENT]
    service.n_asked, service.rows = 2, dict.fromkeys([*WALK[0], "a b"], 1)
    assert main(tasks) == 0
    assert capfd.readouterr().out == "'=1+1\n"
    service.n_asked, service.rows = 3, service.expected
    assert main(tasks) == 0
    assert capfd.readouterr() == ("", "nothing is left to run: the score is known.\n")


@pytest.mark.parametrize("mode", ["subset", "full", "delta"])
def test_other_modes_have_one_batch(serve, capfd, mode):
    service = serve(mode=mode)
    assert main(arguments()) == 0
    assert capfd.readouterr().out == "sub-1 is accepted: 6 outcomes.\n"
    assert ran() == [sum(WALK, ())]
    assert service.rows == service.expected
    assert [path.rpartition("/")[2] for path, _ in service.requests] == [
        "assignments",
        "submissions?dry_run=true",
        "submissions",
    ]
    assert main(arguments()) == 0
    assert capfd.readouterr().out == "This agent already ran all its tasks.\n"
    assert (len(ran()), len(service.stored)) == (1, 1)


def test_the_last_answer_as_json_alone_on_stdout(service, capfd):
    more = ("--json", "--logs", "https://example.org", "--output", "outcomes.csv")
    harness = 'import sys; print("from the harness"); exec(open("harness.py").read())'
    command = [*arguments(*more)[:-5], "-c", harness, "{tasks}", "{outcomes}"]
    assert main(command) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["id"] == "sub-3"
    assert err.count("from the harness") == 3
    assert (FOLDER / "batch-3" / "outcomes.csv").exists()
    assert '"logs": "https://example.org"' in next(iter(service.keys.values()))[0][0]


def test_what_is_not_decided_yet_is_asked_for_again(service, waited, capfd):
    service.undecided = 2
    assert main(arguments()) == 0
    assert [1 <= seconds / 2**n <= 1.5 for n, seconds in enumerate(waited)] == [True, True]
    service.n_asked, service.undecided, service.rows = 0, 9, {}
    assert main(arguments("--tries", "3")) == 1
    assert len(waited) == 4
    told = "There is nothing to run yet. 0 tasks are still to be run. Repeat the command later.\n"
    assert capfd.readouterr().err.endswith(told)


# ---------------------------------------------------------------------------------------------------- crashes


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("at", range(1, 10))  # ask, check, deliver, ask, …
def test_killed_at_any_request_it_goes_on(service, at, side):
    """Before and after the service acts on the n-th request: no batch runs twice, none is stored twice."""
    service.hang_at = (at, side)
    first = process()
    assert service.hanging.wait(30)
    kill(first)
    service.release.set()
    assert main(arguments()) == 0
    assert ran() == list(WALK)
    assert service.stored == [sorted(batch) for batch in WALK]
    assert service.rows == service.expected


@pytest.mark.parametrize("at", [2, 3])
@pytest.mark.parametrize("side", ["before", "after"])
def test_killed_in_a_single_batch_it_goes_on(serve, at, side):
    service = serve(mode="full")
    service.hang_at = (at, side)
    first = process()
    assert service.hanging.wait(30)
    kill(first)
    service.release.set()
    assert main(arguments()) == 0
    assert ran() == [sum(WALK, ())]
    assert service.stored == [sorted(service.expected)]


def test_a_receipt_that_was_lost_comes_again(service, monkeypatch):
    """Also where the server asks for the same tasks again, as it lacks trials."""
    service.hang_at = (3, "after")
    first = process()
    assert service.hanging.wait(30)
    kill(first)
    service.release.set()
    stays = service.assignment
    monkeypatch.setattr(service, "n_asked", 1)
    rows, service.rows = service.rows, {}
    answer = stays(b"")
    service.rows = rows
    script = [answer]
    service.assignment = lambda body: script.pop() if script else stays(body)
    assert main(arguments()) == 0
    assert ran() == list(WALK)
    assert service.stored == [sorted(batch) for batch in WALK]
    assert json.loads((FOLDER / "batch-1" / "receipt.json").read_text())["id"] == "sub-1"


@pytest.mark.parametrize("goes_on", [True, False], ids=["harness goes on", "harness dies"])
def test_killed_while_the_harness_writes_it_runs_the_batch_again(service, goes_on):
    """Half a file is never delivered, nor what an orphan writes into it later."""
    Path("mode").write_text("half")
    first = process()
    pid = int(wait_for(Path("half")))
    kill(first)
    (half,) = FOLDER.glob("batch-1/attempt-1/outcomes")
    assert half.read_text(encoding="utf-8") == 'task,trial,outcome\n"parse/quotes",1,0'
    if not goes_on:
        os.kill(pid, signal.SIGKILL)
    Path("mode").write_text("")
    assert main(arguments()) == 0  # though the orphan lives: it holds no lock
    Path("go on").touch()
    assert ran() == [WALK[0], *WALK]
    assert service.rows == service.expected
    assert service.stored == [sorted(batch) for batch in WALK]


# A client that dies at the n-th line of its own that is run for `run`, as by kill -9.
DYING = """
import os, signal, sys
sys.path.insert(0, {folder!r})
import bandstand_client
left = int(sys.argv.pop(1))
own = {{"_run_run", "_file_name", "_held", "_next_tasks", "_batch", "_new_folder", "_outcomes", "_delivered",
        "_check_whole", "_replacing"}}
def trace(frame, event, argument):
    global left
    if frame.f_code.co_name not in own or frame.f_code.co_filename != bandstand_client.__file__:
        return None
    if event == "line":
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace
sys.settrace(trace)
sys.exit(bandstand_client.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_killed_at_any_line_it_goes_on(serve, tmp_path, monkeypatch):
    """A batch runs again only where its client died before it saw how the harness ended."""
    (tmp_path / "dying.py").write_text(DYING.format(folder=str(CLIENT.parent)))
    batches, n_lines, n_again = WALK[:2], 0, 0
    while True:
        n_lines += 1
        service = serve(batches=batches)
        place = tmp_path / f"{n_lines}"
        place.mkdir()
        (place / "harness.py").write_text(HARNESS)
        monkeypatch.chdir(place)
        command = [sys.executable, str(tmp_path / "dying.py"), str(n_lines), *arguments()]
        code = subprocess.run(command, capture_output=True).returncode  # waits for an orphan too
        if code != -signal.SIGKILL:
            break
        n_whole, n_ran = len(list(place.rglob("batch-*/outcomes"))), len(ran())
        assert main(arguments()) == 0
        assert ran()[n_ran:] == list(batches[n_whole:])
        assert service.stored == [sorted(batch) for batch in batches]
        assert service.rows == service.expected
        n_again += len(ran()) > len(batches)
    assert code == 0
    assert n_lines > 100
    assert (
        0 < n_again <= 10 * len(batches)
    )  # the lines between the start of a harness and the move of its file


def test_two_at_once_are_refused(service, capfd):
    Path("mode").write_text("half")
    with process() as first:
        wait_for(Path("half"))
        n_requests = len(service.requests)
        assert main(arguments()) == 2
        told = f"bandstand: Another bandstand run is using {FOLDER}. Wait until it ends.\n"
        assert capfd.readouterr().err == told
        assert len(service.requests) == n_requests
        Path("mode").write_text("")
        Path("go on").touch()
        assert first.wait(30) == 0
    assert ran() == list(WALK)
    assert service.rows == service.expected


def test_where_there_is_no_flock_it_runs(service, monkeypatch):
    monkeypatch.setattr(bandstand_client, "fcntl", None)
    assert main(arguments()) == 0
    assert service.rows == service.expected


def test_what_is_interrupted_is_not_delivered(service):
    """Ctrl-C goes to the harness too, which may write the rest and end as if all were well."""
    Path("mode").write_text("patient")
    unblocked = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with process(start_new_session=True, **unblocked) as first:
        wait_for(Path("half"))
        os.killpg(first.pid, signal.SIGINT)
        assert first.wait(30) == 130
    assert len(service.requests) == 1
    Path("mode").write_text("")
    assert main(arguments()) == 0
    assert ran() == [WALK[0], *WALK]


# --------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(("mode", "code"), [("7", 7), ("signal", 128 + signal.SIGTERM)])
def test_a_failing_harness_ends_it_and_nothing_is_delivered(service, capfd, mode, code):
    Path("mode").write_text(mode)
    assert main(arguments()) == code
    told = f"bandstand: {sys.executable} ended with exit code {code}; nothing was delivered.\n"
    assert capfd.readouterr().err.endswith(told)
    assert len(service.requests) == 1
    Path("mode").write_text("")
    assert main(arguments()) == 0
    assert ran() == [WALK[0], *WALK]


@pytest.mark.parametrize("mode", ["staged", "full"])
def test_missing_outcomes_are_named_and_nothing_is_delivered(serve, capfd, mode):
    """The file stays until it is completed or removed: no batch runs twice unasked."""
    service = serve(mode=mode)
    Path("mode").write_text("lacks")
    file = FOLDER / "batch-1" / "outcomes"
    for _ in range(2):
        assert main(arguments()) == 1
        first, second = capfd.readouterr().err.splitlines()[-2:]
        assert first == (
            "Outcomes are missing; nothing was delivered. "
            f"Correct {file}, or remove it to run the batch again."
        )
        assert second == (
            "  parse/quotes: lacks outcomes; 1 trial is asked for"
            if mode == "staged"
            else "  1 of the 6 tasks asked for have no outcome (['parse/quotes'])"
        )
    assert (len(ran()), service.stored) == (1, [])
    Path("mode").write_text("")
    file.write_text(file.read_text() + '"parse/quotes",1,0\n')
    assert main(arguments()) == 0
    assert len(ran()) == len(service.stored) == (3 if mode == "staged" else 1)
    assert service.rows == service.expected


def test_what_is_delivered_in_part_by_hand_leaves_the_rest_to_run(service):
    Path("mode").write_text("lacks")
    assert main(arguments()) == 1
    Path("mode").write_text("")
    part = str(FOLDER / "batch-1" / "outcomes")
    assert main(["submit", part, "--benchmark", "toy", *AGENT, "--assignment", "as-1"]) == 0
    assert main(arguments()) == 0
    assert ran() == [WALK[0], WALK[0][:1], *WALK[1:]]
    assert service.rows == service.expected


def test_faults_are_told_with_the_file_to_correct(service, capfd):
    Path("mode").write_text("faulty")
    assert main(arguments()) == 1
    file = FOLDER / "batch-1" / "outcomes"
    assert capfd.readouterr().err.splitlines()[-2:] == [
        f"The delivery has faults. Correct {file}, or remove it to run the batch again.",
        '  row 1, outcome "2": an outcome is a number from 0 to 1',
    ]
    file.unlink()
    Path("mode").write_text("")
    assert main(arguments()) == 0
    assert ran() == [WALK[0], *WALK]


def test_a_batch_that_was_delivered_does_not_run_again_unasked(service, capfd):
    """Its submission was withdrawn, say: the server asks for it again."""
    assert main(arguments()) == 0
    service.n_asked, service.rows, service.keys = 1, {}, {}
    assert main(arguments()) == 1
    batch = FOLDER / "batch-1"
    assert capfd.readouterr().err.splitlines()[-1] == (
        f"{batch} was delivered, and its tasks are asked for again. `bandstand status sub-1` says why. "
        f"Remove {batch} to run them again."
    )
    assert len(ran()) == 3


def test_what_cannot_be_run(service, capfd):
    Path("mode").write_text("nothing")
    assert main(arguments()) == 2
    assert "wrote no outcomes to" in capfd.readouterr().err
    command = ["run", "toy", *AGENT, "--"]
    assert main([*command, "no-such-harness", "{tasks}", "{outcomes}"]) == 2
    assert "bandstand: no-such-harness: No such file or directory\n" in capfd.readouterr().err
    for place, other in (("{tasks}", "{outcomes}"), ("{outcomes}", "{tasks}")):
        assert main([*command, "true", other]) == 2
        assert f"The command has no {place}" in capfd.readouterr().err
    for name in ("a/b", "tasks.txt", "receipt.json"):
        assert main(arguments("--output", name)) == 2
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    assert service.stored == []


# ------------------------------------------------------------------------------------------------- odd names


ODD = {
    "/": "bandstand-toy-_",
    "../../etc": "bandstand-toy-.._.._etc",
    "-rf": "bandstand-toy--rf",
    "Größe 2 (μ)": "bandstand-toy-Größe_2_μ_",
    'a"b$(x)\\;*': "bandstand-toy-a_b_x_",
    "語" * 255: "bandstand-toy-" + "語" * 62,
}


@pytest.mark.parametrize("name", ODD, ids=[*map(str, range(len(ODD)))])
def test_odd_names_of_agents(service, tmp_path, name):
    named = (f"--agent={name}", "--scaffold", "S", "--model", "M")
    assert main(arguments(agent=named)) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"harness.py", "ran.log", ODD[name]}
    assert service.requests[0][1]["agent"]["name"] == name


def test_two_agents_do_not_share_a_folder(service, capfd):
    """Whose outcomes lie in a folder is written there, with the server's address."""
    other = ("--agent", "a b", "--scaffold", "S", "--model", "M")
    assert main(arguments(agent=("--agent=a/b", *AGENT[2:]))) == 0
    capfd.readouterr()
    assert main(arguments(agent=other)) == 2
    assert capfd.readouterr().err == (
        f'bandstand: bandstand-toy-a_b belongs to agent "a/b" of toy at {service.address}. '
        "Name another folder by --folder.\n"
    )
    (Path("bandstand-toy-a_b") / "run.json").write_text('{"server": "htt')  # as a full disk leaves it
    assert main(arguments(agent=("--agent=a/b", *AGENT[2:]))) == 0
    assert main(arguments("--folder", "of its own/folder", agent=other)) == 0
    assert (Path("of its own") / "folder" / "run.json").exists()


def test_the_command_is_passed_on_as_it_stands(service, capfd):
    """Options like the client's, braces, a second --; placeholders within an argument too."""
    script = "import sys; open('said', 'w').write(repr(sys.argv[1:])); sys.exit(9)"
    harness = ["--agent", "x", "--tasks={tasks}", "--", "{}{x}", "-o{outcomes}"]
    command = ["run", *AGENT, "toy", "--", sys.executable, "-c", script, *harness]
    assert main(command) == 9
    batch = FOLDER.absolute() / "batch-1"
    assert Path("said").read_text() == repr(
        ["--agent", "x", f"--tasks={batch}/tasks.txt", "--", "{}{x}", f"-o{batch}/attempt-1/outcomes"]
    )
