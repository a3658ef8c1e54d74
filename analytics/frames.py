"""Data frames of pandas, in and out: a long frame is a flat file in memory, checked by the same rules.

A row is one trial. `agent`, `task` and `outcome` are needed; other columns of the flat file may be there, by
name or alias. What is absent says the same in all rows: trial 1, valid, no setting, no date. None, NaN, NaT
and NA are an empty field.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.errors import CoreError
from analytics.flat_file import ALIASES, FILE, KNOWN, Fault, FlatFile, FlatFileError, from_arrow, from_records
from analytics.flat_file.faults import excerpt
from analytics.flat_file.values import header_faults

if TYPE_CHECKING:
    from analytics.outcome_table import OutcomeTable

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


def flat_of(frame: Any, *, as_of: datetime | None = None) -> FlatFile:
    """Check a long frame, one row for each trial, as if it were a flat file.

    as_of: with time zone; a later `submitted_at` lies in the future. Now, when not given.
    Returns: in the order of the frame; scaffolds and models are "" where the frame has no such column.
    Raises FlatFileError: with every fault at once; rows count from 1 in the order of the frame.
    """
    if not isinstance(frame, pandas_there().DataFrame):
        raise FrameRefused(f"a pandas DataFrame is needed, not {type(frame).__name__}", code="no_frame")
    _check_columns(list(frame.columns))
    present = {ALIASES.get(name, name) for name in frame.columns}
    constants = {name: value for name, value in ABSENT.items() if name not in present}
    try:
        flat = _checked(frame, constants, as_of or datetime.now(UTC))
    except FlatFileError as error:
        raise FlatFileError(error.faults, error.n_faults, CALLED) from None
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


def _checked(frame: Any, constants: dict[str, object], as_of: datetime) -> FlatFile:
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
        rows = [dict(zip(frame.columns, row, strict=True)) for row in zip(*columns, strict=True)]
        return from_records(rows, constants=constants, as_of=as_of, limits=FILE)
    return from_arrow(columns, constants=constants, as_of=as_of)
