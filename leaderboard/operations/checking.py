"""Machine checks: what a delivery lacks, what is odd in it, what it should not hold.

They are shown with the submission, and none of them refuses it. A short delivery is checked in the request
that brings it; a longer one waits as `checking` until the scheduler has. Its checks and what becomes of it
are stored in one transaction, so that it is found again by whoever comes after a process that died.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction

from leaderboard.catalog.models import MissingPlaces, Policy, Review
from leaderboard.catalog.queries import operates, policy_in_force
from leaderboard.operations import asking
from leaderboard.operations.corrections import CountsNoMore, has_been_shown, locked_submissions
from leaderboard.operations.delivered import DeliveredRows, split_replaced
from leaderboard.operations.holding import why_held
from leaderboard.operations.models import Assignment
from leaderboard.operations.reviewing import let_count
from leaderboard.operations.secrets_in import secrets_in
from leaderboard.studies.answers import words
from leaderboard.studies.flags import flags
from leaderboard.studies.queries import loaded_is_pass_fail
from leaderboard.submissions.models import Judged, MachineCheck, Status, Submission
from leaderboard.submissions.queries import live_outcomes, settings_of, texts_of
from leaderboard.submissions.services import append_changes, change_status

N_IN_REQUEST = 20_000  # outcomes; what has more is checked by the scheduler
N_NAMED = 10
CHECKED = "the scheduler has checked it"
UNAUDITED = (
    "it came without an assignment: no task from outside the subset was asked for that would check whether "
    "the agent ranks there like the rest"
)

Texts = Iterable[tuple[str, pa.Array]]


class CheckLevel(StrEnum):
    """`NOTED` is for the operator, `WARNED` for the submitter too."""

    PASSED = "passed"
    NOTED = "noted"
    WARNED = "warned"


@dataclass(frozen=True)
class CheckResult:
    """What one check says."""

    name: str
    level: CheckLevel
    told: str


def check(submission: Submission) -> list[CheckResult]:
    """Check a stored submission."""
    return check_rows(_delivered_rows(submission), texts_of(submission.pk))


def check_rows(delivered: DeliveredRows, texts: Texts) -> list[CheckResult]:
    """Check a delivery; `texts` are its metadata by column."""
    return [
        *_coverage(delivered),
        *_trials(delivered),
        *_audit(delivered),
        *_flags(delivered),
        *_fractions(delivered),
        *_secrets(delivered, texts),
        *_dates(delivered),
    ]


def keep(submission: Submission, results: Sequence[CheckResult], *, as_of: datetime) -> None:
    """Store what was found."""
    MachineCheck.objects.create(submission=submission, found=[asdict(one) for one in results], at=as_of)


def status_now(
    *,
    n_outcomes: int,
    embargo_until: datetime | None,
    policy: Policy,
    as_of: datetime,
    checked: bool = False,
    implausible: str = "",
) -> tuple[Status, str]:
    """What becomes of a submission, and why it does not count; empty where it does."""
    if n_outcomes > N_IN_REQUEST and not checked:
        return Status.CHECKING, f"it has more than {N_IN_REQUEST:,} outcomes"
    reasons = []
    if policy.review == Review.MANUAL:
        reasons.append("an operator reviews it")
    if embargo_until and embargo_until > as_of:
        reasons.append(f"under embargo until {embargo_until:%Y-%m-%d %H:%M} UTC")
    if implausible:
        reasons.append(f"held for review: {implausible}")
    return (Status.WAITING if reasons else Status.ACCEPTED), "; ".join(reasons)


def conclude(*, uuid: UUID, as_of: datetime, check_claim: Callable[[], None] = lambda: None) -> str:
    """Check a submission that waits for it, and let it count or wait; `check_claim` keeps the run's claim."""
    submission = Submission.objects.select_related("agent__benchmark", "token__user").get(uuid=uuid)
    if submission.status != Status.CHECKING:
        return f"{submission.agent} is {submission.status} already"
    results = check(submission)
    with transaction.atomic():
        check_claim()
        return _conclude(uuid, results, as_of)


def _conclude(uuid: UUID, results: list[CheckResult], as_of: datetime) -> str:
    try:
        (submission,) = locked_submissions([uuid])
    except CountsNoMore as taken_back:
        return str(taken_back)
    if submission.status != Status.CHECKING:
        return f"{submission.agent} is {submission.status} already"
    benchmark = submission.agent.benchmark
    keep(submission, results, as_of=as_of)
    implausible = why_held_now(submission)
    status, why = status_now(
        n_outcomes=submission.n_outcomes,
        embargo_until=submission.embargo_until,
        policy=policy_in_force(benchmark),
        as_of=as_of,
        checked=True,
        implausible=implausible,
    )
    if status == Status.ACCEPTED:
        accept_unseen(submission, reason=CHECKED, as_of=as_of)
    else:
        wait([submission], reason=why, as_of=as_of, judged=Judged.IMPLAUSIBLE if implausible else "")
    n_warned = sum(one.level == CheckLevel.WARNED for one in results)
    delivered = f"{words.counted(submission.n_outcomes, 'outcome')} of {submission.agent}"
    return f"{delivered}: {words.counted(n_warned, 'warning')}, now {status}"


def wait(submissions: Sequence[Submission], *, reason: str, as_of: datetime, judged: str = "") -> None:
    """Let locked submissions of one benchmark wait, which may have counted; ends the caller's transaction."""
    changes = change_status(
        submissions=submissions, status=Status.WAITING, at=as_of, by=None, reason=reason, judged=judged
    )
    append_changes(benchmark=submissions[0].agent.benchmark, changes=changes)


def why_held_now(submission: Submission) -> str:
    """Say what is implausible of the agent, with all that was delivered while this waited."""
    return why_held(_delivered_rows(submission, overtaken=True))


def accept_unseen(submission: Submission, *, reason: str, as_of: datetime) -> None:
    """Let a locked submission count that no operator has looked at: as if it had counted at once.

    What its owner took back or ran again is marked, where a board had shown the agent before it came; or
    before its embargo was over, for so long its owner could choose.
    """
    agent, token = submission.agent, submission.token
    by_operator = token is None or operates(token, agent.benchmark)
    decided = max(filter(None, (submission.received_at, submission.embargo_until)))
    shown = not by_operator and has_been_shown(agent, before=decided)
    delivered = _delivered_rows(submission, overtaken=True)
    let_count(
        submission=submission,
        by=None,
        reason=reason,
        as_of=as_of,
        taken_back=shown and submission.replaces_id is not None,
        again=shown and delivered.is_again,
        judged=Judged.BETTER if not by_operator and delivered.is_better_again else "",
    )


def _delivered_rows(submission: Submission, *, overtaken: bool = False) -> DeliveredRows:
    """A stored submission beside what was delivered before it; `overtaken`: or since, while it waited."""
    agent = submission.agent
    live = live_outcomes([agent.pk])
    rows = live.filter(pc.equal(live["submission"], submission.pk))
    compare = pc.not_equal if overtaken else pc.less
    earlier = live.filter(compare(live["submission"], submission.pk))
    before, replaced = split_replaced(earlier, [submission.replaces_id] if submission.replaces_id else [])
    return DeliveredRows(
        submission=submission,
        policy=policy_in_force(agent.benchmark),
        rows=rows,
        before=before,
        replaced=replaced,
        settings={pk: facets for facets, pk in settings_of(agent.benchmark).items()},
        assignment=submission.assignments.first(),
    )


def _check_result(
    name: str, sentences: Iterable[str], otherwise: str, *, level: CheckLevel = CheckLevel.WARNED
) -> Iterator[CheckResult]:
    """What there is to say, or that there is nothing."""
    texts = list(sentences)
    yield from (CheckResult(name, level, one) for one in texts)
    if not texts:
        yield CheckResult(name, CheckLevel.PASSED, otherwise)


def _coverage(of: DeliveredRows) -> Iterator[CheckResult]:
    lacks = asking.absent(of.standing, of.names_asked, of.policy.missing, unranked=of.unranks)
    yield from _check_result(
        "coverage", lacks, f"all {len(of.names_asked):,} tasks asked for have an outcome"
    )
    if n := asking.n_outside(of.rows, of.asked_by_now):
        outside = f"{words.counted(n, 'outcome')} on tasks that were not asked for"
        yield CheckResult("coverage", CheckLevel.NOTED, outside)


def _trials(of: DeliveredRows) -> Iterator[CheckResult]:
    otherwise = f"{_fewest(of, of.names_asked):,} of each task"
    yield from _check_result("trials", [*_uneven(of), *_beyond(of), *_too_few(of)], otherwise)
    if of.submission.n_invalid:
        yield CheckResult(
            "trials", CheckLevel.NOTED, f"{words.counted(of.submission.n_invalid, 'invalid outcome')}"
        )


def _audit(of: DeliveredRows) -> Iterator[CheckResult]:
    """Say where nothing outside the subset was asked for, since no delivery answers an assignment."""
    task_ids = of.submission.asked
    is_assigned = of.assignment or Assignment.objects.filter(submissions__in=list(of.submissions)).exists()
    if not is_assigned and task_ids is not None and of.policy.audit_share:
        everything = of.names(None).keys()
        if not (everything <= set(task_ids) or everything <= set(of.standing["task"].to_pylist())):
            yield CheckResult("audit", CheckLevel.NOTED, UNAUDITED)


def _fewest(of: DeliveredRows, names: Container[int]) -> int:
    """The fewest trials that there are by now of one of these tasks, under one of the conditions compared; 0
    where none is.
    """
    return min(asking.trials(of.standing, names).values(), default=0)


def _uneven(of: DeliveredRows) -> Iterator[str]:
    """Trials that count for nothing: on what ranks the agent, and on the rest where all of it is there."""
    for block in of.blocks:
        yield from asking.uneven(of.standing, block, of.policy.missing)
    yield from asking.uneven(of.standing, of.rest, of.policy.missing, what="the other tasks")


def _beyond(of: DeliveredRows) -> Iterator[str]:
    """Trials beyond those that count; a run after a board has shown the agent is named with that."""
    if not (of.is_capped or of.is_first) and has_been_shown(of.submission.agent):
        return
    whole = "earlier deliveries first, a whole run with its mean, others with their lowest"
    why = "no more were asked for" if of.is_capped else whole
    for part in of.blocks[:1] if of.is_capped else [*of.blocks, of.rest]:
        there = asking.trials(of.standing, part)
        fewest, most = min(there.values(), default=0), of.most_trials(part)
        if most and fewest > most and part.keys() <= {task for task, _ in there}:
            tasks = "of the other tasks" if part is of.rest else "task asked for"
            tasks += f" ({asking.first(list(part.values()))})" if part in of.blocks[1:] else ""
            yield f"there are {fewest:,} trials of each {tasks}, and the score takes {most:,}: {why}"


def _too_few(of: DeliveredRows) -> Iterator[str]:
    fewest = _fewest(of, of.names_asked)
    n_asked = of.assignment.n_trials if of.assignment else of.policy.n_trials
    if 0 < fewest < n_asked:
        there = "is 1" if fewest == 1 else f"are {fewest:,}"
        zero = of.policy.missing == MissingPlaces.ZERO
        meanwhile = "those absent count as failures" if zero else "the agent is listed without a rank"
        yield (
            f"{n_asked:,} trials of each task were asked for; there {there} so far: until all are delivered, "
            f"{meanwhile}"
        )


def _flags(of: DeliveredRows) -> Iterator[CheckResult]:
    earlier = of.replaced if of.replaced.num_rows else _latest(of.before)
    flagged = flags(of.outcomes, earlier, of.of_agent, of.row)
    others = ", ".join(flagged.identical[:N_NAMED])
    alike = [f"the same outcome as {others} on every task"] if flagged.identical else []
    repeats = "its trials neither repeat each other nor only improve"
    yield from _check_result("copies", filter(None, [flagged.copies]), repeats)
    gains = filter(None, [flagged.gains])
    is_first = not earlier.num_rows
    otherwise = "it is the first delivery" if is_first else "it is not only better than the one before"
    yield from _check_result("gains", gains, otherwise, level=CheckLevel.NOTED)
    yield from _check_result("identical", alike, "no other agent on the latest board has the same outcomes")


def _latest(before: pa.Table) -> pa.Table:
    last = pc.max(before["submission"]).as_py()
    return before.filter(pc.equal(before["submission"], -1 if last is None else last))


def _fractions(of: DeliveredRows) -> Iterator[CheckResult]:
    value = of.rows["value"].to_numpy()
    n_graded = int(np.count_nonzero((value > 0) & (value < 1)))
    odd = bool(n_graded) and loaded_is_pass_fail(of.policy.benchmark)
    lie = "lies" if n_graded == 1 else "lie"
    sentence = (
        f"{words.counted(n_graded, 'outcome')} {lie} between 0 and 1; all that an operator loaded here are 0 "
        "or 1: the board flags the agent for the operator (a mean of several runs says so by n_averaged)"
    )
    yield from _check_result(
        "fractions", [sentence] * odd, "outcomes are of the kind that this benchmark has"
    )


def _secrets(of: DeliveredRows, texts: Texts) -> Iterator[CheckResult]:
    links = [(f"links.{name}", pa.array([link])) for name, link in of.submission.links.items()]
    revoke = "it will be published with the outcomes: take the submission back, and revoke it"
    sentences = [f"{one}; {revoke}" for one in secrets_in([*texts, *links])]
    yield from _check_result("secrets", sentences, "nothing looks like a token or a key")


def _dates(of: DeliveredRows) -> Iterator[CheckResult]:
    one, days = of.submission, of.policy.backdating_days
    if one.backdated:
        sentence = (
            f"dated {one.submitted_at:%Y-%m-%d}, more than {days} days before it came: marked backdated"
        )
        yield CheckResult("dates", CheckLevel.NOTED, sentence)
    if one.imprecise:
        yield CheckResult("dates", CheckLevel.NOTED, "only the month or year of submitted_at is known")
    if not (one.backdated or one.imprecise):
        yield CheckResult(
            "dates",
            CheckLevel.PASSED,
            f"dated {one.submitted_at:%Y-%m-%d}" if one.submitted_at else "not dated",
        )


def warnings(results: Iterable[CheckResult]) -> list[str]:
    """What a receipt tells of the checks."""
    return [one.told for one in results if one.level == CheckLevel.WARNED]


def as_plain(results: Iterable[CheckResult]) -> list[dict[str, Any]]:
    return [asdict(one) for one in results]
