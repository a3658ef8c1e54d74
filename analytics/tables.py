"""Tables as people keep them, read by pandas: workbooks, other separators and encodings, wide tables, words.

A long table has a row for each trial and names its agent, task and outcome in columns; of a wide one agent or
task is a column and the other the heads of the rest. The first row that names them is the header; what stands
above it is a title. Outcomes may be percentages and words, dates the day numbers of Excel. All else obeys the
rules of the flat file, at the door of data frames (`from_arrow`).
"""

import argparse
import csv
import errno
import io
import json
import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.errors import CoreError
from analytics.flat_file import (
    ALIASES,
    FILE,
    KNOWN,
    OF_AGENT,
    REQUIRED,
    Fault,
    FlatFile,
    FlatFileError,
    excerpt,
    from_arrow,
    parquet_rows,
)
from analytics.flat_file.columns import LABELS, MEASURED, SETTING, aliases_in
from analytics.flat_file.faults import MAX_FAULTS, Limits, printable, quoted, refuse
from analytics.flat_file.json_rows import AS_TYPED
from analytics.flat_file.reading import NDJSON_NAMES
from analytics.flat_file.streams import PARQUET, Text, head, opened, wide_encoding
from analytics.flat_file.table import RowNumbers
from analytics.flat_file.values import TRUTH, text_of
from analytics.frames import FrameRefused as FrameRefused
from analytics.frames import pandas_there
from analytics.programs import use_pandas
from analytics.text import NOT_STATED, counted
from analytics.workbooks import OLE, ZIP, bounded

DELIMITERS = ("\t", ";", "|", ",")
MAX_TEXT_CELLS, MAX_HEADS = 20_000_000, 50_000
N_LOOKED, N_NAMED = 50, 8  # rows in which the header is looked for, and heads that a refusal lists
N_REFUSED = 24  # columns and rows to delete that are listed
OTHER_NAMES = {alias: column for alias, column in ALIASES.items() if column != "outcome"}
OTHER_NAMES |= {"date": "submitted_at", "task_name": "task", "agent_name": "agent"}
OTHER_NAMES |= {"model_name_or_path": "model"}  # in SWE-bench
OTHER_NAMES |= {f"{noun}{end}": "agent" for noun in ("system", "submission") for end in ("", "_name")}
OTHER_NAMES |= {
    f"{noun}{end}": "task" for noun in ("instance", "problem", "question") for end in ("", "_id", "_name")
}
OUTCOMES = {"resolved", "solved", "passed", "pass", "success", "correct", "is_correct", "result", "reward"}
OUTCOMES |= {alias for alias, column in ALIASES.items() if column == "outcome"}
PASSED = ("1", "true", "pass", "passed", "resolved", "yes", "✓", "✔", "☑", "✅")
FAILED = ("0", "false", "fail", "failed", "unresolved", "no", "✗", "✘", "☒", "❌")
BLANK_WORDS = dict.fromkeys(("-", "–", "—", "n/a", "na", "nan", "null"), "")
TRUTH_WORDS = dict.fromkeys(PASSED, "1") | dict.fromkeys(FAILED, "0")
CAMEL_CASE = re.compile("(?<=[a-z])(?=[A-Z])")
MARKS = re.compile(r"[%$€£#?:.()*\[\]]")
WHOLES = ("total", "overall", "final", "mean", "average", "avg", "median")
SCORES = ("score", "accuracy", "avg", "average")
NOT_NAMES = {  # as `_plain` writes them
    *(*WHOLES, *SCORES, "grand_total", "all", "sum", "acc", "rate", "∑", "σ", "ø"),  # Σ in small letters
    *(f"{whole}_{score}" for whole in (*WHOLES, "macro", "micro", "weighted") for score in SCORES),
    *(f"{what}_rate" for what in ("pass", "solve", "success", "resolve", "resolved", "resolution", "win")),
    *(f"{n}_{what}" for n in ("n", "num", "total") for what in ("tasks", "resolved", "passed", "solved")),
    *("tasks", "resolved", "solved", "passed", "solved_by", "passed_by", "rank", "index", "seed", "verified"),
    *("std", "std_dev", "stddev", "stdev", "std_error", "stderr", "sd", "se", "variance"),
    *("open_source", "open_weights", "difficulty", "is_hard", "trials", "n_trials", "attempts"),
    *("cost", "costs", "cost_usd", "price", "time", "time_s", "duration", "duration_s", "runtime", "latency"),
    *("tokens", "steps", "n_steps", "num_steps", "turns", "n_turns", "num_turns"),
    *("durchschnitt", "mittelwert", "gesamt", "summe", "rang", "platz", "erfolgsquote"),
    *("moyenne", "somme", "promedio"),
}
OF_A_SIDE = re.compile(r"pass[@^](?:[0-9]+|k)|unnamed_[0-9]+|.*_(?:cost|usd|tokens|seconds)")
PERCENT = re.compile(r"([0-9]+(?:[.,][0-9]+)?) ?%")
WITHOUT_SIGN = re.compile(r"(?=.*[1-9])[0-9.,]+(?:e-?[0-9]+)?", re.IGNORECASE)
TOLERANCE, MAX_NUMBER = 1e-9, 1e9  # of what is derived from other results
NUMBERS = ("temperature", *LABELS, *MEASURED)
DECIMAL_COMMA, THOUSANDS = re.compile(r"[0-9]+,[0-9]+"), re.compile(r"[1-9][0-9]{0,2},[0-9]{3}")
DIVIDE = "divide a count by its number of trials"
OF_HUNDRED = re.compile(r"[0-9]{1,3}(?:[.,][0-9]+)?")  # 57.3, of a hundred
UNEVEN = re.compile("Expected ([0-9]+) fields in line ([0-9]+), saw ([0-9]+)")  # as pandas says it
UNCLOSED = re.compile("EOF inside string starting at row ([0-9]+)")
DAY_NUMBER = re.compile(r"([3-7][0-9]{4})(?:\.[0-9]+)?")  # as Excel counts: from 1982 to 2119
EPOCH, EPOCH_1904 = date(1899, 12, 30), date(1904, 1, 1)
NEEDS_CALAMINE = "is a workbook, which needs python-calamine: pip install 'bandstand[frames]'"
MADE_OF = ("scaffold", "model", "submitted_at")
INDEX = re.compile(r"__index_level_[0-9]+__")  # as pandas calls one without a name
ANY_DATE = re.compile(r"([0-9]{1,4})([-./])[0-9]{1,2}\2[0-9]{1,4}(?:[T ].*)?")
DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+")  # what Excel makes of a name such as 4-5


@dataclass(frozen=True)
class TableOptions:
    """How a table is to be read; what is not given is recognised.

    columns: known column → its head in the table.
    wide: whether agents or tasks stand in the heads; None: recognised.
    blank: {"fail", "missing"}: what a blank outcome is; None: missing in a table that says what failed.
    percent: outcomes without a sign are of 100.
    benchmark: its name where the table has none; the file's where None.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    sheet: str | None = None
    wide: bool | None = None
    blank: str | None = None
    percent: bool = False
    benchmark: str | None = None

    @property
    def is_given(self) -> bool:
        """Whether anything but the benchmark is stated."""
        return self != TableOptions(benchmark=self.benchmark)


AS_FOUND = TableOptions()


def add_table_options(parser: Any) -> None:
    """Add the options from which `table_options` makes a `TableOptions`."""
    group = parser.add_argument_group("a table of your own (docs/formats.md)")
    column = "which column is meant, as outcome=resolved; repeat it for others"
    group.add_argument("--column", action="append", type=_column, metavar="KNOWN=HEAD", help=column)
    group.add_argument("--sheet", metavar="NAME", help="the sheet of a workbook (the one with outcomes)")
    shape = group.add_mutually_exclusive_group()
    wide = "a row is an agent and a column a task, or the other way round"
    shape.add_argument("--wide", action="store_const", const=True, dest="wide", help=wide)
    long = "a row is a trial; a flat file may then have percentages and words, too"
    shape.add_argument("--long", action="store_const", const=False, dest="wide", help=long)
    blank = "what a blank outcome is (missing, where the table says what failed)"
    group.add_argument("--blank", choices=("fail", "missing"), help=blank)
    group.add_argument("--percent", action="store_true", help="outcomes are percentages from 0 to 100")


def _column(text: str) -> tuple[str, str]:
    known, equals, theirs = text.partition("=")
    if not equals or known not in KNOWN:
        raise argparse.ArgumentTypeError(f"{text!r} is not KNOWN=HEAD with one of {', '.join(KNOWN)}")
    return known, _normalize_space(theirs)


def table_options(options: Mapping[str, Any], benchmark: str | None = None) -> TableOptions:
    """Collect the options of `add_table_options`."""
    chosen = {name: options.get(name) for name in ("sheet", "wide", "blank")}
    percent = bool(options.get("percent"))
    return TableOptions(dict(options.get("column") or ()), **chosen, percent=percent, benchmark=benchmark)


def is_table(path: Path, options: TableOptions = AS_FOUND) -> bool:
    """Tell whether a file is to be read as a table of people; flat files are not, however large."""
    if options.is_given:
        return True
    first = head(path) if path.is_file() else b""
    if first.startswith(PARQUET):
        try:
            return not _are_of_flat_file(parquet_rows.heads(path))
        except FlatFileError:  # damaged: read as a flat file, which says so
            return False
    if first.startswith((ZIP, OLE)):
        return first.startswith(OLE) or b"xl/" in first
    if wide_encoding(first):
        return True
    plain = first.decode("utf-8-sig", "replace").lstrip()
    if not plain or plain[0] == "[" or "\0" in plain:
        return False
    if plain[0] == "{":
        keys = _keys(plain.splitlines()[0])
        return bool(keys) and not _are_of_flat_file(keys)
    if path.name.lower().endswith(NDJSON_NAMES):
        return False
    try:
        heads = next(csv.reader([plain.splitlines()[0]]))
    except csv.Error:
        return False
    return not _are_of_flat_file(heads)


def _are_of_flat_file(heads: Sequence[str]) -> bool:
    return {*heads, *aliases_in(heads).values()}.issuperset(REQUIRED)


def _keys(record: str) -> list[str]:
    try:
        return list(_record(record))
    except (ValueError, RecursionError):
        return []


# its name, texts in rows and columns, "" where nothing stands, and the day that numbered dates count from
_Sheet = tuple[str, Any, date]
IS_RECORDS = "is records"  # of cells that were objects or columns: the first row is their names


@dataclass(frozen=True)
class _Table:
    """A table with a row for each trial: `frame` by known column or else by head, `rows` of the sheet.

    `heads`: known column → its head; `header`: its row, None in a frame; `across`: what the heads
    of a wide table name.
    """

    frame: Any
    rows: RowNumbers
    heads: Mapping[str, str]
    header: int | None
    across: str | None = None


def read_table(
    path: Path,
    options: TableOptions = AS_FOUND,
    *,
    as_of: datetime,
    only: str | None = None,
    limits: Limits = FILE,
    called: str | None = None,
    out: Path | None = None,
) -> tuple[FlatFile, str]:
    """Read and check a table; write it to `out` as a flat file (Parquet), where that is given.

    Returns: in the order of the table, row by row; and a sentence that says how it was read.
    Raises FrameRefused: without pandas.
    Raises FlatFileError: with every fault at once, each by sheet, row, column, value and rule.
    Raises OSError.
    """
    called = printable(called or path.name)
    (sheet, _, epoch), table = _choose_sheet(_read_sheets(path, options, limits, called), options, called)
    with _naming(sheet):
        texts, rows, n_blank = _read_values(table, epoch, options)
        n_counted, copies = (0, []) if table.across else count_trials(texts, rows)
        copies += _check_versions(texts, rows)
        absent = {"benchmark": options.benchmark or _normalize_space(path.name.partition(".")[0]) or "table"}
        absent |= {"scaffold": NOT_STATED, "model": NOT_STATED, "submitted_at": "", "trial": "1"}
        absent = {column: text for column, text in absent.items() if column not in texts}
        limits.check_rows(len(rows))
        columns = pa.table({name: pa.array(texts[name].tolist(), pa.string()) for name in texts})
        try:
            flat = from_arrow(columns, constants=absent, as_of=as_of, rows=rows, only=only)
        except FlatFileError as error:
            others = in_table(error, table, texts, options)
            raise FlatFileError([*copies, *others.faults], len(copies) + others.n_faults) from None
        if copies:
            raise FlatFileError(copies)
    if out is not None:
        from pyarrow import parquet

        for name, text in absent.items():
            columns = columns.append_column(name, pa.repeat(text, len(rows)))
        try:
            parquet.write_table(columns, out)
        except OSError as refusal:
            why = os.strerror(refusal.errno or errno.EIO).lower()
            raise CoreError(f"{out} cannot be written: {why}", code="not_written") from refusal
    are_trials = not table.across and options.blank is None
    return flat, _note(sheet, table, n_blank, n_counted, are_trials=are_trials)


def read_wide(
    frame: Any, options: TableOptions, absent: Mapping[str, object], *, as_of: datetime
) -> FlatFile:
    """Read and check a frame with a row for each agent and a column for each task, or the reverse.

    absent: columns that are equal in all rows.
    Raises FlatFileError: rows count from 1 in the order of the frame.
    """
    texts = frame.astype(object).where(frame.notna(), "").map(_cell_text).to_numpy().tolist()
    cells = pandas_there().DataFrame([[str(head) for head in frame.columns], *texts])
    cells.attrs[IS_RECORDS] = True
    table = _find_table(cells, options)
    texts, rows, _ = _read_values(table, EPOCH, options)
    columns = pa.table({name: pa.array(texts[name].tolist(), pa.string()) for name in texts})
    try:
        return from_arrow(columns, constants=absent, as_of=as_of, rows=rows)
    except FlatFileError as error:
        raise in_table(error, table, texts, options) from None


def count_trials(texts: Any, rows: RowNumbers | None = None) -> tuple[int, list[Fault]]:
    """Give rows of one agent and task the trials 1, 2, …, where no column does; return the largest.

    rows: their numbers; from 1 in the order of the frame where None.
    Returns also the fault where all of them are alike, for these are copies of a row and no trials.
    """
    faults: list[Fault] = []
    if "trial" in texts or "n_averaged" in texts:
        return 0, faults
    key = [name for name in ("benchmark", "agent", "task", *SETTING) if name in texts]
    trials = texts[key].astype(str).groupby(key).cumcount() + 1
    is_repeat = trials > 1
    if is_repeat.any():
        is_copy = texts.astype(str).duplicated()
        if is_copy[is_repeat].all():
            first, n = texts[is_repeat].iloc[0], int(is_repeat.sum())
            copies = (np.arange(1, len(texts) + 1) if rows is None else rows)[is_repeat.to_numpy()]
            numbers = ", ".join(f"{row:,}" for row in copies[:N_NAMED].tolist()) + ", …" * (n > N_NAMED)
            rule = f"{counted(n, 'row')} {'is a copy' if n == 1 else 'are copies'} of an earlier row: row"
            rule += f" {numbers}; the first is agent {quoted(str(first['agent']))} on task "
            rule += f"{quoted(str(first['task']))}. Delete the copies, or number trials in a column trial"
            faults.append(Fault(None, None, None, rule))
        texts["trial"] = trials.astype(str)
    return int(trials.max()) if len(trials) else 0, faults


def _check_versions(texts: Any, rows: RowNumbers) -> list[Fault]:
    """Find the agents with several versions, each where its second one begins."""
    head = next((name for name in texts if _snake_case(name) == "version"), None)
    if head is None:
        return []
    versions = texts[["agent", head]].assign(row=rows)[texts[head] != ""].drop_duplicates(["agent", head])
    first = versions.drop_duplicates("agent").set_index("agent")
    faults = []
    second = versions[versions.duplicated("agent")].drop_duplicates("agent")
    for agent, version, row in second.to_numpy().tolist():
        other, earlier = first.loc[agent]
        rule = f"agent {quoted(agent)} has version {quoted(other)} in row {earlier}, and only one version is"
        rule += " allowed; give each version its own agent name"
        faults.append(Fault(row, head, excerpt(version), rule))
    return faults


def in_table(error: FlatFileError, table: _Table, texts: Any, options: TableOptions) -> FlatFileError:
    """Word the faults of a table by its rows and heads, each once."""
    no_outcome = next((fault for fault in error.faults if fault.field == "outcome"), None)
    if no_outcome and 2 * error.n_faults > len(texts):
        rule = f"most cells are not results, for example {quoted(no_outcome.value or '')}"
        if OF_HUNDRED.fullmatch(no_outcome.value or "") and not options.percent:
            percent = "if they are percentages, add --percent"
            other = percent if _are_of_hundred(table) else f"an outcome is from 0 to 1: {DIVIDE}"
            return refuse(f"{rule}; {two_scales(table.frame['outcome'], _groups(table)) or other}")
        rule += "; a result is a number from 0 to 1, a percentage (75%), or pass or fail: replace the others"
        if table.across and options.wide is None:
            rule += f". {_if_long(table.across, table.frame[table.across].unique())}"
        return refuse(rule)
    if no_outcome and (rule := two_scales(table.frame["outcome"], _groups(table), clearly=True)):
        return refuse(rule)
    if table.across:
        _check_rows(texts, "agent" if table.across == "task" else "task")
    faults = list(dict.fromkeys(_locate(error.faults, table)))
    return FlatFileError(faults, error.n_faults - len(error.faults) + len(faults))


def _if_long(across: str, heads: Sequence[str]) -> str:
    """Say how a table is read that has a row for each result, though its heads look like tasks or agents."""
    listed = ", ".join(map(quoted, heads[:N_NAMED])) + ", …" * (len(heads) > N_NAMED)
    return (
        f"If each row is one result, say which columns hold the {across} and the outcome: --column "
        f"{across}=HEAD --column outcome=HEAD, where HEAD is one of {listed}"
    )


def _are_of_hundred(table: _Table) -> bool:
    """Whether numbers above 1 look like percentages: up to 100, and one above 10 or with decimals."""
    texts = table.frame["outcome"]
    numbers = {
        text: float(text.replace(",", ".")) for text in texts[texts.str.fullmatch(OF_HUNDRED)].unique()
    }
    above = {text: number for text, number in numbers.items() if number > 1}
    return max(above.values(), default=0) <= 100 and any(n > 10 or n != int(n) for n in above.values())


def _groups(table: _Table) -> dict[str, Any]:
    columns = {"column": table.frame[table.across]} if table.across else {}
    return {"agent": table.frame["agent"]} | columns


def two_scales(texts: Any, groups: Mapping[str, Any], *, clearly: bool = False) -> str:
    """Say which agent, or which column alone, has numbers above 1 where others have none; else empty.

    groups: "agent" and "column" of each text.
    clearly: it has two numbers or more that are not 0, all of them above 1.
    """
    is_number = texts.str.fullmatch(OF_HUNDRED).to_numpy(dtype=bool)
    numbers = texts[is_number].str.replace(",", ".").astype(float).reset_index(drop=True)
    for what, names in groups.items():
        positive = numbers[numbers > 0].groupby(names[is_number].reset_index(drop=True), sort=False)
        largest = positive.max()
        above, small = largest[largest > 1], largest.index[largest <= 1]
        named = above[(positive.min() > 1) & (positive.count() > 1)] if clearly else above
        if small.size and named.size and (what == "agent" or above.size == 1):
            value = texts[is_number].iloc[positive.idxmax()[named.index[0]]]
            rule = f"{what} {quoted(named.index[0])} has results above 1, such as {value}, and {what} "
            rule += f"{quoted(small[0])} only results from 0 to 1. Write all results on one scale"
            return rule + ", and delete the column if it is no task" * (what == "column")
    return ""


def _check_rows(texts: Any, of: str) -> None:
    key = [name for name in ("benchmark", "agent", "task", "trial", *SETTING) if name in texts]
    names = texts[of][texts.duplicated(key)].unique()
    if names.size:
        stand = f"{of} stands" if names.size == 1 else f"{of}s stand"
        rule = f"{names.size:,} {stand} in several rows, as {quoted(names[0])}"
        raise refuse(f"{rule}; add a column run or trial to tell the rows apart")


@contextmanager
def _naming(called: str) -> Iterator[None]:
    try:
        yield
    except FlatFileError as error:
        raise FlatFileError(error.faults, error.n_faults, called) from None


def _read_sheets(path: Path, options: TableOptions, limits: Limits, called: str) -> list[_Sheet]:
    use_pandas()
    pandas, first = pandas_there(), head(path)
    with _naming(called):
        if not path.is_file():
            raise refuse("a table cannot be read from a pipe; save it as a file")
        if first.startswith(OLE):
            raise refuse("the workbook has an old format or a password; save it as .xlsx without a password")
        if options.sheet is not None and not first.startswith(ZIP):
            raise refuse("the file has no sheets; remove --sheet")
        if first.startswith(PARQUET):
            return [(called, _read_parquet(path, options, limits), EPOCH)]
        if not first.startswith(ZIP):
            text = _read_text(path, limits).removeprefix("\ufeff")
            parse = _parse_records if text.lstrip()[:1] == "{" else _parse_delimited
            return [(called, parse(text), EPOCH)]
        workbook, is_1904 = bounded(path, limits)
        try:
            from python_calamine import CalamineError
        except ImportError:
            raise FrameRefused(f"{called} {NEEDS_CALAMINE}", code="calamine_missing") from None
        whole = {"sheet_name": None, "header": None, "dtype": object, "na_filter": False}
        try:
            read = pandas.read_excel(workbook, engine="calamine", **whole)
        except CalamineError:
            raise refuse("the workbook is damaged; open it and save it again as .xlsx") from None
        if options.sheet is not None and options.sheet not in read:
            raise refuse(f"unknown sheet {options.sheet!r}; use one of {', '.join(map(repr, read))}")
    names = list(read) if options.sheet is None else [options.sheet]
    epoch = EPOCH_1904 if is_1904 else EPOCH
    return [(f"{called}, sheet {quoted(name)}", read[name].map(_cell_text), epoch) for name in names]


def _read_parquet(path: Path, options: TableOptions, limits: Limits) -> Any:
    """Read cells of a Parquet file under the names of its columns."""
    pandas = pandas_there()
    names = parquet_rows.heads(path)
    _check_repeated(names)
    heads = ["" if INDEX.fullmatch(name) else name for name in names]
    if len(heads) > MAX_HEADS:
        raise _too_many_heads(len(heads))
    parts = [pandas.DataFrame([heads], dtype=str)]
    for batch in parquet_rows.text_batches(path, replace(limits, n_cells=MAX_TEXT_CELLS)):
        parts.append(pandas.DataFrame({i: column.to_pandas() for i, column in enumerate(batch.columns)}))
    cells = pandas.concat(parts, ignore_index=True).fillna("").map(_normalize_space)
    if "" not in options.columns.values():  # pandas' numbers of rows
        indexes = [i for i, name in enumerate(names) if INDEX.fullmatch(name)]
        cells = cells.drop(columns=[i for i in indexes if cells[i][1:].str.fullmatch("[0-9]+").all()])
        cells.columns = range(cells.shape[1])
    cells.attrs[IS_RECORDS] = True
    return cells


def _cell_text(value: object) -> str:
    text = str(value) if isinstance(value, time | timedelta) else text_of(value)
    return _normalize_space(text if isinstance(text, str) else str(value))


def _normalize_space(text: str) -> str:
    return " ".join(text.split())


def _read_text(path: Path, limits: Limits) -> str:
    source: Any = path
    with path.open("rb") as file:
        first = file.read(4)
    if wide := wide_encoding(first):
        limits.check_bytes(path.stat().st_size)
        order = "-BE" if first[0] in b"\0\xfe" else "-LE"
        try:
            source = io.BytesIO(path.read_bytes().decode(wide + order).encode())
        except UnicodeDecodeError as error:
            raise refuse(f"byte {error.start:,} is no {wide.upper()}; save the file as UTF-8") from None
    with opened(source) as stream:
        text = Text(stream, limits)
        text.head()
        return b"".join(text.blocks()).decode()


def _parse_delimited(text: str) -> Any:
    """Read cells with the delimiter whose header comes first, of several the one with most fields.

    The header is the first row that is as wide as most rows and as the next one.
    """
    pandas, lines = pandas_there(), io.StringIO(text, newline="")
    if not text.strip():
        raise refuse("the file is empty")
    n_fields, merits = dict[str, list[int]](), dict[str, tuple[bool, int, int]]()
    for mark in DELIMITERS:
        lines.seek(0)
        try:
            rows = list(islice(csv.reader(lines, delimiter=mark), N_LOOKED))
        except csv.Error:  # a field is longer than any that this delimiter would part
            rows = []
        widths = [len(row) for row in rows if row] or [1]
        n_fields[mark] = sorted(widths)
        usual = n_fields[mark][len(widths) // 2]
        starts = (i for i, pair in enumerate(pairwise(widths)) if pair == (usual, usual))
        merits[mark] = (usual > 1, -next(starts, len(widths)), usual)
    mark = max(DELIMITERS, key=merits.__getitem__)
    last = text[max(text.rfind("\n"), text.rfind("\r")) + 1 :]
    n_last, n_usual = last.count(mark) + 1, n_fields[mark][len(n_fields[mark]) // 2]
    if last.strip() and '"' not in last and n_last < n_usual:
        rule = f"the last line has {n_last} of {n_usual} cells, and no end of line follows"
        raise refuse(f"{rule}; the file may be cut off: complete that line, or remove it")
    n_cells = max(text.count("\n"), text.count("\r")) * n_fields[mark][-1]
    if n_fields[mark][-1] > MAX_HEADS:
        raise _too_many_heads(n_fields[mark][-1])
    if n_cells > MAX_TEXT_CELLS:
        raise _too_many(n_cells)
    lines.seek(0)
    try:
        shape = {"header": None, "names": range(n_fields[mark][-1]), "index_col": False}
        literal = {"dtype": str, "na_filter": False, "skip_blank_lines": False}
        cells = pandas.read_csv(lines, sep=mark, **shape, **literal)
    except pandas.errors.ParserError as error:
        raise refuse(_why_uneven(str(error))) from None
    return cells.map(_normalize_space)


def _too_many(n_cells: int) -> FlatFileError:
    rule = f"the table has {n_cells:,} cells, more than the limit of {MAX_TEXT_CELLS:,}"
    return refuse(f"{rule}; write it as a flat file (docs/flat-file.md)")


def _too_many_heads(n: int) -> FlatFileError:
    return refuse(f"{n:,} columns; use at most {MAX_HEADS:,}, or a row for each result")


def _parse_records(text: str) -> Any:
    """Read a JSON object a line; the keys of all become a header."""
    records, lines = list[dict[str, str]](), text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                records.append({name: _json_text(value) for name, value in _record(line).items()})
                "".join((*records[-1], *records[-1].values())).encode()
            except UnicodeEncodeError:
                raise refuse(f"line {number:,}: text has no lone surrogate") from None
            except (ValueError, RecursionError):
                rule = f"line {number:,} is not a JSON object with names that differ; write one object a line"
                is_cut = number == len(lines) and number > 1  # no end of line follows
                raise refuse(rule + ("; the file may be cut off" if is_cut else "")) from None
    heads = list(dict.fromkeys(name for record in records for name in record))
    if (n_cells := len(heads) * len(records)) > MAX_TEXT_CELLS:
        raise _too_many(n_cells)
    rows = ([record.get(name, "") for name in heads] for record in records)
    cells = pandas_there().DataFrame([list(map(_normalize_space, heads)), *rows])
    cells.attrs[IS_RECORDS] = True
    return cells


def _record(line: str) -> dict[str, Any]:
    found = AS_TYPED.decode(line)
    if not isinstance(found, dict):
        raise ValueError
    return found


def _json_text(value: object) -> str:
    if isinstance(value, dict | list):
        return _normalize_space(json.dumps(value, ensure_ascii=False))
    return "" if value is None else _cell_text(value)


def _why_uneven(error: str) -> str:
    if found := UNEVEN.search(error):
        most, line, n = found.groups()
        return f"line {line} has {n} cells, and other lines at most {most}; give each line as many cells"
    if found := UNCLOSED.search(error):
        return f'a quote (") is not closed; it begins in line {int(found[1]) + 1:,}'
    return "the lines are no rows of one table; save the table as CSV again"


def _choose_sheet(sheets: Sequence[_Sheet], options: TableOptions, called: str) -> tuple[_Sheet, _Table]:
    tables, refused = list[tuple[_Sheet, _Table]](), list[tuple[int, FlatFileError]]()
    for sheet in sheets:
        try:
            with _naming(sheet[0]):
                tables.append((sheet, _find_table(sheet[1], options)))
        except FlatFileError as error:
            refused.append((sheet[1].size, error))
    if len(tables) > 1:
        names = ", ".join(sheet[0].removeprefix(f"{called}, ") for sheet, _ in tables)
        rule = f"several sheets look like results: {names}; choose one with --sheet NAME"
        raise FlatFileError(refuse(rule).faults, name=called)
    if not tables:
        raise max(refused, key=itemgetter(0))[1]
    return tables[0]


def _find_table(cells: Any, options: TableOptions) -> _Table:
    place, known = _find_header(cells, options.columns)
    body = cells.iloc[place + 1 :]
    body = body[(body != "").any(axis=1)]
    header = None if IS_RECORDS in cells.attrs else place + 1
    if header is not None:
        body.index += 1  # as rows are counted
    heads = {i: text for i, text in cells.iloc[place].items() if text or (body[i] != "").any()}
    if options.wide if options.wide is not None else len(known.keys() & {"agent", "task"}) < 2:
        return _melt(body, heads, known, header)
    outcomes = [i for i, text in heads.items() if _snake_case(text) in OUTCOMES and i not in known.values()]
    if "outcome" not in known and len(outcomes) == 1:
        known["outcome"] = outcomes[0]
    for name in ("agent", "task", "outcome"):
        if name not in known:
            raise refuse(f"{name}: no column is called so; {_ask_which(heads, name)}")
    nameless = [i for i, text in heads.items() if i and not text and i not in known.values()]
    if nameless:
        row = int((body[nameless] != "").any(axis=1).idxmax())
        rule = f"row {row:,} has a value in a column without a head"
        raise refuse(f"{rule}; name the column, or delete the value")
    names = heads | {i: name for name, i in known.items() if name != "agent" or i != known.get("model")}
    _check_repeated(names.values())
    frame = body.rename(columns=names)[[name for name in names.values() if name]]
    if known["agent"] == known.get("model"):
        frame["agent"] = frame["model"]
        if "scaffold" in known:
            frame["agent"] = (frame["scaffold"] + " (" + frame["model"] + ")").where(
                (frame["scaffold"] != "") & (frame["model"] != ""), frame["model"]
            )
    return _Table(frame, body.index.to_numpy(), {name: heads[i] for name, i in known.items()}, header)


def _find_header(cells: Any, columns: Mapping[str, str]) -> tuple[int, dict[str, int]]:
    looked = cells.iloc[:N_LOOKED]
    n_filled = (looked != "").sum(axis=1)
    broad = [i for i, n in n_filled.items() if n >= max(2, n_filled.max() / 2)]
    if not n_filled.any():
        raise refuse("the table is empty; save the one that holds the results")
    if not broad:
        raise refuse("there is no table: no two cells stand side by side; write a row for each result")
    for is_agent in (False, True):
        for i in broad:
            known = _match_columns(list(looked.iloc[i]), columns)
            if "model" in known and (is_agent or "task" in known):
                known.setdefault("agent", known["model"])
            if known.keys() & {"agent", "task"}:
                return i, known
    heads = dict(looked.iloc[broad[0]])
    for name, theirs in columns.items():
        if theirs not in heads.values():
            raise refuse(f"no column is called {theirs!r}; {_ask_which(heads, name)}")
    raise refuse(f"no column is called agent or task; {_ask_which(heads, 'agent')}, or --column task=HEAD")


def _match_columns(heads: Sequence[str], columns: Mapping[str, str]) -> dict[str, int]:
    if not set(columns.values()) <= set(heads):
        return {}
    places = {name: heads.index(theirs) for name, theirs in columns.items()}
    for names in (dict(zip(KNOWN, KNOWN, strict=True)), OTHER_NAMES):
        for i, text in enumerate(heads):
            name = names.get(_snake_case(text))
            if name and name not in places and i not in places.values():
                places[name] = i
    return places


def _snake_case(text: str) -> str:
    return "_".join(text.lower().rstrip("?: ").split())


def _ask_which(heads: Mapping[int, str], name: str) -> str:
    listed = ", ".join(map(quoted, islice(heads.values(), N_NAMED))) + ", …" * (len(heads) > N_NAMED)
    empty = f" (--column {name}= where it is empty)" if "" in heads.values() else ""
    return f"there are {listed}; say which is meant: --column {name}=HEAD{empty}"


def _check_repeated(names: Iterable[str]) -> None:
    repeated = [(name, n) for name, n in Counter(names).items() if name and n > 1]
    if repeated:
        raise FlatFileError([Fault(None, name, None, f"{n} columns have this name") for name, n in repeated])


def _melt(body: Any, heads: Mapping[int, str], known: Mapping[str, int], header: int | None) -> _Table:
    key = min(("agent", "task"), key=lambda name: known.get(name, len(heads)))
    across, others = ("task", ("category", "group")) if key == "agent" else ("agent", MADE_OF)
    known_columns = set(KNOWN) - {"outcome", *MEASURED, *LABELS, across, *others}
    fixed = {name: i for name, i in known.items() if name in known_columns}
    if across == "task":
        about = {i: name for i, text in heads.items() if (name := _snake_case(text)) in OF_AGENT}
        _check_repeated(about.values())
        fixed |= {name: i for i, name in about.items()}
    under = {i: text for i, text in heads.items() if i not in fixed.values()}
    if header and not body.empty:
        _check_one_header(body.iloc[0], header, known[key], under)
    wrong_heads = [text for i, text in under.items() if i in known.values() or _is_no_name(text)]
    wrong_rows = [text for text in body[known[key]] if _is_no_name(text)]
    if under and len(under) == len(wrong_heads):
        there = ", ".join(map(quoted, islice(under.values(), N_NAMED)))
        rule = f"{there} {'looks' if len(under) == 1 else 'look'} like totals, one for each {key}"
        raise refuse(f"{rule}. Bandstand needs one result for each agent and task")
    if unnamed := [int(row) for row in body.index[body[known[key]] == ""]]:
        rule = f"the {key} of this row is empty; name it, or delete the row"
        raise FlatFileError([Fault(row, heads[known[key]] or None, None, rule) for row in unnamed])
    if wrong_heads or wrong_rows:
        named = [*(("column", text) for text in wrong_heads), *(("row", text) for text in wrong_rows)]
        named = list(dict.fromkeys(named))
        names = [f"{what} {quoted(text) if text else 'without a head'}" for what, text in named[:N_REFUSED]]
        if len(named) > N_REFUSED:
            names.append(f"{len(named) - N_REFUSED:,} more")
        rule = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        one = "is neither a task nor an agent; delete it"
        rule += f" {one if len(names) == 1 else 'are neither tasks nor agents; delete them'}"
        if wrong_heads:
            rule += f". {_if_long(across, [text for text in under.values() if text])}"
        raise refuse(rule)
    if not under:
        raise refuse(f"no column holds results; {_ask_which(heads, 'outcome')}")
    _check_repeated(under.values())
    _check_derived(body[list(under)], under, key, across)
    if key == "agent":
        _check_dates(body, under)
    n, k = len(body), len(under)
    frame = (
        body[[]]
        .loc[body.index.repeat(k)]
        .assign(
            **{name: body[i].repeat(k) for name, i in fixed.items()},
            **{across: np.tile(np.array(list(under.values()), dtype=object), n)},
            outcome=body[list(under)].to_numpy().ravel(),
        )
    )
    return _Table(frame, frame.index.to_numpy(), {n: heads[i] for n, i in fixed.items()}, header, across)


def _check_one_header(row: Any, header: int, key: int, under: Mapping[int, str]) -> None:
    name = _snake_case(row[key])
    if OTHER_NAMES.get(name, name) in ("agent", "model", "task") and (row[list(under)] == "").any():
        rule = f"rows {header} and {row.name} are both heads, as pandas writes a pivot; write it without the"
        raise refuse(f"{rule} first level of its columns: frame.droplevel(0, axis=1)")


def _check_derived(cells: Any, under: Mapping[int, str], key: str, across: str) -> None:
    if derived := _derived(cells):
        rule = f"column {quoted(under[derived[0]])} is the {derived[1]} of the other results of each {key}"
        one = "a task" if across == "task" else "an agent"
        raise refuse(f"{rule}; delete it. If it is {one}, write a row for each result")


def _derived(cells: Any) -> tuple[int, str] | None:
    """Find a column that holds the rounded mean, sum or percentage of the others in every row, and which.

    Where most columns are of 0 and 1, only another one can be that, of these; it takes three rows whose
    results differ. Of graded outcomes it takes five, and steps of at most 2% of its largest value.
    """
    codes, texts = pandas_there().factorize(cells.to_numpy(dtype=object).ravel())
    numbers = np.array([_number(text) for text in texts])[codes].reshape(cells.shape)
    decimals = np.array([_decimals(text) for text in texts])[codes].reshape(cells.shape)
    known = ~np.isnan(numbers)
    binary = (~known | (numbers == 0) | (numbers == 1)).all(axis=0)
    are_binary = np.count_nonzero(binary) >= max(3, len(binary) / 2)
    base = binary if are_binary else np.ones_like(binary)
    parts = np.where(known & base, numbers, 0.0)
    totals, squares, counts = parts.sum(axis=1), (parts**2).sum(axis=1), (known & base).sum(axis=1)
    for i in np.flatnonzero(known.all(axis=0) & ~(binary & are_binary)).tolist():
        own, total, n = parts[:, i], totals - parts[:, i], counts - base[i]
        mean, mean_of_all = total / np.maximum(n, 1), total / max(base.sum() - base[i], 1)
        n_rows = np.count_nonzero((squares - own**2) / np.maximum(n, 1) - mean**2 > TOLERANCE)
        step, largest = 10.0 ** -decimals[:, i].max(initial=0), numbers[:, i].max(initial=0.0)
        if n_rows < (3 if are_binary else 5) or not (are_binary or step <= 0.02 * largest):
            continue
        means = (("mean", mean), ("mean", mean_of_all))
        for what, value in (("sum", total), *means, *(("percentage", 100 * one) for _, one in means)):
            if np.ptp(value) > 0 and (np.abs(value - numbers[:, i]) <= step / 2 + TOLERANCE).all():
                return cells.columns[i], what
    return None


def _number(text: str) -> float:
    try:
        number = float(_read_outcome(text).replace(",", "."))
    except ValueError:
        return np.nan
    return number if abs(number) < MAX_NUMBER else np.nan


def _decimals(text: str) -> int:
    return len(text.rstrip(" %").replace(",", ".").partition(".")[2]) + 2 * text.endswith("%")


def _plain(text: str) -> str:
    return "_".join(MARKS.sub(" ", CAMEL_CASE.sub(" ", text).lower()).split())


def _is_no_name(text: str) -> bool:
    plain = _plain(text)
    return not plain or plain in NOT_NAMES or OF_A_SIDE.fullmatch(plain) is not None


def _check_dates(body: Any, under: Mapping[int, str]) -> None:
    rule = "these are dates, not results; add --column "
    dates = [
        Fault(None, text, None, rule + shlex.quote(f"submitted_at={text}"))
        for i, text in under.items()
        if (body[i] != "").any() and body[i][body[i] != ""].str.fullmatch(ANY_DATE).all()
    ]
    if dates:
        raise FlatFileError(dates)


def _read_values(table: _Table, epoch: date, options: TableOptions) -> tuple[Any, RowNumbers, int]:
    blank_is = options.blank
    if not options.percent:
        _check_signs(table.frame["outcome"], table.rows)
    outcome = read_outcomes(table.frame["outcome"], percent=options.percent, groups=_groups(table))
    others = {name: read_decimals(table.frame[name]) for name in NUMBERS if name in table.frame}
    frame = table.frame.assign(outcome=outcome, **others)
    if "submitted_at" in frame:
        frame["submitted_at"] = frame["submitted_at"].map(
            lambda text: (
                (epoch + timedelta(days=int(day[1]))).isoformat()
                if (day := DAY_NUMBER.fullmatch(text))
                else text
            )
        )
    is_date = frame["agent"].str.fullmatch(DATED) | frame["task"].str.fullmatch(DATED)
    if is_date.any():
        rule = (
            "the spreadsheet turned a name in this row into a date; format the cell as text and type it again"
        )
        raise FlatFileError([Fault(int(row), None, None, rule) for row in np.unique(table.rows[is_date])])
    blank = frame["outcome"].eq("")
    if "valid" in frame:
        blank &= frame["valid"].map(TRUTH.get).ne(False)
    if blank_is is None and blank.any() and frame["outcome"][~blank].eq("1").all():
        raise refuse("all results are passes or blank; say what blank means: --blank fail or --blank missing")
    if blank_is == "fail":
        frame.loc[blank, "outcome"] = "0"
        return frame, table.rows, 0
    if blank_is is None and blank.any() and not table.across:  # a row is a trial, though it has no result
        frame.loc[blank, "valid"] = "0"
        frame["valid"] = frame["valid"].fillna("1")
        return frame, table.rows, int(blank.sum())
    return frame[~blank], table.rows[~blank], int(blank.sum())


def _check_signs(texts: Any, rows: RowNumbers) -> None:
    if any(map(PERCENT.fullmatch, texts.unique())):
        bare = np.flatnonzero(texts.str.fullmatch(WITHOUT_SIGN))
        rule = "other results have a percent sign; write this one as a percentage, too"
        faults = [
            Fault(int(rows[i]), "outcome", excerpt(texts.iloc[i]), rule) for i in bare[:MAX_FAULTS].tolist()
        ]
        if faults:
            raise FlatFileError(faults, len(bare))


def read_outcomes(texts: Any, *, percent: bool, groups: Mapping[str, Any]) -> Any:
    """Read words and percentages as numbers from 0 to 1; what is neither stays as it is.

    percent: numbers without a sign are of 100.
    groups: as in `two_scales`.
    """
    if percent:
        plain = texts[texts.str.fullmatch(OF_HUNDRED)].str.replace(",", ".").astype(float)
        if len(plain) and plain.max() <= 1:
            raise refuse("no outcome is above 1, so they are no percentages; leave --percent out")
        if rule := two_scales(texts, groups):
            raise refuse(rule)
        texts = texts.where(~texts.str.fullmatch(OF_HUNDRED), texts + "%")
    return read_decimals(texts).map(_read_outcome)


def read_decimals(texts: Any) -> Any:
    """Write a point for a decimal comma, except where every comma of the column may part thousands."""
    has_comma = texts.str.fullmatch(DECIMAL_COMMA)
    may_part = texts[has_comma].str.fullmatch(THOUSANDS).all()
    return texts if may_part else texts.where(~has_comma, texts.str.replace(",", "."))


def _read_outcome(text: str) -> str:
    word = text.lower().replace("\ufe0f", "")
    if word in BLANK_WORDS:
        return ""
    if percent := PERCENT.fullmatch(text):
        share = Decimal(percent[1].replace(",", ".")) / 100
        return f"{share:f}" if share <= 1 else text
    return TRUTH_WORDS.get(word) or text


def _locate(faults: Sequence[Fault], table: _Table) -> Iterator[Fault]:
    under = defaultdict[tuple[int, str], list[str]](list)
    are_of_hundred, all_are = _are_of_hundred(table), ", or all are: --percent"
    if are_of_hundred and two_scales(table.frame["outcome"], _groups(table)):
        all_are = ""
    if table.across:
        wrong = {(fault.row, fault.value) for fault in faults if fault.field == "outcome"}
        outcomes = table.frame["outcome"].map(excerpt)
        for row, text, head in zip(table.rows.tolist(), outcomes, table.frame[table.across], strict=True):
            if (row, text) in wrong:
                under[row, text].append(head)
    for fault in faults:
        place: dict[str, Any] = {"field": table.heads.get(fault.field or "", fault.field)}
        if under and fault.field == "outcome" and fault.row:
            place["field"] = under[fault.row, fault.value or ""].pop(0)
        elif fault.field == table.across is not None:
            place |= {"row": table.header, "field": None}
        hint = ""
        if fault.field == "outcome" and fault.value:
            hint = "; also read are pass, fail, true, false and 75%"
            if OF_HUNDRED.fullmatch(fault.value):
                percent = f"; a percentage has its sign: {fault.value}%{all_are}"
                hint = percent if are_of_hundred else f"; {DIVIDE}"
        yield replace(fault, **place, rule=f"{fault.rule}{hint}")


def _note(sheet: str, table: _Table, n_blank: int, n_counted: int, *, are_trials: bool) -> str:
    key = "agent" if table.across == "task" else "task"
    wide = f"a wide table, a row for each {key} and a column for each {table.across}"
    shape = wide if table.across else "a long table"
    parts = [f"Read {sheet} as {shape}" + (f", header in row {table.header}" if table.header else "")]
    parts += [f"{quoted(text)} as {name}" for name, text in table.heads.items() if _snake_case(text) != name]
    if n_blank:
        trials = "a trial" if n_blank == 1 else "trials"
        blank = f"{counted(n_blank, 'row')} without an outcome: {trials} without a valid result"
        parts += [blank if are_trials else f"blank outcomes, missing: {n_blank:,}"]
    parts += [f"up to {n_counted:,} rows of an agent and a task, counted as trials"] if n_counted > 1 else []
    return "; ".join(parts) + "."
