"""The JSON body of a submission: an envelope around the rows of one agent."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest
from typing import Any
from uuid import UUID

from rapidfuzz import process

from analytics.flat_file import (
    MAX_FAULTS,
    SUBMISSION,
    Fault,
    FlatFile,
    FlatFileError,
    excerpt,
    from_records,
    name_rule,
    text_of,
)
from leaderboard.errors import Faulty

COLUMN = {"name": "agent", "scaffold": "scaffold", "model": "model"}  # of the flat file
AGENT_OPTIONAL = ("version", "organisation")
REQUIRED = ("agent", "outcomes")
IDS = {"replaces": "is the id of a submission", "assignment": "is the id of an assignment"}
OPTIONAL = ("submitted_at", "run", "links", *IDS)
LINKS = ("commit", "logs")
MAX_ROWS = 20_000
MAX_LINK_LENGTH = 2_000
N_EXPLAINED = 20  # unknown tasks for which near ones are looked for, which takes time
N_STRANGE = 100  # fields that are none, told of one object: a body has room for a million
NOTHING = (None, "")
NO_SUCH_TASK = "is not a task of this benchmark"


@dataclass(frozen=True)
class Body:
    """A body without faults. `sha256` is that of its fields: spacing and order make no other body."""

    sha256: bytes
    flat: FlatFile
    version: str
    organisation: str
    replaces: UUID | None
    assignment: UUID | None
    links: dict[str, str]


def read_body(body: object, *, benchmark: str, tasks: Collection[str], as_of: datetime) -> Body:
    """Check the whole body and return it, or raise Faulty with every fault at once.

    `tasks` are the names of the benchmark's tasks; for an unknown one near names are told. A body without
    `submitted_at` is dated `as_of`, the time of its delivery.
    """
    if not isinstance(body, Mapping):
        raise Faulty(
            "The body has faults; nothing was stored.", faults=(_fault("body", body, "is a JSON object"),)
        )
    envelope = [*_unknown(body), *_absent(body), *_agent(body), *_ids(body), *_links(body)]
    unknown_tasks = _unknown_tasks(body.get("outcomes"), tasks)
    flat, row_faults, n_faults = _rows(body, benchmark=benchmark, as_of=as_of)
    if envelope or unknown_tasks or flat is None:
        told = {(fault.field, fault.row) for fault in envelope}
        for key, column in COLUMN.items():
            if told & {("agent", None), (f"agent.{key}", None)}:
                told.add((column, None))
        new = [fault for fault in row_faults if (fault.field, fault.row) not in told]
        every = sorted([*envelope, *new, *unknown_tasks], key=lambda fault: fault.row or 0)
        raise Faulty(
            "The body has faults; nothing was stored.",
            faults=tuple(every[:MAX_FAULTS]),
            n_faults=len(every) + n_faults - len(row_faults),
        )
    agent = body["agent"]
    return Body(
        sha256=_sha256(body),
        flat=flat,
        version=agent.get("version") or "",
        organisation=agent.get("organisation") or "",
        replaces=UUID(body["replaces"]) if body.get("replaces") else None,
        assignment=UUID(body["assignment"]) if body.get("assignment") else None,
        links=dict(body.get("links") or {}),
    )


def _fault(field: str, value: object, rule: str) -> Fault:
    """Describe a fault of the envelope; a list or an object is not shown."""
    shown = value if isinstance(value, str) else text_of(value)
    return Fault(
        row=None, field=excerpt(field), value=excerpt(shown) if isinstance(shown, str) else None, rule=rule
    )


def _sha256(body: Mapping[str, Any]) -> bytes:
    """Row by row: the text of all rows at once takes many times the memory of the body."""
    digest = hashlib.sha256()
    for part in ({**body, "outcomes": len(body["outcomes"])}, *body["outcomes"]):
        digest.update(json.dumps(part, sort_keys=True).encode() + b"\n")
    return digest.digest()


def _strange(where: str, found: Mapping[str, Any], known: Collection[str], rule: str) -> Iterator[Fault]:
    """Tell the fields of an object that are none, in alphabetical order, and how many more there are."""
    strange = found.keys() - set(known)
    for name in nsmallest(N_STRANGE, strange):
        yield _fault(f"{where}{name}", found[name], rule)
    if len(strange) > N_STRANGE:
        rest = f"has {len(strange) - N_STRANGE:,} more fields that are not known"
        yield _fault(where.rstrip(".") or "body", None, rest)


def _unknown(body: Mapping[str, Any]) -> list[Fault]:
    known = (*REQUIRED, *OPTIONAL)
    return [*_strange("", body, known, "is not a field of a submission")]


def _absent(body: Mapping[str, Any]) -> list[Fault]:
    return [_fault(field, None, "is required") for field in REQUIRED if body.get(field) in (None, "", [], {})]


def _agent(body: Mapping[str, Any]) -> list[Fault]:
    agent = body.get("agent")
    if not isinstance(agent, Mapping):
        told = agent in (*NOTHING, [])  # as absent
        return [] if told else [_fault("agent", agent, "is an object with name, scaffold and model")]
    faults = [_fault(f"agent.{f}", None, "is required") for f in COLUMN if agent.get(f) in NOTHING]
    known = (*COLUMN, *AGENT_OPTIONAL)
    faults += _strange("agent.", agent, known, "is not a field of an agent")
    for field in known:
        value = agent.get(field)
        if value not in NOTHING and (
            rule := name_rule(value) if isinstance(value, str) else "a name is text"
        ):
            faults.append(_fault(f"agent.{field}", value, rule))
    return faults


def _ids(body: Mapping[str, Any]) -> list[Fault]:
    faults = []
    for field, rule in IDS.items():
        value = body.get(field)
        try:
            _ = value is None or UUID(value)
        except (ValueError, AttributeError, TypeError):
            faults.append(_fault(field, value, rule))
    return faults


def _links(body: Mapping[str, Any]) -> list[Fault]:
    links = {} if body.get("links") is None else body["links"]
    if not isinstance(links, Mapping):
        return [_fault("links", links, f"is an object with {' and '.join(LINKS)}")]
    faults = [*_strange("links.", links, LINKS, f"is not a link; known are {', '.join(LINKS)}")]
    for name, value in ((name, links[name]) for name in LINKS if name in links):
        if not (isinstance(value, str) and len(value) <= MAX_LINK_LENGTH and value.isprintable()):
            faults.append(_fault(f"links.{name}", value, "is a text of at most 2,000 printable characters"))
        elif not value.startswith(("https://", "http://")):
            faults.append(_fault(f"links.{name}", value, "begins with https:// or http://"))
    return faults


def _unknown_tasks(outcomes: object, tasks: Collection[str]) -> list[Fault]:
    known, rules = set(tasks), dict[str, str]()
    faults = []
    listed = outcomes if isinstance(outcomes, list) and len(outcomes) <= MAX_ROWS else []
    for row, outcome in enumerate(listed, start=1):
        name = text_of(outcome.get("task", outcome.get("task_id"))) if isinstance(outcome, Mapping) else None
        if isinstance(name, str) and name not in known and name_rule(name) is None:
            if name not in rules:
                rules[name] = NO_SUCH_TASK + (_near(name, known) if len(rules) < N_EXPLAINED else "")
            faults.append(Fault(row=row, field="task", value=name, rule=rules[name]))
    return faults


def _near(name: str, known: Collection[str]) -> str:
    matches = process.extract(name, known, limit=None, score_cutoff=80)
    near = sorted((-score, match) for match, score, _ in matches)[:3]
    return f"; near it are {', '.join(repr(match) for _, match in near)}" if near else ""


def _rows(
    body: Mapping[str, Any], *, benchmark: str, as_of: datetime
) -> tuple[FlatFile | None, tuple[Fault, ...], int]:
    outcomes = body.get("outcomes")
    if outcomes in (*NOTHING, [], {}):
        return None, (), 0  # told as absent
    if not isinstance(outcomes, list):
        return None, (_fault("outcomes", outcomes, "is a list of at least one outcome"),), 1
    if len(outcomes) > MAX_ROWS:
        return None, (_fault("outcomes", len(outcomes), f"is a list of at most {MAX_ROWS:,} outcomes"),), 1
    agent = body.get("agent")
    described = agent if isinstance(agent, Mapping) else {}
    constants = {
        "benchmark": benchmark,
        **{column: described.get(key) for key, column in COLUMN.items()},
        "submitted_at": as_of if body.get("submitted_at") in NOTHING else body["submitted_at"],
    }
    if body.get("run") is not None:
        constants["run"] = body["run"]
    try:
        return from_records(outcomes, constants=constants, as_of=as_of, limits=SUBMISSION), (), 0
    except FlatFileError as error:
        return None, error.faults, error.n_faults
