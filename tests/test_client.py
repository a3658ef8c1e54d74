"""The client against a real HTTP server whose answers are written beforehand."""

import gzip
import hashlib
import json
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import bandstand_client
from bandstand_client import Client, Refused, UsageError, main, read_delivery

ROOT = Path(__file__).resolve().parents[1]
RECEIPT = {"id": "1f", "status": "accepted", "n_outcomes": 2, "n_invalid": 0, "warnings": ["late"]}
ENVELOPE = {
    "agent": {"name": "A", "scaffold": "S", "model": "M"},
    "outcomes": [{"task": "t", "trial": 1, "outcome": 1}],
}


class Server(ThreadingHTTPServer):
    """Gives the answers in order, and keeps what it was asked. An answer is (status, body[, headers]).

    `reset` and `half` break the connection instead, before and within the answer; a number waits so long.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.asked = [], []
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request, client_address): ...


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments): ...

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        step = self.server.script.pop(0)
        if isinstance(step, float):
            time.sleep(step)
            step = self.server.script.pop(0)
        if step == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        status, content, headers = (*step, {})[:3]
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        length = headers.pop("Content-Length", len(content))
        self.send_response(status)
        for name, value in ({"Content-Length": length} | headers).items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer


@pytest.fixture
def server():
    with Server() as server:
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def settings(monkeypatch, tmp_path, server):
    monkeypatch.setenv("BANDSTAND_TOKEN", "bst_secret")
    monkeypatch.setenv("BANDSTAND_SERVER", server.address)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def envelope(tmp_path):
    path = tmp_path / "one.json"
    path.write_text(json.dumps(ENVELOPE))
    return str(path)


def problem(status, detail, **more):
    return status, {"type": "urn:x", "title": "X", "status": status, "detail": detail, **more}


def test_tasks_are_printed_one_a_line(server, capsys):
    server.script = [
        (
            200,
            {
                "id": "as",
                "mode": "subset",
                "reason": "no ranking tasks are in use",
                "tasks": ["a/b", "c d"],
                "n_trials": 1,
                "n_trials_recommended": 3,
                "expires_at": "2026-12-01T12:13:04.478909Z",
            },
        )
    ]
    assert (
        main(["tasks", "toy", "--agent", "A", "--scaffold", "S", "--model", "M", "--agent-version", "2"]) == 0
    )
    out, err = capsys.readouterr()
    assert out == "a/b\nc d\n"
    assert "subset: 2 tasks, 1 trial each (3 recommended)" in err
    assert "until 2026-12-01 12:13 UTC. No ranking tasks are in use.\nAssignment as" in err
    method, path, headers, body = server.asked[0]
    assert (method, path) == ("POST", "/api/v1/benchmarks/toy/assignments")
    assert headers["Authorization"] == "Bearer bst_secret"
    assert json.loads(body) == {"agent": {"name": "A", "scaffold": "S", "model": "M", "version": "2"}}


def test_a_delivery_is_tried_again_under_one_key(server, envelope, waited, capsys):
    """503 with a time, a reset connection, an answer cut off, then the receipt."""
    cut = (201, b'{"id": "1', {"Content-Length": 60})
    server.script = [
        (503, {}, {"Retry-After": "7"}),
        "reset",
        cut,
        (201, RECEIPT, {"Idempotent-Replayed": "true"}),
        (200, {"id": "1f", "status": "accepted"}),
    ]
    assert main(["submit", envelope, "--benchmark", "toy"]) == 0
    assert "1f is accepted (delivered before; nothing happened now): 2 outcomes" in capsys.readouterr().out
    assert waited[0] == 7
    assert [1 <= waited[i] / 2**i <= 1.5 for i in (1, 2)] == [True, True]
    *sent, (_, followed, _, _) = server.asked
    keys = {headers["Idempotency-Key"] for _, _, headers, _ in sent}
    assert (len(sent), len(keys), followed) == (4, 1, "/api/v1/submissions/1f")
    assert {json.dumps(json.loads(body)) for *_, body in sent} == {json.dumps(ENVELOPE)}


def test_what_was_withdrawn_is_not_told_as_delivered(server, envelope, capsys):
    server.script = [
        (201, RECEIPT, {"Idempotent-Replayed": "true"}),
        (200, {"id": "1f", "status": "withdrawn"}),
    ]
    assert main(["submit", envelope, "--benchmark", "toy"]) == 1
    told = capsys.readouterr().err
    assert "This was delivered before, and its submission is withdrawn: nothing of it counts." in told
    assert "To deliver it again, name another key: --key NAME." in told
    assert "submission: 1f" in told


def test_the_key_is_that_of_the_content(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n")
    one = read_delivery(path, {"run": "r"})
    assert one.key("toy") == read_delivery(path, {"run": "r", "logs": ""}).key("toy")
    others = {one.key("other"), read_delivery(path, {"run": "s"}).key("toy"), read_delivery(path).key("toy")}
    path.write_text("a,c\n")
    others.add(read_delivery(path, {"run": "r"}).key("toy"))
    assert len(others | {one.key("toy")}) == 5
    assert len(one.key("toy")) <= 255


def test_a_process_that_died_and_runs_again_uses_the_same_key(server, envelope):
    server.script = [30.0, (201, RECEIPT), (201, RECEIPT)]
    command = [sys.executable, str(ROOT / "bandstand_client.py"), "submit", envelope, "--benchmark", "toy"]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not server.asked:
        time.sleep(0.05)
    first.kill()
    first.wait()
    server.script = [(201, RECEIPT)]
    subprocess.run(command, check=True, capture_output=True)
    assert server.asked[0][2]["Idempotency-Key"] == server.asked[1][2]["Idempotency-Key"]


def test_faults_are_printed_one_a_line(server, envelope, capsys):
    faults = [
        {"row": 3, "field": "outcome", "value": "1.2", "rule": "an outcome is a number from 0 to 1"},
        {"row": None, "field": "agent.model", "value": None, "rule": "is required"},
        {"row": 4, "field": None, "value": None, "rule": "the row has \x1b[31m fields"},
    ]
    refusal = problem(422, "The body has faults.", n_faults=5, faults=faults)
    server.script = [refusal, refusal]
    assert main(["check", envelope, "--benchmark", "toy"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "The body has faults.",
        '  row 3, outcome "1.2": an outcome is a number from 0 to 1',
        "  agent.model: is required",
        "  row 4: the row has \\x1b[31m fields",
        "  … and 2 more",
    ]
    assert server.asked[0][1] == "/api/v1/benchmarks/toy/submissions?dry_run=true"
    assert "Idempotency-Key" not in server.asked[0][2]
    assert main(["check", envelope, "--benchmark", "toy", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == refusal[1]


def test_tasks_and_outcomes_of_a_refusal_are_printed_one_a_line(server, envelope, capsys):
    keys = [{"row": 2, "task": "a\x1bb", "trial": 1, "run": "", "submission": "1f"}]
    server.script = [
        problem(409, "Not asked for.", n_tasks=3, tasks=["a/b", "c d"]),
        problem(409, "Stored.", n_keys=1, keys=keys),
    ]
    assert main(["submit", envelope, "--benchmark", "toy"]) == 1
    assert main(["submit", envelope, "--benchmark", "toy"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "Not asked for.",
        "  a/b",
        "  c d",
        "  … and 1 more",
        "Stored.",
        "  row 2: task a\\x1bb, trial 1 is stored in submission 1f",
    ]


def test_where_there_is_no_token_that_is_said(server, envelope, monkeypatch, capsys):
    monkeypatch.delenv("BANDSTAND_TOKEN")
    server.script = [problem(401, "Authentication credentials were not provided.")]
    assert main(["submit", envelope, "--benchmark", "toy"]) == 2
    told = "There is no token. Set BANDSTAND_TOKEN, or name a file with the token by --token-file."
    assert capsys.readouterr().err == f"bandstand: {told}\n"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 423, 500])
def test_what_is_refused_is_not_tried_again(server, envelope, waited, status):
    server.script = [problem(status, "No.")]
    assert main(["submit", envelope, "--benchmark", "toy"]) == 1
    assert (len(server.asked), waited) == (1, [])


def test_not_reachable(server, envelope, waited, capsys):
    server.script = [(503, {})] * 3
    assert main(["submit", envelope, "--benchmark", "toy", "--tries", "3"]) == 3
    assert (len(server.asked), len(waited)) == (3, 2)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert main(["status", "1f", "--server", address, "--tries", "2"]) == 3
    assert "did not answer in 2 tries" in capsys.readouterr().err
    assert main(["status", "1f", "--server", address, "--tries", "1"]) == 3
    assert "did not answer in 1 try;" in capsys.readouterr().err
    server.script = [3.0, (200, {})]
    assert main(["status", "1f", "--timeout", "0.1", "--tries", "1"]) == 3


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b"{}"])
def test_an_answer_without_a_receipt_is_no_delivery(server, envelope, waited, capsys, content):
    """Caddy 2.6.2 says 200, and nothing else, to a body that it gave up."""
    server.script = [(200, content)] * 2
    assert main(["submit", envelope, "--benchmark", "toy", "--tries", "2"]) == 3
    assert "the answer is not a JSON object" in capsys.readouterr().err


def test_who_is_told_to_come_tomorrow_is_told_so(server, envelope, waited, capsys):
    server.script = [(*problem(429, "20 submissions in a UTC day."), {"Retry-After": "56177"})]
    assert main(["submit", envelope, "--benchmark", "toy"]) == 1
    assert capsys.readouterr().err == "20 submissions in a UTC day.\n"
    assert waited == []


def test_what_holds_these_outcomes_is_named(server, envelope, capsys):
    server.script = [problem(409, "A live submission holds exactly these outcomes.", submission="1f-2e")]
    assert main(["submit", envelope, "--benchmark", "toy"]) == 1
    assert capsys.readouterr().err.splitlines()[1:] == ["  submission: 1f-2e"]


def test_a_refusal_before_the_body_was_read_is_told(tmp_path, waited, capsys):
    """The server answers and closes while the client is still sending."""
    path = tmp_path / "rows.csv"
    path.write_bytes(b"x" * 30_000_000)
    text = json.dumps(problem(413, "Too large.")[1]).encode()
    head = b"HTTP/1.1 413 Too Large\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(text)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse():
            wire, _ = listening.accept()
            wire.recv(100)
            wire.sendall(head + text)
            wire.close()

        answering = threading.Thread(target=refuse)
        answering.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert main(["submit", str(path), "--benchmark", "toy", "--server", address]) == 1
        answering.join()
    assert capsys.readouterr().err == "Too large.\n"
    assert waited == []


def test_a_redirect_takes_neither_token_nor_delivery_elsewhere(server, envelope, capsys):
    with Server() as other:
        moved = {"Location": f"{other.address}/x"}
        server.script = [(307, {}, dict(moved)), (302, {}, dict(moved))]
        assert main(["submit", envelope, "--benchmark", "toy"]) == 1
        assert f"moved to {other.address}/x" in capsys.readouterr().err
        assert main(["status", "1f"]) == 1
        assert other.asked == []
        other.shutdown()


def form(asked):
    """The parts of a multipart body as another reader of mail sees them."""
    _, _, headers, body = asked
    message = BytesParser().parsebytes(f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode() + body)
    return {part.get_param("name", header="content-disposition"): part for part in message.get_payload()}


@pytest.mark.parametrize("name", ["rows.csv", "rows.ndjson", "rows.parquet", "rows.csv.gz", "größe.csv"])
def test_files_go_as_a_form(server, tmp_path, name):
    content = {"ndjson": b'{"task": "t"}\n{"task": "u"}\n', "parquet": b"PAR1\x00\r\n--x\r\nPAR1"}.get(
        name.partition(".")[2], b"task,trial\nt,1\n"
    )
    content = gzip.compress(content) if name.endswith(".gz") else content
    (tmp_path / name).write_bytes(content)
    server.script = [(201, RECEIPT)]
    said = [
        "--agent",
        "A",
        "--scaffold",
        "S",
        "--model",
        "M",
        "--run",
        "r",
        "--commit",
        "https://example.org",
    ]
    assert main(["submit", str(tmp_path / name), "--benchmark", "toy", *said]) == 0
    parts = form(server.asked[0])
    assert parts["file"].get_payload(decode=True) == content
    assert json.loads(parts["submission"].get_payload()) == {
        "agent": {"name": "A", "scaffold": "S", "model": "M"},
        "run": "r",
        "links": {"commit": "https://example.org"},
    }


def test_a_file_of_another_project_goes_with_how_it_is_read(server, tmp_path):
    server.script = [(200, RECEIPT)]
    path = tmp_path / "log.json"
    path.write_text('{"outcomes": 1}')
    asked = ["--format", "inspect", "--metric", "a b", "--embargo-until", "2026-12-24"]
    assert main(["check", str(path), "--benchmark", "toy", *asked]) == 0
    assert server.asked[0][1].endswith("/submissions?dry_run=true&format=inspect&metric=a+b")
    assert json.loads(form(server.asked[0])["submission"].get_payload()) == {"embargo_until": "2026-12-24"}
    plain, named = read_delivery(path), read_delivery(path, form={"format": "inspect"})
    assert plain.key("toy") != named.key("toy")


def test_a_gzipped_submission_goes_as_json(server, tmp_path):
    (tmp_path / "one.json.gz").write_bytes(gzip.compress(json.dumps(ENVELOPE).encode()))
    server.script = [(201, RECEIPT)]
    assert main(["submit", "one.json.gz", "--benchmark", "toy", "--replaces", "9a"]) == 0
    assert json.loads(server.asked[0][3]) == ENVELOPE | {"replaces": "9a"}


def test_options_add_to_the_agent_of_a_submission(server, envelope, capsys):
    server.script = [(201, RECEIPT)]
    said = ["--agent-version", "2", "--model", "M", "--trajectories", "https://example.org"]
    assert main(["submit", envelope, "--benchmark", "toy", *said]) == 0
    assert json.loads(server.asked[0][3]) == ENVELOPE | {
        "agent": ENVELOPE["agent"] | {"version": "2"},
        "links": {"trajectories": "https://example.org"},
    }


def test_options_that_name_another_agent_are_refused_with_both(server, envelope, capsys):
    assert main(["submit", envelope, "--benchmark", "toy", "--agent", "B", "--model", "N"]) == 2
    told = f'bandstand: {envelope} is of another agent: name "A", not "B"; model "M", not "N". '
    assert capsys.readouterr().err == f"{told}Correct the command or the file.\n"
    assert server.asked == []


HELD = {
    "id": "1f",
    "status": "waiting",
    "n_outcomes": 2,
    "lacking": ["2 of 4 tasks are missing"],
    "history": [
        {"status": "checking", "at": "2026-01-05", "reason": "it is long"},
        {"status": "waiting", "at": "2026-01-05", "reason": "held for review: it scores\x1b[31m too well"},
    ],
    "checks": [
        {"name": "coverage", "level": "warned", "told": "3 of 4 tasks were missing then"},
        {"name": "trials", "level": "warned", "told": "2 of 4 tasks are missing"},
        {"name": "dates", "level": "passed", "told": "no doubt"},
        {"name": "secrets", "level": "warned", "told": "logs seems to hold a secret"},
    ],
    "quota": {"token": {"left": 99, "limit": 100}},
    "replaced_by": None,
    "standing": "It does not count yet.",
}


@pytest.mark.parametrize(
    "arguments", [["status", "1f"], ["withdraw", "1f", "--reason", "a bug"]], ids=["status", "withdraw"]
)
def test_how_a_submission_stands_is_told_in_short(server, capsys, arguments):
    server.script = [(200, HELD)]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1f is waiting: held for review: it scores\\x1b[31m too well",
        "  It does not count yet.",
        "  lacking: 2 of 4 tasks are missing",
        "  logs seems to hold a secret",
    ]
    server.script = [(200, HELD)]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == HELD


def test_what_can_be_no_id_is_named(server, capsys):
    nothing = problem(404, "Nothing is at this address.", type="urn:bandstand:problem:not_found")
    for arguments in (["status", "a b"], ["withdraw", "a b", "--reason", "a bug"]):
        server.script = [nothing]
        assert main(arguments) == 1
        assert capsys.readouterr().err == "No submission has the id a b.\n"
    server.script = [problem(404, "Unknown submission. Check the id.")]
    assert main(["status", "1f"]) == 1
    assert capsys.readouterr().err == "Unknown submission. Check the id.\n"


def test_common_options_stand_before_the_command_or_after_it(server, waited, capsys):
    for arguments in (["--tries", "2", "status", "1f"], ["--tries", "9", "status", "1f", "--tries", "2"]):
        server.asked.clear()
        server.script = [(503, {})] * 9
        assert main(arguments) == 3
        assert len(server.asked) == 2
    server.script = [(200, {"id": "1f"})]
    assert main(["--json", "status", "--", "1f"]) == 0
    assert json.loads(capsys.readouterr().out) == {"id": "1f"}


def test_one_outcome_is_counted_as_one(server, envelope, capsys):
    server.script = [(201, RECEIPT | {"n_outcomes": 1, "n_invalid": 1})]
    assert main(["submit", envelope, "--benchmark", "toy"]) == 0
    assert "1f is accepted: 1 outcome, 1 invalid." in capsys.readouterr().out


def test_withdrawing(server, capsys):
    """An answer that was lost leaves the second try a conflict, and the submission withdrawn, as asked."""
    server.script = [problem(409, "Withdrawn already."), (200, {"id": "1f", "status": "withdrawn"})]
    assert main(["withdraw", "1f", "--reason", "wrong judge", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "withdrawn"
    assert json.loads(server.asked[0][3]) == {"reason": "wrong judge"}
    server.script = [problem(409, "It was refused."), (200, {"id": "1f", "status": "refused"})]
    assert main(["withdraw", "1f", "--reason", "wrong judge"]) == 1


def test_usage(server, tmp_path, monkeypatch, capsys):
    empty = tmp_path / "empty.csv"
    empty.touch()
    for arguments in (
        ["submit", "nowhere.csv", "--benchmark", "toy"],
        ["submit", str(empty), "--benchmark", "toy"],
        ["status", "1f", "--server", "ftp://x"],
        ["status", "1f", "--server", "http://example.org"],
        ["status", "1f", "--server", ""],
    ):
        assert main(arguments) == 2, arguments
    assert "has no TLS" in capsys.readouterr().err
    for arguments in ([], ["nonsense"], ["submit", "x"], ["withdraw", "1f"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    assert server.asked == []


def test_a_token_that_others_may_read_is_not_used(server, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("BANDSTAND_TOKEN")
    path = tmp_path / ".config" / "bandstand" / "token"
    path.parent.mkdir(parents=True)
    path.write_text("bst_file\n")
    path.chmod(0o644)
    assert main(["status", "1f"]) == 2
    assert f"chmod 600 {path}" in capsys.readouterr().err
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    server.script = [(200, {"id": "1f"})] * 2
    assert main(["status", "1f"]) == 0
    path.unlink()
    assert main(["status", "1f"]) == 0
    assert [asked[2].get("Authorization") for asked in server.asked] == ["Bearer bst_file", None]
    assert main(["status", "1f", "--token-file", str(path)]) == 2


LINES = b'{"agent": "a"}\n{"agent": "b"}\n'
END = json.dumps({"end": True, "n": 2, "sha256": hashlib.sha256(LINES).hexdigest()}).encode() + b"\n"


@pytest.mark.parametrize(
    ("kind", "whole", "cut", "stored"),
    [
        ("csv", b"agent\na\nb\n", b"agent\na\n", b"agent\na\nb\n"),
        ("ndjson", LINES + END, LINES, LINES),
        ("ndjson", LINES + END, LINES.replace(b"b", b"c") + END, LINES),
        ("parquet", b"PAR1..PAR1", b"PAR1..PA", b"PAR1..PAR1"),
    ],
)
def test_a_download_is_whole_or_tried_again(server, tmp_path, waited, kind, whole, cut, stored):
    """The mark of the end is asked for, checked, and no line of the file."""
    told = {"Bandstand-Rows": 2, "Bandstand-Data-Version": 5, "Bandstand-Licence": "CC%20BY"}
    server.script = [(200, cut, dict(told)), (200, whole, dict(told)), (200, {"subsets": []})]
    assert main(["export", "toy", "--format", kind, "--with-subsets"]) == 0
    assert (tmp_path / f"toy.{kind}").read_bytes() == stored
    query = "?end_mark=1" if kind == "ndjson" else ""
    assert server.asked[0][1] == f"/api/v1/benchmarks/toy/outcomes.{kind}{query}"
    assert json.loads((tmp_path / "toy.subsets.json").read_text()) == {"subsets": []}
    assert main(["export", "toy", "--format", kind]) == 2
    server.script = [(200, cut, dict(told))]
    assert main(["export", "toy", "--format", kind, "--force", "--tries", "1"]) == 3
    assert (tmp_path / f"toy.{kind}").read_bytes() == stored
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"toy.{kind}", "toy.subsets.json"])


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("elsewhere")])
def test_a_download_replaces_a_regular_file_alone(server, tmp_path, make, capsys):
    make(tmp_path / "toy.csv")
    assert main(["export", "toy", "--force"]) == 2
    assert "toy.csv is not a regular file; name another --output." in capsys.readouterr().err
    assert server.asked == []


def test_hashing_lines_does_not_depend_on_blocks():
    for size in range(1, 40):
        seen = bandstand_client._Seen("ndjson")
        for start in range(0, len(LINES + END), size):
            seen.take((LINES + END)[start : start + size])
        assert seen.is_whole(2)
        assert not seen.is_whole(3)


def test_in_a_program(server, envelope):
    client = Client(server.address, "bst_x")
    server.script = [(201, RECEIPT), problem(423, "Frozen.")]
    assert client.submit("toy", read_delivery(Path(envelope)))["id"] == "1f"
    with pytest.raises(Refused, match=r"Frozen\."):
        client.tasks("toy", {"name": "A"})
    with pytest.raises(UsageError):
        Client("example.org")


def test_it_needs_nothing_but_python(tmp_path):
    (tmp_path / "bandstand_client.py").write_bytes((ROOT / "bandstand_client.py").read_bytes())
    command = [sys.executable, "-I", "-S", "bandstand_client.py", "submit", "--help"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "idempotency key is the hash" in " ".join(printed.split())
    assert os.environ["HOME"]
