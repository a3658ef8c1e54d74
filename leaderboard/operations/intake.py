"""A submission through the API: one agent's outcomes, checked and stored in one transaction."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction

from leaderboard.accounts.models import ApiToken, Scope, User
from leaderboard.catalog.models import Agent, Benchmark, Policy, Review, Role
from leaderboard.catalog.queries import policy_in_force, role_of
from leaderboard.catalog.services import AgentDescription, ensure_agents
from leaderboard.errors import Conflict, Faulty, Forbidden, Frozen
from leaderboard.submissions.models import LIVE, IdempotencyKey, Status, StatusChange, Submission
from leaderboard.submissions.parsing.body import Body, read_body
from leaderboard.submissions.parsing.flat import Fault, FlatFile
from leaderboard.submissions.queries import live_outcomes
from leaderboard.submissions.rows import KEY, content_sha256, place
from leaderboard.submissions.services import (
    append_changes,
    change_status,
    ensure_settings,
    record_submission,
)

N_NAMED_KEYS = 100


class NotYourAgent(Forbidden):
    """This agent belongs to another account; its owner or an operator can add to it."""


class AlreadyDelivered(Conflict):
    """A live submission holds exactly these outcomes."""


class DuplicateOutcomes(Conflict):
    """Live submissions hold outcomes of these keys. Name the submission that this one `replaces`, or give
    the outcomes another `run` label.
    """


class KeyReused(Conflict):
    """This Idempotency-Key came before with another body."""


class NothingToReplace(Conflict):
    """`replaces` must name a live submission of the same agent."""


@dataclass(frozen=True)
class Receipt:
    """The answer to a delivery. `replayed`: it was given before and nothing happened now."""

    content: dict[str, Any]
    replayed: bool


def submit(
    *,
    benchmark: Benchmark,
    token: ApiToken,
    body: object,
    body_sha256: bytes,
    idempotency_key: str | None,
    as_of: datetime,
) -> Receipt:
    """Store a delivery, or refuse it whole; with a known idempotency key repeat the stored answer."""
    tasks = benchmark.tasks.values_list("name", flat=True)
    parsed = read_body(body, benchmark=benchmark.slug, tasks=list(tasks), as_of=as_of)
    with transaction.atomic():
        if idempotency_key is None:
            _, content, changes = _deliver(parsed, benchmark=benchmark, token=token, as_of=as_of)
        else:
            claim, is_new = _claim(idempotency_key, benchmark, token.user, body_sha256, as_of)
            if not is_new:
                return Receipt(claim.body or {}, replayed=True)
            submission, content, changes = _deliver(parsed, benchmark=benchmark, token=token, as_of=as_of)
            _keep_answer(claim, submission, content)
        append_changes(benchmark=benchmark, changes=changes)
    return Receipt(content, replayed=False)


def _claim(
    key: str, benchmark: Benchmark, user: User, sha256: bytes, as_of: datetime
) -> tuple[IdempotencyKey, bool]:
    """Take the key, or wait for the twin that took it and return its answer."""
    claim, is_new = IdempotencyKey.objects.get_or_create(
        user=user, benchmark=benchmark, key=key, defaults={"request_sha256": sha256, "created_at": as_of}
    )
    if not is_new and bytes(claim.request_sha256) != sha256:
        raise KeyReused
    return claim, is_new


def _keep_answer(claim: IdempotencyKey, submission: Submission, content: dict[str, Any]) -> None:
    IdempotencyKey.objects.filter(pk=claim.pk).update(submission=submission, status=201, body=content)


def _deliver(
    parsed: Body, *, benchmark: Benchmark, token: ApiToken, as_of: datetime
) -> tuple[Submission, dict[str, Any], list[StatusChange]]:
    if benchmark.frozen_at:
        raise Frozen(f"Intake of this benchmark is frozen: {benchmark.frozen_reason}")
    policy = policy_in_force(benchmark)
    operates = Scope.OPERATE in token.scopes and role_of(token.user, benchmark) == Role.OPERATOR
    if not operates:
        _check_date(parsed.flat, policy, as_of)
    agent = _agent_of(parsed, benchmark, token.user, operates)
    rows, sha256 = _placed(parsed.flat, benchmark, agent)
    old = _replaced(parsed.replaces, agent)
    _check_not_delivered(agent, sha256, rows, old, parsed.flat)
    submission = _submission(parsed, agent, policy, token, as_of)
    submission.content_sha256, submission.replaces = sha256, old
    changes: list[StatusChange] = []
    if old and submission.status == Status.ACCEPTED:
        reason = f"by {submission.uuid}"
        changes += change_status(
            submissions=[old], status=Status.SUPERSEDED, at=as_of, by=token.user, reason=reason
        )
    changes.append(record_submission(submission=submission, rows=rows, by=token.user))
    return submission, _content(submission, parsed.flat), changes


def _placed(flat: FlatFile, benchmark: Benchmark, agent: Agent) -> tuple[pa.Table, bytes]:
    """The rows with their ids, and their hash, which knows names only."""
    task_ids = dict(benchmark.tasks.values_list("name", "id"))
    setting_ids = ensure_settings(benchmark=benchmark, settings=flat.settings)
    rows = place(
        flat,
        agents=[agent.pk],
        tasks=[task_ids[name] for name in flat.tasks],
        settings=[setting_ids[tuple(setting)] for setting in flat.settings],
    )
    sha256 = content_sha256(
        rows,
        task_names={pk: name for name, pk in task_ids.items()},
        settings={pk: facets for facets, pk in setting_ids.items()},
    )
    return rows, sha256


def _check_date(flat: FlatFile, policy: Policy, as_of: datetime) -> None:
    if _is_backdated(flat, policy, as_of):
        rule = (
            f"lies more than {policy.backdating_days} days before this delivery; older dates need an operator"
        )
        fault = Fault(row=None, field="submitted_at", value=str(flat.submitted_at[0]), rule=rule)
        raise Faulty("The body has faults; nothing was stored.", faults=(fault,))


def _is_backdated(flat: FlatFile, policy: Policy, as_of: datetime) -> bool:
    return _submitted_at(flat) < as_of - timedelta(days=policy.backdating_days)


def _submitted_at(flat: FlatFile) -> datetime:
    return flat.submitted_at[0].item().replace(tzinfo=UTC)


def _agent_of(parsed: Body, benchmark: Benchmark, user: User, operates: bool) -> Agent:
    flat = parsed.flat
    described = AgentDescription(
        flat.agents[0], flat.scaffolds[0], flat.models[0], parsed.version, parsed.organisation
    )
    agent = ensure_agents(benchmark=benchmark, descriptions=[described], owner=user)[described.name]
    if agent.owner != user and not operates:
        raise NotYourAgent
    return agent


def _replaced(uuid: UUID | None, agent: Agent) -> Submission | None:
    if uuid is None:
        return None
    if old := Submission.objects.filter(uuid=uuid, agent=agent, status__in=LIVE).first():
        return old
    raise NothingToReplace


def _check_not_delivered(
    agent: Agent, sha256: bytes, rows: pa.Table, old: Submission | None, flat: FlatFile
) -> None:
    if twin := Submission.objects.filter(agent=agent, content_sha256=sha256, status__in=LIVE).first():
        raise AlreadyDelivered(submission=str(twin.uuid))
    live = live_outcomes([agent.pk])
    live = live.filter(pc.invert(live["free"]))
    if old:
        live = live.filter(pc.not_equal(live["submission"], old.pk))
    held = (
        rows.select(KEY)
        .append_column("row", pa.array(range(rows.num_rows)))
        .join(live.select([*KEY, "submission"]), keys=KEY, join_type="inner")
    )
    if held.num_rows:
        raise DuplicateOutcomes(n_keys=held.num_rows, keys=_named_keys(held.sort_by("row"), flat))


def _named_keys(held: pa.Table, flat: FlatFile) -> list[dict[str, Any]]:
    first = held.slice(0, N_NAMED_KEYS).to_pylist()
    uuids = dict(
        Submission.objects.filter(pk__in={key["submission"] for key in first}).values_list("pk", "uuid")
    )
    return [
        {
            "row": key["row"] + 1,
            "task": flat.tasks[flat.task[key["row"]]],
            "trial": key["trial"],
            **flat.settings[flat.setting[key["row"]]]._asdict(),
            "submission": str(uuids[key["submission"]]),
        }
        for key in first
    ]


def _submission(parsed: Body, agent: Agent, policy: Policy, token: ApiToken, as_of: datetime) -> Submission:
    flat = parsed.flat
    return Submission(
        agent=agent,
        status=Status.WAITING if policy.review == Review.MANUAL else Status.ACCEPTED,
        submitted_by=token.user,
        token=token,
        submitted_at=_submitted_at(flat),
        imprecise=bool(flat.imprecise[0]),
        received_at=as_of,
        backdated=_is_backdated(flat, policy, as_of),
        n_outcomes=flat.n_rows,
        n_invalid=flat.n_rows - int(flat.valid.sum()),
        links=parsed.links,
    )


def _content(submission: Submission, flat: FlatFile) -> dict[str, Any]:
    return {
        "id": str(submission.uuid),
        "status": submission.status,
        "agent": submission.agent.name,
        "n_outcomes": submission.n_outcomes,
        "n_invalid": submission.n_invalid,
        "warnings": [f"{alias} was read as {name}" for alias, name in flat.aliases.items()],
    }
