"""`/healthz` and `/readyz`; with real processes they are asked in `test_scheduler`."""

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpResponse
from django.test import RequestFactory

from leaderboard import schema
from leaderboard.operations.scheduler import leadership
from leaderboard.probes import ProbeMiddleware

WELL = {"ready": True, "database": "ok", "migrations": "ok", "scheduler": "ok"}


@pytest.fixture
def probe(client):
    """Ask as a machine does, by its address and without TLS; nothing of it is kept."""

    def ask(path):
        answer = client.get(path, headers={"Host": "10.0.0.7:8000"})
        assert answer["Cache-Control"] == "no-store"
        return answer.status_code, answer.json()

    return ask


def test_the_names_of_migrations_are_those_that_django_finds():
    assert schema.known() == set(MigrationLoader(None).disk_migrations)


def test_the_process_answers_without_a_database(probe, settings):
    settings.ALLOWED_HOSTS = ["board.example"]
    assert probe("/healthz") == (200, {"status": "ok"})


def test_head_is_answered_without_a_body():
    """The client of Django's tests would drop a body by itself."""
    for path in ("/healthz", "/elsewhere"):
        request = RequestFactory().head(path)
        answer = ProbeMiddleware(lambda _: HttpResponse("text", headers={"Content-Length": "4"}))(request)
        assert (answer.status_code, answer.content) == (200, b"")
    assert answer["Content-Length"] == "4"


@pytest.mark.django_db(transaction=True)
def test_ready_while_a_scheduler_leads(probe, monkeypatch):
    assert probe("/readyz") == (503, WELL | {"ready": False, "scheduler": "none leads; start one"})
    with leadership.leadership(lambda: False) as leader:
        leader.is_woken(within=0)
        assert probe("/readyz") == (200, WELL)
        monkeypatch.setattr(leadership, "SILENT_AFTER", -1.0)
        status, told = probe("/readyz")
        assert (status, told["scheduler"]) == (503, "no sign of life for 0 s")


@pytest.mark.django_db
def test_not_ready_on_the_tables_of_another_release(probe):
    applied = MigrationRecorder(connection)
    applied.record_applied("boards", "0099_of_tomorrow")
    applied.record_applied("gone", "0001_of_an_app_that_is_no_more")
    status, told = probe("/readyz")
    assert (status, told["scheduler"]) == (503, "not known")
    assert told["migrations"] == (
        "1 migration of a later release (boards.0099_of_tomorrow); install that release"
    )
    applied.record_unapplied("boards", "0001_initial")
    assert "1 migration not applied (boards.0001_initial); run `migrate`" in probe("/readyz")[1]["migrations"]


@pytest.mark.django_db(transaction=True)
def test_a_database_in_another_encoding_does_not_fit(monkeypatch):
    """It takes names until the first that it cannot hold."""
    made = "TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C'"
    with connection._nodb_cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS in_ascii")
        cursor.execute(f"CREATE DATABASE in_ascii {made}")
        elsewhere = connection.copy()
        elsewhere.settings_dict["NAME"] = "in_ascii"
        monkeypatch.setattr(schema, "connection", elsewhere)
        try:
            assert schema.mismatch().startswith("the database is in SQL_ASCII; make one by createdb")
        finally:
            elsewhere.close()
            cursor.execute("DROP DATABASE in_ascii")
