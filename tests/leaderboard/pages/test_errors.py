import logging
from io import StringIO

import pytest
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.template.loader import render_to_string
from django.test import Client
from django.views.defaults import permission_denied

from leaderboard.operations.benchmarks import create_benchmark
from leaderboard.pages import home
from leaderboard.urls import handler500


def fail(error):
    def listed_benchmarks():
        raise error

    return listed_benchmarks


def test_an_unknown_address(client, db):
    response = client.get("/nowhere")
    assert response.status_code == 404
    assert b"Page not found" in response.content
    assert "style-src 'self'" in response["Content-Security-Policy"]


def test_an_unknown_benchmark(client, db):
    assert client.get("/b/none").status_code == 404


@pytest.mark.parametrize(
    ("address", "page"),
    [
        ("/b/toy/", "/b/toy"),
        ("/b/toy/tasks/", "/b/toy/tasks"),
        ("/b/toy/agents/7//?a=1&b=%C3%A9%20c", "/b/toy/agents/7?a=1&b=%C3%A9%20c"),
        ("/b/toy/badge.svg/", "/b/toy/badge.svg"),
    ],
)
def test_a_slash_at_the_end_leads_to_the_page_without_it(client, db, address, page):
    response = client.get(address)
    assert (response.status_code, response["Location"]) == (301, page)


@pytest.mark.parametrize(
    "address", ["/b/", "/b//", "/b//evil.example/", "/b/toy/nowhere/", "/b/toy/nowhere", "/b/%2F%2Fevil/"]
)
def test_no_slash_leads_to_what_is_not_there(client, db, address):
    assert client.get(address).status_code == 404


def test_a_foreign_host(client, db):
    response = client.get("/", headers={"host": "elsewhere.example"})
    assert response.status_code == 400
    assert b"Bad request" in response.content


def test_nonsense_fills_no_log(client, db, monkeypatch):
    (written,) = [one for one in logging.getLogger().handlers if one.name == "stderr"]
    monkeypatch.setattr(written, "stream", log := StringIO())
    assert client.post("/accounts/login/", {"login": range(2_000)}).status_code == 400
    assert client.post("/accounts/login/", {"login": "x" * 3_000_000}).status_code == 400
    create_benchmark(slug="new", title="New", tasks=[], by=None, reason="a first one")
    assert client.get("/b/new/tasks", {"find": range(2_000)}).status_code == 400
    assert client.get("/b/none").status_code == 404
    assert "Not Found: /b/none" in log.getvalue()
    assert "Traceback" not in log.getvalue()


def test_a_refusal(rf):
    response = permission_denied(rf.get("/"), PermissionDenied())
    assert response.status_code == 403
    assert b"Not allowed" in response.content


@pytest.mark.parametrize("error", [RuntimeError("a secret"), KeyError("a secret")])
def test_a_fault_of_ours_keeps_its_details(client, db, monkeypatch, error):
    client.raise_request_exception = False
    monkeypatch.setattr(home, "listed_benchmarks", fail(error))
    response = client.get("/")
    assert response.status_code == 500
    assert b"Something went wrong" in response.content
    assert b"a secret" not in response.content


@pytest.mark.parametrize("error", [OperationalError("the server is gone"), InterfaceError("closed")])
def test_a_database_that_does_not_answer(client, db, monkeypatch, error):
    monkeypatch.setattr(home, "listed_benchmarks", fail(error))
    response = client.get("/")
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert response["Cache-Control"] == "no-store"
    assert b"Back in a moment" in response.content
    assert b"the server is gone" not in response.content
    assert "style-src 'self'" in response["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("path", "told"), [("/", b"Back in a moment"), ("/api/v1/", b"database_unavailable")]
)
def test_a_database_that_is_away_before_a_view_is_reached(rf, path, told):
    try:
        raise OperationalError("the server is gone")
    except OperationalError:
        response = handler500(rf.get(path))
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert response["Cache-Control"] == "no-store"
    assert told in response.content


# ---------------------------------------------------------------------------------- what to do about it


TEMPLATES = ("400.html", "403.html", "403_csrf.html", "404.html", "500.html", "503.html")


@pytest.mark.parametrize("template", TEMPLATES)
def test_each_says_what_to_do_and_is_not_kept(template):
    page = render_to_string(template)
    assert '<ul class="todo">' in page
    assert '<a href="/">See the public benchmarks</a>' in page
    assert page.count("<h1") == 1
    assert 'name="robots" content="noindex"' in page
    assert "style=" not in page
    assert "<script" not in page


@pytest.mark.parametrize("template", ["403_csrf.html", "500.html", "503.html"])
def test_what_is_shown_when_something_is_broken_needs_nothing(template, settings):
    """No database (the fixture would let it in), no list of static files, no context."""
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": "nowhere.AtAll"}}
    assert '<link rel="stylesheet" href="/static/css/bandstand.css">' in render_to_string(template)


def test_a_form_without_its_token_says_to_send_it_again():
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/account/mail", {"told": "yes"})
    assert answer.status_code == 403
    assert b"Go back, reload the page with the form, and send it again." in answer.content
    assert "style-src 'self'" in answer["Content-Security-Policy"]
    assert b"style=" not in answer.content
