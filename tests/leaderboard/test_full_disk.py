"""A database that lacks room or memory: what is said of it, and what still works."""

from contextlib import contextmanager

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection

from leaderboard.catalog.models import Benchmark
from leaderboard.errors import of_database
from leaderboard.pages import home
from tests.leaderboard.api.deliver import body, send, token_for
from tests.toys import csv_text, ladder, load_text

FULL = "The disk of the database is full. Nothing of this step was stored. Free space and try again."
EXTENDING = 'could not extend file "base/1/2": No space left on device\nHINT:  Check free disk space.'


@contextmanager
def full_disk(table):
    """Let the server have no room for another row of a table."""

    def execute(query, sql, *more):
        if sql.startswith(f'INSERT INTO "{table}"'):
            raise_as_django(psycopg.errors.DiskFull(EXTENDING))
        return query(sql, *more)

    with connection.execute_wrapper(execute):
        yield


def raise_as_django(error):
    with connection.wrap_database_errors:
        raise error


@pytest.mark.django_db(transaction=True)
def test_load_says_in_a_line_that_the_disk_is_full(tmp_path):
    file = tmp_path / "toy.csv"
    file.write_text(csv_text(ladder(3, 20)))
    with full_disk("submissions_submission"), pytest.raises(CommandError) as told:
        call_command("load", str(file), "--benchmark", "toy")
    assert str(told.value) == FULL
    assert not Benchmark.objects.exists()
    call_command("load", str(file), "--benchmark", "toy")


@pytest.mark.django_db(transaction=True)
def test_the_api_and_the_log_say_that_the_disk_is_full(caplog):
    load_text(csv_text(ladder(3, 20)))
    token = token_for()
    with full_disk("submissions_submission"):
        answer = send(body(), token=token)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert (answer.json()["type"], answer.json()["detail"]) == ("urn:bandstand:problem:disk_full", FULL)
    assert FULL in caplog.messages
    assert send(body(), token=token).status_code == 201


@pytest.mark.django_db
def test_a_page_that_meets_a_full_disk_is_logged(client, caplog, monkeypatch):
    def fail():
        raise_as_django(psycopg.errors.DiskFull(EXTENDING))

    monkeypatch.setattr(home, "listed_benchmarks", fail)
    answer = client.get("/")
    assert answer.status_code == 503
    assert b"Back in a moment" in answer.content
    assert FULL in caplog.messages


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (psycopg.errors.DiskFull(EXTENDING), FULL),
        (
            psycopg.errors.OutOfMemory("out of memory\nDETAIL:  Failed on request of size 9."),
            "The database lacks resources: out of memory. Nothing of this step was stored. Try again later.",
        ),
        (
            psycopg.errors.ConfigurationLimitExceeded("temporary file size exceeds temp_file_limit (9kB)"),
            "The database lacks resources: temporary file size exceeds temp_file_limit (9kB). "
            "Nothing of this step was stored. Try again later.",
        ),
        (
            psycopg.errors.TooManyConnections("sorry, too many clients already"),
            "The database lacks resources: sorry, too many clients already. Nothing of this step was stored. "
            "Try again later.",
        ),
        (psycopg.errors.DeadlockDetected("deadlock detected"), ""),
    ],
)
def test_what_the_server_lacks_is_said_in_a_line(error, said):
    with pytest.raises(DatabaseError) as raised:
        raise_as_django(error)
    assert of_database(raised.value) == said
