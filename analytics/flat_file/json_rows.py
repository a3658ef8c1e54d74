"""Records as objects: NDJSON line by line, and records that are in memory already."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analytics.flat_file import streams
from analytics.flat_file.columns import ALIASES, MAX_COLUMNS
from analytics.flat_file.faults import Fault, Limits, excerpt, quoted, refuse
from analytics.flat_file.table import RowBatch, Table
from analytics.flat_file.values import empty_as_null, kind_of, name_rule, text_of

ALIASED = frozenset(ALIASES.values())
BLANKS = " \t\r\n"  # of JSON
LINE = re.compile(rb"\S[^\n]*")  # from the first character that is no white space
MAX_BRACKETS = 10_000  # opening ones in a line: a record needs one, and each may be an object to parse
MAX_LAYOUTS = 1000  # remembered at a time
N_RECORDS = 10_000  # in a batch
RecordLayout = tuple[dict[str, str], list[tuple[str, str]]]


def batches(text: streams.Text, table: Table) -> Iterator[RowBatch]:
    """Read one JSON object a line; a line that is none is a fault of its row.

    The last line may be the mark of the end that an export may have, with the number of rows before it.
    """
    records, end = Records(table, ()), End()
    text.head()
    n = 0
    for lines in _blocks_of_lines(text):
        for start in range(0, len(lines), N_RECORDS):
            objects = end.without([_parsed(line) for line in lines[start : start + N_RECORDS]])
            table.limits.check_rows(n + len(objects))
            yield records.batch(objects, n)
            n += len(objects)
    end.check(n)


class End:
    """The mark of the end, ``{"end": true, "n": 5304, "sha256": "…"}``: without it a prefix looks whole."""

    FIELDS = frozenset(("end", "n", "sha256"))

    def __init__(self) -> None:
        self.n_stated: str | None = None

    def without(self, objects: list[object]) -> list[object]:
        """Take the mark off the end of the next records, and refuse records behind it."""
        if self.n_stated is not None and objects:
            raise refuse("lines follow the end mark of the file; delete them")
        last = objects[-1] if objects else None
        if not isinstance(last, Mapping) or last.keys() != self.FIELDS or last["end"] is not True:
            return objects
        self.n_stated = str(last["n"])
        return objects[:-1]

    def check(self, n: int) -> None:
        """Refuse `n` rows where the mark says another number."""
        if self.n_stated not in (None, str(n)):
            raise refuse(f"the file ends by saying that it has {excerpt(str(self.n_stated))} rows, not {n:,}")


def check_number(opened: streams.Opened, limits: Limits) -> None:
    """Refuse more lines than there may be rows and a mark of the end, before any is parsed."""
    with streams.once_more(opened, limits) as text:
        while text.n_lines <= limits.n_rows:
            if not text.read(streams.BLOCK_BYTES):
                return
    with streams.once_more(opened, limits) as text:
        text.head()
        n = 0
        for lines in _blocks_of_lines(text):  # without blank ones
            n += len(lines)
            limits.check_rows(n - 1)


def _blocks_of_lines(text: streams.Text) -> Iterator[list[str]]:
    rest = b""
    for block in text.blocks():
        data = rest + block
        whole, _, rest = data.rpartition(b"\n")
        lines = LINE.findall(whole)
        if max(map(len, [*lines, rest])) > streams.MAX_RECORD_BYTES:
            is_long = [len(line) > streams.MAX_RECORD_BYTES for line in data.split(b"\n")]
            number = text.n_lines - data.count(b"\n") + is_long.index(True) + 1
            raise refuse(f"line {number:,} is longer than {streams.MAX_RECORD_BYTES:,} bytes")
        yield [line.decode() for line in lines]
    yield [line.decode() for line in LINE.findall(rest)]


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object whose keys come once; JSON leaves open what a second one means."""
    record = dict(pairs)
    if len(record) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {quoted(twice)} appears twice in one object")
    return record


def whole_number(text: str) -> int:
    """Make a whole number, of no more digits than Python reads."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"a number has too many digits: {len(text.lstrip('-')):,}") from None


# Numbers stay the text that stands in the file. `decode` would word an error for each line.
AS_TYPED = json.JSONDecoder(object_pairs_hook=unique, parse_float=str, parse_int=str, parse_constant=str)
_scan = AS_TYPED.scan_once  # type: ignore[attr-defined]


class Unread(str):
    """A line that is no JSON object; only for those that are reported the reason is looked up."""


def _parsed(line: str) -> object:
    if line[0] != "{" or line.rstrip(BLANKS)[-1] != "}" or _is_nested(line):
        return Unread(line)
    try:
        record, end = _scan(line, 0)
    except (ValueError, RecursionError, StopIteration):
        return Unread(line)
    return Unread(line) if line[end:].strip(BLANKS) else record


def _is_nested(line: str) -> bool:
    return len(line) > MAX_BRACKETS and line.count("[") + line.count("{") > MAX_BRACKETS


def _no_object_rule(record: object) -> str:
    if not isinstance(record, Unread):
        return f"a record is a JSON object, not {kind_of(record)}"
    if _is_nested(record):
        return f"the record has more than {MAX_BRACKETS:,} opening brackets"
    try:
        found = json.loads(record, object_pairs_hook=unique, parse_int=whole_number)
        return f"a record is a JSON object, not {kind_of(found)}"
    except json.JSONDecodeError as error:
        return f"the line is no JSON object ({error.msg}, character {error.colno})"
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "the record is nested too deeply"


class Records:
    """Turns objects into columns of text, and tells what is wrong with them as objects.

    An alias stands for its column in a record without that column; all records have to agree on that.

    table: where faults are collected and aliases are noted.
    constants: columns that are set for all records and may not be named in one.
    """

    def __init__(self, table: Table, constants: Sequence[str]) -> None:
        self.table = table
        self.constants = constants
        self._layouts: dict[tuple[str, ...], RecordLayout] = {}
        self._columns: dict[str, None] = dict.fromkeys(constants)
        self._named: set[str] = set()
        self._mixed: set[str] = set()

    def batch(self, objects: Sequence[object], n_before: int) -> RowBatch:
        """Turn the next objects into a batch; `n_before` came before them."""
        rows, records, others = [], [], []
        for row, record in enumerate(objects, n_before + 1):
            if isinstance(record, dict | Mapping):  # of the two the first is recognised at once
                rows.append(row)
                records.append(self._laid_out(row, record))
            else:
                others.append((row, record))
        if others:
            faults = (Fault(row, None, None, _no_object_rule(record)) for row, record in others)
            self.table.faults.extend(len(others), others[0][0], faults)
        numbers = np.array(rows, np.int64)
        shapes = dict.fromkeys(map(tuple, records))
        names = dict.fromkeys(name for shape in shapes for name in shape)
        columns, refused = {}, {}
        for name in names:
            columns[name], refused[name] = self._column(
                name, [record.get(name) for record in records], numbers
            )
        return RowBatch(numbers, columns, refused)

    def _laid_out(self, row: int, record: Mapping[str, object]) -> Mapping[str, object]:
        names = tuple(record)
        layout = self._layouts.get(names)
        if layout is None:
            if len(self._layouts) >= MAX_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[names] = self._layout(row, names)
        renamed, faults = layout
        for fault_name, rule in faults:
            self.table.faults.add(Fault(row, excerpt(fault_name), None, rule))
        if not renamed and not faults:
            return record
        left_out = {name for name, _ in faults}
        return {renamed.get(name, name): value for name, value in record.items() if name not in left_out}

    def _layout(self, row: int, names: tuple[str, ...]) -> RecordLayout:
        faults = []
        for name in names:
            if name in self.constants:
                faults.append((name, "the field is set for all records at once; a record may not name it"))
            elif rule := name_rule(name, "a field's name"):
                faults.append((name, rule))
        self._columns |= dict.fromkeys(names)
        if len(self._columns) > MAX_COLUMNS:
            raise refuse(f"the records have more than {MAX_COLUMNS} fields by name")
        renamed = {
            alias: canonical
            for alias, canonical in ALIASES.items()
            if alias in names and canonical not in names and canonical not in self.constants
        }
        self.table.aliases |= renamed
        self._named |= ALIASED & set(names)
        # the first record from which on a column goes by two names
        for alias, canonical in self.table.aliases.items():
            if canonical in self._named and alias not in self._mixed:
                self._mixed.add(alias)
                rule = f"some records call this column {canonical}, others {alias}; use one name in all"
                self.table.faults.add(Fault(row, alias, None, rule))
        return renamed, faults

    def _column(
        self, name: str, values: list[object], rows: npt.NDArray[np.int64]
    ) -> tuple[Any, npt.NDArray[np.bool_]]:
        """Turn values into texts, (n,), null where empty, and whether each was refused."""
        refused = np.zeros(len(values), bool)
        try:
            texts = pa.array(values, pa.string())
        except (TypeError, ValueError, pa.ArrowException):
            texts = [text_of(value) for value in values]
            refused = np.array([isinstance(text, ValueError) for text in texts], bool)
            places = np.flatnonzero(refused).tolist()
            if places:
                shown = self.table.shown(name)
                found = ((int(rows[i]), values[i], str(texts[i])) for i in places)
                faults = (
                    Fault(row, shown, excerpt(value) if isinstance(value, str) else None, rule)
                    for row, value, rule in found
                )
                self.table.faults.extend(len(places), int(rows[places[0]]), faults)
            known = [None if isinstance(text, ValueError) else text for text in texts]
            texts = pa.array(known, pa.string())
        return empty_as_null(texts), refused
