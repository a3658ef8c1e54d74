"""Tables as people bring them, made from SWE-bench Verified: its outcomes, or a line that says why not."""

import gzip
import io
import struct
import subprocess
import sys
import zipfile
import zlib
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from openpyxl.styles import Font
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900
from pyarrow import parquet

from analytics import workbooks
from analytics.flat_file import FlatFileError, Limits, read
from analytics.tables import TableOptions, is_table, read_table

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "demo/swebench_verified.csv.gz"
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def source(real_data):
    return pd.read_csv(real_data / SOURCE, dtype=str, keep_default_na=False)


@pytest.fixture(scope="module")
def few(source):
    """Six agents on eight tasks, of both outcomes in each row and column."""
    agents = list(dict.fromkeys(source["agent"]))[::10]
    rows = source[source["agent"].isin(agents)]
    mixed = rows.astype({"outcome": int}).groupby("task")["outcome"].agg(["min", "max"])
    tasks = list(mixed[mixed["min"] < mixed["max"]].index[:8])
    return rows[rows["task"].isin(tasks)].reset_index(drop=True)


def grid(rows, index="agent", columns="task"):
    return rows.pivot(index=index, columns=columns, values="outcome").reset_index()


def outcomes_of(flat):
    names = zip(flat.agent, flat.task, flat.outcome, strict=True)
    return {(flat.agents[i], flat.tasks[j]): float(y) for i, j, y in names}


def in_rows(frame):
    return {(a, t): float(y) for a, t, y in zip(frame["agent"], frame["task"], frame["outcome"], strict=True)}


def sheet_of(path, rows, *, name="Sheet", other=None, change=None):
    """A workbook with the rows; `change` is called with the sheet, `other` are rows of a sheet before it."""
    book = openpyxl.Workbook()
    sheet = book.active
    if other is not None:
        sheet.title = "Notes"
        for row in other:
            sheet.append(row)
        sheet = book.create_sheet()
    sheet.title = name
    for row in rows:
        sheet.append(list(row))
    if change:
        change(sheet)
    book.save(path)
    return path


def table(frame, words=None):
    """Head and rows of a frame; outcomes as numbers, or by words."""
    words = words or {"0": 0, "1": 1}
    return [
        list(frame.columns),
        *([words.get(cell, cell) for cell in row] for row in frame.to_numpy().tolist()),
    ]


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def dated(path, few, epoch=CALENDAR_WINDOWS_1900):
    """Dates as day numbers since `epoch`, one of them formatted as a date."""
    rows = few[["agent", "task", "submitted_at", "outcome"]].to_numpy().tolist()
    day = {text: (date.fromisoformat(text) - epoch.date()).days for text in set(few["submitted_at"])}
    put = [[a, t, day[d], int(y)] for a, t, d, y in rows]
    put[0][2] = date.fromisoformat(rows[0][2])

    def count_from(sheet):
        sheet.parent.epoch = epoch

    return sheet_of(path, [["agent", "task", "submitted_at", "outcome"], *put], change=count_from)


def titled(path, few):
    def merge(sheet):
        sheet.insert_rows(1, 3)
        sheet["A1"] = "SWE-bench Verified, model results of January"
        sheet["A2"], sheet["D2"] = "all agents", "one trial"
        sheet.merge_cells("A1:D1")
        sheet["Z400"].font = Font(bold=True)

    return sheet_of(path, table(grid(few)), change=merge)


def numbered(few):
    """Agents called 4.5, 4.10 and so on."""
    agents = list(dict.fromkeys(few["agent"]))
    names = dict(zip(agents, ["4.5", "4.10", "4", "3.5", "007", "1e3"], strict=True))
    return few.assign(agent=few["agent"].map(names))


TICKS = {"0": "", "1": "✓"}
CROSSES = {"0": "✗", "1": "✔️"}
WORDS = {"0": "FAIL", "1": "Pass"}
RESOLVED = {"0": "unresolved", "1": "Resolved"}
LONG = ["agent", "task", "outcome"]

# Each makes a file from the few rows, and says with which options it is read.
READ = {
    "three columns": lambda few, path: (written(path("a.csv"), few[LONG].to_csv(index=False)), {}),
    "three columns, gzipped": lambda few, path: (zipped(path("a.csv.gz"), few[LONG].to_csv(index=False)), {}),
    "words for heads": lambda few, path: (
        written(path("a.csv"), few[LONG].rename(columns=str.title).to_csv(index=False)),
        {},
    ),
    "another name for the outcome": lambda few, path: (
        written(path("a.csv"), few[LONG].rename(columns={"outcome": "resolved?"}).to_csv(index=False)),
        {"columns": {"outcome": "resolved?"}},
    ),
    "model, instance_id, score": lambda few, path: (
        written(path("a.csv"), few[LONG].set_axis(["Model", "instance_id", "score"], axis=1).to_csv()),
        {},
    ),
    "semicolons and a mark of byte order": lambda few, path: (
        written(path("a.csv"), few[LONG].to_csv(index=False, sep=";"), "utf-8-sig"),
        {},
    ),
    "semicolons and decimal commas": lambda few, path: (
        written(path("a.csv"), few[LONG].replace({"outcome": {"1": "1,0", "0": "0,0"}}).to_csv(sep=";")),
        {},
    ),
    "tabs": lambda few, path: (written(path("a.tsv"), few.to_csv(index=False, sep="\t")), {}),
    "UTF-16": lambda few, path: (written(path("a.csv"), few.to_csv(index=False, sep="\t"), "utf-16"), {}),
    "UTF-16 without a mark": lambda few, path: (
        written(path("a.csv"), few.to_csv(index=False), "utf-16-be"),
        {},
    ),
    "a flat file with words": lambda few, path: (
        written(path("a.csv"), few.replace({"outcome": WORDS}).to_csv(index=False)),
        {"wide": False},
    ),
    "wide": lambda few, path: (written(path("a.csv"), grid(few).to_csv(index=False)), {}),
    "wide, with what describes the agents": lambda few, path: (
        written(path("a.csv"), grid(few).assign(version="1", open_model=True).to_csv(index=False)),
        {},
    ),
    "Parquet, wide, with an index that has no name": lambda few, path: (
        columns_of(path("a.parquet"), numbers(grid(few)).set_index("agent").rename_axis(None), index=True),
        {"columns": {"agent": ""}},
    ),
    "transposed": lambda few, path: (
        written(path("a.csv"), grid(few, "task", "agent").to_csv(index=False)),
        {},
    ),
    "an empty corner": lambda few, path: (
        written(path("a.csv"), grid(few).rename(columns={"agent": ""}).to_csv(index=False)),
        {"columns": {"agent": ""}},
    ),
    "Parquet, three columns": lambda few, path: (columns_of(path("a.parquet"), few[LONG]), {}),
    "Parquet, wide": lambda few, path: (columns_of(path("a.parquet"), numbers(grid(few))), {}),
    "Parquet, as pandas pivots it": lambda few, path: (
        columns_of(path("a.parquet"), numbers(grid(few, "task", "agent")).set_index("task"), index=True),
        {},
    ),
    "Parquet, percentages": lambda few, path: (
        columns_of(path("a.parquet"), few[LONG].assign(outcome=few["outcome"].astype(float) * 100)),
        {"percent": True},
    ),
    "Parquet, truths and a date": lambda few, path: (
        columns_of(
            path("a.parquet"),
            few[LONG].assign(outcome=few["outcome"] == "1", date=pd.to_datetime(few["submitted_at"])),
        ),
        {},
    ),
    "a workbook": lambda few, path: (sheet_of(path("a.xlsx"), table(few)), {}),
    "percentages": lambda few, path: (
        sheet_of(path("a.xlsx"), table(grid(few), {"0": "0%", "1": "100 %"})),
        {},
    ),
    "truths": lambda few, path: (sheet_of(path("a.xlsx"), table(grid(few), {"0": False, "1": True})), {}),
    "words": lambda few, path: (sheet_of(path("a.xlsx"), table(grid(few), WORDS)), {}),
    "words of SWE-bench": lambda few, path: (sheet_of(path("a.xlsx"), table(grid(few), RESOLVED)), {}),
    "ticks and crosses": lambda few, path: (sheet_of(path("a.xlsx"), table(grid(few), CROSSES)), {}),
    "ticks and blanks": lambda few, path: (
        sheet_of(path("a.xlsx"), table(grid(few, "task", "agent"), TICKS)),
        {"blank": "fail"},
    ),
    "merged titles": lambda few, path: (titled(path("a.xlsx"), few), {}),
    "dates as numbers of Excel": lambda few, path: (dated(path("a.xlsx"), few), {}),
    "dates as numbers since 1904": lambda few, path: (
        dated(path("a.xlsx"), few, CALENDAR_MAC_1904),
        {},
    ),
    "two sheets, one of agents": lambda few, path: (
        sheet_of(
            path("a.xlsx"),
            table(grid(few)),
            other=table(
                few[["agent", "scaffold", "submitted_at"]].set_axis(["Agent", "Scaffold", "Date"], axis=1)
            ),
        ),
        {},
    ),
    "two sheets, one of notes": lambda few, path: (
        sheet_of(path("a.xlsx"), table(grid(few)), other=[["Made", "by hand"], ["on", "a Monday"]]),
        {},
    ),
    "two sheets, one named": lambda few, path: (
        sheet_of(path("a.xlsx"), table(grid(few)), name="Verified", other=[["agent", "x"], ["A", 1]]),
        {"sheet": "Verified"},
    ),
}


def numbers(frame):
    """The outcomes of a wide table as numbers, as a program keeps them."""
    return frame.astype(dict.fromkeys(frame.columns[1:], float))


def columns_of(path, frame, *, index=False):
    frame.to_parquet(path, index=index)
    return path


def zipped(path, text):
    path.write_bytes(gzip.compress(text.encode()))
    return path


@pytest.mark.parametrize("name", READ)
def test_a_table_of_people_has_the_outcomes_of_the_file(few, tmp_path, name):
    path, options = READ[name](few, tmp_path.joinpath)
    options = TableOptions(**options)
    assert is_table(path, options)
    flat, note = read_table(path, options, as_of=AS_OF)
    assert outcomes_of(flat) == in_rows(few)
    assert flat.n_rows == len(few) == 48
    assert note.startswith(f"Read {path.name}")


def test_the_whole_file_as_a_wide_workbook(source, tmp_path):
    path = sheet_of(tmp_path / "all.xlsx", table(grid(source)))
    flat, note = read_table(path, as_of=AS_OF)
    assert outcomes_of(flat) == in_rows(source)
    assert (len(flat.agents), len(flat.tasks)) == (57, 500)
    shape = "a wide table, a row for each agent and a column for each task"
    assert note == f'Read all.xlsx, sheet "Sheet" as {shape}, header in row 1.'


def test_dates_categories_and_models_come_along(source, few, tmp_path):
    for epoch in (CALENDAR_WINDOWS_1900, CALENDAR_MAC_1904):
        flat, _ = read_table(dated(tmp_path / "a.xlsx", few, epoch), as_of=AS_OF)
        assert flat.submitted_at.astype("datetime64[D]").astype(str).tolist() == few["submitted_at"].tolist()
    about = few.drop_duplicates("agent").set_index("agent")[["scaffold", "model", "submitted_at"]]
    whole = grid(few).join(about.rename(columns={"submitted_at": "Date"}), on="agent")
    flat, note = read_table(sheet_of(tmp_path / "b.xlsx", table(whole)), as_of=AS_OF)
    assert outcomes_of(flat) == in_rows(few)
    assert '"Date" as submitted_at' in note
    assert dict(zip(flat.agents, flat.models, strict=True)) == about["model"].to_dict()
    whole = grid(few, "task", "agent").merge(few.drop_duplicates("task")[["task", "category"]])
    flat, _ = read_table(sheet_of(tmp_path / "c.xlsx", table(whole)), as_of=AS_OF)
    assert dict(zip(flat.tasks, flat.categories, strict=True)) == dict(
        zip(few["task"], few["category"], strict=True)
    )
    assert (set(flat.scaffolds), flat.benchmark) == ({"not stated"}, "c")


@pytest.mark.parametrize("transposed", [False, True])
def test_names_that_are_numbers_stay_as_typed(few, tmp_path, transposed):
    rows = numbered(few)
    whole = grid(rows, *(("task", "agent") if transposed else ("agent", "task")))
    flat, _ = read_table(written(tmp_path / "a.csv", whole.to_csv(index=False)), as_of=AS_OF)
    assert outcomes_of(flat) == in_rows(rows)
    typed = {"4.5": 4.5, "4": 4, "3.5": 3.5}  # a cell of numbers; the others a person formats as text
    rows = [[typed.get(cell, cell) for cell in row] for row in table(whole)]
    flat, _ = read_table(sheet_of(tmp_path / "a.xlsx", rows), as_of=AS_OF)
    assert outcomes_of(flat) == in_rows(numbered(few))


def test_blank_is_missing_where_the_table_says_what_failed(few, tmp_path):
    whole = grid(few)
    gone = (whole["agent"][2], whole.columns[4])
    whole.loc[2, gone[1]] = ""
    path = written(tmp_path / "a.csv", whole.to_csv(index=False))
    flat, note = read_table(path, as_of=AS_OF)
    assert outcomes_of(flat) == {pair: y for pair, y in in_rows(few).items() if pair != gone}
    assert "blank outcomes, missing: 1" in note
    flat, note = read_table(path, TableOptions(blank="fail"), as_of=AS_OF)
    assert outcomes_of(flat) == in_rows(few) | {gone: 0.0}
    assert "blank" not in note


def test_an_empty_head_is_advised_only_where_there_is_one(tmp_path):
    path = written(tmp_path / "a.csv", "agent,cost,x,y\nA,1.5,1,0\n")
    with pytest.raises(FlatFileError, match=r"say which is meant: --column cost_usd=HEAD$"):
        read_table(path, TableOptions(columns={"cost_usd": ""}), as_of=AS_OF)
    path = written(tmp_path / "b.csv", ",task,score\nA,x,1\n")
    with pytest.raises(FlatFileError, match=r"--column agent=HEAD \(--column agent= where it is empty\)$"):
        read_table(path, TableOptions(wide=False), as_of=AS_OF)


def test_a_blank_row_of_a_long_table_is_a_trial_without_a_result(tmp_path):
    path = written(tmp_path / "a.csv", "agent;task;outcome\nA;x;1\nA;y;\nB;x;0\nB;y;n/a\n")
    flat, note = read_table(path, as_of=AS_OF)
    assert (flat.n_rows, flat.valid.tolist()) == (4, [True, False, True, False])
    assert note.endswith("; 2 rows without an outcome: trials without a valid result.")
    flat, note = read_table(path, TableOptions(blank="missing"), as_of=AS_OF)
    assert note.endswith("; blank outcomes, missing: 2.")
    assert (flat.n_rows, flat.valid.all()) == (2, True)


def test_trials_and_failures_of_the_harness_in_a_long_table(tmp_path):
    text = "agent;task;trial;outcome;valid\nA;x;1;25 %;\nA;x;2;;0\nA;y;1;50,0%;1\n"
    flat, note = read_table(written(tmp_path / "a.csv", text), as_of=AS_OF)
    np.testing.assert_array_equal(flat.outcome, [0.25, np.nan, 0.5])
    assert (flat.trial.tolist(), flat.valid.tolist()) == ([1, 2, 1], [True, False, True])
    assert "blank" not in note


def test_decimal_commas_are_read_in_every_column_of_numbers(tmp_path):
    text = "agent;task;outcome;cost_usd;temperature\nA;x;0,5;0,125;0,7\nB;x;1,000;1,250;1\n"
    flat, _ = read_table(written(tmp_path / "a.csv", text), as_of=AS_OF)
    assert (flat.outcome.tolist(), flat.measured["cost_usd"].tolist()) == ([0.5, 1.0], [0.125, 1.25])
    assert [setting.temperature for setting in flat.settings] == [0.7, 1.0]


@pytest.mark.parametrize(("values", "plain"), [("1,000;2", "1000"), ("1;1,250", "1250")])
def test_commas_that_may_part_thousands_are_not_guessed_at(tmp_path, values, plain):
    path = written(tmp_path / "a.csv", f"agent;task;outcome;cost_usd\nA;x;{values}\nB;x;0;20\n")
    assert f"; write {plain}, or a point for a decimal comma" in refusal(path)


@pytest.mark.parametrize("column", ["run", "trial"])
def test_a_wide_table_may_have_several_rows_of_an_agent(tmp_path, column):
    path = written(tmp_path / "a.csv", f"agent;{column};x;y\nA;1;1;0\nB;1;0;1\nA;2;1;1\nB;2;0;0\n")
    assert read_table(path, as_of=AS_OF)[0].n_rows == 8


def test_rows_of_one_agent_and_task_are_its_trials(tmp_path):
    text = "agent;task;outcome\nA;x;1\nA;y;0\nA;x;0\nB;x;pass\nA;x;1\n"
    flat, note = read_table(written(tmp_path / "a.csv", text), as_of=AS_OF, out=tmp_path / "a.parquet")
    assert flat.trial.tolist() == [1, 1, 2, 1, 3]
    assert "up to 3 rows of an agent and a task, counted as trials" in note
    assert read(tmp_path / "a.parquet", as_of=AS_OF).trial.tolist() == [1, 1, 2, 1, 3]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("heads.csv", "Agent Name,Problem ID,Resolved\nA,x,yes\nA,y,no\n"),
        ("marks.csv", "Agent:,Task :,Passed?\nA,x,yes\nA,y,no\n"),
        ("model.csv", "model,instance_id,success\nA,x,True\nA,y,False\n"),
        (
            "records.ndjson",
            '{"agent": "A", "task": "x", "outcome": true}\n{"agent":"A","task":"y","outcome":0}\n',
        ),
        (
            "bom.jsonl",
            '\ufeff{"task": "x", "agent_name": "A", "passed": 1}\n'
            '{"task": "y", "agent_name": "A", "passed": 0}\n',
        ),
    ],
)
def test_heads_that_mean_agent_task_and_outcome_are_recognised(tmp_path, name, text):
    flat, _ = read_table(written(tmp_path / name, text), as_of=AS_OF)
    assert [(flat.agents[a], flat.tasks[t]) for a, t in zip(flat.agent, flat.task, strict=True)] == [
        ("A", "x"),
        ("A", "y"),
    ]
    assert flat.outcome.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        (
            "Agent;Task;Outcome\nLoop, plan, act (x);x;1\nTree, a, b (y);x;0\n",
            ["Loop, plan, act (x)", "Tree, a, b (y)"],
        ),
        ("Runs, all\n\nAgent;Task;Outcome\nLoop, plan;x;1\nTree, a;x;0\n", ["Loop, plan", "Tree, a"]),
        ("agent,task,outcome\nA | B | C,x,1\nD | E | F,x,0\n", ["A | B | C", "D | E | F"]),
        ("agent;task;outcome\nA;x;1,0\nB;x\nB;x;0,0\n", ["A", "B"]),
    ],
)
def test_marks_within_names_are_no_delimiters(tmp_path, text, agents):
    flat, _ = read_table(written(tmp_path / "a.csv", text), as_of=AS_OF)
    assert (list(flat.agents), flat.tasks) == (agents, ("x",))


@pytest.mark.parametrize(
    "text",
    [
        "instance_id,model_name_or_path,resolved\nx,A,True\ny,A,False\n",
        "model_name_or_path,x,y\nA,1,0\n",
    ],
)
def test_rows_of_swe_bench_name_their_model(tmp_path, text):
    flat, _ = read_table(written(tmp_path / "a.csv", text), as_of=AS_OF)
    assert (flat.models, outcomes_of(flat)) == (("A",), {("A", "x"): 1.0, ("A", "y"): 0.0})


def test_one_version_of_each_agent_is_read(tmp_path):
    text = "agent,version,task,outcome\nA,1,x,1\nA,,y,0\nB,2,x,0\n"
    assert read_table(written(tmp_path / "a.csv", text), as_of=AS_OF)[0].n_rows == 3


def test_no_name_of_the_real_data_is_refused_in_a_wide_table(real_data, tmp_path):
    for path in (*real_data.glob("*.csv.gz"), real_data / SOURCE):
        rows = pd.read_csv(path, dtype=str, keep_default_na=False).drop_duplicates(["agent", "task"])
        grid(rows).fillna("").to_csv(tmp_path / "a.csv", index=False)
        flat, _ = read_table(tmp_path / "a.csv", as_of=AS_OF)
        assert set(flat.agents) == set(rows["agent"]), path
        assert set(flat.tasks) == set(rows["task"]), path


def test_an_unnamed_index_may_stand_beside_a_long_table_or_hold_names(tmp_path):
    text = "Unnamed: 0,agent,task,outcome\n0,A,x,1\n1,A,y,0\n"
    assert read_table(written(tmp_path / "a.csv", text), as_of=AS_OF)[0].tasks == ("x", "y")
    path = written(tmp_path / "b.csv", "Unnamed: 0,x,y\nA,1,0\n")
    assert read_table(path, TableOptions(columns={"agent": "Unnamed: 0"}), as_of=AS_OF)[0].agents == ("A",)


def test_a_pivot_of_pandas_is_read_without_its_first_level(few, tmp_path):
    pivot = few.pivot(index=["agent", "model"], columns="task", values=["outcome"])
    path, book = tmp_path / "a.csv", tmp_path / "a.xlsx"
    for frame in (pivot, pivot.droplevel("model")):
        frame.to_csv(path)
        frame.to_excel(book)
        assert "rows 2 and 3 are both heads" in refusal(path)
        assert "rows 2 and 3 are both heads" in refusal(book)
        frame.droplevel(0, axis=1).to_csv(path)
        assert outcomes_of(read_table(path, as_of=AS_OF)[0]) == in_rows(few)


BINARY = ("1;1;0", "0;1;0", "0;1;1", "0;0;0")  # of four agents or tasks
GRADED = ("0.31;0.52;0.9", "0.11;0.71;0.2", "0;0.63;0.42", "0.5;0.77;0.17", "0.6;0.1;0.29")


@pytest.mark.parametrize(
    ("rows", "values", "what"),
    [
        (BINARY, ("2", "1", "2", "0"), "sum"),
        (BINARY, ("0.667", "0.333", "0.667", "0"), "mean"),
        (BINARY, ("66.7%", "33.3%", "66.7%", "0.0%"), "mean"),
        (BINARY, ("67", "33", "67", "0"), "percentage"),
        (("1;;0", "1;0;", ";0;0", "1;1;0"), ("0,50", "0,50", "0", "0,67"), "mean"),
        (("1;;0", "1;0;", ";0;0", "1;1;0", "1;0;0"), ("0.33", "0.33", "0", "0.67", "0.33"), "mean"),
        (GRADED, ("0.577", "0.340", "0.35", "0.48", "0.33"), "mean"),
    ],
)
@pytest.mark.parametrize("key", ["agent", "task"])
def test_a_column_that_follows_from_the_others_is_none(tmp_path, key, rows, values, what):
    lines = [f"{n};{row};{value}\n" for n, (row, value) in enumerate(zip(rows, values, strict=True))]
    path = written(tmp_path / "a.csv", "".join((f"{key};x;y;z;SWE-bench points\n", *lines)))
    one = "a task" if key == "agent" else "an agent"
    wanted = (
        f'column "SWE-bench points" is the {what} of the other results of each {key}; delete it. If it is'
    )
    assert f"{wanted} {one}, write a row for each result" in refusal(path)


@pytest.mark.parametrize(
    "text",
    [
        "agent;x;y;z;v\nA;1;1;0;0.67\nB;0;1;0;0.33\n",  # two rows
        "agent;x;y;z;v\nA;1;1;0;0.67\nB;0;1;0;0.33\nC;1;1;0;0.66\n",  # not the mean of the third
        "agent;x;y;z;v\nA;1;1;1;1.0\nB;0;0;0;0\nC;1;1;1;1.0\n",  # all agree
        "agent;x;y;z;v\nA;1;1;0;1\nB;0;1;0;0\nC;1;1;0;1\nD;0;0;1;0\n",  # as most of the others
        "agent;x;y;z\nA;0.25;0.75;0.5\nB;0.5;1;0.75\nC;0.25;0.25;0.25\nD;0;0.5;0.25\n",  # of four trials
    ],
)
def test_what_may_be_a_task_is_one(tmp_path, text):
    heads = text.partition("\n")[0].split(";")[1:]
    assert sorted(read_table(written(tmp_path / "a.csv", text), as_of=AS_OF)[0].tasks) == sorted(heads)


@pytest.mark.parametrize("name", ["test-cost", "totals", "std::sort", "finale", "pass@", "4.5", "C#"])
def test_names_are_compared_whole(tmp_path, name):
    flat, _ = read_table(written(tmp_path / "a.csv", f"agent,{name},y\nA,1,0\n"), as_of=AS_OF)
    assert flat.tasks == (name, "y")


@pytest.mark.parametrize("text", ["agent;task;score\nA;x;57,3\nA;y;5\n", "agent;x;y\nA;57.3;5\n"])
def test_percentages_without_a_sign_are_stated(tmp_path, text):
    path = written(tmp_path / "a.csv", text)
    assert outcomes_of(read_table(path, TableOptions(percent=True), as_of=AS_OF)[0]) == {
        ("A", "x"): 0.573,
        ("A", "y"): 0.05,
    }


def test_fractions_are_no_percentages(tmp_path):
    path = written(tmp_path / "a.csv", "agent;x;y\nA;0.5;1\n")
    assert "no outcome is above 1, so they are no percentages" in refusal(path, percent=True)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "agent,task,score\nA,x,0.7\nA,y,0\nB,x,59.55\nB,y,3\nC,x,70\nC,y,3\n",
            'agent "B" has results above 1, such as 59.55, and agent "A" only results from 0 to 1. Write all '
            "results on one scale",
        ),
        (
            "agent,task,score\nA,x,0.7\nA,y,1\nB,x,1\nB,y,0.4\nC,x,70.0\nC,y,3\n",
            'agent "C" has results above 1, such as 70.0, and agent "A" only',
        ),
        (
            "agent;Summe der Punkte;x;y;z\nA;3;1;1;1\nB;2;0;1;1\nC;0;0;0;0\n",
            'column "Summe der Punkte" has results above 1, such as 3, and column "x" only results from 0 to '
            "1. Write all results on one scale, and delete the column if it is no task",
        ),
    ],
)
def test_percentages_of_some_agents_or_of_one_column_are_refused(tmp_path, text, rule):
    path = written(tmp_path / "a.csv", text)
    for percent in (True, False):
        message = refusal(path, percent=percent)
        assert rule in message
        assert "--percent" not in message


def test_who_has_nothing_but_0_percent_is_no_reason_to_refuse(tmp_path):
    path = written(tmp_path / "a.csv", "agent;x;y\nA;0;0\nB;12.5;0\nC;0,5;7\n")
    outcomes = outcomes_of(read_table(path, TableOptions(percent=True), as_of=AS_OF)[0])
    assert outcomes["C", "x"] == 0.005


def test_one_benchmark_of_several(tmp_path):
    path = written(tmp_path / "a.csv", "benchmark;agent;task;outcome\nB;A;x;1\nC;A;x;0\n")
    assert outcomes_of(read_table(path, as_of=AS_OF, only="C")[0]) == {("A", "x"): 0.0}
    assert "B" in refusal(path)


# ---------------------------------------------------------------------------------------------- refused


def refusal(path, limits=None, **options):
    more = {"limits": limits} if limits else {}
    with pytest.raises(FlatFileError) as refused:
        read_table(path, TableOptions(**options), as_of=AS_OF, **more)
    message = str(refused.value)
    assert message.startswith(path.name)
    assert "\n" not in message
    return message


def test_a_fault_names_sheet_row_column_value_and_rule(few, tmp_path):
    def spoil(sheet):
        sheet.insert_rows(1, 2)
        sheet["A1"] = "Results"
        sheet["C5"], sheet["D6"], sheet["E6"], sheet["F6"] = "maybe", 57.3, "maybe", "#N/A"

    whole = grid(few)
    path = sheet_of(tmp_path / "a.xlsx", table(whole), name="Verified", change=spoil)
    with pytest.raises(FlatFileError) as refused:
        read_table(path, as_of=AS_OF)
    assert refused.value.name == 'a.xlsx, sheet "Verified"'
    rule = "an outcome is a number from 0 to 1"
    words = f"{rule}; also read are pass, fail, true, false and 75%"
    assert [(one.row, one.field, one.value) for one in refused.value.faults] == [
        (5, whole.columns[2], "maybe"),
        (6, whole.columns[3], "57.3"),
        (6, whole.columns[4], "maybe"),
        (6, whole.columns[5], "#N/A"),
    ]
    assert [one.rule for one in refused.value.faults] == [
        words, f"{rule}; a percentage has its sign: 57.3%", words, words
    ]  # fmt: skip


def test_rows_that_repeat_are_named_as_in_the_spreadsheet(few, tmp_path):
    text = "a title\n\nagent;task;trial;outcome\nA;x;1;1\n\nA;y;1;0\nA;x;1;0\na;z;1;1\n"
    with pytest.raises(FlatFileError) as refused:
        read_table(written(tmp_path / "a.csv", text), as_of=AS_OF)
    first, second = map(str, refused.value.faults)
    assert first.startswith("row 7: the row repeats row 4: ")
    assert second.startswith('row 8, agent "a": "A" in row 4 differs from it only in upper')


REFUSED = {
    "an empty corner": (
        "a.csv",
        ",x,y\nA,1,0\n",
        "say which is meant: --column agent=HEAD (--column agent= where",
    ),
    "two outcomes": (
        "a.csv",
        "agent;task;resolved;correct\nA;x;1;1\n",
        'outcome: no column is called so; there are "agent"',
    ),
    "words that are no results": (
        "a.csv",
        "agent,task,outcome\nA,x,gave up\nA,y,solved it\nA,z,1\n",
        '"gave up"; a result is a number from 0 to 1, a percentage (75%), or pass or fail: replace',
    ),
    "a lone surrogate": ("a.ndjson", '{"agent": "A"}\n{"agent": "\\ud800"}\n', "line 2: text has no lone"),
    "a lone surrogate in a key": ("a.ndjson", '{"\\ud800": "A"}\n', "line 1: text has no lone surrogate"),
    "a line that is no record": ("a.ndjson", '{"agent": "A"}\n[1]\n', "line 2 is not a JSON object"),
    "a name twice in a record": (
        "a.ndjson",
        '{"agent": "A", "agent": "B", "task": "x", "outcome": 1}\n',
        "line 1 is not a JSON object with names that differ",
    ),
    "a deep record": (
        "a.ndjson",
        '{"agent": "A", "task": "x", "outcome": 1}\n{"agent": ' + '{"a":' * 5_000 + "1" + "}" * 5_001 + "\n",
        "line 2 is not a JSON object",
    ),
    "a record with a wrong outcome": (
        "a.ndjson",
        "".join(f'{{"agent": "A", "task": "{i}", "outcome": {1 if i else 2}}}\n' for i in range(3)),
        'row 1, outcome "2"',
    ),
    "no outcome": (
        "a.csv",
        "agent;task;verdict\nA;x;1\n",
        'outcome: no column is called so; there are "agent"',
    ),
    "a long table taken for a wide one": (
        "a.csv",
        "agent;test;result\nA;x;1\nB;y;0\nA;z;half\n",
        "If each row is one result, say which columns hold the task and the outcome: --column task=HEAD "
        '--column outcome=HEAD, where HEAD is one of "test", "result"',
    ),
    "a field without end": (
        "a.csv",
        'agent;task;outcome\n"' + "x" * 200_000,
        'a quote (") is not closed; it begins in line 2',
    ),
    "a row that is too long": (
        "a.csv",
        "agent;task;outcome\n" + "A;x;1\n" * 60 + "A;x;1;2;3\n",
        "line 62 has 5 cells, and other lines at most 3; give each line as many cells",
    ),
    "scores of a hundred": (
        "a.csv",
        "agent;task;score\nA;x;57.3\nA;y;100\nA;z;1\n",
        'most cells are not results, for example "57.3"; if they are percentages, add --percent',
    ),
    "counts of many trials": (
        "a.csv",
        "agent;task;score\nA;x;0\nA;y;5\nA;z;3\n",
        'example "5"; an outcome is from 0 to 1: divide a count by its number of trials',
    ),
    "one count": (
        "a.csv",
        "agent;task;score\nA;x;0\nA;y;5\nA;z;1\n",
        'row 3, score "5": an outcome is a number from 0 to 1; divide a count by its number of trials',
    ),
    "percentages, the first of them small": (
        "a.csv",
        "agent;task;score\nA;x;4\nA;y;75\nA;z;3\n",
        'most cells are not results, for example "4"; if they are percentages, add --percent',
    ),
    "more than percentages": ("a.csv", "agent;task;score\nA;x;400\nA;y;75\n", "divide a count by"),
    "each row twice": (
        "a.csv",
        "agent;task;outcome\nA;x;1\nA;x;1\nA;y;0\nA;y;0\n",
        '2 rows are copies of an earlier row: row 3, 5; the first is agent "A" on task "x". Delete the',
    ),
    "a copy and another fault": (
        "a.csv",
        "agent;task;outcome\nA;x;1\nA;x;1\nA;y;yess\nA;z;0\n",
        'Delete the copies, or number trials in a column trial (2) row 4, outcome "yess"',
    ),
    "German dates": (
        "a.csv",
        "agent;task;outcome;Date\n" + "".join(f"A;t{i};1;0{i}.01.2026\n" for i in range(1, 8)),
        'a.csv is refused: row 2, Date "01.01.2026": a date is 2024-04-30, 2024-04, 2024 or '
        "2024-04-30T12:00:00Z, or empty; 7 rows have a wrong date",
    ),
    "no column": ("a.csv", "who;what\nA;x\n", "say which is meant: --column agent=HEAD"),
    "a sum for a task": (
        "a.csv",
        "agent;x;Total\nA;1;0.5\n",
        'column "Total" is neither a task nor an agent; delete it. If each row is one result, say which '
        "columns hold the task and the outcome: --column task=HEAD --column outcome=HEAD, where HEAD is "
        'one of "x", "Total"',
    ),
    **{
        f"a column {head}": (
            "a.csv",
            f"agent,x,{head}\nA,1,1\nB,0,0\n",
            f'column "{head}" is neither a task',
        )
        for head in (
            *(
                "Avg",
                "Mean score",
                "pass@1",
                "Σ",
                "Durchschnitt",
                "Gesamt",
                "Moyenne",
                "Resolve Rate",
                "Avg.",
                "PassRate",
                "TotalScore",
                "Weighted average",
            ),
            *("Score (%)", "% Resolved", "Cost ($)", "AVERAGE()", "Total Score", "pass@5", "std", "Ø", "#"),
            *("Open source?", "Verified", "seed", "difficulty", "macro_avg", "x_cost", "Output tokens"),
            *("time_s", "wall_seconds", "Unnamed: 7"),
        )
    },
    "a sum for an agent": (
        "a.csv",
        "agent;x;y\nA;1;0\nMean;1;0\n",
        'row "Mean" is neither a task nor an agent; delete it',
    ),
    "rows and columns beside the results": (
        "a.csv",
        "task;A;B;is_hard;A_cost;\nx;1;0;1;0.5;1\nDurchschnitt;1;0;1;0.5;1\nStd;1;0;1;0.5;1\n",
        'column "is_hard", column "A_cost", column without a head, row "Durchschnitt" and row "Std" are '
        "neither tasks nor agents; delete them. If each row",
    ),
    "many columns of costs": (
        "a.csv",
        "agent" + "".join(f",{i},{i}_cost" for i in range(30)) + "\nA" + ",1,0.1" * 30 + "\n",
        'column "22_cost", column "23_cost" and 6 more are neither tasks nor agents; delete them',
    ),
    "two rows of heads": (
        "a.csv",
        ",outcome,outcome\ntask,t1,t2\nagent,,\nAda,0,1\n",
        "rows 2 and 3 are both heads, as pandas writes a pivot; write it without the first level of its "
        "columns: frame.droplevel(0, axis=1)",
    ),
    "two rows of heads, and models": (
        "a.csv",
        ",,outcome,outcome\ntask,,t1,t2\nagent,model,,\nAda,m,0,1\n",
        "rows 2 and 3 are both heads, as pandas",
    ),
    "two versions of an agent": (
        "a.csv",
        "agent,version,task,outcome\nA,1,x,1\nB,,x,1\nA,2,x,0\nA,2,y,0\nA,3,y,0\nB,1,y,1\n",
        'a.csv is refused: row 4, version "2": agent "A" has version "1" in row 2, and only one version is '
        "allowed; give each version its own agent name",
    ),
    "two versions of an agent in a wide table": (
        "a.csv",
        "agent,Version,run,x\nA,1,a,1\nA,2,b,0\n",
        'row 3, version "2": agent "A" has version "1" in row 2',
    ),
    "a score and a pass": (
        "a.csv",
        "agent,task,passed,score\nA,x,1,0.9\n",
        'outcome: no column is called so; there are "agent", "task", "passed", "score"; say which is meant',
    ),
    "a number among percentages": (
        "a.csv",
        "agent,task,outcome\nA,x,50%\nA,y,1\nB,x,0\nB,y,0.5\n",
        '(1) row 3, outcome "1": other results have a percent sign; write this one as a percentage, too (2) '
        'row 5, outcome "0.5": other',
    ),
    "a pivot": (
        "a.csv",
        "agent;x;y;Grand Total\nA;1;0;1\n",
        'column "Grand Total" is neither a task nor an agent',
    ),
    "a score for each agent": (
        "a.csv",
        "agent,score,n_tasks\nA,0.5,20\nB,0.25,20\n",
        '"score", "n_tasks" look like totals, one for each agent. Bandstand needs one result for each '
        "agent and task",
    ),
    "dates by another name": (
        "a.csv",
        "agent;Datum;x;y\nA;01.03.2025;1;0\nB;02.03.2025;0;1\n",
        "Datum: these are dates, not results; add --column submitted_at=Datum",
    ),
    "each agent twice": (
        "a.csv",
        "agent;x;y\nA;1;0\nB;0;1\nA;1;1\nB;0;0\n",
        '2 agents stand in several rows, as "A"; add a column run or trial to tell the rows apart',
    ),
    "numbered rows": ("a.csv", "#;agent;x\n1;A;1\n2;B;0\n", 'column "#" is neither a task nor an agent'),
    "words that are no outcomes": (
        "a.csv",
        "agent;y;z\nA;x;\nB;x;0\n",
        'most cells are not results, for example "x"; a result is',
    ),
    "one scaffold for several rows": (
        "a.csv",
        "scaffold;agent;x\nS;A;1\n;B;0\n;C;0\n",
        "(1) row 3, scaffold: the field is empty; every row states its scaffold (2) row 4, scaffold: the",
    ),
    "a name of the day": (
        "a.csv",
        "agent;task;outcome;date\nA;x;1;01/05/2024\n",
        'row 2, date "01/05/2024": a date is 2024-04-30',
    ),
    "costs": ("a.csv", "agent;x;cost_usd\nA;1;0.1\n", 'column "cost_usd" is neither a task nor an agent'),
    "a column without a head": (
        "a.csv",
        "agent;x;\nA;1;0\n",
        "column without a head is neither a task",
    ),
    "one task twice": ("a.csv", "agent;x;x\nA;1;0\n", "x: 2 columns have this name"),
    "one fact twice": ("a.csv", "agent;x;version;Version\nA;1;1;b\n", "version: 2 columns have this name"),
    "an empty name": ("a.csv", "agent;x\nA;1\n;0\n", "row 3, agent: the agent of this row is empty; name it"),
    "the margins of pandas": (
        "a.csv",
        "agent;x;All\nA;1;1\nAll;1;1\n",
        'column "All" and row "All" are neither tasks nor agents; delete them. If each row is one result',
    ),
    "ticks and blanks": (
        "a.csv",
        "agent;x;y\nA;✓;\nB;;✓\n",
        "all results are passes or blank; say what blank means",
    ),
    "a file that was cut off": (
        "a.csv",
        "agent,task,outcome\nA,x,1\nB,x",
        "the last line has 2 of 3 cells, and no end of line follows; the file may be cut off",
    ),
    "an uneven row": (
        "a.csv",
        "agent;task;outcome\nA;x;1\nB;x;1;2\n",
        "row 3 has a value in a column without a head; name the column",
    ),
    "a date with dots": (
        "a.csv",
        "agent;task;outcome;submitted_at\nA;x;1;04.03.2025\n",
        'row 2, submitted_at "04.03.2025": a date is 2024-04-30',
    ),
    "Windows-1252": ("a.csv", "agent;task;outcome\nÉ;x;1\n", "is not UTF-8; save the file as UTF-8"),
    "nothing": ("a.csv", "\n\n", "the file is empty"),
    "blank lines and a word": ("a.csv", "\nhello\n", "there is no table"),
    "an old workbook": ("a.xls", "\xd0\xcf\x11\xe0" + "\0" * 100, "save it as .xlsx"),
    "a damaged workbook": ("a.xlsx", "PK\x03\x04" + "xl/" * 100, "the workbook is damaged"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_told_in_a_line(tmp_path, name):
    file, text, message = REFUSED[name]
    is_latin = file != "a.csv" or name == "Windows-1252"
    assert message in refusal(written(tmp_path / file, text, "latin-1" if is_latin else "utf-8"))


def test_sheets_are_named(few, tmp_path):
    path = sheet_of(tmp_path / "a.xlsx", table(grid(few)), other=[["agent", "x"], ["A", 1]])
    assert 'look like results: sheet "Notes", sheet "Sheet"; choose one with --sheet' in refusal(path)
    assert "unknown sheet 'No'; use one of 'Notes', 'Sheet'" in refusal(path, sheet="No")
    assert "no sheets" in refusal(written(tmp_path / "a.csv", "agent;x\nA;1\n"), sheet="No")


def test_what_parquet_may_hold(few, tmp_path):
    path = tmp_path / "a.parquet"
    columns_of(path, few[LONG].assign(steps=[["a", "b"]] * len(few)))
    assert "steps: the column's type is list<element: string>; text, numbers, true and false" in refusal(path)
    columns_of(path, pd.DataFrame({"agent": ["A", "B"], "x": [1.0, np.nan], "y": [np.nan, 1.0]}))
    assert "all results are passes or blank; say what blank means" in refusal(path)
    columns_of(path, few[LONG].assign(outcome=["0", "1", "2"] * 16))
    assert '(1) row 3, outcome "2": an outcome is a number from 0 to 1' in refusal(path)
    columns_of(path, few[LONG].set_axis(["who", "what", "outcome"], axis=1))
    assert 'no column is called agent or task; there are "who", "what", "outcome"' in refusal(path)
    columns_of(path, grid(few))
    assert "no sheets" in refusal(path, sheet="No")
    columns_of(path, pd.DataFrame({"agent": ["A", None], "x": [1, 0]}))
    assert "row 2, agent: the agent of this row is empty" in refusal(path)
    few[LONG].sample(frac=1, random_state=1).to_parquet(path)  # with the numbers of its rows
    assert read_table(path, as_of=AS_OF)[0].n_rows == len(few)
    numbers = pd.DataFrame({"x": [1, 0], "y": [0, 1]}, index=[101, 205])
    numbers.to_parquet(path)  # an index that names tasks
    assert read_table(path, TableOptions(columns={"task": ""}), as_of=AS_OF)[0].tasks == ("101", "205")
    parquet.write_table(pa.Table.from_arrays([pa.array(["A"])] * 2, ["x", "x"]), path)
    assert "x: 2 columns have this name" in refusal(path, wide=True)
    columns_of(path, grid(few))
    assert "more than 20 bytes after" in refusal(path, Limits(20, 100, 1000, None, None))
    assert "more than 5 rows" in refusal(path, Limits(10**6, 5, 1000, None, None))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert not is_table(path)
    assert "the Parquet file is damaged or incomplete" in refusal(path, wide=True)
    broken = bytearray(whole)
    broken[len(whole) // 4] ^= 255
    path.write_bytes(broken)
    assert "the Parquet file is damaged or incomplete" in refusal(path)


def test_agents_without_a_name_are_called_by_scaffold_and_model(tmp_path):
    text = "model,scaffold,task,outcome\nM,Loop,x,1\nM,Tree,x,0\n"
    flat, _ = read_table(written(tmp_path / "a.csv", text), as_of=AS_OF)
    assert flat.agents == ("Loop (M)", "Tree (M)")


def test_a_name_that_became_a_date_is_not_stored(tmp_path):
    path = sheet_of(tmp_path / "a.xlsx", [["agent", "x", "y"], [date(2025, 5, 4), 1, 0]])
    assert "row 2: the spreadsheet turned a name in this row into a date" in refusal(path)


def test_formulas_need_values(tmp_path):
    path = sheet_of(tmp_path / "a.xlsx", [["agent", "x", "y"], ["A", "=1+0", 0]])
    assert "holds a formula without a value; open the workbook in a spreadsheet and save it" in refusal(path)


# ----------------------------------------------------------------------------------------------- bounds


def changed(path, change, part="sheet1.xml"):
    """The workbook with the XML of its sheet, or of another part, changed."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (name,) = (name for name in parts if name.endswith(f"/{part}"))
    parts[name] = change(parts[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def bomb(path, n_blocks, stated=None):
    """A workbook whose sheet grows to blocks of a MiB; its directory may state another number of bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b"<row/> \n" * (1 << 17)) + packer.flush(zlib.Z_FULL_FLUSH)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", packed * n_blocks + packer.flush())
        info = archive.filelist[1]
        info.compress_type = zipfile.ZIP_DEFLATED
        info.file_size = min((n_blocks << 20) if stated is None else stated, 0xFFFFFFFE)
    return path


@pytest.mark.parametrize("stated", [None, 1000])
def test_a_bomb_is_refused_before_it_goes_off(tmp_path, stated):
    path = bomb(tmp_path / "bomb.xlsx", 4096, stated)
    assert path.stat().st_size < 16 << 20
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "from analytics.cli import main; sys.exit(main(['table', sys.argv[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert ("after decompression" if stated is None else "the workbook is damaged") in done.stderr


def far(sheet):
    sheet["XFD1048576"] = 1


def test_what_reaches_too_far_is_refused(few, tmp_path):
    path = sheet_of(tmp_path / "a.xlsx", table(grid(few)), change=far)
    assert "span 17,179,869,184 cells, more than the limit of 5,000,000; delete" in refusal(path)
    path = sheet_of(tmp_path / "b.xlsx", table(grid(few)))
    unplaced = changed(path, lambda data: data.replace(b' r="B2"', b""))
    assert "cells do not say where they stand" in refusal(unplaced)


def test_many_cells_that_share_a_long_text_are_refused(tmp_path):
    strings = "<sst>" + "".join(f"<si><t>{text}</t></si>" for text in ("agent", "x" * 4096)) + "</sst>"
    cells = "".join(f'<c r="A{i}" t="s"><v>1</v></c>' for i in range(1, 200_000))
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/sharedStrings.xml", strings)
        archive.writestr("xl/worksheets/sheet1.xml", f"<worksheet><sheetData>{cells}</sheetData></worksheet>")
    assert "has more than 536,870,912 bytes after decompression; split it" in refusal(path)


@pytest.mark.parametrize(
    ("part", "old", "new", "rule"),
    [
        ("sheet1.xml", b' r="B2"', b' r="XFD1048576" x="/>"', "the workbook is damaged"),
        ("sheet1.xml", b"<c r=", b'<d r="A1"/><c q=', "cells do not say where they stand"),
        ("sheet1.xml", b"<worksheet", b"<!DOCTYPE a [<!ENTITY b 'c'>]><worksheet", "declares entities"),
        ("workbook.xml", b"<workbookPr", b"<workbookPr " * 60_000, "the workbook is damaged"),
    ],
)
def test_what_xml_hides_is_seen(few, tmp_path, part, old, new, rule):
    path = sheet_of(tmp_path / "a.xlsx", table(grid(few)))
    seen = changed(path, lambda data: data.replace(old, new, 1), part)
    assert rule in refusal(seen)


def test_texts_are_bounded_by_their_cells(few, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"c{i}" for i in range(1000)) + "\n" + "b,1\n" * 30_000)
    assert "the table has 30,001,000 cells, more than the limit of 20,000,000" in refusal(path)
    path.write_bytes("agent,task,outcome\n".encode("utf-16") + b"\x00\xd8,\0t\0,\x001\0")
    assert "is no UTF-16" in refusal(path)
    heads = [f"task with a rather long name {i:05d}" for i in range(5000)]
    path.write_text("\n".join([",".join(["agent", *heads]), *(f"a{k}" + ",1,0" * 2500 for k in range(2))]))
    flat, _ = read_table(path, as_of=AS_OF)
    assert (len(flat.agents), len(flat.tasks)) == (2, 5000)


def test_members_and_growth_are_bounded(few, tmp_path, monkeypatch):
    path = sheet_of(tmp_path / "a.xlsx", table(grid(few)))
    assert "has more than 1,000 bytes" in refusal(path, Limits(1000, 1000, 1000, None, None))
    assert "more than 10 rows" in refusal(path, Limits(1 << 20, 10, 1000, None, None))
    grown = bomb(tmp_path / "b.xlsx", 256)
    assert "more than 250 times larger" in refusal(grown)
    monkeypatch.setattr(workbooks, "MAX_MEMBERS", 3)
    assert "more than 3 members" in refusal(path)


# ------------------------------------------------------------------------------------ flat files, programs


def test_flat_files_are_not_read_by_pandas(source, few, tmp_path, real_data):
    assert not is_table(real_data / SOURCE)
    assert not is_table(real_data / "hal_gaia.csv.gz")
    for name, write in {
        "a.csv": lambda path: few.rename(columns={"outcome": "score"}).to_csv(path, index=False),
        "a.ndjson": lambda path: few.to_json(path, orient="records", lines=True),
        "a.parquet": lambda path: few.to_parquet(path, index=False),
        "empty.csv": lambda path: path.write_text(""),
    }.items():
        write(tmp_path / name)
        assert not is_table(tmp_path / name)


def test_a_table_becomes_a_flat_file(few, tmp_path):
    path, out = sheet_of(tmp_path / "a.xlsx", table(grid(few), CROSSES)), tmp_path / "out.parquet"
    read_table(path, as_of=AS_OF, out=out)
    assert not is_table(out)
    assert outcomes_of(read(out, as_of=AS_OF)) == in_rows(few)
    assert read(io.BytesIO(out.read_bytes()), as_of=AS_OF).benchmark == "a"


@pytest.mark.parametrize("program", ["selection", "analytics"])
def test_programs_read_tables(few, tmp_path, program):
    path = sheet_of(tmp_path / "a.xlsx", table(grid(few), TICKS))
    command = [sys.executable, "-m", program, {"selection": "ranks", "analytics": "table"}[program], path]
    done = subprocess.run([*command, "--blank", "fail"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'Read a.xlsx, sheet "Sheet" as a wide table' in done.stderr + done.stdout
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "--blank fail or --blank missing" in refused.stderr
    odd = subprocess.run([*command, "--column", "x=y"], cwd=ROOT, capture_output=True, text=True)
    assert (odd.returncode, odd.stderr.count("\n")) == (2, 1)
    assert "'x=y' is not KNOWN=HEAD with one of benchmark, " in odd.stderr


def test_without_pandas_the_extra_is_named(few, real_data, tmp_path):
    code = (
        "import sys\n"
        "class Nowhere:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'pandas': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Nowhere())\n"
        "from analytics.cli import main; sys.exit(main(['icc', sys.argv[1]]))"
    )
    path = written(tmp_path / "a.csv", grid(few).to_csv(index=False))
    done = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'bandstand[frames]'" in done.stderr
    whole = subprocess.run(
        [sys.executable, "-c", code, real_data / SOURCE], cwd=ROOT, capture_output=True, text=True
    )
    assert whole.returncode == 0


def test_the_signature_of_a_zip_is_that_of_the_library():
    assert struct.unpack("<4s", workbooks.ZIP)[0] == zipfile.stringFileHeader
