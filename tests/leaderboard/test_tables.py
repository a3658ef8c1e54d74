"""Tables of people, loaded: outcomes of SWE-bench Verified as a sheet, whole or not at all."""

import io
import subprocess
import sys
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from django.core.management import CommandError, call_command

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Refusal
from leaderboard.operations import uploads
from leaderboard.submissions.models import Outcome, Submission
from tests.toys import AS_OF

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wide(real_data):
    """Six agents on all tasks, a row each."""
    rows = pd.read_csv(real_data / "demo/swebench_verified.csv.gz", dtype=str)
    rows = rows[rows["agent"].isin(list(dict.fromkeys(rows["agent"]))[::10])]
    return rows.pivot(index="agent", columns="task", values="outcome").astype(int)


@pytest.fixture
def book(wide, tmp_path):
    """A function that writes the rows as a workbook, with changes to its sheet."""

    def write(change=lambda sheet: None):
        book = openpyxl.Workbook()
        sheet = book.active
        for row in [["Agent", *wide.columns], *([name, *cells.tolist()] for name, cells in wide.iterrows())]:
            sheet.append(row)
        change(sheet)
        path = tmp_path / "results.xlsx"
        book.save(path)
        return path

    return write


def loaded(*arguments):
    out = io.StringIO()
    call_command("load", *map(str, arguments), "--benchmark", "toy", stdout=out, stderr=io.StringIO())
    return out.getvalue()


def means():
    agents = dict(Submission.objects.values_list("pk", "agent__name"))
    rows = [(agents[n], value) for n, value in Outcome.objects.values_list("submission_id", "value")]
    return pd.DataFrame(rows, columns=["agent", "value"]).groupby("agent")["value"].agg(["mean", "size"])


def test_a_workbook_is_loaded_and_said_how(db, book, wide):
    assert loaded(book()) == (
        'Read results.xlsx, sheet "Sheet" as a wide table, a row for each agent and a column for each task, '
        "header in row 1.\n"
        "Stored in toy: 3,000 new, 0 already there; "
        "6 submissions from 6 agents on 500 tasks, 500 of them new.\n"
        "Next: manage.py recompute toy\n"
    )
    assert means()["mean"].to_dict() == pytest.approx(wide.mean(axis=1).to_dict())
    assert set(means()["size"]) == {500}
    assert "0 new, 3,000 already there" in loaded(book())


def test_a_fault_in_one_cell_stores_nothing(db, book, wide):
    def spoil(sheet):
        sheet["C4"] = "maybe"

    with pytest.raises(CommandError) as refused:
        loaded(book(spoil))
    said = str(refused.value).splitlines()
    assert said[0] == 'results.xlsx, sheet "Sheet" has a fault; nothing was stored.'
    rule = "an outcome is a number from 0 to 1"
    assert said[1] == f'  row 4, {wide.columns[1]}: "maybe" is not allowed; {rule}'
    assert not Benchmark.objects.exists()


def test_options_reach_the_reader(db, tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("who;what;resolved\nA;x;yes\nA;y;no\n")
    with pytest.raises(CommandError):
        loaded(path)
    heads = ["--column", "agent=who", "--column", "task=what", "--column", "outcome=resolved"]
    assert '"who" as agent' in loaded(path, *heads)
    assert means().loc["A"].tolist() == [0.5, 2]


def test_an_upload_is_read_by_a_process_of_its_own(db, book, wide):
    by = User.objects.create_user(email="ada@example.org")
    toy = Benchmark.objects.create(slug="toy", title="Toy")
    kept = {"benchmark": toy, "by": by, "name": "results.xlsx", "as_of": AS_OF}
    upload = uploads.keep(**kept, content=book().read_bytes())
    seen = uploads.look(upload=upload, replace=False, as_of=AS_OF)
    assert seen.n_new == 3000
    assert seen.notes[0].startswith('Read toy.xlsx, sheet "Sheet" as a wide table')
    uploads.store(upload=upload, replace=False, by=by, reason="checked", as_of=AS_OF)
    assert means()["mean"].to_dict() == pytest.approx(wide.mean(axis=1).to_dict())

    def spoil(sheet):
        sheet["C4"] = "maybe"

    upload = uploads.keep(**kept, content=book(spoil).read_bytes())
    with pytest.raises(
        Refusal, match=r'^toy\.xlsx, sheet "Sheet" is refused: row 4, .*: "maybe" is not allowed'
    ):
        uploads.look(upload=upload, replace=False, as_of=AS_OF)


def test_a_command_that_reads_no_table_imports_no_pandas(tmp_path):
    code = (
        "import sys, leaderboard.submissions.parsing.flat, analytics.tables;"
        "print(sorted({'pandas', 'python_calamine', 'openpyxl'} & sys.modules.keys()))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"
