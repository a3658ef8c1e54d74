"""Data frames of pandas, in and out: a long frame is a flat file in memory, checked by the same rules.

A row is one trial. `agent`, `task` and `outcome` are needed; other columns of the flat file may be there, by
name or alias. What is absent says the same in all rows: valid, no setting, no date; trials are counted. None,
NaN, NaT and NA are an empty field. A wide frame has a row for each agent and a column for each task, or the
reverse; it is read as a table of people is (`analytics.tables`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analytics.errors import CoreError
from analytics.flat_file import ALIASES, FILE, KNOWN, Fault, FlatFile, FlatFileError, from_arrow, from_records
from analytics.flat_file.columns import aliases_in
from analytics.flat_file.faults import excerpt
from analytics.flat_file.table import RowNumbers
from analytics.flat_file.values import TRUTH, header_faults, text_of

if TYPE_CHECKING:
    from analytics.outcome_table import OutcomeTable
    from analytics.tables import TableOptions

CALLED = "the frame"
# What the flat file asks of every row and a frame may leave out.
ABSENT: Mapping[str, object] = {
    "benchmark": CALLED,
    "scaffold": CALLED,
    "model": CALLED,
    "submitted_at": None,
    "trial": 1,
}


class FrameRefused(CoreError):
    """A data frame cannot be made (code pandas_missing), or what was given is none (no_frame)."""


def flat_of(
    frame: Any,
    *,
    columns: Mapping[str, str] | None = None,
    percent: bool = False,
    blank: Literal["fail", "missing"] | None = None,
    benchmark: str = "",
    as_of: datetime | None = None,
) -> FlatFile:
    """Check a frame as if it were a flat file: a row for each trial, or one for each agent or task.

    columns: known column → its name in the frame, as ``--column`` of the command lines.
    percent: outcomes without a sign are of 100.
    blank: what an empty outcome is; where not given, a fault in a long frame, missing in a wide one that says
        what failed.
    benchmark: the one to read, of a frame that holds several.
    as_of: with time zone; a later `submitted_at` lies in the future. Now, when not given.
    Returns: in the order of the frame; scaffolds and models are "" where the frame has no such column.
    Raises FlatFileError: with every fault at once; rows count from 1 in the order of the frame.
    """
    if not isinstance(frame, pandas_there().DataFrame):
        raise FrameRefused(f"a pandas DataFrame is needed, not {type(frame).__name__}", code="no_frame")
    from analytics import tables  # which imports this module

    options = tables.TableOptions(blank=blank, percent=percent)
    as_of = as_of or datetime.now(UTC)
    try:
        frame = _with_known_names(frame, columns or {})
        present = {ALIASES.get(name, name) for name in frame.columns}
        constants = {name: value for name, value in ABSENT.items() if name not in present}
        if "outcome" not in present and len(present & {"agent", "task"}) == 1:
            flat = tables.read_wide(frame, options, constants, as_of=as_of)
        else:
            flat = _read_long(frame, options, constants, benchmark, as_of)
    except FlatFileError as error:
        faults = [replace(fault, rule=_in_python(fault)) for fault in error.faults]
        raise FlatFileError(faults, error.n_faults, CALLED) from None
    unnamed = ("",) * len(flat.agents)
    return replace(
        flat,
        scaffolds=unnamed if "scaffold" in constants else flat.scaffolds,
        models=unnamed if "model" in constants else flat.models,
    )


def frame_of(table: "OutcomeTable") -> Any:
    """Make a long frame, a row for each agent and task; `flat_of` reads it back, a cell as one trial."""
    pandas = pandas_there()
    shape = (table.n_agents, table.n_tasks)
    agent, task = (index.ravel() for index in np.indices(shape))
    columns: dict[str, Any] = {
        "agent": np.array(table.agents, dtype=object)[agent],
        "task": np.array(table.tasks, dtype=object)[task],
        "outcome": table.means.ravel(),
        "valid": table.valid().ravel(),
    }
    for name, values in (("scaffold", table.scaffolds), ("model", table.models)):
        if any(values):
            columns[name] = np.array(values, dtype=object)[agent]
    if any(table.dates):
        columns["submitted_at"] = np.array(table.dates, dtype="datetime64[s]")[agent]
    return pandas.DataFrame(columns)


def pandas_there() -> Any:
    """Import pandas, or say how it is installed."""
    try:
        import pandas
    except ImportError:
        raise FrameRefused(
            "a data frame needs pandas. Install it: pip install 'bandstand[frames]'",
            code="pandas_missing",
        ) from None
    return pandas


def _check_columns(names: list[Any]) -> None:
    rule = "a column's name is text"
    faults = [Fault(None, str(name), None, rule) for name in names if not isinstance(name, str)]
    faults = faults or header_faults(names)
    for name in () if faults else (name for name in names if name not in KNOWN and name not in ALIASES):
        near = [f'"{known}"' for known in get_close_matches(name.strip().lower(), KNOWN, n=2, cutoff=0.75)]
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Known columns: {', '.join(KNOWN)}"
        faults.append(Fault(None, excerpt(name), None, f"unknown column. {hint}"))
    if faults:
        raise FlatFileError(faults, name=CALLED)


def _with_known_names(frame: Any, columns: Mapping[str, str]) -> Any:
    if frame.index.name in ("agent", "task") and not {"agent", "task"} & set(frame.columns):
        frame = frame.reset_index()  # as a pivot has it
    for known, theirs in columns.items():
        if known not in KNOWN or theirs not in frame.columns:
            there = ", ".join(KNOWN if known not in KNOWN else map(str, frame.columns))
            rule = f"no column is called so; there are {there}"
            raise FlatFileError([Fault(None, known if known not in KNOWN else theirs, None, rule)])
    return frame.rename(columns={theirs: known for known, theirs in columns.items()})


def _read_long(
    frame: Any, options: "TableOptions", constants: dict[str, object], benchmark: str, as_of: datetime
) -> FlatFile:
    from analytics.tables import NUMBERS, count_trials, read_decimals, read_outcomes

    _check_columns(list(frame.columns))
    frame = frame.rename(columns=aliases_in(list(frame.columns))).reset_index(drop=True)
    readers = dict.fromkeys(NUMBERS, read_decimals)
    readers["outcome"] = lambda texts: read_outcomes(
        texts,
        percent=options.percent,
        groups={"agent": frame["agent"][texts.index]} if "agent" in frame else {},
    )
    for name in frame.columns.intersection(readers):
        if frame[name].dtype.kind in "Ob" or (options.percent and name == "outcome"):
            frame[name] = _read_texts(frame[name], readers[name])
    wanted = np.ones(len(frame), dtype=np.bool_)
    if benchmark and "benchmark" in frame:
        wanted &= frame["benchmark"].eq(benchmark).to_numpy(dtype=np.bool_)
    if options.blank and "outcome" in frame:
        empty = frame["outcome"].isna().to_numpy()
        if "valid" in frame:  # where it is false, an empty outcome is as it should be
            empty = empty & ~frame["valid"].astype(str).map(TRUTH.get).eq(False).to_numpy()
        if options.blank == "missing":
            wanted &= ~empty
        else:
            frame["outcome"] = frame["outcome"].astype(object).where(~empty, 0)
    frame = frame[wanted].copy()
    if {"agent", "task"} <= set(frame.columns):
        n_counted, copies = count_trials(frame)
        if copies:
            raise FlatFileError(copies)
        if n_counted > 1:
            constants.pop("trial")
    return _checked(frame, constants, as_of, np.flatnonzero(wanted) + 1)


def _read_texts(column: Any, read: Callable[[Any], Any]) -> Any:
    """Read a column's values as texts; what has none stays, to be refused."""
    values = column.astype(object)
    known = values[values.notna()]
    texts = known.map(lambda value: text_of(value.item() if isinstance(value, np.generic) else value))
    texts = texts[texts.map(lambda text: isinstance(text, str))].astype(str)
    values[texts.index] = read(texts.str.split().str.join(" "))
    return values


def _in_python(fault: Fault) -> str:
    """Word a rule with the arguments of `flat_of` in the place of the options of a command line."""
    rule = re.sub(r"--column (\w+)=(\w*)", r'columns={"\1": "\2"}', fault.rule)
    rule = re.sub(r"--only (\"[^\"]*\")", r"benchmark=\1", re.sub(r"--blank (\w+)", r'blank="\1"', rule))
    is_blank = fault.field == "outcome" and fault.value is None and "empty" in rule
    hint = '; or say blank="missing" or blank="fail"' if is_blank else ""
    return rule.replace("--percent", "percent=True") + hint


def _checked(frame: Any, constants: dict[str, object], as_of: datetime, rows: RowNumbers) -> FlatFile:
    import pyarrow as pa

    try:
        columns = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        columns = [
            [
                None if empty else value.item() if isinstance(value, np.generic) else value
                for value, empty in zip(frame[name], frame[name].isna(), strict=True)
            ]
            for name in frame.columns
        ]
        records = [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]
        return from_records(records, constants=constants, as_of=as_of, limits=FILE)
    return from_arrow(columns, constants=constants, as_of=as_of, rows=rows)
