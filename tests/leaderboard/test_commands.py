"""The commands as an operator types them."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from leaderboard.accounts.queries import token_of
from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark, Role
from leaderboard.submissions.models import Outcome
from tests.toys import AS_OF, csv_text, ladder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(capsys):
    """Call a command and return what it printed."""

    def call(*arguments):
        out, err = io.StringIO(), io.StringIO()
        call_command(*arguments, stdout=out, stderr=err)
        return out.getvalue()

    return call


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(csv_text(ladder(16, 20)))
    return path


def test_from_file_to_board(db, run, file):
    assert run("load", str(file), "--benchmark", "toy") == (
        "Stored in toy: 320 new, 0 already there; "
        "16 submissions from 16 agents on 20 tasks, 20 of them new.\n"
    )
    assert "Published board 1 of toy." in run("recompute", "toy")
    assert run("recompute", "toy") == "Board 1 of toy is up to date.\n"
    table = run("standings", "toy")
    assert re.search(r"^ +1  a15 ", table, re.MULTILINE)
    assert "phase ongoing" in table
    assert Board.objects.get().digest in table


def test_loading_twice_says_so(db, run, file):
    run("load", str(file), "--benchmark", "toy")
    assert "0 new, 320 already there; 0 submissions" in run("load", str(file), "--benchmark", "toy")


def test_aliases_and_metadata_are_reported(db, run, file):
    file.write_text(file.read_text().replace("outcome", "score", 1).replace("valid", "failure_mode", 1))
    printed = run("load", str(file), "--benchmark", "toy").splitlines()
    assert printed[1:] == ["The column score was read as outcome.", "Kept as metadata: failure_mode."]


def test_names_are_printed_as_they_are(db, run, tmp_path, monkeypatch):
    """What a terminal library takes for markup or an emoji's name is a name here, of files and of agents."""
    monkeypatch.setenv("COLUMNS", "160")
    path = tmp_path / "[bold]x[.csv"
    path.write_text(csv_text({f"[red]a{i}[/] :smile:": "1" * i + "0" * (20 - i) for i in range(16)}))
    run("load", str(path), "--benchmark", "toy")
    run("recompute", "toy")
    assert " [red]a15[/] :smile: " in run("standings", "toy")


def test_dry_run_says_would(db, run, file):
    assert run("load", str(file), "--benchmark", "toy", "--dry-run").startswith("Would store in toy: 320 new")
    assert not Benchmark.objects.exists()


def test_standings_in_three_formats_agree(db, run, file):
    run("load", str(file), "--benchmark", "toy")
    run("recompute", "toy")
    content = json.loads(run("standings", "toy", "--format", "json"))
    lines = list(csv.DictReader(io.StringIO(run("standings", "toy", "--format", "csv"))))
    assert [line["name"] for line in lines] == [entry["name"] for entry in content["entries"]]
    assert [float(line["score"]) for line in lines] == [entry["score"] for entry in content["entries"]]
    assert content["subset"]["size"] == len(content["subset"]["tasks"])


def truncated(path):
    whole = gzip.compress(csv_text(ladder(16, 20)).encode())
    path.write_bytes(whole[: len(whole) // 2])


BROKEN = {
    "a truncated gzip": (truncated, "gzip"),
    "an empty file": (lambda path: path.write_bytes(b""), "empty"),
    "UTF-16": (lambda path: path.write_text(csv_text({"a": "1"}), encoding="utf-16"), "UTF-16"),
    "no outcome column": (lambda path: path.write_text("benchmark,agent\nx,y\n"), "outcome"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_in_words(db, run, tmp_path, name):
    write, word = BROKEN[name]
    path = tmp_path / "outcomes.csv.gz"
    write(path)
    with pytest.raises(CommandError, match=r"outcomes\.csv\.gz has .*; nothing was stored\.\n") as refusal:
        run("load", str(path), "--benchmark", "toy")
    assert word in str(refusal.value)
    assert not Outcome.objects.exists()
    assert not Benchmark.objects.exists()


def test_fifty_faults_are_printed_and_all_are_counted(db, run, tmp_path):
    path = tmp_path / "outcomes.csv"
    path.write_text(csv_text({"a": "1" * 80}).replace(",1,1,1\n", ",1,7,1\n"))
    with pytest.raises(CommandError) as refusal:
        run("load", str(path), "--benchmark", "toy")
    lines = str(refusal.value).splitlines()
    assert len(lines) == 52
    assert "80 faults" in lines[0]
    assert "30 more (80 in all)" in lines[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["load", "nowhere.csv", "--benchmark", "toy"], "no file nowhere.csv"),
        (["recompute", "nope"], "no benchmark 'nope'"),
        (["standings", "nope"], "None is loaded yet"),
        (["token", "ada@example.org", "--benchmark", "nope"], "no benchmark 'nope'"),
        (["token", "ada", "--benchmark", "nope"], "not an e-mail address"),
    ],
)
def test_refusals_in_words(db, run, arguments, words):
    with pytest.raises(CommandError, match=words):
        run(*arguments)


def test_a_slug_must_fit_an_address(db, run, file):
    with pytest.raises(CommandError, match="cannot stand in an address"):
        run("load", str(file), "--benchmark", "my bench")


def test_standings_before_the_first_board(db, run, file):
    run("load", str(file), "--benchmark", "toy")
    with pytest.raises(CommandError, match="No board has been published yet"):
        run("standings", "toy")


def test_token_is_printed_once_and_works(db, run, file, django_user_model):
    run("load", str(file), "--benchmark", "toy")
    text = run("token", "Ada@example.org", "--benchmark", "toy", "--scope", "submit").strip()
    token = token_of(text, as_of=AS_OF)
    assert (token.scopes, token.benchmarks) == (["read", "submit"], ["toy"])
    user = django_user_model.objects.get()
    assert user.memberships.get().role == Role.SUBMITTER
    assert not user.has_usable_password()
    run("token", "ada@example.org", "--benchmark", "toy", "--scope", "operate")
    run("token", "ada@example.org", "--benchmark", "toy", "--scope", "read")
    assert user.memberships.get().role == Role.OPERATOR
    assert user.tokens.count() == 3


def test_demo_shows_subset_runs_and_is_the_same_again(db, run):
    first = run("demo")
    assert "36 agents" not in first
    content = json.loads(run("standings", "demonstration", "--format", "json"))
    marks = [entry["marks"] for entry in content["entries"]]
    assert marks.count(["subset"]) == 6
    assert 40 <= content["subset"]["size"] <= 60
    assert content["n_tasks"] == 120
    again = run("demo")
    assert "0 new, 18,000 already there" in again
    assert Board.objects.count() == 2


def test_demo_with_a_file_takes_the_slug_from_it(db, run, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(csv_text(ladder(6, 20), benchmark="My Bench@0.1.2"))
    run("demo", "--file", str(path))
    assert Benchmark.objects.get().slug == "my-bench-0-1-2"


def manage(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
    )


@pytest.mark.parametrize("absent", ["SECRET_KEY", "ALLOWED_HOSTS"])
def test_nothing_unsafe_has_a_default_with_a_database_url(absent):
    given = {"DATABASE_URL": "postgres://x@localhost/x", "SECRET_KEY": "s", "ALLOWED_HOSTS": "example.org"}
    answer = manage("check", **{name: value for name, value in given.items() if name != absent})
    assert answer.returncode != 0
    assert f"{absent} must be set" in answer.stderr


def test_help_needs_no_database():
    for arguments in (["help"], ["load", "--help"], ["check"], ["--version"]):
        answer = manage(*arguments, BANDSTAND_HOME="/nonexistent/home")
        assert answer.returncode == 0, answer.stderr


def test_tables_that_are_not_there_yet():
    with tempfile.TemporaryDirectory(prefix="bst-") as home:
        answer = manage("standings", "toy", BANDSTAND_HOME=home)
    assert answer.returncode == 1
    assert "manage.py migrate" in answer.stderr
    assert "Traceback" not in answer.stderr
