"""Plain values as text, and what both command lines share: answers, files, refusals."""

import gzip
import json
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics import programs
from analytics.command_line import (
    Answer,
    Parser,
    add_command,
    copied_trials,
    csv_columns,
    csv_header,
    flat_file,
    numbers,
    pairs,
    plain,
    run,
    truths,
)
from analytics.errors import CoreError
from analytics.flat_file import FlatFileError
from analytics.programs import progress_bar
from analytics.record import Record
from analytics.text import as_text

REPEATABLE = settings(derandomize=True, deadline=None)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | st.integers() | FLOATS | st.text(max_size=5)
HEAD = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome\n"


# ----------------------------------------------------------------------------------------------------- text


def test_short_values_stand_beside_their_keys():
    assert as_text({"a": 1, "long key": "x", "b": None, "c": True, "d": [1, 2]}) == "\n".join(
        ["a         1", "long key  x", "b         –", "c         yes", "d         1, 2"]
    )


def test_empty_lists_and_objects_are_left_out():
    assert as_text({"a": 1, "a very long key": [], "b": {}}) == "a  1"


def test_alike_rows_are_a_table_with_numbers_to_the_right():
    rows = [{"name": "x", "share": 0.5, "n": 3}, {"name": "longer", "share": 0.25, "n": 12}]
    assert as_text({"rows": rows}) == "\n".join(
        ["rows:", "  name    share   n", "  x       0.500   3", "  longer  0.250  12"]
    )


def test_a_block_without_a_title_is_not_indented():
    assert as_text({"": [{"a": 1}, {"a": 2}]}) == "a\n1\n2"


def test_an_object_of_rows_is_a_table_with_its_keys_first():
    assert as_text({"by": {"one": {"v": 1}, "two": {"v": 2}}}) == "by:\n       v\n  one  1\n  two  2"


def test_a_column_without_any_value_is_left_out_and_a_single_gap_is_a_dash():
    assert as_text({"": [{"a": 1, "b": None, "c": ""}, {"a": None, "b": None, "c": ""}]}) == "a\n1\n–"


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.5], ["0.500"]),
        ([81786.30692339028], ["81786.307"]),
        ([0.0347, 0.000153], ["0.0347", "0.0002"]),  # as many decimals as give the largest three digits
        ([0.967, 3e-7], ["0.967", "3e-07"]),  # what would round to 0 has an exponent
        ([0.0, 1.0], ["0.000", "1.000"]),
        ([1.98e-4], ["0.000198"]),
        ([-0.25], ["-0.250"]),
    ],
)
def test_decimals_of_a_column(values, shown):
    lines = as_text({"": [{"v": value} for value in values]}).splitlines()[1:]
    assert [line.strip() for line in lines] == shown


def test_lists_of_unlike_things_are_items():
    assert as_text({"a": [1, 2, 3, "four"]}) == "a:\n  1\n  2\n  3\n  four"
    assert as_text({"a": [{"x": [{"y": 1}]}, "z"]}) == "a:\n  - x:\n      y\n      1\n  z"


@REPEATABLE
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.recursive(
            SCALARS,
            lambda inner: (
                st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
            ),
            max_leaves=12,
        ),
    )
)
def test_any_object_can_be_set(result):
    assert isinstance(as_text(result), str)


# ---------------------------------------------------------------------------------------------- plain values


class Point(NamedTuple):
    x: float
    y: int


@dataclass(frozen=True)
class Thing:
    point: Point
    day: date
    array: np.ndarray
    by: dict


def test_results_become_plain_values():
    thing = Thing(Point(0.5, 1), date(2026, 1, 5), np.array([1.0, 2.0]), {"a": (np.int64(3), None)})
    assert plain(thing) == {
        "point": {"x": 0.5, "y": 1},
        "day": "2026-01-05",
        "array": [1.0, 2.0],
        "by": {"a": [3, None]},
    }
    with pytest.raises(TypeError, match="set is no plain value"):
        plain({1})


# ----------------------------------------------------------------------------------------------------- files


def written(path, text, *, packed=False):
    with gzip.open(path, "wt") if packed else path.open("w") as out:
        out.write(text)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_columns_of_any_csv_are_read_as_text(tmp_path, packed):
    name = "a.csv.gz" if packed else "a.csv"
    path = written(tmp_path / name, 'x,y,z\n01,"a, b",1.5\n2,,nan\n', packed=packed)
    assert csv_header(path) == ["x", "y", "z"]
    assert csv_columns(path, ["y", "x", "y"]) == {"y": ["a, b", ""], "x": ["01", "2"]}


def test_a_csv_too_large_is_refused_before_it_is_read(tmp_path):
    wide, long = tmp_path / "wide.csv", tmp_path / "long.csv.gz"
    wide.write_text(",".join(f"c{place}" for place in range(1_001)) + "\n")
    long.write_bytes(gzip.compress(b"a\n" * 5_000_001, 1))
    for path, said in ((wide, "1,000 columns"), (long, "5,000,000 rows"), (Path("/dev/zero"), "512 MiB")):
        with pytest.raises(CoreError, match=f"{path.name} has more than .*{said}"):
            csv_columns(path, ["a"])


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    path = written(tmp_path / "a.csv", "x,y\n1,2\n")
    with pytest.raises(CoreError, match=r"^unknown column 'z'\. Columns: x, y$"):
        csv_columns(path, ["x", "z"])


@pytest.mark.parametrize("text", ["", "x,x\n1,2\n", "x,y\n1,2,3\n"])
def test_what_is_no_csv_with_a_header_is_refused(tmp_path, text):
    with pytest.raises(CoreError, match=r"a\.csv"):
        csv_columns(written(tmp_path / "a.csv", text), ["x"])


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError, match="none"):
        csv_header(tmp_path / "none.csv")


def test_numbers_and_marks_name_the_row_at_fault():
    assert numbers("v", ["1", "-2.5e-3"]).tolist() == [1.0, -0.0025]
    for text in ("", "x", "nan", "inf"):
        with pytest.raises(CoreError, match=rf"^row 2: v is '{text}', not a finite number$"):
            numbers("v", ["1", text])
    with pytest.raises(CoreError, match=r"^row 2: v is '-1e300', beyond ±1e\+100$"):
        numbers("v", ["1", "-1e300"])
    for text in ("1e-400", "-.01E-400"):
        with pytest.raises(CoreError, match=rf"^row 2: v is '{text}', too small for a number: write 0$"):
            numbers("v", ["0e-400", text])
    assert truths("m", ["1", "0", "True", "false"]).tolist() == [True, False, True, False]
    with pytest.raises(CoreError, match="row 1: m is '2'"):
        truths("m", ["2"])


def test_pairs_of_names_and_columns():
    assert pairs("model = m,task=t", ("model", "task", "run")) == {"model": "m", "task": "t"}
    with pytest.raises(CoreError, match=r"'other=x': unknown name 'other'\. Use model, task"):
        pairs("other=x", ("model", "task"))
    for text in ("model", "model=", "model=a,model=b", ""):
        with pytest.raises(CoreError, match="is not NAME=VALUE, or a name is repeated"):
            pairs(text, ("model", "task"))


def test_a_flat_file_of_two_benchmarks_is_refused(tmp_path):
    text = HEAD + "B,a,s,m,2026-01-05,t,1,1\nC,a,s,m,2026-01-05,u,1,1\n"
    path = written(tmp_path / "a.csv", text)
    with pytest.raises(FlatFileError, match=r'2 benchmarks \("B", "C"\).*--only "B"'):
        flat_file(path)
    assert flat_file(path, "C").tasks == ("u",)


def test_an_agents_date_is_its_earliest_and_none_without_any(tmp_path):
    text = HEAD + "B,a,s,m,2026-01-05,t,1,1\nB,a,s,m,2025-12-31,t,2,1\nB,b,s,m,,t,1,0\n"
    table = Record.from_flat(flat_file(written(tmp_path / "a.csv", text))).compared_table()
    assert table.dates == (date(2025, 12, 31), None)
    assert table.means.tolist() == [[1.0], [0.0]]


def test_trials_that_agree_too_often_are_named(tmp_path):
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 200)
    rows = [f"B,{agent},s,m,2026-01-05,t{j:03d},{trial},{value}"
            for agent, second in (("copies", first), ("draws", rng.integers(0, 2, 200)))
            for trial, outcomes in ((1, first), (2, second))
            for j, value in enumerate(outcomes)]  # fmt: skip
    result = copied_trials(flat_file(written(tmp_path / "a.csv", HEAD + "\n".join(rows) + "\n")))
    assert list(result) == ["copies"]
    assert (result["copies"].n_agreeing, result["copies"].n_tasks) == (200, 200)


# ------------------------------------------------------------------------------------------------- commands


def parser_of(command):
    parser = Parser(prog="tool")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_command(commands, "go", command, summary="Go.")
    return parser


def test_an_answer_is_printed_as_text_or_as_json(capsys):
    parser = parser_of(lambda arguments: Answer({"x": 1 / 3, "é": None}))
    assert run(parser, ["go", "f"]) == 0
    assert capsys.readouterr().out == "x  0.333\né  –\n"
    assert run(parser, ["go", "f", "--json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out) == {"x": 1 / 3, "é": None}
    assert out.count("\n") == 1


def test_a_reader_may_be_shown_another_arrangement(capsys):
    run(parser_of(lambda arguments: Answer({"x": 1}, "as said")), ["go", "f"])
    run(parser_of(lambda arguments: Answer({"x": 1}, {"y": 2})), ["go", "f"])
    assert capsys.readouterr().out == "as said\ny  2\n"


@pytest.mark.parametrize("refusal", [CoreError("two\nlines of 3"), FileNotFoundError(2, "none", "f")])
def test_a_refusal_is_one_line_on_stderr_and_exit_2(capsys, refusal):
    def command(arguments):
        raise refusal

    assert run(parser_of(command), ["go", "f"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("tool go: ")


def test_a_refusal_without_a_text_is_told_by_its_class(capsys):
    class TooLate(CoreError):
        """It is too late."""

    def command(arguments):
        raise TooLate

    run(parser_of(command), ["go", "f"])
    assert capsys.readouterr().err == "tool go: It is too late.\n"


def test_nan_is_never_printed():
    def command(arguments):
        return Answer({"x": float("nan")})

    with pytest.raises(ValueError, match="JSON"):
        run(parser_of(command), ["go", "f", "--json"])


def test_wrong_arguments_are_one_line_too(capsys):
    with pytest.raises(SystemExit) as ended:
        run(parser_of(lambda arguments: Answer({})), ["go"])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.err == "tool go: the following arguments are required: FILE\n"
    assert captured.out == ""


def test_on_a_pipe_a_line_every_few_seconds_says_how_far_the_work_is(capsys, monkeypatch):
    monkeypatch.setattr(programs, "EVERY", 0.01)
    with progress_bar("work", "folds") as show:
        show(1, None)
        wait_for_line(capsys, "work: 1 folds\n")
        show(1200, 2000)
        wait_for_line(capsys, "work: 1,200 of 2,000 folds\n")


def test_what_does_not_move_is_not_said_again_every_few_seconds(capsys, monkeypatch):
    monkeypatch.setattr(programs, "EVERY", 0.01)
    monkeypatch.setattr(programs, "STILL", 1_000_000)
    with progress_bar("work", "folds") as show:
        show(0, 900)
        time.sleep(0.2)
    printed = capsys.readouterr().err  # a slow machine may say before that there is nothing to count yet
    assert printed.splitlines().count("work: 0 of 900 folds") == 1
    assert "folds; still at work" not in printed
    monkeypatch.setattr(programs, "STILL", 3)
    begun, printed = time.monotonic(), 0
    with progress_bar("work", "folds") as show:
        show(0, 900)
        while printed < 5 and time.monotonic() - begun < 10:
            printed += capsys.readouterr().err.count("work: 0 of 900 folds; still at work\n")
    assert 5 <= printed <= 1 + (time.monotonic() - begun) / 0.03


def wait_for_line(capsys, line):
    """Read stderr until the line is there; the writer is a thread of its own."""
    deadline = time.monotonic() + 10
    while line not in capsys.readouterr().err:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_short_work_is_silent_on_a_pipe(capsys):
    with progress_bar("work") as show:
        show(1, 2)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_the_lines_end_with_the_work(capsys, monkeypatch):
    monkeypatch.setattr(programs, "EVERY", 0.01)
    with pytest.raises(RuntimeError), progress_bar("work"):
        raise RuntimeError
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_items_that_hold_a_comma_are_told_apart():
    assert as_text({"plain": ["a", "b"], "rules": ["9 tasks, not 100", "3 models"]}).splitlines() == [
        "plain  a, b",
        "rules  9 tasks, not 100; 3 models",
    ]
