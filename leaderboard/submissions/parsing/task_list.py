"""A list of tasks: CSV with a header, or NDJSON; `name`, and optional `category`, `group` and `position`."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from analytics.flat_file import MAX_FAULTS, Fault, name_rule
from leaderboard.errors import Faulty

FIELDS = ("name", "category", "group", "position")
MAX_POSITION = 2**31 - 1
MAX_BYTES = 16 << 20


class ListedTask(NamedTuple):
    """`position` is None where the list does not say."""

    name: str
    category: str
    group: str
    position: int | None


def read_tasks(path: Path) -> list[ListedTask]:
    """Read and check the whole list, or raise Faulty with every fault at once."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise _faulty(path, [Fault(None, None, None, f"the list is longer than {MAX_BYTES >> 20} MiB")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _faulty(path, [Fault(None, None, None, f"the text is not UTF-8: {error.reason}")]) from None
    faults: list[Fault] = []
    tasks = [_task(row, record, faults) for row, record in enumerate(_records(path, text), start=1)]
    faults += _repeats(tasks)
    if not tasks:
        faults.append(Fault(None, None, None, "the list has no task"))
    if faults:
        raise _faulty(path, faults)
    return tasks


def _faulty(path: Path, faults: list[Fault]) -> Faulty:
    number = "a fault" if len(faults) == 1 else f"{len(faults):,} faults"
    message = f"{path.name} has {number}; nothing was stored."
    return Faulty(message, faults=tuple(faults[:MAX_FAULTS]), n_faults=len(faults))


def _records(path: Path, text: str) -> list[dict[str, Any]]:
    if text.lstrip().startswith("{"):
        lines = enumerate(text.split("\n"), start=1)
        return [_object(path, number, line) for number, line in lines if line.strip()]
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="(more)", strict=True)
    try:
        records = list(reader)
    except csv.Error as error:
        raise _faulty(path, [Fault(None, None, None, f"the text is no CSV: {error}")]) from None
    header = reader.fieldnames or []
    if "name" not in header:
        raise _faulty(path, [Fault(None, "name", None, "the column is missing")])
    if repeated := [field for field in FIELDS if header.count(field) > 1]:
        raise _faulty(
            path, [Fault(None, field, None, "several columns have this name") for field in repeated]
        )
    return records


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _faulty(path, [Fault(number, None, None, f"the line is not JSON: {error}")]) from None
    if not isinstance(record, dict):
        raise _faulty(path, [Fault(number, None, None, "the line is not an object")])
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a field stands in it twice")
    return found


def _task(row: int, record: dict[str, Any], faults: list[Fault]) -> ListedTask:
    faults += [
        Fault(row, field, None, f"is not a field of a task; known are {', '.join(FIELDS)}")
        for field in record
        if field not in FIELDS
    ]
    texts = {field: "" if record.get(field) is None else record[field] for field in FIELDS[:3]}
    faults += list(_name_faults(row, texts))
    name, category, group = map(str, texts.values())
    return ListedTask(name, category, group, _position(row, record.get("position"), faults))


def _name_faults(row: int, texts: dict[str, Any]) -> Iterator[Fault]:
    for field, text in texts.items():
        if text == "" and field == "name":
            yield Fault(row, field, None, "the field is empty")
        elif text != "" and (rule := name_rule(text) if isinstance(text, str) else "a name is text"):
            yield Fault(row, field, str(text)[:80], rule)


def _position(row: int, said: object, faults: list[Fault]) -> int | None:
    if said is None or said == "":
        return None
    text = str(said)
    if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= MAX_POSITION:
        return int(text)
    faults.append(
        Fault(row, "position", text[:80], f"a position is a whole number from 0 to {MAX_POSITION:,}")
    )
    return None


def _repeats(tasks: list[ListedTask]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for row, task in enumerate(tasks, start=1):
        if first.setdefault(task.name, row) != row and task.name:
            yield Fault(row, "name", task.name[:80], f"the task stands in row {first[task.name]} too")
