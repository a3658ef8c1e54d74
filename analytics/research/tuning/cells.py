"""What a run of the harness answers: a score for each model, task and run, as a file of JSON.

.. code-block:: json

    {"cells": [{"model": "small", "task": "t1", "run": 1, "score": 0.5, "valid": true, "cost_usd": 0.02,
                "seconds_environment": 3.1, "seconds_execution": 40.0, "seconds_scoring": 0.2}],
     "references": [{"task": "t1", "score": 1.0, "is_right": true}],
     "cost_usd": 0.1}

``valid`` is true where it is left out; a score may be null only where it is false. A cell that is not there
is invalid, as is every cell of a run that crashed or answered something else: never a score of 0. What was
paid is kept all the same. ``cost_usd`` beside the cells is what no cell states.
"""

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.harness import ScoreTensor
from analytics.research.tuning.space import is_number, shortened

SECONDS = ("seconds_environment", "seconds_execution", "seconds_scoring")
MAX_BYTES = 128 << 20
MAX_CELLS = 1_000_000
MAX_VALUE = 1e12  # of a score, a cost, a time: sums over any answer stay finite
MAX_OBJECTS = 2 * MAX_CELLS  # and lists: `[],[],…` takes thirty times its bytes
COLUMNS = {
    "model": pyarrow.string(),
    "task": pyarrow.string(),
    "run": pyarrow.int32(),
    "score": pyarrow.float64(),
    "valid": pyarrow.bool_(),
    "cost_usd": pyarrow.float64(),
    **dict.fromkeys(SECONDS, pyarrow.float64()),
}
REFERENCES = {"task": pyarrow.string(), "score": pyarrow.float64(), "is_right": pyarrow.bool_()}


class AnswerRefused(CoreError):
    """The file that a run left is not what was asked for."""


@dataclass(frozen=True)
class RunRequest:
    """What a run is asked for: models × tasks × runs ``first_run`` to ``last_run``."""

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    first_run: int
    last_run: int

    @property
    def runs(self) -> range:
        """The numbers of the runs."""
        return range(self.first_run, self.last_run + 1)


@dataclass(frozen=True, eq=False)
class RunCells:
    """Rows of cells, what no cell states of the cost, references, and why all are invalid where they are."""

    rows: pyarrow.Table
    references: pyarrow.Table
    cost_beside: float = 0.0
    failure: str = ""

    @property
    def cost_usd(self) -> float:
        """All that was paid, US dollars."""
        return float(np.nansum(_floats(self.rows["cost_usd"]))) + self.cost_beside

    def tensor(self, request: RunRequest) -> ScoreTensor:
        """Scores by model, task and run, in ascending order of name; what is not there is not valid."""
        names = (
            tuple(sorted(request.models)),
            tuple(sorted(request.tasks)),
            tuple(f"{run:06d}" for run in request.runs),
        )
        scores = np.full(tuple(map(len, names)), np.nan)
        if self.rows.num_rows:
            i, j = (
                [place[name] for name in self.rows[column].to_pylist()]
                for column, known in (("model", names[0]), ("task", names[1]))
                for place in [{name: i for i, name in enumerate(known)}]
            )
            runs = self.rows["run"].to_numpy() - request.first_run
            scores[i, j, runs] = np.where(self.rows["valid"].to_numpy(), _floats(self.rows["score"]), np.nan)
        return ScoreTensor(*names, scores, ~np.isnan(scores))

    def saved(self, path: Path) -> None:
        """Write the file whole or not at all, and onto the disk."""
        metadata = {
            b"cost_beside": repr(self.cost_beside).encode(),
            b"failure": self.failure.encode(),
            b"references": json.dumps(self.references.to_pylist()).encode(),
        }
        partial = path.with_suffix(".partial")
        try:
            with partial.open("wb") as file:
                parquet.write_table(self.rows.replace_schema_metadata(metadata), file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def stored_cells(path: Path, request: RunRequest | None = None) -> RunCells:
    """Read what `RunCells.saved` wrote of a request; None: only the cost is looked at."""
    try:
        rows = parquet.read_table(path)
        if not rows.schema.equals(pyarrow.schema(COLUMNS)):
            raise ValueError("it has other columns")
        metadata = rows.schema.metadata
        cells = RunCells(
            rows,
            _stored(json.loads(metadata[b"references"]), REFERENCES),
            float(metadata[b"cost_beside"]),
            metadata[b"failure"].decode(),
        )
        wanted = (
            {} if request is None else {"model": request.models, "task": request.tasks, "run": request.runs}
        )
        for name, known in wanted.items():
            if foreign := set(rows[name].unique().to_pylist()) - set(known):
                raise ValueError(f"{name} {shortened(foreign.pop())} was not asked for")
    except (pyarrow.ArrowException, LookupError, TypeError, ValueError) as error:
        why = f"{path} is damaged ({error}): delete it, and its runs are made anew"
        raise CoreError(why, code="cells_damaged") from None
    return cells


def joined(parts: Sequence[RunCells]) -> RunCells:
    """Put the runs of several rungs together."""
    return RunCells(
        pyarrow.concat_tables([part.rows.replace_schema_metadata(None) for part in parts]),
        pyarrow.concat_tables([part.references for part in parts]),
        sum(part.cost_beside for part in parts),
        "; ".join(part.failure for part in parts if part.failure),
    )


def failed(why: str, answer: Path, request: RunRequest) -> RunCells:
    """Nothing is valid; what the file tells of the cost is kept, where it can be read at all."""
    try:
        paid = read_answer(answer, request).cost_usd
    except (AnswerRefused, OSError):
        paid = 0.0
    return RunCells(_stored([], COLUMNS), _stored([], REFERENCES), paid, why)


def read_answer(path: Path, request: RunRequest) -> RunCells:
    """Read the file of JSON that a run left, or refuse it with the place and the rule."""
    there = path.stat()
    if not stat.S_ISREG(there.st_mode):
        raise AnswerRefused("the answer is no file")
    if there.st_size > MAX_BYTES:
        raise AnswerRefused(f"the answer is larger than {MAX_BYTES >> 20} MiB")
    content = path.read_bytes()
    if content.count(b"{") + content.count(b"[") > MAX_OBJECTS:
        raise AnswerRefused(f"the answer has more than {MAX_OBJECTS:,} objects and lists")
    try:
        answer = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise AnswerRefused(f"the answer is no JSON ({error})") from None
    if not isinstance(answer, dict) or not isinstance(answer.get("cells"), list):
        raise AnswerRefused("the answer is no object with a list of cells")
    cells = [_cell(place, one, request) for place, one in enumerate(answer["cells"])]
    seen: set[tuple[Any, ...]] = set()
    for place, cell in enumerate(cells):
        key = (cell["model"], cell["task"], cell["run"])
        if key in seen:
            raise AnswerRefused(f"cells[{place}]: model, task and run {key} occur twice")
        seen.add(key)
    references = answer.get("references", [])
    if not isinstance(references, list):
        raise AnswerRefused("references: no list")
    return RunCells(
        _stored(cells, COLUMNS),
        _stored([_reference(place, one, request) for place, one in enumerate(references)], REFERENCES),
        _amount("cost_usd", answer.get("cost_usd")) or 0.0,
    )


def _cell(place: int, item: Any, request: RunRequest) -> dict[str, Any]:
    where = f"cells[{place}]"
    if not isinstance(item, dict):
        raise AnswerRefused(f"{where} is no object")
    for name, known in (("model", request.models), ("task", request.tasks), ("run", request.runs)):
        value = item.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in known:
            raise AnswerRefused(f"{where}.{name}: {shortened(value)} was not asked for")
    valid = item.get("valid", True)
    if not isinstance(valid, bool):
        raise AnswerRefused(f"{where}.valid: {shortened(valid)} is not true or false")
    score = item.get("score")
    if not _is_amount(score) and (valid or score is not None):
        raise AnswerRefused(f"{where}.score: {shortened(score)} is no number within ±{MAX_VALUE:g}")
    amounts = {name: _amount(f"{where}.{name}", item.get(name)) for name in ("cost_usd", *SECONDS)}
    return (
        {name: item[name] for name in ("model", "task", "run")} | {"score": score, "valid": valid} | amounts
    )


def _reference(place: int, item: Any, request: RunRequest) -> dict[str, Any]:
    where = f"references[{place}]"
    if not isinstance(item, dict) or item.get("task") not in request.tasks:
        raise AnswerRefused(f"{where}: an object with a task that was asked for")
    if not _is_amount(item.get("score")) or not isinstance(item.get("is_right"), bool):
        raise AnswerRefused(f"{where}: score is a number within ±{MAX_VALUE:g}, is_right is true or false")
    return {name: item[name] for name in REFERENCES}


def _is_amount(value: Any) -> bool:
    return is_number(value) and abs(value) <= MAX_VALUE


def _amount(where: str, value: Any) -> float | None:
    if value is not None and not (_is_amount(value) and value >= 0):
        raise AnswerRefused(f"{where}: {shortened(value)} is no number from 0 to {MAX_VALUE:g}")
    return None if value is None else float(value)


def _stored(items: Sequence[Mapping[str, Any]], columns: Mapping[str, Any]) -> pyarrow.Table:
    return pyarrow.Table.from_pylist(list(items), schema=pyarrow.schema(columns))


def _floats(column: Any) -> FloatArray:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
