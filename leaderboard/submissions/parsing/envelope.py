"""What stands around the rows of a submission, whether they come in a JSON body or in a file."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from heapq import nsmallest
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from analytics.flat_file import Fault, FlatFile, excerpt, name_rule, text_of
from leaderboard.catalog.models import Weights
from leaderboard.catalog.services import AGENT_OPTIONAL
from leaderboard.submissions.queries import LOG_LINKS

COLUMN = {"name": "agent", "scaffold": "scaffold", "model": "model"}  # of the flat file
IDS = {"replaces": "is the id of a submission", "assignment": "is the id of an assignment"}
LINKS = ("commit", *sorted(LOG_LINKS))
FIELDS = ("agent", "submitted_at", "run", "links", "embargo_until", *IDS)
MAX_EMBARGO = timedelta(days=90)
MAX_LINK_LENGTH = 2_000
N_STRANGE = 100  # unknown fields that are named of one object: a body has room for a million
NOTHING = (None, "")


class Body:
    """A delivery without faults, from a JSON body or a file: the `fields` of its envelope, and its rows.

    `sha256` is computed when asked for, from what was said: spacing, order of fields, boundaries of parts
    and compression make no other body. `notes` tell how the file was read.
    """

    def __init__(
        self,
        fields: Mapping[str, Any],
        flat: FlatFile,
        sha256: Callable[[], bytes],
        notes: Sequence[str] = (),
    ) -> None:
        self.flat, self.sha256, self.notes = flat, sha256, notes
        agent, embargo = fields.get("agent") or {}, fields.get("embargo_until")
        self.of_agent: dict[str, str] = {name: agent.get(name) or "" for name in AGENT_OPTIONAL}
        self.replaces = UUID(fields["replaces"]) if fields.get("replaces") else None
        self.assignment = UUID(fields["assignment"]) if fields.get("assignment") else None
        self.links: dict[str, str] = dict(fields.get("links") or {})
        self.embargo_until = None if embargo in NOTHING else moment(embargo)


def columns_of(fields: Mapping[str, Any]) -> dict[str, object]:
    agent = fields.get("agent")
    described = agent if isinstance(agent, Mapping) else {}
    columns = {column: described[key] for key, column in COLUMN.items() if described.get(key) not in NOTHING}
    return columns | {
        name: fields[name] for name in ("submitted_at", "run") if fields.get(name) not in NOTHING
    }


def envelope_faults(fields: Mapping[str, Any], *, required: Collection[str] = ()) -> list[Fault]:
    """Every fault of the envelope; `required` are fields that must be there, all of an agent's among them.

    Whether `run` and `submitted_at` are good is checked with the rows.
    """
    known, no_ids = (*FIELDS, *required), list[Fault]()
    for field, rule in IDS.items():
        value = fields.get(field)
        try:
            _ = value in NOTHING or UUID(value)
        except (ValueError, AttributeError, TypeError):
            no_ids.append(fault(field, value, rule))
    return [
        *_strange("", fields, known, "is not a field of a submission"),
        *(fault(name, None, "is required") for name in required if is_absent(name, fields.get(name))),
        *_agent(fields, is_required="agent" in required),
        *no_ids,
        *_links(fields),
        *_embargo(fields),
    ]


def is_absent(field: str, value: object) -> bool:
    return value in (*NOTHING, {}) or (field != "agent" and value == [])


def fault(field: str, value: object, rule: str) -> Fault:
    """Describe a fault of the envelope; a list or an object is not shown."""
    shown = value if isinstance(value, str) else text_of(value)
    return Fault(
        row=None, field=excerpt(field), value=excerpt(shown) if isinstance(shown, str) else None, rule=rule
    )


def moment(value: object) -> datetime | None:
    """In UTC: a date, which is its first moment, or a date and time, in UTC too without a zone.

    None: it is neither, or its zone carries it out of the years 1 to 9999.
    """
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        return at and (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _strange(where: str, value: Mapping[str, Any], known: Collection[str], rule: str) -> Iterator[Fault]:
    """Tell the fields of an object that are none, in alphabetical order, and how many more there are."""
    strange = value.keys() - set(known)
    for name in nsmallest(N_STRANGE, strange):
        yield fault(f"{where}{name}", value[name], rule)
    if len(strange) > N_STRANGE:
        rest = f"has {len(strange) - N_STRANGE:,} more fields that are not known"
        yield fault(where.rstrip(".") or "body", None, rest)


def _agent(fields: Mapping[str, Any], *, is_required: bool) -> Iterator[Fault]:
    agent = fields.get("agent")
    if not isinstance(agent, Mapping):
        if agent not in NOTHING:  # which is a fault of its own: absent
            yield fault("agent", agent, "must be an object with name, scaffold and model")
        return
    if is_required:
        yield from (fault(f"agent.{f}", None, "is required") for f in COLUMN if agent.get(f) in NOTHING)
    known = (*COLUMN, *AGENT_OPTIONAL)
    yield from _strange("agent.", agent, known, "is not a field of an agent")
    for field in (*COLUMN, "version", "organisation"):
        value = agent.get(field)
        if value not in NOTHING and (
            rule := name_rule(value) if isinstance(value, str) else "a name is text"
        ):
            yield fault(f"agent.{field}", value, rule)
    if agent.get("weights") not in (*NOTHING, *Weights.values):
        yield fault("agent.weights", agent["weights"], "must be open or closed")


def _links(fields: Mapping[str, Any]) -> Iterator[Fault]:
    links = {} if fields.get("links") is None else fields["links"]
    if not isinstance(links, Mapping):
        yield fault("links", links, f"must be an object with links named {', '.join(LINKS)}")
        return
    yield from _strange("links.", links, LINKS, f"is not a link; known are {', '.join(LINKS)}")
    for name, value in ((name, links[name]) for name in LINKS if name in links):
        if not (isinstance(value, str) and len(value) <= MAX_LINK_LENGTH and value.isprintable()):
            yield fault(f"links.{name}", value, "must be a text of at most 2,000 printable characters")
        elif not is_address(value):
            rule = "must begin with https:// or http://, name a host, and hold no account"
            yield fault(f"links.{name}", value, rule)


def is_address(text: str) -> bool:
    """Whether every browser reads the same host in it; one takes a backslash for a slash."""
    try:
        parts = urlsplit(text)
        named = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return bool(named) and parts.scheme in ("https", "http") and not set('@ \\"<>') & set(parts.netloc)


def _embargo(fields: Mapping[str, Any]) -> Iterator[Fault]:
    value = fields.get("embargo_until")
    if value not in NOTHING and moment(value) is None:
        yield fault(
            "embargo_until", value, "must be a date like 2026-09-30, or a date and time with its zone"
        )


def embargo_faults(until: datetime, as_of: datetime) -> Iterator[Fault]:
    """Tell an embargo that has passed, or is too long; not of a repeated delivery, which may come late."""
    value = until.isoformat()
    if until <= as_of:
        yield fault("embargo_until", value, f"does not lie after the delivery ({as_of:%Y-%m-%d %H:%M} UTC)")
    elif until > as_of + MAX_EMBARGO:
        rule = f"lies more than {MAX_EMBARGO.days} days after the delivery ({as_of:%Y-%m-%d})"
        yield fault("embargo_until", value, rule)
