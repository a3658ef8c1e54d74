"""A list of tasks: CSV with a header, or NDJSON; `name`, and optional `category`, `group` and `position`."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from analytics.flat_file import MAX_COLUMNS, MAX_FAULTS, Fault, name_rule, unique, whole_number
from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.flat import faulty_file

FIELDS = ("name", "category", "group", "position")
MAX_POSITION = 2**31 - 1
MAX_BYTES = 16 << 20
MAX_TASKS = 100_000


class ListedTask(NamedTuple):
    """`position` is None where the list does not say."""

    name: str
    category: str
    group: str
    position: int | None


class _FaultLog:
    """The first faults, and the number of all: a list has room for millions."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.n = 0

    def add(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self.n += 1
            if len(self.faults) < MAX_FAULTS:
                self.faults.append(fault)


def read_tasks(path: Path) -> list[ListedTask]:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _whole(path, f"the list is longer than {MAX_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _whole(path, f"the text is not UTF-8: {error.reason}") from None
    log, tasks = _FaultLog(), list[ListedTask]()
    for row, record in enumerate(_records(path, text), start=1):
        if row > MAX_TASKS:
            raise _whole(path, f"there are more than {MAX_TASKS:,} tasks")
        tasks.append(_task(row, record, log))
    first: dict[str, int] = {}
    for row, task in enumerate(tasks, start=1):
        if first.setdefault(task.name, row) != row and task.name:
            rule = f"the task stands in row {first[task.name]} too"
            log.add([Fault(row, "name", task.name[:80], rule)])
    if not tasks:
        raise _whole(path, "the list has no task")
    if log.n:
        raise faulty_file(path.name, log.faults, log.n)
    return tasks


def _whole(path: Path, rule: str, *, row: int | None = None, field: str | None = None) -> Faulty:
    return faulty_file(path.name, [Fault(row, field, None, rule)])


def _records(path: Path, text: str) -> Iterator[dict[str, Any]]:
    if text.lstrip().startswith("{"):
        for number, line in enumerate(filter(str.strip, io.StringIO(text, newline="\n")), start=1):
            try:
                record = json.loads(line, object_pairs_hook=unique, parse_int=whole_number)
            except (ValueError, RecursionError) as error:
                raise _whole(path, f"the line is not JSON: {error}", row=number) from None
            if not isinstance(record, dict):
                raise _whole(path, "the line is not an object", row=number)
            yield record
        return
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="(more)", strict=True)
    try:
        header = list(reader.fieldnames or [])
        if len(header) > MAX_COLUMNS:
            raise _whole(path, f"there are more than {MAX_COLUMNS} columns")
        if "name" not in header:
            raise _whole(path, "the column is missing", field="name")
        repeated = [field for field in FIELDS if header.count(field) > 1]
        if repeated:
            faults = [Fault(None, field, None, "several columns have this name") for field in repeated]
            raise faulty_file(path.name, faults)
        yield from reader
    except csv.Error as error:
        raise _whole(path, f"the text is no CSV: {error}") from None


def _task(row: int, record: dict[str, Any], log: _FaultLog) -> ListedTask:
    log.add(
        Fault(row, field, None, f"unknown field; known: {', '.join(FIELDS)}")
        for field in record
        if field not in FIELDS
    )
    texts = {field: "" if record.get(field) is None else record[field] for field in FIELDS[:3]}
    for field, text in texts.items():
        if text == "" and field == "name":
            log.add([Fault(row, field, None, "the field is empty")])
        elif text != "" and (rule := name_rule(text) if isinstance(text, str) else "a name is text"):
            log.add([Fault(row, field, str(text)[:80], rule)])
    name, category, group = map(str, texts.values())
    position = "" if record.get("position") is None else str(record["position"])
    if position.isascii() and position.isdigit() and len(position) <= 10 and int(position) <= MAX_POSITION:
        return ListedTask(name, category, group, int(position))
    if position:
        rule = f"a position is a whole number from 0 to {MAX_POSITION:,}"
        log.add([Fault(row, "position", position[:80], rule)])
    return ListedTask(name, category, group, None)
