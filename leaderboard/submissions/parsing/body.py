"""The JSON body of a submission: an envelope around the rows of one agent."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from rapidfuzz import process

from analytics.flat_file import MAX_FAULTS, SUBMISSION, Fault, FlatFile, FlatFileError, from_records
from leaderboard.errors import Faulty
from leaderboard.submissions.parsing.envelope import (
    COLUMN,
    NOTHING,
    Envelope,
    columns_of,
    envelope_of,
    fault,
    faults_of,
)

REQUIRED = ("agent", "outcomes")
MAX_ROWS = SUBMISSION.n_rows
N_EXPLAINED = 20  # unknown tasks for which near ones are looked for, which takes time
NEAR = 80  # of 100
NO_SUCH_TASK = "this benchmark has no such task"


class KnownTasks:
    """Says of a name why it is no task, with the tasks near the first few such names; None: it is one."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)
        self._explained: dict[str, str] = {}

    def __call__(self, name: str) -> str | None:
        if name in self.names:
            return None
        if name not in self._explained and len(self._explained) < N_EXPLAINED:
            matches = process.extract(name, self.names, limit=None, score_cutoff=NEAR)
            near = sorted((-score, match) for match, score, _ in matches)[:3]
            named = " or ".join(f'"{match}"' for _, match in near)
            hint = f"; did you mean {named}?" if near else ""
            self._explained[name] = NO_SUCH_TASK + hint
        return self._explained.get(name, NO_SUCH_TASK)


@dataclass(frozen=True)
class Body:
    """A delivery without faults, from a JSON body or a file.

    `sha256` is computed when asked for, from what was said: spacing, order of fields, boundaries of parts
    and compression make no other body. `notes` tell how the file was read.
    """

    sha256: Callable[[], bytes]
    flat: FlatFile
    envelope: Envelope
    notes: tuple[str, ...] = ()


def read_body(body: object, *, benchmark: str, tasks: Iterable[str], as_of: datetime) -> Body:
    """Check the whole body and return it, or raise Faulty with every fault at once.

    `tasks` are the names of the benchmark's tasks; for an unknown one near ones are named. A body without
    `submitted_at` is dated `as_of`, the time of its delivery.
    """
    if not isinstance(body, Mapping):
        raise Faulty(
            "The body has faults; nothing was stored.", faults=(fault("body", body, "is a JSON object"),)
        )
    envelope = faults_of(body, as_of=as_of, required=REQUIRED)
    flat, row_faults, n_faults = _rows(body, benchmark=benchmark, tasks=tasks, as_of=as_of)
    if envelope or flat is None:
        raise together(envelope, row_faults, n_faults)
    return Body(sha256=partial(_sha256, body), flat=flat, envelope=envelope_of(body))


def together(envelope: list[Fault], rows: Iterable[Fault], n_of_rows: int) -> Faulty:
    """Tell the faults of the envelope and of the rows, what both tell once; the latter may be more."""
    places, rows = {(one.field, one.row) for one in envelope}, list(rows)
    for key, column in COLUMN.items():
        if places & {("agent", None), (f"agent.{key}", None)}:
            places.add((column, None))
    new = [one for one in rows if (one.field, one.row) not in places]
    every = sorted([*envelope, *new], key=lambda one: one.row or 0)
    return Faulty(
        "The delivery has faults; nothing was stored.",
        faults=tuple(every[:MAX_FAULTS]),
        n_faults=len(every) + n_of_rows - len(rows),
    )


def _sha256(body: Mapping[str, Any]) -> bytes:
    """Row by row: the text of all rows at once takes many times the memory of the body."""
    digest = hashlib.sha256()
    for part in ({**body, "outcomes": len(body["outcomes"])}, *body["outcomes"]):
        digest.update(json.dumps(part, sort_keys=True).encode() + b"\n")
    return digest.digest()


def _rows(
    body: Mapping[str, Any], *, benchmark: str, tasks: Iterable[str], as_of: datetime
) -> tuple[FlatFile | None, tuple[Fault, ...], int]:
    outcomes = body.get("outcomes")
    if outcomes in (*NOTHING, [], {}):
        return None, (), 0  # a fault of its own: absent
    if not isinstance(outcomes, list):
        return None, (fault("outcomes", outcomes, "is a list of at least one outcome"),), 1
    if len(outcomes) > MAX_ROWS:
        rule = f"is a list of at most {MAX_ROWS:,} outcomes; send more as a file"
        return None, (fault("outcomes", len(outcomes), rule),), 1
    absent = dict.fromkeys(COLUMN.values())
    constants = {"benchmark": benchmark, "submitted_at": as_of, **absent, **columns_of(body)}
    try:
        known = KnownTasks(tasks)
        flat = from_records(outcomes, constants=constants, as_of=as_of, limits=SUBMISSION, strange_task=known)
    except FlatFileError as error:
        return None, error.faults, error.n_faults
    return flat, (), 0
