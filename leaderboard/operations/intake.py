"""A submission through the API: one agent's outcomes, checked and stored in one transaction."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction
from django.db.models import Q

from leaderboard.accounts.models import ApiToken, User
from leaderboard.catalog.models import Agent, Benchmark, Duplicates, Policy, Review
from leaderboard.catalog.queries import operates, policy_in_force
from leaderboard.catalog.services import AgentDescription
from leaderboard.errors import Conflict, Faulty
from leaderboard.operations import asking, assignments
from leaderboard.operations.arrivals import tell_of_arrivals
from leaderboard.operations.corrections import NotYourSubmission, has_been_shown
from leaderboard.operations.models import Assignment
from leaderboard.studies import conditions
from leaderboard.studies.queries import active_subset, loaded_is_pass_fail
from leaderboard.submissions.delivering import Part, Placed, Terms, record
from leaderboard.submissions.models import LIVE, IdempotencyKey, Setting, Status, StatusChange, Submission
from leaderboard.submissions.parsing.body import Body, read_body
from leaderboard.submissions.parsing.flat import Fault, FlatFile
from leaderboard.submissions.queries import taking_back, withheld
from leaderboard.submissions.rows import KEY, OUTCOME
from leaderboard.submissions.services import append_changes

N_NAMED_KEYS = 100


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
    idempotency_key: str | None,
    as_of: datetime,
) -> Receipt:
    """Store a delivery, or refuse it whole; with a known idempotency key repeat the stored answer."""
    tasks = benchmark.tasks.values_list("name", flat=True)
    parsed = read_body(body, benchmark=benchmark.slug, tasks=list(tasks), as_of=as_of)
    with transaction.atomic():
        claim = None
        if idempotency_key is not None:
            claim, is_new = _claim(idempotency_key, benchmark, token.user, parsed.sha256, as_of)
            if not is_new:
                return Receipt(claim.body or {}, replayed=True)
        submission, content, changes = _deliver(parsed, benchmark=benchmark, token=token, as_of=as_of)
        if claim:
            IdempotencyKey.objects.filter(pk=claim.pk).update(submission=submission, status=201, body=content)
        tell_of_arrivals(benchmark=benchmark, changes=changes, as_of=as_of)
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


def _deliver(
    parsed: Body, *, benchmark: Benchmark, token: ApiToken, as_of: datetime
) -> tuple[Submission, dict[str, Any], list[StatusChange]]:
    assignments.check_open(benchmark)
    policy = policy_in_force(benchmark)
    by_operator = operates(token, benchmark)
    if not by_operator:
        _check_date(parsed.flat, policy, as_of)
    described = _described(parsed)
    agent = assignments.agent_of(
        benchmark=benchmark, described=described, by=token.user, by_operator=by_operator
    )
    placed = Placed.of(parsed.flat, benchmark=benchmark, agents={described.name: agent})
    replaces = _replaced(parsed.replaces, agent, by_operator=by_operator)
    part = _part(parsed, placed, replaces, policy, as_of)
    _check_not_delivered(agent, placed, part)
    shown = not by_operator and has_been_shown(agent)
    assignment = assignments.answered(
        agent=agent, named=parsed.assignment, replaces=part.replaces, as_of=as_of
    )
    terms = Terms(
        as_of=as_of,
        status=Status.WAITING if policy.review == Review.MANUAL else Status.ACCEPTED,
        by=token.user,
        token=token,
        asked=assignments.asked_by(assignment, benchmark),
        n_trials=assignments.n_counted(assignment),
        taken_back_after_board=bool(part.replaces) and shown,
        again_after_board=shown and _is_again(part, placed, policy),
    )
    submission, changes = record(part, placed=placed, terms=terms)
    if assignment:
        assignments.settle(
            assignment=assignment, submission=submission, outcomes=_standing(part, placed), as_of=as_of
        )
    return submission, _content(submission, part, placed, policy, changes, assignment), changes


def _part(parsed: Body, placed: Placed, replaces: list[Submission], policy: Policy, as_of: datetime) -> Part:
    return Part(
        rows=placed.rows,
        submitted_at=_submitted_at(parsed.flat),
        imprecise=bool(parsed.flat.imprecise[0]),
        backdated=_is_backdated(parsed.flat, policy, as_of),
        links=parsed.links,
        replaces=replaces,
    )


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


def _described(parsed: Body) -> AgentDescription:
    flat = parsed.flat
    return AgentDescription(
        flat.agents[0], flat.scaffolds[0], flat.models[0], parsed.version, parsed.organisation
    )


def _replaced(uuid: UUID | None, agent: Agent, *, by_operator: bool) -> list[Submission]:
    if uuid is None:
        return []
    theirs = Submission.objects.filter(Q(agent=agent) | Q(agent__merged_into=agent))
    if old := theirs.filter(uuid=uuid, status__in=LIVE).first():
        if old.loaded and not by_operator:
            raise NotYourSubmission
        return [old]
    raise NothingToReplace


def _check_not_delivered(agent: Agent, placed: Placed, part: Part) -> None:
    sha256 = placed.sha256(part.rows)
    if twin := Submission.objects.filter(agent=agent, content_sha256=sha256, status__in=LIVE).first():
        raise AlreadyDelivered(submission=str(twin.uuid))
    replaced = [0, *(old.pk for old in part.replaces)]
    if len(held := np.flatnonzero(~np.isin(placed.holder, replaced))):
        raise DuplicateOutcomes(n_keys=len(held), keys=_named_keys(held[:N_NAMED_KEYS], placed))


def _named_keys(held: np.ndarray, placed: Placed) -> list[dict[str, Any]]:
    flat, holders = placed.flat, placed.holder[held].tolist()
    uuids = dict(Submission.objects.filter(pk__in=holders).values_list("pk", "uuid"))
    return [
        {
            "row": row + 1,
            "task": flat.tasks[flat.task[row]],
            "trial": int(flat.trial[row]),
            **flat.settings[flat.setting[row]]._asdict(),
            "submission": str(uuids[holder]),
        }
        for row, holder in zip(held.tolist(), holders, strict=True)
    ]


def _content(
    submission: Submission,
    part: Part,
    placed: Placed,
    policy: Policy,
    changes: list[StatusChange],
    assignment: Assignment | None,
) -> dict[str, Any]:
    as_of = submission.received_at
    wanted = assignments.wanted_by(assignment, submission)
    return {
        "id": str(submission.uuid),
        "status": submission.status,
        "agent": submission.agent.name,
        "n_outcomes": submission.n_outcomes,
        "n_invalid": submission.n_invalid,
        "n_outside": asking.n_outside(part.rows, wanted),
        "warnings": [
            *(f"{alias} was read as {name}" for alias, name in placed.flat.aliases.items()),
            *assignments.lateness(assignment, as_of),
            *asking.lacking(
                _standing(part, placed),
                asking.names_asked(policy, wanted),
                policy.missing,
                unranked=wanted == submission.asked,
            ),
            *_uncounted(submission, part, placed, policy),
            *_doubts(submission, policy, changes),
            *_fractions(part, policy),
        ],
        "assignment": assignments.told(assignment, as_of),
    }


def _standing(part: Part, placed: Placed) -> pa.Table:
    """Task and condition of all that the agent has delivered, this included; a run is no condition."""
    kept = _kept(part, placed)
    every = pa.concat_tables([kept.select(KEY), part.rows.select(KEY)]).group_by(KEY).aggregate([])
    condition = {pk: str(facets[: Setting.N_CONDITION]) for pk, facets in placed.settings.items()}
    return every.append_column("condition", pa.array([condition[pk] for pk in every["setting"].to_pylist()]))


def _kept(part: Part, placed: Placed) -> pa.Table:
    """What stands for the agent from before."""
    replaced = pa.array([old.pk for old in part.replaces], pa.int32())
    return placed.stored.filter(pc.invert(pc.is_in(placed.stored["submission"], replaced)))


def _is_again(part: Part, placed: Placed, policy: Policy) -> bool:
    """Whether the agent has delivered such tasks before; any, where the last delivery counts alone."""
    before = _kept(part, placed)
    before = before.filter(pc.invert(before["free"]))
    if policy.duplicates == Duplicates.LATEST:
        return bool(before.num_rows)
    return not _ran(part.rows, placed).isdisjoint(_ran(before, placed))


def _ran(rows: pa.Table, placed: Placed) -> set[tuple[object, ...]]:
    """Task, prompt and judge of each row; a few outcomes at another temperature are a run like any other."""
    under = {pk: facets[:2] for pk, facets in placed.settings.items()}
    keys = zip(rows["task"].to_pylist(), rows["setting"].to_pylist(), strict=True)
    return {(task, *under[setting]) for task, setting in keys}


def _uncounted(submission: Submission, part: Part, placed: Placed, policy: Policy) -> list[str]:
    """Say which outcomes are of conditions that the board does not compare."""
    if not conditions.several(placed.settings.values()):
        return []
    columns = [*OUTCOME, "free"]
    new = part.rows.select(OUTCOME)
    new = new.append_column("free", pa.array(np.zeros(new.num_rows, bool)))
    return conditions.uncounted(
        pa.concat_tables([_kept(part, placed).select(columns), new], promote_options="permissive"),
        agent=submission.agent_id,
        policy=policy,
        subset=active_subset(policy.benchmark),
        tasks=asking.names_asked(policy, None),
        asked=submission.asked,
        settings=placed.settings,
    )


def _doubts(submission: Submission, policy: Policy, changes: list[StatusChange]) -> Iterator[str]:
    """Say what keeps the outcomes from counting as they stand."""
    if submission.n_invalid:
        yield (
            f"{submission.n_invalid:,} invalid outcomes count as failures until an operator confirms that"
            " the harness failed"
        )
    after_board = {change.status for change in changes if change.after_board}
    if after_board.intersection(taking_back(policy)) or submission.agent_id in withheld(
        policy.benchmark, policy=policy
    ):
        latest = (
            " (of its deliveries the last counts alone)" if policy.duplicates == Duplicates.LATEST else ""
        )
        yield (
            f"outcomes of this agent were taken back after a board had shown it{latest}: it is listed "
            "without a rank until an operator approves"
        )
    elif after_board and policy.duplicates == Duplicates.MEAN and taking_back(policy):
        yield (
            "tasks of this agent were delivered before, and a board has shown it since: both runs count, and "
            "the board flags the agent for the operator"
        )


def _fractions(part: Part, policy: Policy) -> Iterator[str]:
    """Say that outcomes lie between 0 and 1, where those that an operator loaded are passes and failures."""
    value = part.rows["value"].to_numpy()
    n_graded = int(np.count_nonzero((value > 0) & (value < 1)))
    if n_graded and loaded_is_pass_fail(policy.benchmark):
        yield (
            f"{n_graded:,} outcomes lie between 0 and 1; all that an operator loaded here are 0 or 1: the "
            "board flags the agent for the operator (a mean of several runs says so by n_averaged)"
        )
