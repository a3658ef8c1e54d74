"""JSON of other projects, with caps before it is parsed and faults that name the place.

A place is written as in ``results[3].task_id``. What a document lacks is a `Node` of None, so that a reader
asks for what it wants without looking first, and every fault of a file is named at once.
"""

import json
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.names import first_names
from leaderboard.submissions.parsing.flat import MAX_FAULTS, Fault, excerpt, printable, unique, whole_number

MAX_SHOWN = 80  # characters of a path
MAX_DEPTH = 200  # objects and lists in each other; Python itself gives up near 1,000
MAX_LINE_BYTES = 64 << 20
BYTES_A_VALUE = (
    50  # a file may hold one value for so many of the bytes that are allowed, and a million at least
)
LEAST_VALUES = 1_000_000
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
NOT_MARKS = bytes(set(range(256)) - set(b"[]{},"))
TOKEN = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)(?:"\s*(:?)|\\?\Z)|([\[\]{}])', re.DOTALL)
MAX_KEYS = 2_000  # of a head
KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number"}
KINDS |= {float: "a number", type(None): "null"}


class IssueLog:
    """The first faults in order, and the number of all."""

    def __init__(self, *, names_files: bool) -> None:
        self.names_files = names_files
        self.faults: list[Fault] = []
        self.n = 0

    def add(self, file: str, where: str, rule: str, *, value: object = None, row: int | None = None) -> None:
        """Take in what is wrong at a place of a file, which is named where there are several."""
        self.n += 1
        if len(self.faults) < MAX_FAULTS:
            shown = excerpt(value) if isinstance(value, str) else None
            if self.names_files and file:  # a long path is cut at its beginning, which files share
                end = file if len(file) <= MAX_SHOWN else f"…{file[1 - MAX_SHOWN :]}"
                rule += f" (in {excerpt(end)})"
            self.faults.append(Fault(row, on_one_line(excerpt(where)) or None, shown, on_one_line(rule)))


def on_one_line(text: str) -> str:
    """A text with line feeds spelled out too: no name of a file or a task begins a line of its own."""
    return printable(text).replace("\n", "U+000A")


class Unreadable(ValueError):
    """The text is not JSON, or more than is read."""


@dataclass(frozen=True, slots=True)
class Node:
    value: Any
    file: str
    where: str
    log: IssueLog
    row: int | None = None

    def get(self, key: str) -> "Node":
        """The member of that name; of None where there is no such member or this is no object."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(value, self.file, f"{self.where}.{key}" if self.where else key, self.log, self.row)

    def at(self, *keys: str) -> "Node":
        node = self
        for key in keys:
            node = node.get(key)
        return node

    def fault(self, rule: str) -> None:
        value = self.value if isinstance(self.value, str) else None
        self.log.add(self.file, self.where, rule, value=value, row=self.row)

    def listed(self, *, required: bool = False) -> list["Node"]:
        """The entries of a list; none of null, which is a fault where it is required, as is all else."""
        if isinstance(self.value, list):
            return [
                Node(value, self.file, f"{self.where}[{i}]", self.log, self.row)
                for i, value in enumerate(self.value)
            ]
        if self.value is not None or required:
            self.fault(f"a list is expected, not {self.kind}" if self.value is not None else "is missing")
        return []

    def objects(self, *, required: bool = False) -> Iterator["Node"]:
        """The entries of a list that are objects; another is a fault."""
        return (entry for entry in self.listed(required=required) if entry.is_object())

    def is_object(self) -> bool:
        if not isinstance(self.value, dict):
            self.fault(f"an object is expected, not {self.kind}")
        return isinstance(self.value, dict)

    def text(self) -> str | None:
        """The text, without white space around it; None of null and of an empty text; else a fault."""
        if isinstance(self.value, str):
            return self.value.strip() or None
        if self.value is not None:
            self.fault(f"a text is expected, not {self.kind}")
        return None

    def number(self) -> float | None:
        """The number; None of null; else a fault, as are NaN and infinities."""
        if self.value is None:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fault(f"a number is expected, not {self.kind}")
        elif isinstance(self.value, float) and not math.isfinite(self.value):
            self.fault(f"a number is expected, not {self.value}")
        else:
            return self.value
        return None

    @property
    def is_missing(self) -> bool:
        return self.value is None or (isinstance(self.value, float) and math.isnan(self.value))

    @property
    def kind(self) -> str:
        return KINDS.get(type(self.value), "a value of another kind")


def parse(data: bytes, *, n_bytes: int) -> Any:
    """Parse a document after looking at its depth and the number of its values, or raise Unreadable."""
    n_values = max(LEAST_VALUES, n_bytes // BYTES_A_VALUE)
    marks = STRING.sub(b"", data).translate(None, NOT_MARKS)
    if len(marks) > 2 * n_values:
        raise Unreadable(f"there are more than {n_values:,} values")
    brackets = np.frombuffer(marks.replace(b",", b""), np.uint8)
    steps = np.where(brackets & 4, -1, 1).astype(np.int8)  # of [ ] { } only the closing ones have this bit
    deepest = int(np.cumsum(steps, dtype=np.int32).max(initial=0))
    if deepest > MAX_DEPTH:
        raise Unreadable(f"objects and lists lie {deepest:,} deep; at most {MAX_DEPTH} are read")
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=unique, parse_int=whole_number)
    except UnicodeDecodeError as error:
        raise Unreadable(f"the text is not UTF-8: {error.reason} at byte {error.start:,}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno:,}, column {error.colno:,}"
        raise Unreadable(f"the text is not JSON: {error.msg}, {place}") from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the text is not JSON: {excerpt(str(error))}") from None


def lines(data: bytes, file: str, log: IssueLog, *, n_bytes: int) -> Iterator[Node]:
    """The objects of a file with one on each line; a line that is none is a fault."""
    for row, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        if len(line) > MAX_LINE_BYTES:
            log.add(file, "", f"a line has at most {MAX_LINE_BYTES:,} bytes", row=row)
            continue
        try:
            node = Node(parse(line, n_bytes=n_bytes), file, "", log, row)
        except Unreadable as error:
            log.add(file, "", str(error), row=row)
        else:
            if node.is_object():
                yield node


def keys(data: bytes) -> frozenset[str]:
    """Paths of the keys in the beginning of a document, as in ``config.agent_name``; lists leave no trace."""
    names: set[str] = set()
    stack: list[str] = []  # the key under which each open object stands; "" for a list
    last = ""
    for match in TOKEN.finditer(data.decode("utf-8", "replace")):
        text, colon, bracket = match.groups()
        if bracket in ("[", "{"):
            stack.append(last)
            last = ""
        elif bracket:
            last = "" if not stack else (stack.pop(), "")[1]
        elif colon:
            last = text
            if len(stack) <= 6:
                names.add(".".join([*filter(None, stack), text]))
        if len(names) > MAX_KEYS or len(stack) > MAX_DEPTH:
            break
    return frozenset(names)


def names_of(values: Collection[str], n: int = 5) -> str:
    return first_names([excerpt(name) for name in sorted(values)], n)
