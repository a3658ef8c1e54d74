"""A submission through the API, as JSON or as a file: one agent's outcomes, stored in one transaction."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from django.db import transaction

from leaderboard.accounts.models import ApiToken
from leaderboard.catalog.models import Agent, Benchmark, Duplicates, Policy, Review
from leaderboard.catalog.queries import operates, policy_in_force
from leaderboard.catalog.services import AgentDescription
from leaderboard.errors import Conflict, Faulty
from leaderboard.notify import wake
from leaderboard.operations import asking, assignments, checking, naming, quotas, reviewing
from leaderboard.operations.corrections import not_your_submission
from leaderboard.operations.delivered import DeliveredRows, split_replaced
from leaderboard.operations.events import tell_of_arrivals
from leaderboard.operations.file_metadata import FileMetadata
from leaderboard.operations.models import Assignment, Mode
from leaderboard.operations.queries import has_been_shown
from leaderboard.studies.answers import words
from leaderboard.studies.receipt import MAX_VOICES, uncounted
from leaderboard.studies.staged_steps import WalkState
from leaderboard.submissions.models import LIVE, IdempotencyKey, Judged, Status, StatusChange, Submission
from leaderboard.submissions.parsing.envelope import Body, embargo_faults
from leaderboard.submissions.parsing.files import Form, UploadedPart, read_body, read_upload
from leaderboard.submissions.parsing.flat import Fault
from leaderboard.submissions.queries import full_runs, submissions_of, taking_back, withheld
from leaderboard.submissions.services import MatchedRows, append_changes, draft, propose_changes, record

N_NAMED_KEYS = 100
ANY_FORM = Form()
IN_BACKGROUND = (
    "the checks of so many outcomes take a while: it counts, or waits for review, once they are done"
)


@dataclass(frozen=True)
class Receipt:
    """The answer to a delivery; `replayed`: it was given before. `left`: of the quotas, if any."""

    content: dict[str, Any]
    replayed: bool
    left: quotas.Quotas | None = None


def submit(
    *,
    benchmark: Benchmark,
    token: ApiToken,
    body: object,
    idempotency_key: str | None,
    as_of: datetime,
    dry_run: bool = False,
) -> Receipt:
    """Store a delivery, or refuse it whole; with a known idempotency key repeat the stored answer.

    A dry run says what would be stored, by the same rules, and stores nothing.
    """
    tasks = _tasks(benchmark)
    parsed = read_body(body, benchmark=benchmark.slug, tasks=list(tasks), as_of=as_of)
    delivery = _Delivery(parsed, benchmark, tasks, token, as_of)
    return delivery.tried() if dry_run else delivery.stored(idempotency_key)


def submit_file(
    *,
    benchmark: Benchmark,
    token: ApiToken,
    upload: UploadedPart,
    fields: Mapping[str, Any],
    idempotency_key: str | None,
    as_of: datetime,
    dry_run: bool = False,
    form: Form = ANY_FORM,
) -> Receipt:
    """Do the same with the rows of a file, and the envelope's `fields` beside it."""
    tasks = _tasks(benchmark)
    parsed = read_upload(upload, fields, benchmark=benchmark, tasks=list(tasks), form=form, as_of=as_of)
    delivery = _Delivery(parsed, benchmark, tasks, token, as_of)
    return delivery.tried() if dry_run else delivery.stored(idempotency_key)


def _tasks(benchmark: Benchmark) -> dict[str, int]:
    return dict(benchmark.tasks.values_list("name", "id"))


class _Delivery:
    """One delivery on its way in; the rows are let go of once they are stored."""

    def __init__(
        self, parsed: Body, benchmark: Benchmark, tasks: Mapping[str, int], token: ApiToken, as_of: datetime
    ) -> None:
        self.parsed, self.benchmark, self.tasks = parsed, benchmark, tasks
        self.token, self.as_of = token, as_of
        self.metadata = FileMetadata(parsed.flat)
        dated = np.flatnonzero(~np.isnat(parsed.flat.submitted_at))  # some row has a date
        self.first = int(dated[np.argmin(parsed.flat.submitted_at[dated])])
        self.submitted_at: datetime = parsed.flat.submitted_at[self.first].item().replace(tzinfo=UTC)

    def stored(self, idempotency_key: str | None) -> Receipt:
        with transaction.atomic():
            claim = None
            if idempotency_key is not None:
                claim, is_new = self._claim(idempotency_key)
                if not is_new:
                    return Receipt(claim.body or {}, replayed=True)
            submission, receipt, changes = self._deliver(dry_run=False)
            if claim:
                stored = IdempotencyKey.objects.filter(pk=claim.pk)
                stored.update(submission=submission, status=201, body=receipt.content)
                # to the letter what a repetition gets
                receipt = replace(receipt, content=stored.get().body or {})
            if submission.status == Status.CHECKING:
                wake()
            tell_of_arrivals(benchmark=self.benchmark, changes=changes, as_of=self.as_of)
            append_changes(benchmark=self.benchmark, changes=changes)
        return receipt

    def tried(self) -> Receipt:
        with transaction.atomic():
            _, receipt, _ = self._deliver(dry_run=True)
            transaction.set_rollback(True)
        return replace(receipt, content=receipt.content | {"id": None, "dry_run": True})

    def _claim(self, key: str) -> tuple[IdempotencyKey, bool]:
        """Take the key, or wait for the twin that took it and return its answer."""
        sha256 = self.parsed.sha256()
        claim, is_new = IdempotencyKey.objects.get_or_create(
            user=self.token.user,
            benchmark=self.benchmark,
            key=key,
            defaults={"request_sha256": sha256, "created_at": self.as_of},
        )
        if not is_new and bytes(claim.request_sha256) != sha256:
            raise Conflict(
                "This Idempotency-Key was used with another body. Use a new key.", code="key_reused"
            )
        return claim, is_new

    def _deliver(self, *, dry_run: bool) -> tuple[Submission, Receipt, list[StatusChange]]:
        assignments.check_open(self.benchmark)
        policy, as_of = policy_in_force(self.benchmark), self.as_of
        by_operator = operates(self.token, self.benchmark)
        self._check_dates(policy, by_operator=by_operator)
        matched, left = self._match(policy, by_operator=by_operator, dry_run=dry_run)
        (agent,) = matched.agents.values()
        replaces = _replaced_submissions(self.parsed.replaces, agent, by_operator=by_operator)
        _check_not_delivered(agent, matched, replaces)
        shown = not (by_operator or matched.are_new) and has_been_shown(agent)
        assignment = assignments.find_assignment(
            agent=agent, named=self.parsed.assignment, replaces=replaces, as_of=as_of
        )
        before, replaced = split_replaced(matched.stored, [old.pk for old in replaces])
        if not by_operator:
            assignments.check_asked(assignment, matched.rows, before)
        submission, reason = self._draft(matched, policy, assignment, replaces)
        delivered = DeliveredRows(
            submission, policy, matched.rows, before, replaced, matched.settings, assignment, matched.are_new
        )
        why = judged = ""
        if submission.status != Status.CHECKING and (why := reviewing.why_held(delivered)):
            submission.status, reason = reviewing.status_now(
                n_outcomes=0,
                embargo_until=submission.embargo_until,
                policy=policy,
                as_of=as_of,
                implausible=why,
            )
            judged = Judged.IMPLAUSIBLE
        one, after_board = (submission, matched.rows, replaces), bool(replaces) and shown
        if dry_run:
            changes = propose_changes(one, taken_back_after_board=after_board)
        else:
            changes = record([one], reason=reason, judged=judged, taken_back_after_board=after_board)
        if shown and submission.status == Status.ACCEPTED:
            changes[-1].after_board = delivered.is_again
        walk = None
        if assignment and not dry_run:
            walk = assignments.link_delivery(
                assignment=assignment, submission=submission, outcomes=delivered.standing, as_of=as_of
            )
        elif assignment and assignment.mode == Mode.STAGED:
            walk = asking.step_of(assignment, (delivered.outcomes, submission))
        content = self._content(delivered, changes, left, why, walk, keep=not dry_run)
        return submission, Receipt(content, replayed=False, left=left), changes

    def _match(
        self, policy: Policy, *, by_operator: bool, dry_run: bool
    ) -> tuple[MatchedRows, quotas.Quotas | None]:
        """The rows under their ids, the agent locked, and what is left of the quotas once it is counted."""
        benchmark, token, as_of = self.benchmark, self.token, self.as_of
        described = _describe_agent(self.parsed, self.metadata)
        agent = assignments.agent_of(
            benchmark=benchmark, described=described, by=token.user, by_operator=by_operator, as_of=as_of
        )
        if is_first := not submissions_of(agent).exists():
            naming.check_made_of(agent)
        count = quotas.left_today if dry_run else quotas.count_one
        left = None if by_operator else count(policy=policy, token=token, agent=agent, as_of=as_of)
        agents = {described.name: agent}
        matched = MatchedRows(
            self.metadata.flat, benchmark=benchmark, agents=agents, task_ids=self.tasks, are_new=is_first
        )
        return matched, left

    def _is_backdated(self, policy: Policy) -> bool:
        return self.submitted_at < self.as_of - timedelta(days=policy.backdating_days)

    def _check_dates(self, policy: Policy, *, by_operator: bool) -> None:
        until = self.parsed.embargo_until
        faults = list(embargo_faults(until, self.as_of)) if until else []
        if self._is_backdated(policy) and not by_operator:
            days = f"{policy.backdating_days} days before this delivery"
            rule = f"lies more than {days}; ask an operator to load older dates"
            at = self.parsed.flat.submitted_at[self.first]
            faults.append(Fault(row=None, field="submitted_at", value=str(at), rule=rule))
        if faults:
            raise Faulty("The submission has errors. Nothing was stored.", faults=tuple(faults))

    def _draft(
        self,
        matched: MatchedRows,
        policy: Policy,
        assignment: Assignment | None,
        replaces: list[Submission],
    ) -> tuple[Submission, str]:
        """The submission, and why it has its status."""
        (agent,) = matched.agents.values()
        links = [self.parsed.links, *self.metadata.links]
        embargo = self.parsed.embargo_until
        status, reason = reviewing.status_now(
            n_outcomes=matched.rows.num_rows, embargo_until=embargo, policy=policy, as_of=self.as_of
        )
        submission = draft(
            matched.rows,
            matched=matched,
            status=status,
            submitted_by=self.token.user,
            token=self.token,
            submitted_at=self.submitted_at,
            imprecise=bool(self.parsed.flat.imprecise[self.first]),
            received_at=self.as_of,
            backdated=self._is_backdated(policy),
            replaces=replaces[0] if replaces else None,
            links={name: link for one in reversed(links) for name, link in one.items()},
            asked=assignments.tasks_asked_for(assignment, agent, policy, self.as_of),
            n_trials=assignments.n_counted(assignment),
            study_id=assignment.study_id if assignment else None,
            embargo_until=embargo,
        )
        return submission, reason

    def _content(
        self,
        delivered: DeliveredRows,
        changes: list[StatusChange],
        left: quotas.Quotas | None,
        why_held: str,
        walk: WalkState | None,
        *,
        keep: bool,
    ) -> dict[str, Any]:
        submission, as_of, of = delivered.submission, self.as_of, delivered
        if submission.status == Status.CHECKING:
            results, asked, blocks = None, of.names_asked, of.blocks
            lacking = asking.lacking(of.n_counted, asked, blocks, of.policy, unranked=of.unranks)
            found = [IN_BACKGROUND, *lacking, *_doubts(of, changes)]
        else:
            results = checking.check_rows(of, self.metadata.flat.metadata.items())
            if keep:
                checking.keep(submission, results, as_of=as_of)
            found = [*checking.warnings(results), *uncounted(of.counted, of.of_agent)]
            found += [*_doubts(of, changes), *_unheard(of)]
        if why_held:
            found.append(f"held for review: {why_held}; it counts once an operator has accepted it")
        return {
            "id": str(submission.uuid),
            "status": submission.status,
            "agent": submission.agent.name,
            "n_outcomes": submission.n_outcomes,
            "n_invalid": submission.n_invalid,
            "n_outside": asking.n_outside(delivered.rows, delivered.asked_by_now),
            "warnings": [
                *(f"{alias} was read as {name}" for alias, name in self.parsed.flat.aliases.items()),
                *self.parsed.notes,
                *assignments.lateness(delivered.assignment, as_of),
                *found,
            ],
            "assignment": assignments.summary(delivered.assignment, as_of, walk, dry_run=not keep),
            "embargo_until": submission.embargo_until and submission.embargo_until.isoformat(),
            "checks": results,
            "quota": left and left.as_plain(),
        }


def _describe_agent(parsed: Body, metadata: FileMetadata) -> AgentDescription:
    """The agent as the envelope says, or the file; where both do, they have to agree."""
    flat = parsed.flat
    of_file = {name: texts[0] for name, texts in metadata.of_agent.items()}
    faults = tuple(
        Fault(None, name, of_file[name], f"the request states {value!r}; remove one of the two")
        for name, value in parsed.of_agent.items()
        if value and of_file[name] not in ("", value)
    )
    if faults:
        raise Faulty("The submission has errors. Nothing was stored.", faults=faults)
    described = {name: value or of_file[name] for name, value in parsed.of_agent.items()}
    return AgentDescription(flat.agents[0], flat.scaffolds[0], flat.models[0], **described)


def _replaced_submissions(uuid: UUID | None, agent: Agent, *, by_operator: bool) -> list[Submission]:
    if uuid is None:
        return []
    if old := submissions_of(agent).filter(uuid=uuid, status__in=LIVE).first():
        if old.loaded and not by_operator:
            raise not_your_submission()
        return [old]
    raise Conflict(
        "`replaces` must name a submission of the same agent that still counts.", code="nothing_to_replace"
    )


def _check_not_delivered(agent: Agent, matched: MatchedRows, replaces: list[Submission]) -> None:
    if not matched.stored.num_rows:
        return
    sha256 = matched.sha256(matched.rows)
    if twin := Submission.objects.filter(agent=agent, content_sha256=sha256, status__in=LIVE).first():
        raise Conflict(
            "A live submission holds exactly these outcomes.",
            code="already_delivered",
            submission=str(twin.uuid),
        )
    replaced = [0, *(old.pk for old in replaces)]
    if len(duplicates := np.flatnonzero(~np.isin(matched.holder, replaced))):
        raise Conflict(
            "Live submissions hold outcomes of these keys. Name the submission that this one `replaces`, "
            "or give the outcomes another `run` label.",
            code="duplicate_outcomes",
            n_keys=len(duplicates),
            keys=_named_keys(duplicates[:N_NAMED_KEYS], matched),
        )


def _named_keys(rows: np.ndarray, matched: MatchedRows) -> list[dict[str, Any]]:
    flat, holders = matched.flat, matched.holder[rows].tolist()
    uuids = dict(Submission.objects.filter(pk__in=holders).values_list("pk", "uuid"))
    return [
        {
            "row": row + 1,
            "task": flat.tasks[flat.task[row]],
            "trial": int(flat.trial[row]),
            **flat.settings[flat.setting[row]]._asdict(),
            "submission": str(uuids[holder]),
        }
        for row, holder in zip(rows.tolist(), holders, strict=True)
    ]


def _doubts(of: DeliveredRows, changes: list[StatusChange]) -> Iterator[str]:
    submission, policy = of.submission, of.policy
    if submission.n_invalid:
        yield (
            f"{words.counted(submission.n_invalid, 'invalid outcome')} count"
            f"{'s as a failure' if submission.n_invalid == 1 else ' as failures'} until an operator confirms "
            "that the harness failed"
        )
    if of.is_first:
        return
    if policy.duplicates != Duplicates.MEAN and len(of.submissions) > 1:
        yield f"only the {policy.duplicates} submission of an agent counts"
    after_board = {change.status for change in changes if change.after_board}
    statuses, agent = taking_back(policy), submission.agent
    shown = bool(withheld(policy.benchmark, policy=policy, agent=agent, after_board_alone=True))
    shown |= bool(after_board.intersection(statuses))
    no_rank = "it is listed without a rank until an operator approves"
    if shown or (statuses and submission.status in (Status.ACCEPTED, Status.CHECKING) and of.is_run_again):
        yield f"outcomes of this agent were taken back: {no_rank}"
    elif statuses and of.is_run_again:
        is_reviewed = policy.review == Review.MANUAL
        then = "an operator reviews these" if is_reviewed else f"once these count, {no_rank}"
        yield f"outcomes of this agent were taken back: {then}"
    elif after_board and policy.duplicates == Duplicates.MEAN and statuses:
        yield (
            "a board has shown this agent with missing results, which counted as failures: the board flags "
            "the agent for the operator"
            if of.fills_failures
            else f"tasks of this agent were delivered before, and a board has shown it since: "
            f"{_counted_again(of)}"
        )


def _unheard(of: DeliveredRows) -> Iterator[str]:
    """Say where an account has two full runs already, so that nothing is learnt from another one."""
    agent, benchmark = of.submission.agent, of.policy.benchmark
    if agent.owner_id is None or of.submission.status != Status.ACCEPTED:
        return
    if of.row is None or of.row.completed < 0 or agent.owner_id in of.trusted:
        return
    before = full_runs(benchmark, agent.owner_id, len(of.names(None)))
    heard = before[:MAX_VOICES]
    if len(heard) == MAX_VOICES and agent.pk not in heard:
        yield (
            f"your account has {len(heard)} full runs already: this agent is ranked, but pass rates, "
            "calibration and alerts leave it out until an operator trusts the account or "
            "confirms the submission"
        )


def _counted_again(of: DeliveredRows) -> str:
    """What becomes of a second run: an assignment bounds the trials of each task."""
    flagged = "and the board flags the agent for the operator"
    there = asking.trials(of.n_counted, of.blocks[0]).values()
    most = of.most_trials(of.blocks[0])
    if not most or most == max(there, default=0):
        return f"both runs count, {flagged}"
    if most == of.n_trials_asked(of.blocks[0]):
        why = "as its assignment asked"
    else:
        why = "as many as there are of the fewest" if most == min(there) else "as many as came at once"
    return f"on each task at most {asking.counting(most)}, {why}, {flagged}; {asking.in_order(of.policy)}"
