"""The coded columns of a flat file, filled batch by batch; faults of rows are collected on the way."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analytics.arrays import Mask
from analytics.flat_file.columns import KNOWN, LABELS, NAMED, NEVER_EMPTY, REQUIRED, SETTING, missing_rule
from analytics.flat_file.faults import MAX_FAULTS, Fault, Faults, Limits, excerpt, quoted
from analytics.flat_file.values import METADATA, OUTCOME, Kind, Names, kinds

RowNumbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowBatch:
    """Some consecutive records as texts, (n,) each.

    rows: numbers of the records, ascending.
    columns: by canonical name; null where a field is empty or the record lacks it.
    refused: fields with a fault that the reader has reported already; they are null in `columns`.
    """

    rows: RowNumbers
    columns: Mapping[str, Any]
    refused: Mapping[str, Mask] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """One column of one batch: values, where a rule is broken, where a field is empty; (n,) each."""

    values: npt.NDArray[Any]
    bad: Mask
    empty: Mask


class Pieces:
    """Arrays that fill a long one in parts; what no part covers is `empty`."""

    def __init__(self, empty: Any, dtype: Any) -> None:
        self.empty = empty
        self.dtype = dtype
        self._parts: list[tuple[int, npt.NDArray[Any]]] = []

    def put(self, start: int, values: npt.NDArray[Any]) -> None:
        """Set the values from `start` on."""
        self._parts.append((start, values))

    def whole(self, n: int) -> npt.NDArray[Any]:
        """Join the parts to an array (n,), and let go of them; without any, the one value takes no memory."""
        if not self._parts:
            return np.broadcast_to(np.array(self.empty, self.dtype), n)
        out = np.full(n, self.empty, self.dtype)
        for start, values in self._parts:
            out[start : start + len(values)] = values
        self._parts.clear()
        return out


class Blank:
    """Rows in which a field is empty: their number, and the first of them."""

    def __init__(self) -> None:
        self.n = 0
        self.first: list[int] = []

    def add(self, rows: RowNumbers) -> None:
        """Take in further rows, ascending."""
        self.n += len(rows)
        self.first += rows[: MAX_FAULTS - len(self.first)].tolist()


class Table:
    """All rows read so far.

    only: the one benchmark whose rows are taken in; None for all.
    n_metadata_bytes: size of each column of metadata.
    n, faults: number of rows taken in, and what was wrong with them.
    aliases: alias → the column it is taken for; faults call the column by the alias.
    row_note: how faults count the rows, where these stand below a line that is none of them.
    seen: columns seen, in order of appearance, by canonical name.
    """

    def __init__(
        self,
        as_of: datetime,
        limits: Limits,
        only: str | None = None,
        strange_task: Callable[[str], str | None] | None = None,
    ) -> None:
        self.n = 0
        self.limits = limits
        self.only = only
        self.fixed: dict[str, tuple[Any, tuple[str, ...], Any]] = {}  # text, others for the same, value
        self.n_cells = 0
        self.n_metadata_bytes: dict[str, int] = {}
        self.faults = Faults()
        self.aliases: dict[str, str] = {}
        self.seen: dict[str, None] = {}
        self.names = {column: Names(column) for column in NAMED} | {"task": Names("task", strange_task)}
        self.rows = Pieces(0, np.int64)
        self.doubtful = Pieces(False, np.bool_)
        self.texts: dict[str, list[tuple[int, Any]]] = {}
        self._kinds = kinds(as_of) | {column: names.kind for column, names in self.names.items()}
        self._pieces: dict[str, Pieces] = {}
        self._bad_dates: list[tuple[int, Fault]] = []  # of each batch: how many, and the first
        self._blank: dict[str, Blank] = {}
        self._excused: set[str] = set()
        self._has_header, self.row_note = False, ""

    def state_header(self, columns: Iterable[str]) -> None:
        """Take in the columns that the file has even if it has no rows, by canonical name."""
        self.seen |= dict.fromkeys(columns)
        self._has_header = True

    def shown(self, column: str) -> str:
        """Give the name by which the file calls a column."""
        return next((alias for alias, known in self.aliases.items() if known == column), column)

    def whole(self, column: str) -> npt.NDArray[Any]:
        """Give the values of a column, (n,), and let go of its parts; empty where it was not seen."""
        kind = self._kinds[column]
        return self._pieces.pop(column, Pieces(kind.empty, kind.dtype)).whole(self.n)

    def excuse(self, column: str) -> bool:
        """Tell no faults of a column's absence, as it is at fault as a whole; True where that is new."""
        new = column not in self._excused
        self.seen.setdefault(column)
        self._excused.add(column)
        return new

    def add_constants(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Check columns that are equal in all rows, one text each; give back those without fault."""
        good = {}
        for name, texts in columns.items():
            column = self._read(name, texts)
            if column.empty[0] and name in NEVER_EMPTY:
                self.faults.add(Fault(None, name, None, _empty_rule(name)))
            elif column.bad[0]:
                text = texts[0].as_py()
                self.faults.add(Fault(None, name, excerpt(text), self._kind(name).rule(text)))
            else:
                good[name] = texts
                continue
            self.excuse(name)
        return good

    def fix(self, columns: Mapping[str, Any], known_as: Mapping[str, Sequence[str]]) -> None:
        """Let columns without fault, one text each, stand for all rows; a row may repeat what they say."""
        for name, texts in columns.items():
            self.seen.setdefault(name)
            known = tuple(known_as.get(name, ()))
            self.fixed[name] = texts[0], known, self._read(name, texts).values[0]

    def add(self, batch: RowBatch) -> None:
        """Check a batch column by column, tell its faults, and keep its values."""
        self.n_cells += len(batch.rows) * len(batch.columns)
        self.limits.check_cells(self.n_cells)
        batch = batch if self.only is None else _of_benchmark(batch, self.only, self.names["benchmark"])
        if self.fixed:
            batch = self._with_fixed(batch)
        columns = {name: self._read(name, texts) for name, texts in batch.columns.items()}
        for name, column in columns.items():
            self.seen.setdefault(name)
            places = np.flatnonzero(column.bad)
            if len(places):
                texts, rule, shown = batch.columns[name], self._kind(name).rule, self.shown(name)
                values = ((int(batch.rows[i]), texts[int(i)].as_py()) for i in places)
                faults = (Fault(row, shown, excerpt(text), rule(text)) for row, text in values)
                if name == "submitted_at":
                    self._bad_dates.append((len(places), next(faults)))
                else:
                    self.faults.extend(len(places), int(batch.rows[places[0]]), faults)
            self._tell_other(batch, name, column)
            self._keep(name, column, batch.columns[name])
        self._tell_empty(batch, columns)
        # the rows whose setting is at fault are not compared with others
        doubts = [columns[name].bad for name in SETTING if name in columns]
        doubts += [batch.refused[name] for name in SETTING if name in batch.refused]
        if doubts:
            self.doubtful.put(self.n, np.logical_or.reduce(doubts))
        self.rows.put(self.n, batch.rows)
        self.n += len(batch.rows)
        self.limits.check_names(sum(names.n_characters for names in self.names.values()))

    def _with_fixed(self, batch: RowBatch) -> RowBatch:
        columns = dict(batch.columns)
        for name, (text, known_as, _) in self.fixed.items():
            if name not in columns:
                columns[name] = pa.repeat(text, len(batch.rows))
                continue
            texts = columns[name]
            if known_as:
                texts = pc.if_else(pc.is_in(texts, pa.array(known_as, pa.string())), text, texts)
            has_text = pc.is_valid(texts) if name not in batch.refused else pa.array(batch.refused[name])
            columns[name] = pc.if_else(pc.or_(has_text, pc.is_valid(texts)), texts, text)
        return RowBatch(batch.rows, columns, batch.refused)

    def _kind(self, name: str) -> Kind:
        return self._kinds.get(name, METADATA)

    def _read(self, name: str, texts: Any) -> Column:
        encoded = texts.dictionary_encode()
        values, bad = self._kind(name).check(encoded.dictionary)
        if len(values) == 1 and not encoded.null_count:
            same = (values[0], bad[0], np.False_)
            return Column(*(np.broadcast_to(value, len(texts)) for value in same))
        index = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        last = np.full(1, self._kind(name).empty, values.dtype)
        return Column(
            np.concatenate([values, last])[index],
            np.append(bad, False)[index],
            index == len(encoded.dictionary),
        )

    def _tell_other(self, batch: RowBatch, name: str, column: Column) -> None:
        if name not in self.fixed:
            return
        text, _, value = self.fixed[name]
        places = np.flatnonzero((column.values != value) & ~column.bad & ~column.empty)
        if len(places):
            texts, shown = batch.columns[name], self.shown(name)
            rule = f"the request states {quoted(text.as_py())}; make both equal or remove one"
            faults = (Fault(int(batch.rows[i]), shown, excerpt(texts[int(i)].as_py()), rule) for i in places)
            self.faults.extend(len(places), int(batch.rows[places[0]]), faults)

    def _tell_empty(self, batch: RowBatch, columns: Mapping[str, Column]) -> None:
        always = np.ones(len(batch.rows), bool)
        valid = columns.get("valid", Column(always, ~always, ~always))
        needed = dict.fromkeys(NEVER_EMPTY, always) | {"outcome": valid.values & ~valid.bad}
        for name, may_not in needed.items():
            if name in self._excused:
                continue
            missing = may_not & ~batch.refused.get(name, ~always)
            if name not in columns:
                self._blank.setdefault(name, Blank()).add(batch.rows[missing])
            else:
                blank = Blank()
                blank.add(batch.rows[missing & columns[name].empty])
                self._tell_blank(name, blank)

    def _tell_blank(self, name: str, blank: Blank) -> None:
        if blank.n:
            rule, shown = _empty_rule(name), self.shown(name)
            faults = (Fault(row, shown, None, rule) for row in blank.first)
            self.faults.extend(blank.n, blank.first[0], faults)

    def _keep(self, name: str, column: Column, texts: Any) -> None:
        if self.faults.n or self._has_too_much_metadata():
            self.texts.clear()
        elif name not in KNOWN or name in LABELS:
            self.texts.setdefault(name, []).append((self.n, texts))
        if name not in KNOWN:
            n_bytes = pc.sum(pc.binary_length(texts)).as_py() or 0
            if self.limits.n_cells is not None:
                n_bytes += len(name.encode()) * (len(texts) - texts.null_count)
            self.n_metadata_bytes[name] = self.n_metadata_bytes.get(name, 0) + n_bytes
            return
        kind = self._kind(name)
        self._pieces.setdefault(name, Pieces(kind.empty, kind.dtype)).put(self.n, column.values)

    def close(self) -> None:
        """Tell what only the end shows: required columns absent throughout, or in a part of the records."""
        self._tell_dates()
        absent = [name for name in REQUIRED if name not in self.seen]
        if self.n or self._has_header:  # without a record that could be read nothing is known of columns
            for name in absent:
                self.faults.add(Fault(None, name, None, missing_rule(name, list(self.seen))))
        for name, blank in self._blank.items():
            if name in self.seen:
                self._tell_blank(name, blank)
        if self._has_too_much_metadata():
            most, n_bytes = self.limits.n_metadata_bytes, sum(self.n_metadata_bytes.values())
            largest = max(self.n_metadata_bytes, key=self.n_metadata_bytes.__getitem__)
            rule = (
                f"the rows hold {n_bytes:,} bytes of metadata, {self.n_metadata_bytes[largest]:,} of them in"
                f" this column; at most {most:,} are allowed in all"
            )
            self.faults.add(Fault(None, excerpt(largest), None, rule))

    def _tell_dates(self) -> None:
        """Tell the first wrong date, and in how many rows: a column holds dates of one form."""
        n = sum(n for n, _ in self._bad_dates)
        if n:
            first = self._bad_dates[0][1]
            rule = f"{first.rule}; {n:,} rows have a wrong date" if n > 1 else first.rule
            self.faults.add(replace(first, rule=rule))

    def _has_too_much_metadata(self) -> bool:
        most = self.limits.n_metadata_bytes
        return most is not None and sum(self.n_metadata_bytes.values()) > most

    def metadata(self) -> dict[str, Any]:
        """Give the columns that have no meaning here as chunked texts, (n,) each, null where empty."""
        columns = {}
        for name, parts in self.texts.items():
            chunks, end = [], 0
            for start, texts in parts:
                chunks += [pa.nulls(start - end, pa.string()), texts]
                end = start + len(texts)
            columns[name] = pa.chunked_array([*chunks, pa.nulls(self.n - end, pa.string())], pa.string())
        return columns


def _of_benchmark(batch: RowBatch, only: str, names: Names) -> RowBatch:
    names_there = batch.columns.get("benchmark")
    if names_there is None:
        return batch
    names.check(pc.unique(names_there).drop_null())
    wanted = pc.fill_null(pc.equal(names_there, only), False)
    mask = wanted.to_numpy(zero_copy_only=False)
    return RowBatch(
        batch.rows[mask],
        {name: texts.filter(wanted) for name, texts in batch.columns.items()},
        {name: refused[mask] for name, refused in batch.refused.items()},
    )


def _empty_rule(column: str) -> str:
    if column == "outcome":
        return f"the field is empty; {OUTCOME}, and may be empty only where valid is false"
    return f"the field is empty; every row states its {column}"
