"""Tables of people, loaded: outcomes of SWE-bench Verified as a sheet, whole or not at all."""

import io
import json
import subprocess
import sys
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.services import get_or_create_benchmark
from leaderboard.errors import Refusal
from leaderboard.operations import uploads
from leaderboard.submissions.models import Outcome, Submission
from tests.leaderboard.desk import person
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
        "Stored in toy: 3,000 new results; "
        "6 submissions from 6 agents on 500 tasks (500 new).\n"
        "Next: manage.py recompute toy\n"
    )
    assert means()["mean"].to_dict() == pytest.approx(wide.mean(axis=1).to_dict())
    assert set(means()["size"]) == {500}
    assert "0 new results, 3,000 already stored" in loaded(book())


def test_a_fault_in_one_cell_stores_nothing(db, book, wide):
    def spoil(sheet):
        sheet["C4"] = "maybe"

    with pytest.raises(CommandError) as refused:
        loaded(book(spoil))
    said = str(refused.value).splitlines()
    assert said[0] == 'results.xlsx, sheet "Sheet" has a fault. Nothing was stored.'
    rule = "an outcome is a number from 0 to 1; also read are pass, fail, true, false and 75%"
    assert said[1] == f'  row 4, {wide.columns[1]} "maybe": {rule}'
    assert not Benchmark.objects.exists()


def test_options_reach_the_reader(db, tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("who;what;resolved\nA;x;yes\nA;y;no\n")
    with pytest.raises(CommandError):
        loaded(path)
    heads = ["--column", "agent=who", "--column", "task=what", "--column", "outcome=resolved"]
    assert '"who" as agent' in loaded(path, *heads)
    assert means().loc["A"].tolist() == [0.5, 2]


def test_a_text_in_utf_16_is_a_table_whatever_its_name(db, tmp_path):
    path = tmp_path / "saved by a spreadsheet.txt"
    path.write_text("agent\ttask\toutcome\nA\tx\t1\nA\ty\t0\n", encoding="utf-16")
    assert "2 new" in loaded(path)
    assert means().loc["A"].tolist() == [0.5, 2]


def test_an_upload_is_read_by_a_process_of_its_own(db, book, wide):
    by = User.objects.create_user(email="ada@example.org")
    toy, _ = get_or_create_benchmark(slug="toy", title="Toy")
    kept = {"benchmark": toy, "by": by, "name": "results.xlsx", "as_of": AS_OF}
    upload = uploads.keep(**kept, content=book().read_bytes())
    seen = uploads.preview(upload=upload, replace=False, as_of=AS_OF)
    assert seen.n_new == 3000
    assert seen.notes[0].startswith('Read results.xlsx, sheet "Sheet" as a wide table')
    uploads.store(upload=upload, replace=False, by=by, reason="checked", as_of=AS_OF)
    assert means()["mean"].to_dict() == pytest.approx(wide.mean(axis=1).to_dict())

    def spoil(sheet):
        sheet["C4"] = "maybe"

    upload = uploads.keep(**kept, content=book(spoil).read_bytes())
    with pytest.raises(Refusal, match=r'^results\.xlsx, sheet "Sheet" is refused: row 4, .* "maybe": '):
        uploads.preview(upload=upload, replace=False, as_of=AS_OF)


@pytest.fixture
def sent(db, client, book, wide):
    """A function that uploads a workbook of two sheets with outcomes in the admin, and returns the answer."""
    toy, _ = get_or_create_benchmark(slug="toy", title="Toy")
    client.force_login(person("staff@example.org", staff=True))

    def copied(sheet):
        sheet.parent.copy_worksheet(sheet).title = "Of March"
        sheet["B2"] = 1 - sheet["B2"].value

    content = book(copied).read_bytes()

    def send(options, **confirmed):
        form = {"reason": "new runs", "options": options, **confirmed}
        form |= {} if confirmed else {"file": SimpleUploadedFile("results.xlsx", content)}
        return client.post(f"/admin/catalog/benchmark/{toy.pk}/upload/", form)

    return send


def test_the_admin_takes_the_options_that_a_refusal_asks_for(sent, wide):
    refused = sent("")
    assert refused.status_code == 422
    assert "choose one with --sheet NAME" in str(refused.context["form"].non_field_errors())
    seen = sent("--sheet 'Of March'")
    assert 'sheet "Of March" as a wide table' in " ".join(seen.context["sentences"])
    assert not Outcome.objects.exists()
    assert sent(**dict(seen.context["carried"])).status_code == 302
    assert means()["mean"].to_dict() == pytest.approx(wide.mean(axis=1).to_dict())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--to /tmp/flat.parquet", "--to is none of --column, --sheet, --wide, --long, --blank, --percent"),
        ("Of March", "Of is none of"),
        ("--help", "--help is none of"),
        ("--sheet", "argument --sheet: expected one argument"),
        ("--sheet 'Of", "No closing quotation"),
        ("--column x=y", "is not KNOWN=HEAD"),
        ("--wide --long", "not allowed with argument"),
        ("--sheet=--to", "unknown sheet '--to'"),
    ],
)
def test_the_admin_takes_no_other_options(sent, options, told):
    refused = sent(options)
    assert refused.status_code == 422
    assert told in str(refused.context["form"].errors.as_data())
    assert not Submission.objects.exists()


@pytest.fixture
def tables(wide, tmp_path):
    """The six agents on 40 tasks, as CSV with a row for each and as a workbook with a row for each task."""
    few = wide.iloc[:, ::13].reset_index()
    csv, xlsx = tmp_path / "our runs.csv", tmp_path / "our runs.xlsx"
    few.to_csv(csv, index=False)
    few.set_index("agent").T.rename_axis("task").reset_index().to_excel(xlsx, index=False)
    return csv, xlsx


def test_replay_of_a_table_is_that_of_the_flat_file(db, real_data, tmp_path):
    rows = pd.read_csv(real_data / "demo/swebench_verified.csv.gz", dtype=str)
    rows = rows[rows["task"].isin(sorted(set(rows["task"]))[::10])]
    about = rows.drop_duplicates("agent")[["agent", "submitted_at"]].set_axis(["Agent", "Date"], axis=1)
    few = rows.pivot(index="agent", columns="task", values="outcome").rename_axis("Agent").reset_index()
    paths = [tmp_path / name for name in ("flat.csv", "wide.xlsx")]
    rows.to_csv(paths[0], index=False)
    about.merge(few).to_excel(paths[1], index=False)
    found = []
    for path in paths:
        out = io.StringIO()
        call_command("replay", "new", str(path), "--json", "--seeds", "1", stdout=out, stderr=io.StringIO())
        found.append(json.loads(out.getvalue()))
    assert found[0]["figures"]["n_agents"] == 57
    assert found[0] == found[1]
    assert not Benchmark.objects.exists()


@pytest.mark.parametrize("number", [0, 1])
def test_demo_takes_a_table(transactional_db, tables, wide, number):
    out, path = io.StringIO(), tables[number]
    call_command("demo", "--file", str(path), stdout=out, stderr=io.StringIO())
    key, across = ("agent", "task") if number == 0 else ("task", "agent")
    assert f"a row for each {key} and a column for each {across}" in out.getvalue().splitlines()[0]
    assert "6 submissions from 6 agents on 39 tasks" in out.getvalue()
    assert Benchmark.objects.get().slug == "our-runs"
    assert means()["mean"].to_dict() == pytest.approx(wide.iloc[:, ::13].mean(axis=1).to_dict())
    assert all(name in out.getvalue() for name in wide.index)


def test_a_command_that_reads_no_table_imports_no_pandas(tmp_path):
    code = (
        "import sys, leaderboard.submissions.parsing.flat, analytics.tables;"
        "print(sorted({'pandas', 'python_calamine', 'openpyxl'} & sys.modules.keys()))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"
