"""Outcome rows as an Arrow table: the form in which they pass between a file and the database.

Columns `agent`, `task`, `setting` (ids), `trial`, `value` (null where a trial is invalid and has none),
`valid`, in this order; behind them stands what else was delivered. Rows read from the database also say
their `submission`, which stands first.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.submissions.export.columns import MEASURED, TOGETHER
from leaderboard.submissions.parsing.flat import FlatFile

KEY = ["agent", "task", "setting", "trial"]
IDENTITY = ["task", "valid", "value"]
NEVER = np.iinfo(np.int64).max
OUTCOME = [*KEY, "value", "valid"]
SCHEMA = pa.schema(
    {
        "submission": pa.int32(),
        "agent": pa.int64(),
        "task": pa.int32(),
        "setting": pa.int32(),
        "trial": pa.int16(),
        "value": pa.float32(),
        "valid": pa.bool_(),
    }
)
LIVE_SCHEMA = SCHEMA.append(pa.field("free", pa.bool_()))
# What is read to be reduced: 0.1 as PostgreSQL prints its four bytes, and as a file says it.
READ_SCHEMA = SCHEMA.set(SCHEMA.get_field_index("value"), pa.field("value", pa.float64()))
MEASURED_SCHEMA = pa.schema(
    [
        *READ_SCHEMA,
        ("cost_usd", pa.float64()),
        ("n_tokens", pa.int64()),
        ("seconds", pa.float64()),
        ("human", pa.float64()),
        ("human_probability", pa.float64()),
    ]
)
DETAIL_SCHEMA = pa.schema(
    [
        *(SCHEMA.field(name) for name in ("submission", *KEY[1:])),
        *((column.name, column.kind) for column in (*MEASURED, TOGETHER)),
    ]
)


def without_superseded(rows: pa.Table) -> pa.Table:
    """Let an outcome that was delivered again stand in the place of the failure of the harness.

    Of the rows of one key, in order of delivery, only the last is kept. Where it is valid it gets the first
    one's `submission`, so that it comes in the order in which its trial was asked for; its own is in
    `came_with`, a column that is there where some row was left out.
    """
    if pc.all(rows["valid"]).as_py() in (True, None):
        return rows  # a key is free for another delivery after an invalid outcome only
    first, last = pc.min_max(rows["submission"]).as_py().values()
    if first == last:
        return rows
    keys = rows.select(KEY).append_column("row", pa.array(np.arange(rows.num_rows)))
    ends = keys.group_by(KEY).aggregate([("row", "min"), ("row", "max")])
    if ends.num_rows == rows.num_rows:
        return rows
    ends = ends.sort_by("row_max")
    last = rows.take(ends["row_max"])
    first = rows["submission"].take(ends["row_min"])
    submission = pc.if_else(last["valid"], first, last["submission"])
    return last.set_column(0, "submission", submission).append_column("came_with", last["submission"])


def ran_again(gone: pa.Table, standing: pa.Table, own: Collection[int]) -> bool:
    """Whether tasks that were taken back stand by a later submission, with other outcomes or some of theirs.

    Under whatever label or number of a trial. Where all of a task stand as they were, and came before others
    of the task, nothing was run again. `own`: the submissions of the agent's owner; others run nothing for
    them.
    """
    parts = [rows.select(IDENTITY) for rows in (gone, standing)]
    both = pa.concat_tables(parts, promote_options="permissive")
    value = pc.fill_null(both["value"].cast(pa.float32()), -1.0).to_numpy()
    task, code = both["task"].to_numpy(), np.zeros(both.num_rows, np.int64)
    for column in (task, both["valid"].to_numpy(), value):
        values, place = np.unique(column, return_inverse=True)
        code = np.unique(code * len(values) + place, return_inverse=True)[1]
    submission, later = gone["submission"].to_numpy(), standing["submission"].to_numpy()
    # The first of several equal outcomes of a task, the second, …
    of_part = np.concatenate([submission, np.zeros(len(later), submission.dtype)])
    nth = _numbered(np.lexsort((np.concatenate([submission, later]), of_part, code)), of_part, code)
    code = np.unique(code * (len(code) + 1) + nth, return_inverse=True)[1]
    task, n = np.unique(task, return_inverse=True)[1], len(submission)
    later_task, later_code, is_own = task[n:], code[n:], np.isin(later, list(own))
    since = np.full(both.num_rows, NEVER)
    np.minimum.at(since, later_code, later)
    for one in np.unique(submission):
        mine = np.flatnonzero(submission == one)
        whole_since = np.zeros(both.num_rows, np.int64)
        np.maximum.at(whole_since, task[mine], since[code[mine]])
        is_later = is_own & (later > one) & np.isin(later_task, task[mine])
        is_other = ~np.isin(later_code, code[mine]) & (later < whole_since[later_task])
        if (is_later & (is_other | (whole_since[later_task] == NEVER))).any():
            return True
    return False


def _numbered(order: np.ndarray, *keys: np.ndarray) -> np.ndarray:
    """Number the rows of equal keys from 0, in an order in which they stand together."""
    begins = np.logical_or.reduce([np.diff(key[order], prepend=key[order[:1]] - 1) != 0 for key in keys])
    places = np.arange(len(order))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return numbers


def place(
    flat: FlatFile, *, agents: Sequence[int], tasks: Sequence[int], settings: Sequence[int]
) -> pa.Table:
    """Return the rows of a file with the ids of its agents, tasks and settings, and its details beside."""
    columns = {
        "agent": np.asarray(agents, np.int64)[flat.agent],
        "task": np.asarray(tasks, np.int32)[flat.task],
        "setting": np.asarray(settings, np.int32)[flat.setting],
        "trial": flat.trial,
        "value": pa.array(flat.outcome, pa.float32(), mask=np.isnan(flat.outcome)),
        "valid": flat.valid,
    }
    numbers = flat.measured | flat.labels
    measured = {name: pa.array(values, mask=np.isnan(values)) for name, values in numbers.items()}
    for name in ("n_input_tokens", "n_output_tokens"):
        if name in measured:
            measured[name] = measured[name].cast(pa.int64())
    if metadata := {name: texts for name, texts in flat.metadata.items() if name not in flat.labels}:
        measured["metadata"] = as_json(pa.table(metadata))
    return pa.table(columns | measured)


def as_json(texts: pa.Table, n_at_once: int = 50_000) -> pa.ChunkedArray:
    """Write each row as a JSON object of the texts that it has, null where it has none."""
    chunks = []
    for batch in texts.to_batches(max_chunksize=n_at_once):
        fields = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            coded = column.dictionary_encode()  # each text is escaped once
            each = (json.dumps({name: text}, ensure_ascii=False) for text in coded.dictionary.to_pylist())
            field = pa.array([f", {one[1:-1]}" for one in each], pa.string()).take(coded.indices)
            fields.append(field.fill_null(""))
        joined = pc.binary_join_element_wise(*fields, "")
        whole = pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 2), "}", "")
        chunks.append(pc.if_else(pc.equal(joined, ""), pa.scalar(None, pa.string()), whole))
    return pa.chunked_array(chunks, pa.string())


def same_outcome(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Compare two columns, null being equal to null and to nothing else."""
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(pc.equal(left, right), False), both_null)


class CodedNames:
    """Names by id, coded in their order among those that occur.

    The last ones that occurred are kept: most submissions of a file have the same.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self.names = names
        self._ids, self._text, self._rank = np.zeros(0, np.int32), "[]", np.zeros(0, np.int64)

    def coded(self, ids: pa.ChunkedArray) -> tuple[str, np.ndarray]:
        """Give the names of these ids as a JSON list in order, and the place of each row's there."""
        present, inverse = np.unique(ids.to_numpy(), return_inverse=True)
        if not np.array_equal(present, self._ids):
            labels = [self.names[i] for i in present.tolist()]
            by_name = sorted(range(len(labels)), key=labels.__getitem__)
            self._ids, self._rank = present, np.empty(len(labels), dtype=np.int64)
            self._rank[by_name] = np.arange(len(labels))
            self._text = json.dumps([labels[i] for i in by_name], ensure_ascii=False)
        return self._text, self._rank[inverse]


def content_sha256(rows: pa.Table, *, tasks: CodedNames, settings: CodedNames) -> bytes:
    """Hash what a submission says, whatever the order of its rows or the ids of this installation.

    The names that occur, in order, and the rows as little-endian columns that count in that order.
    """
    task_names, task_codes = tasks.coded(rows["task"])
    setting_names, setting_codes = settings.coded(rows["setting"])
    trial = rows["trial"].to_numpy()
    order = np.lexsort((trial, setting_codes, task_codes))
    digest = hashlib.sha256(f"[{task_names}, {setting_names}]".encode())
    value = pc.fill_null(rows["value"], np.nan).to_numpy()
    for column, kind in (
        (task_codes, "<i4"),
        (setting_codes, "<i4"),
        (trial, "<i2"),
        (value, "<f4"),
        (rows["valid"].to_numpy(), "u1"),
    ):
        digest.update(np.ascontiguousarray(column[order]).astype(kind).tobytes())
    return digest.digest()
