"""`manage.py backup` and `restore`, with PostgreSQL's own programs on real databases."""

import os
import stat
import subprocess

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from leaderboard import postgres
from leaderboard.boards.models import Board, Entry
from leaderboard.command import run as execute
from leaderboard.pages.models import RenderedPage
from tests.leaderboard.databases import database, empty_database
from tests.toys import csv_text, graded, load_text, recomputed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def empty():
    with empty_database() as name:
        yield name


@pytest.fixture
def later_release():
    """A migration that this release lacks is recorded; between tests that table is not emptied."""
    applied = MigrationRecorder(connection)
    applied.record_applied("boards", "0099_of_tomorrow")
    yield
    applied.record_unapplied("boards", "0099_of_tomorrow")


def published():
    entries = list(Entry.objects.order_by("id").values_list("board__number", "name", "rank", "line"))
    return list(Board.objects.order_by("id").values_list("number", "digest", "content")), entries


def test_what_comes_back_is_the_same_and_life_goes_on(tmp_path, empty, capsys):
    load_text(csv_text(graded(16, 20)))
    recomputed()
    RenderedPage.objects.create(key="k", content=b"x", content_type="text/html")
    file = tmp_path / "bandstand.dump"
    call_command("backup", str(file))
    assert f"{file}: {file.stat().st_size:,} bytes, from PostgreSQL 18." in capsys.readouterr().out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["bandstand.dump"]
    before = published()
    later = csv_text(graded(3, 20, seed=1, prefix="b"))
    load_text(later)
    next_digest = recomputed().digest
    with database(empty):
        call_command("restore", str(file))
        assert capsys.readouterr().out == f"Restored from {file}.\n"
        assert published() == before
        assert recomputed().digest == before[0][-1][1]
        assert len(published()[0]) == len(before[0])  # nothing was behind
        assert not RenderedPage.objects.exists()
        load_text(later)
        assert recomputed().digest == next_digest
        with pytest.raises(
            CommandError,
            match=r"^The database is not empty: it has \d+ tables, .* an empty one|new folder",
        ):
            call_command("restore", str(file))


def test_what_does_not_fit_is_refused_in_one_line(tmp_path, empty, later_release, monkeypatch):
    file, other = tmp_path / "bandstand.dump", tmp_path / "other"
    call_command("backup", str(file))
    with pytest.raises(CommandError, match="already exists"):
        call_command("backup", str(file))
    other.write_text("no dump")
    with database(empty):
        with pytest.raises(
            CommandError, match="The database has no tables yet, so there is nothing to back up"
        ):
            call_command("backup", str(tmp_path / "none.dump"))
        for path, why in (
            (file, r"^The file is of a later release, with boards\.0099_of_tomorrow: install that one\.$"),
            (other, "^This is not a file of `backup`: .*valid archive"),
            (tmp_path / "nothing", r"^File not found: "),
        ):
            with pytest.raises(CommandError, match=why):
                call_command("restore", str(path))
        dumped(other)
        with pytest.raises(CommandError, match="is a backup of another database"):
            call_command("restore", str(other))
    older = tmp_path / "bin"
    older.mkdir()
    for name in ("pg_dump", "pg_restore"):
        (older / name).write_text(f'#!/bin/sh\necho "{name} (PostgreSQL) 15.99"\n')
        (older / name).chmod(0o755)
    monkeypatch.setattr(settings, "EMBEDDED", False)
    monkeypatch.setenv("PATH", str(older))
    why = r"^pg_dump is of PostgreSQL 15, the server of 18: put the programs of 18 first on PATH\.$"
    with pytest.raises(CommandError, match=why):
        call_command("backup", str(tmp_path / "again"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match=r"^There is no pg_dump on PATH"):
        call_command("backup", str(tmp_path / "again"))
    assert not (tmp_path / "again").exists()


def test_a_file_with_a_turned_bit_or_without_tables_is_refused(tmp_path, empty):
    file, part = tmp_path / "bandstand.dump", tmp_path / "part.dump"
    call_command("backup", str(file))
    dumped(part, "--table=django_migrations")
    whole = file.read_bytes()
    place = whole.index(b"CREATE TRIGGER")  # in plain text, which pg_restore reads as it is
    file.write_bytes(whole[:place] + b"\x00" + whole[place + 1 :])
    with database(empty):
        for path, why in ((file, "its SHA-256 is another"), (part, "lacks the rows of account_emailaddress")):
            with pytest.raises(CommandError, match=why):
                call_command("restore", str(path))
        file.write_bytes(whole.rpartition(b"\nsha256")[0])  # as earlier releases wrote it
        call_command("restore", str(file))
        assert "django_migrations" in connection.introspection.table_names()


def test_a_command_that_fails_is_told_by_its_error(tmp_path, empty):
    file = tmp_path / "bandstand.dump"
    call_command("backup", str(file))
    with database(empty):
        with connection.cursor() as cursor:
            cursor.execute("CREATE DOMAIN catalog_task AS text")  # is in the way, and no table
        with pytest.raises(CommandError, match=r'^pg_restore: error: .* type "catalog_task" already exists$'):
            call_command("restore", str(file))
        assert connection.introspection.table_names() == []


def dumped(file, *options):
    """A dump of the present database, which `backup` did not write."""
    chosen = connection.settings_dict
    names = [f"--host={chosen['HOST']}", f"--port={chosen['PORT']}", f"--dbname={chosen['NAME']}"]
    command = [f"{postgres.programs()}/pg_dump", "--format=custom", f"--file={file}", *names, *options]
    subprocess.run(command, check=True, env=os.environ)


def test_a_database_that_is_away_is_told_in_one_line(tmp_path, monkeypatch):
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "HOST", str(tmp_path))
    for command in (("backup", str(tmp_path / "none.dump")), ("recompute", "toy")):
        with pytest.raises(CommandError, match=r"^Cannot reach the database: connection .*failed.*$"):
            call_command(*command)
    assert not list(tmp_path.iterdir())
    with pytest.raises(SystemExit, match=r"^Cannot reach the database: connection .*failed.*$"):
        execute(["manage.py", "changepassword", "somebody"])


def test_a_command_of_django_says_that_there_are_no_tables(empty):
    why = r"^The database has no tables yet. Create them: manage\.py migrate$"
    with database(empty), pytest.raises(SystemExit, match=why):
        execute(["manage.py", "changepassword", "somebody"])
