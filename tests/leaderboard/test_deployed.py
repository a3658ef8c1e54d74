"""What production settings hold, and what does not start."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory
from gunicorn.util import parse_address

from leaderboard import deployed
from leaderboard.accounts.services import Adapter
from leaderboard.visitors import address_of, network_of

ROOT = Path(__file__).resolve().parents[2]
KEY = hashlib.sha256(b"a key of these tests").hexdigest()  # of letters a to f, so that no word is in it
PRODUCTION = {
    "DATABASE_URL": "postgres://x@localhost/x",
    "SECRET_KEY": KEY,
    "ALLOWED_HOSTS": "board.example",
    "TLS_HEADER": "X-Forwarded-Proto",
}
ASK = """
import json
from django.conf import settings
from django.core.management import call_command
import django
django.setup()
call_command("check", deploy=True, fail_level="WARNING")
from django.test import Client
client = Client()
plain = client.get("/methods", headers={"host": "board.example"})
behind = {"host": "board.example", "x-forwarded-proto": "https"}
over_tls = client.get("/methods", headers=behind)
foreign = client.get("/methods", headers=behind | {"host": "evil.example"})
print(json.dumps({
    "redirect": [plain.status_code, plain.headers["Location"]],
    "hsts": over_tls.headers["Strict-Transport-Security"],
    "foreign": foreign.status_code,
    "cookies": [
        settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE, settings.SESSION_COOKIE_HTTPONLY
    ],
    "debug": settings.DEBUG,
    "log": settings.LOG_FORMAT,
}))
"""


def run(code, *arguments, **environment):
    given = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "DJANGO_SETTINGS_MODULE": "leaderboard.settings",
    }
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=given | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_production_settings_pass_every_check_of_deployment():
    done = run(ASK, **PRODUCTION)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == {
        "redirect": [301, "https://board.example/methods"],
        "hsts": "max-age=31536000; includeSubDomains",
        "foreign": 400,
        "cookies": [True, True, True],
        "debug": False,
        "log": "json",
    }


def test_a_key_that_could_be_guessed_does_not_start():
    done = run("import leaderboard.settings", **PRODUCTION | {"SECRET_KEY": "django-insecure-" + KEY})
    assert done.returncode != 0
    assert "SECRET_KEY" in done.stderr.splitlines()[-1]
    assert KEY not in done.stderr


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("s", "has 1 characters"),
        (KEY[:49], "has 49 characters"),
        ("ab" * 40, "has only 2 different"),
        (f"change-me-{KEY}", '"change"'),
        (f"django-insecure-{KEY}", '"insecure"'),
    ],
)
def test_weak_keys(key, why):
    with pytest.raises(ImproperlyConfigured, match=why):
        deployed.strong_key(key)
    assert deployed.strong_key(KEY) == KEY


@pytest.mark.parametrize(
    ("bind", "shown"),
    [
        ("127.0.0.1:8000", None),
        ("127.9.9.9:8000", None),
        ("[::1]:8000", None),
        ("localhost:8000", None),
        ("unix:/run/bandstand.sock", None),
        ("0.0.0.0:8000", "0.0.0.0:8000"),
        (":8000", ":8000"),
        ("[::]:8000", "[::]:8000"),
        ("192.168.1.7:80", "192.168.1.7:80"),
        ("board.example:80", "board.example:80"),
        ("fd://3", "the file descriptor 3"),
    ],
)
def test_which_addresses_other_machines_reach(bind, shown):
    local = parse_address("127.0.0.1:1")
    assert deployed.reachable_address([local, parse_address(bind)]) == shown


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "The web server would listen at 0.0.0.0:0, which other machines reach."),
        ({"BEHIND_PROXY": "on", "PROXIES": "0"}, "The database does not answer"),  # the next question
        ({"PROXIES": "1"}, "The database does not answer"),
        ({"PROXIES": "1", "BEHIND_PROXY": "off"}, "The web server would listen at"),
        ({"BEHIND_PROXY": "maybe"}, "BEHIND_PROXY is 'maybe'; it must be one of true, yes"),
    ],
)
def test_gunicorn_does_not_start_bare_on_a_public_address(settings, why):
    serve = "from gunicorn.app.wsgiapp import run; run()"
    arguments = ["--config", "python:leaderboard.serving", "--bind", "0.0.0.0:0"]
    nowhere = {"DATABASE_URL": "postgres://x@127.0.0.1:1/x"}
    done = run(serve, *arguments, **PRODUCTION | nowhere | settings)
    assert done.returncode != 0
    assert why in done.stderr
    if why.startswith("The web server"):
        assert "Set BEHIND_PROXY=on" in done.stderr
        assert "docs/deployment.md" in done.stderr


@pytest.mark.parametrize("hosts", [["*"], ["board.example", "*"], [""]])
def test_any_host_is_no_host(hosts):
    with pytest.raises(ImproperlyConfigured, match="names the hosts"):
        deployed.named_hosts(hosts)


def test_networks_and_tokens_are_read_at_the_start():
    assert [str(one) for one in deployed.networks("N", ["10.0.0.0/8", " ::1 "])] == ["10.0.0.0/8", "::1/128"]
    with pytest.raises(ImproperlyConfigured, match=r"N: .*10\.0\.0\.1/8"):
        deployed.networks("N", ["10.0.0.1/8"])
    with pytest.raises(ImproperlyConfigured, match="T has 5 characters"):
        deployed.secret_token("T", "short")


@pytest.mark.parametrize(
    ("proxies", "connection", "forwarded", "address"),
    [
        (0, "192.0.2.1", None, "192.0.2.1"),
        (0, "127.0.0.1", "192.0.2.1", None),  # a proxy that nobody told of
        (1, "127.0.0.1", "192.0.2.1", "192.0.2.1"),
        (1, "127.0.0.1", "8.8.8.8, 192.0.2.1", "192.0.2.1"),  # the first was the visitor's own
        (2, "127.0.0.1", "8.8.8.8, 192.0.2.1, 10.0.0.1", "192.0.2.1"),
        (2, "127.0.0.1", "192.0.2.1", None),
        (1, "127.0.0.1", "nonsense", None),
        (1, "127.0.0.1", None, None),
        (0, "", None, None),
        (0, "2001:db8::1", None, "2001:db8::1"),
        (0, "::ffff:192.0.2.1", None, "192.0.2.1"),  # as a socket of IPv6 tells IPv4
    ],
)
def test_a_visitor_cannot_choose_an_address(settings, proxies, connection, forwarded, address):
    settings.PROXIES = proxies
    heads = {"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {}
    found = address_of(RequestFactory().get("/", REMOTE_ADDR=connection, **heads))
    assert (found and str(found)) == address


def test_a_household_is_one_visitor(settings):
    settings.PROXIES = 0

    def of(address):
        return network_of(address_of(RequestFactory().get("/", REMOTE_ADDR=address)))

    def counted(address):
        return Adapter().get_client_ip(RequestFactory().get("/", REMOTE_ADDR=address))

    assert counted("2001:db8:1:2::3") == counted("2001:db8:1:2::4") != counted("2001:db8:1:3::4")
    assert of("2001:db8:1:2::3") == of("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert of("::ffff:192.0.2.1") == of("192.0.2.1")


@pytest.mark.parametrize(
    "host", ["", "*", "https://board.example", "board.example:443", "a.example b.example"]
)
def test_what_is_no_host_is_refused(host):
    with pytest.raises(ImproperlyConfigured, match="separated by commas"):
        deployed.named_hosts(["board.example", host])


def test_hosts_are_taken():
    hosts = ["board.example", ".board.example", "127.0.0.1", "[::1]", "web_1"]
    assert deployed.named_hosts(hosts) == hosts


@pytest.mark.parametrize(
    ("text", "told"), [("", None), ("true", True), ("Yes", True), ("1", True), ("off", False), ("0", False)]
)
def test_a_switch(text, told):
    for default in (True, False):
        expected = default if told is None else told
        assert deployed.yes_or_no("REQUIRE_2FA", text, default=default) is expected


@pytest.mark.parametrize("text", ["required", "enabled", "maybe", "offf", "2"])
def test_a_switch_that_cannot_be_read_is_no_off(text):
    with pytest.raises(ImproperlyConfigured, match=f"REQUIRE_2FA is '{text}'; it must be one of true, yes"):
        deployed.yes_or_no("REQUIRE_2FA", text, default=True)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("PROXIES", "one", "PROXIES is 'one'; it must be a whole number."),
        ("VISITOR_SECONDS", "0.5", "VISITOR_SECONDS is '0.5'; it must be a whole number."),
        (
            "LOG_LEVEL",
            "info",
            "LOG_LEVEL is 'info'; it must be one of DEBUG, INFO, WARNING, ERROR, CRITICAL.",
        ),
        ("LOG_FORMAT", "xml", "LOG_FORMAT is 'xml'; it must be one of json, text."),
        ("REQUIRE_2FA", "required", "REQUIRE_2FA is 'required'; it must be one of true, yes, on, 1, false,"),
        ("DATABASE_URL", "sqlite:////tmp/x", "DATABASE_URL must be like postgres://"),
        ("DATABASE_URL", "postgres://x@localhost", "DATABASE_URL must be like postgres://"),
    ],
)
def test_a_setting_that_cannot_be_read_is_told_in_a_line(name, text, told):
    code = "import sys; sys.argv = ['manage.py', 'load', 'x']; from leaderboard.command import main; main()"
    done = run(code, **PRODUCTION | {name: text})
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith(told)


def test_no_setting_shows_the_password_of_the_mail_server():
    """But the one of that name, which Django itself hides."""
    code = (
        "from leaderboard import settings\n"
        "print([name for name, value in vars(settings).items() if name.isupper() and 'horse' in str(value)])"
    )
    done = run(code, **PRODUCTION | {"EMAIL_URL": "smtp://post:horse@localhost:25"})
    assert done.stdout == "['EMAIL_HOST_PASSWORD']\n", done.stderr


def test_an_empty_setting_is_none():
    empty = dict.fromkeys(("PROXIES", "EMAIL_URL", "LOG_LEVEL", "NIGHT_HOUR", "REQUIRE_2FA"), "")
    done = run("from django.conf import settings; print(settings.PROXIES)", **PRODUCTION | empty)
    assert done.stdout == "0\n", done.stderr
