"""Lines of the log: what stands in them, under which id, and never a secret."""

import io
import json
import logging

import pytest
import structlog

from leaderboard import logs
from leaderboard.accounts import secrets
from tests.leaderboard.desk import PASSWORD, person


@pytest.fixture
def lines(settings):
    """What is written to the log from now on, as in production; each line read as JSON."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.LogLine(logs.JSON))
    root, told = logging.getLogger(), logging.getLogger("leaderboard.requests")
    before = told.level
    told.setLevel(logging.INFO)
    root.addHandler(handler)
    yield lambda: [json.loads(line) for line in written.getvalue().splitlines()]
    root.removeHandler(handler)
    told.setLevel(before)


def test_each_request_is_told_once_under_an_id_that_the_answer_carries(client, toy, lines):
    answer = client.get("/b/toy?find=a+name&vs=1")
    (told,) = lines()
    assert told["request_id"] == answer.headers["X-Request-ID"]
    assert told | {"seconds": 0, "timestamp": 0, "request_id": 0} == {
        "event": "request",
        "level": "info",
        "logger": "leaderboard.requests",
        "method": "GET",
        "path": "/b/toy",
        "asked": ["find", "vs"],
        "status": 200,
        "seconds": 0,
        "timestamp": 0,
        "request_id": 0,
    }


@pytest.mark.parametrize(
    ("proxies", "given", "is_taken"),
    [(1, "0123-abcd", True), (0, "0123-abcd", False), (1, 'a"b\n{}', False), (1, "x" * 65, False)],
)
def test_the_id_is_the_proxys_where_one_is_known(client, db, settings, proxies, given, is_taken):
    settings.PROXIES = proxies
    told = client.get("/methods", headers={"x-request-id": given}).headers["X-Request-ID"]
    assert (told == given) == is_taken


def test_a_fault_of_ours_is_told_with_its_trace_under_the_same_id(client, toy, lines, monkeypatch):
    monkeypatch.setattr("leaderboard.pages.home.render", lambda *_: 1 / 0)
    client.raise_request_exception = False
    answer = client.get("/methods")
    assert answer.status_code == 500
    trace, told = lines()
    assert "ZeroDivisionError" in trace["exception"]
    assert trace["request_id"] == told["request_id"] == answer.headers["X-Request-ID"]
    assert (told["level"], told["status"]) == ("error", 500)


def test_a_refusal_is_told_without_a_trace(client, toy, lines):
    client.force_login(person("ada@example.org"))
    assert client.get("/admin/", follow=True).status_code == 403
    (told,) = [line for line in lines() if "Forbidden" in line["event"]]
    assert "exception" not in told


def test_no_secret_is_in_any_line(client, toy, lines, settings, caplog):
    """Each way in which a secret comes by HTTP; the log at its most talkative."""
    caplog.set_level(logging.DEBUG, "django.request")
    token = secrets.mint()
    person("ada@example.org")
    secret = "aVeryPrivateThing"
    client.raise_request_exception = False
    client.get("/api/v1/benchmarks", headers={"authorization": f"Bearer {token}"})
    client.post("/api/v1/benchmarks/toy/submissions", headers={"authorization": f"Bearer {token}"})
    client.get(f"/{token}")
    client.get(f"/invitation/{secret}")
    client.post(f"/invitation/{secret}", {"name": "A", "password": PASSWORD})
    client.get(f"/b/toy?token={secret}&password={secret}&find={secret}")
    client.get(f"/accounts/password/reset/key/{secret}/")
    client.get(f"/accounts/confirm-email/{secret}/")
    client.post("/accounts/login/", {"login": "ada@example.org", "password": secret})
    client.post("/accounts/login/", {"login": "ada@example.org", "password": PASSWORD})
    told = json.dumps(lines())
    assert len(lines()) >= 10
    for hidden in (
        token,
        token[8:],
        secret,
        PASSWORD,
        client.cookies["sessionid"].value,
        settings.SECRET_KEY,
    ):
        assert hidden not in told


def test_a_line_that_is_made_of_a_secret_loses_it(lines):
    token, said = secrets.mint(), logging.getLogger("anything")
    try:
        raise ValueError(f"cannot reach postgres://bandstand:hunter22@db/x with {token}")
    except ValueError:
        said.exception("failed: password=hunter22, api_key: 'hunter22', Authorization: Bearer hunter22")
    structlog.get_logger("anything").error(
        "told", headers={"Cookie": "hunter22", "Accept": "all"}, key="hunter22"
    )
    said.error("to %s with %s", "https://x.example/?access_token=hunter22&n=3", {"secret": "hunter22"})
    told = json.dumps(lines(), ensure_ascii=False)
    assert len(lines()) == 3
    assert token not in told
    assert "hunter22" not in told
    assert "postgres://bandstand:…@db/x" in told
    assert "n=3" in told
    assert '"Accept": "all"' in told


def test_no_terminal_obeys_a_line(lines):
    logging.getLogger("anybody").warning("a\x9b31mb\x1b[2Jc\u2028d\x7fe\tf")
    (line,) = lines()
    assert line["event"] == r"a\u009b31mb\u001b[2Jc\u2028d\u007fe" + "\tf"


def test_a_long_line_of_secret_words_takes_no_time():
    for text in ("token" * 800, "a" * 4_000, "token=" * 700, "bst_" * 1_000, "://" * 1_300):
        assert len(logs.hide(text * 10)) > 0


def test_in_a_terminal_a_line_is_to_be_read():
    record = logging.LogRecord("x.y", logging.WARNING, "", 0, "the %s", ("token=abc",), None)
    told = logs.LogLine(logs.TEXT).format(record)
    assert "the token=…" in told
    assert "x.y" in told
    assert not told.startswith("{")
