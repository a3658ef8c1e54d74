"""Reads of submissions."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from leaderboard.catalog.models import Agent, Benchmark, Duplicates, Policy, Resubmission, Trust
from leaderboard.catalog.queries import merged_agents, policy_in_force
from leaderboard.submissions.copying import copy_out, numbers_out
from leaderboard.submissions.models import (
    COUNTING,
    LIVE,
    AccountTrust,
    Approval,
    InvalidConfirmation,
    Judged,
    Outcome,
    OutcomeDetail,
    Setting,
    Status,
    StatusChange,
    Submission,
    Verification,
)
from leaderboard.submissions.rows import (
    DETAIL_SCHEMA,
    KEY,
    LIVE_SCHEMA,
    MEASURED_SCHEMA,
    READ_SCHEMA,
    ran_again,
    without_superseded,
)

N_FULL_RUNS = 3  # of an account: that many tell whether it has more than teach
LOG_LINKS = {"logs", "trajectories"}  # names of links at which a run can be looked at

# Changes that let a delivery of the agent's owner replace another one, without review by an operator
_UNSEEN = StatusChange.objects.filter(
    submission__replaces=OuterRef("submission"),
    submission__loaded=False,
    submission__submitted_by=OuterRef("submission__agent__owner"),
    status=Status.ACCEPTED,
    data_version=OuterRef("data_version"),
).exclude(judged=Judged.REVIEWED)
# Changes by which the owner of an agent takes back what was theirs
BY_OWNER = Q(submission__loaded=False, status__in=(Status.WITHDRAWN, Status.SUPERSEDED)) & (
    Q(by=F("submission__agent__owner")) | Q(Exists(_UNSEEN), by=None, status=Status.SUPERSEDED)
)

_JUDGED = Subquery(
    StatusChange.objects.filter(submission=OuterRef("pk")).order_by("-id").values("judged")[:1]
)

# In eight bytes the number as PostgreSQL prints the four, 0.1 and not 0.10000000149
_PRINTED = "CASE WHEN o.value IN (0, 1) THEN o.value ELSE CAST(o.value::text AS double precision) END"
OUTCOMES = f"""
    SELECT o.submission_id, s.agent_id, o.task_id, o.setting_id, o.trial, {_PRINTED}, o.valid
    FROM submissions_outcome o JOIN submissions_submission s ON s.id = o.submission_id
    WHERE {{condition}}
    ORDER BY o.submission_id, o.task_id, o.setting_id, o.trial
"""

LIVE_OUTCOMES = """
    SELECT o.submission_id, coalesce(a.merged_into_id, a.id), o.task_id, o.setting_id, o.trial, o.value,
        o.valid, NOT o.valid AND (s.loaded OR c.id IS NOT NULL)
    FROM submissions_outcome o JOIN submissions_submission s ON s.id = o.submission_id
    JOIN catalog_agent a ON a.id = s.agent_id
    LEFT JOIN submissions_invalidconfirmation c ON c.submission_id = s.id
    WHERE s.agent_id IN (SELECT id FROM catalog_agent WHERE id = ANY(%s) OR merged_into_id = ANY(%s))
        AND s.status = ANY(%s)
    ORDER BY o.submission_id, o.task_id, o.setting_id, o.trial
"""

# A sum in which nothing is stated is null, and what is not stated adds nothing.
MEASURED_OUTCOMES = f"""
    SELECT o.submission_id, s.agent_id, o.task_id, o.setting_id, o.trial, {_PRINTED}, o.valid, d.cost_usd,
        CASE WHEN num_nonnulls(d.n_input_tokens, d.n_output_tokens) > 0
            THEN coalesce(d.n_input_tokens, 0) + coalesce(d.n_output_tokens, 0) END,
        CASE WHEN num_nonnulls(d.seconds_environment, d.seconds_execution, d.seconds_scoring) > 0
            THEN coalesce(d.seconds_environment, 0) + coalesce(d.seconds_execution, 0)
                + coalesce(d.seconds_scoring, 0) END,
        d.human, d.human_probability
    FROM submissions_outcome o JOIN submissions_submission s ON s.id = o.submission_id
    LEFT JOIN submissions_outcomedetail d USING (submission_id, task_id, setting_id, trial)
    WHERE s.id = ANY(%s)
    ORDER BY submission_id, task_id, setting_id, trial
"""

DETAILS = f"""
    SELECT submission_id, task_id, setting_id, trial, {", ".join(DETAIL_SCHEMA.names[len(KEY) :])}
    FROM submissions_outcomedetail WHERE submission_id = ANY(%s)
"""
TEXTS = """
    SELECT DISTINCT m.key, m.value FROM submissions_outcomedetail d, jsonb_each_text(d.metadata) m
    WHERE d.submission_id = %s
"""


def ever_counted() -> QuerySet[Submission]:
    """What counts, or did until it was replaced or taken back; not what was taken back while it waited."""
    accepted = StatusChange.objects.filter(submission=OuterRef("pk"), status=Status.ACCEPTED)
    return Submission.objects.filter(Exists(accepted), status__in=COUNTING)


_NULLABLE = ("value", "cost_usd", "n_tokens", "seconds", "human", "human_probability")


def _read(query: str, parameters: Sequence[object], *, schema: pa.Schema) -> pa.Table:
    """Read outcomes in order of their key; a submission is one agent's."""
    nullable = [name for name in _NULLABLE if name in schema.names]
    return numbers_out(query, parameters, schema=schema, n_same=2, nullable=nullable)


def live_outcomes(agents: Iterable[int]) -> pa.Table:
    """All outcomes that stand for these agents, and for those merged into them: a new one may not hold the
    same key.

    The key of a `free` one, a confirmed failure of the harness, may be delivered again.
    """
    ids = list(agents)
    if not ids:
        return LIVE_SCHEMA.empty_table()
    return _read(LIVE_OUTCOMES, [ids, ids, list(LIVE)], schema=LIVE_SCHEMA)


def submissions_of(agent: Agent | int) -> QuerySet[Submission]:
    """All that was delivered for an agent, and for those merged into it."""
    return Submission.objects.filter(Q(agent=agent) | Q(agent__merged_into=agent))


def standing_submissions(agent: int, new: Submission | None = None) -> dict[int, Submission]:
    """What stands for an agent, by id: what counts in order of arrival, then what does not count yet.

    Last comes what is `new`, under the id 0 where it is not stored. What another one is to replace is left
    out.
    """
    theirs = submissions_of(agent).filter(status__in=LIVE)
    replaced = theirs.exclude(replaces=None).values("replaces")
    rows = by_arrival(theirs.exclude(pk__in=replaced))
    if new is not None:
        gone = (new.pk, new.replaces_id)
        return {pk: one for pk, one in rows.items() if pk not in gone} | {new.pk or 0: new}
    return rows


def by_arrival(submissions: QuerySet[Submission]) -> dict[int, Submission]:
    """By id, in the order in which they came to count; last what does not count yet."""
    arrival = F("arrival").asc(nulls_last=True)
    accepted = Q(status_changes__status=Status.ACCEPTED)
    dated = submissions.alias(arrival=Max("status_changes__data_version", filter=accepted))
    return {one.pk: one for one in dated.order_by(arrival, "id")}


def with_withdrawn(agent: int, standing: Mapping[int, Submission]) -> dict[int, Submission]:
    """What stands for an agent with what its submitters took back or replaced, in order of arrival.

    What one of these is to replace is among it; empty where there is no such thing.
    """
    gone = ever_counted().filter(Q(agent=agent) | Q(agent__merged_into=agent), loaded=False)
    replaced = [one.replaces_id for one in standing.values() if one.replaces_id]
    ids = set(gone.filter(~Q(status=Status.ACCEPTED) | Q(pk__in=replaced)).values_list("pk", flat=True))
    if not ids - standing.keys():
        return {}
    every = by_arrival(Submission.objects.filter(pk__in=ids | standing.keys()))
    return every | {pk: one for pk, one in standing.items() if pk not in every}


def outcomes_of(submissions: Iterable[int]) -> pa.Table:
    query = OUTCOMES.format(condition="s.id = ANY(%s)")
    return without_superseded(_read(query, [list(submissions)], schema=READ_SCHEMA))


def n_outcomes_of(submissions: Iterable[int]) -> dict[int, int]:
    return dict(Submission.objects.filter(pk__in=list(submissions)).values_list("pk", "n_outcomes"))


def measured_outcomes_of(submissions: Iterable[int], withdrawn: Iterable[int] = ()) -> pa.Table:
    """Return the outcomes with cost in US dollars, tokens, seconds and what people said of each trial.

    Those that are `withdrawn` come as they were delivered: they stand in the place of none.
    """
    measured, gone = without_superseded(_measured(list(submissions))), list(withdrawn)
    return pa.concat_tables([measured, _measured(gone)], promote_options="permissive") if gone else measured


def _measured(submissions: list[int]) -> pa.Table:
    if OutcomeDetail.objects.filter(submission_id__in=submissions).exists():
        return _read(MEASURED_OUTCOMES, [submissions], schema=MEASURED_SCHEMA)
    table = _read(OUTCOMES.format(condition="s.id = ANY(%s)"), [submissions], schema=READ_SCHEMA)
    for field in list(MEASURED_SCHEMA)[len(READ_SCHEMA) :]:
        table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table


def details_of(submissions: Sequence[int]) -> pa.Table:
    return copy_out(DETAILS, [submissions], schema=DETAIL_SCHEMA)


def texts_of(submission: int) -> list[tuple[str, pa.Array]]:
    schema = pa.schema({"name": pa.string(), "text": pa.string()})
    table = copy_out(TEXTS, [submission], schema=schema)
    return [
        (name, table.filter(pc.equal(table["name"], name))["text"])
        for name in pc.unique(table["name"]).to_pylist()
    ]


def settings_of(benchmark: Benchmark) -> dict[tuple[object, ...], int]:
    """The id of each setting by its facets (prompt_variant, judge, temperature, run)."""
    rows = Setting.objects.filter(benchmark=benchmark).values_list("id", *Setting.FACETS)
    return {tuple(facets): pk for pk, *facets in rows}


@dataclass(frozen=True)
class AcceptedSubmission:
    """What counts, of the agent that it counts for; those of one transaction share their `arrival`.

    With fewer than `fewest_trials` of a task its agent is incomplete. `confirmed`: its invalid outcomes are
    failures of the harness. `withdrawn`: taken back or replaced since, so that its outcomes count nowhere.
    """

    submission: Submission
    agent_id: int
    arrival: int
    fewest_trials: int
    confirmed: bool
    trust: Trust
    withdrawn: bool = False


def deliveries(
    benchmark: Benchmark, upto: int | None = None, *, withdrawn: bool = False
) -> list[AcceptedSubmission]:
    """What counts now, or counted at the data version `upto`; by agent, in order of arrival.

    What an agent delivered that was merged is of the other one from that data version on. Where `withdrawn`
    is asked for, also what submitters delivered that counted before and was taken back or replaced.
    """
    changes = _upto(StatusChange.objects.filter(submission__agent__benchmark=benchmark), upto)
    latest = changes.exclude(data_version=None).order_by("submission_id", "-id").distinct("submission_id")
    confirmations = _upto(InvalidConfirmation.objects.filter(submission__agent__benchmark=benchmark), upto)
    confirmed = set(confirmations.values_list("submission_id", flat=True))
    verified = verified_submissions(benchmark, upto)
    merged = merged_agents(benchmark, upto)
    several = Exists(benchmark.policies.filter(n_trials__gt=1))
    last = list(latest.annotate(several=several).select_related("submission"))
    counted = [(change, False) for change in last if change.status == Status.ACCEPTED]
    policies = policies_of(benchmark) if any(one.several for one in last) else []
    gone = [one.submission_id for one in last if one.status != Status.ACCEPTED and not one.submission.loaded]
    if withdrawn and gone:
        once = latest.filter(status=Status.ACCEPTED, submission__in=gone).select_related("submission")
        counted += [(change, True) for change in once]
    delivered = [
        AcceptedSubmission(
            submission=one,
            agent_id=merged.get(one.agent_id, one.agent_id),
            arrival=change.data_version or 0,
            fewest_trials=fewest_trials(one, policies),
            confirmed=one.loaded or one.pk in confirmed,
            trust=trust_of(one, verified),
            withdrawn=withdrawn,
        )
        for change, withdrawn in counted
        for one in [change.submission]
    ]
    return sorted(delivered, key=lambda one: (one.agent_id, one.arrival, one.submission.pk))


def trust_of(submission: Submission, verified: Collection[int]) -> Trust:
    """How far the outcomes of a submission can be checked; `verified` are ids of confirmed ones."""
    if submission.loaded or submission.pk in verified:
        return Trust.VERIFIED
    return Trust.LOGS if submission.links.keys() & LOG_LINKS else Trust.SELF_REPORTED


def trust_now(submission: Submission) -> Trust:
    return trust_of(submission, {submission.pk} if is_verified(submission) else ())


def is_verified(submission: Submission) -> bool:
    latest = submission.verifications.order_by("-id").first()
    return latest is not None and latest.verified


def verified_submissions(benchmark: Benchmark, upto: int | None = None) -> set[int]:
    """Ids of submissions that an operator confirmed, now or at the data version `upto`."""
    events = _upto(Verification.objects.filter(submission__agent__benchmark=benchmark), upto)
    latest = events.order_by("submission_id", "-id").distinct("submission_id")
    return {one.submission_id for one in latest if one.verified}


def full_runs(benchmark: Benchmark, owner: int, n_tasks: int) -> list[int]:
    """Ids of an account's agents that ran as many tasks as there are, the first three in this order.

    Also of those whose outcomes were withdrawn; not of those that an operator confirmed.
    """
    accepted = StatusChange.objects.filter(status=Status.ACCEPTED, submission__agent__benchmark=benchmark)
    accepted = accepted.filter(submission__agent__owner=owner, submission__loaded=False)
    latest = Verification.objects.filter(submission=OuterRef("submission")).order_by("-id")
    verified = Coalesce(Subquery(latest.values("verified")[:1]), False)
    ordered = accepted.alias(verified=verified).filter(verified=False).order_by("data_version", "id")
    rows = list(ordered.values_list("submission__agent", "submission", "submission__n_outcomes"))
    whole = n_ran_each([pk for _, pk, n in rows if n >= n_tasks][:N_FULL_RUNS])
    of_agent: dict[int, list[int]] = {}
    n_outcomes: Counter[int] = Counter()
    runs: list[int] = []
    for agent, pk, n in rows:
        of_agent.setdefault(agent, []).append(pk)
        n_outcomes[agent] += n
        if agent in runs or n_outcomes[agent] < n_tasks:
            continue
        if whole.get(pk, 0) >= n_tasks or n_ran(of_agent[agent]) >= n_tasks:
            runs.append(agent)
        if len(runs) == N_FULL_RUNS:
            break
    return runs


def n_ran_each(submissions: Sequence[int]) -> dict[int, int]:
    outcomes = Outcome.objects.filter(submission_id__in=submissions).values_list("submission_id")
    return dict(outcomes.annotate(n=Count("task_id", distinct=True)))


def n_ran(submissions: Sequence[int]) -> int:
    return Outcome.objects.filter(submission_id__in=submissions).values("task_id").distinct().count()


def trusted_accounts(benchmark: Benchmark, upto: int | None = None) -> set[int]:
    """Ids of accounts that an operator trusts, now or at the data version `upto`."""
    events = _upto(AccountTrust.objects.filter(benchmark=benchmark), upto)
    latest = events.order_by("account_id", "-id").distinct("account_id")
    return {one.account_id for one in latest if one.trusted}


def policies_of(benchmark: Benchmark) -> list[Policy]:
    return list(benchmark.policies.order_by("number"))


def fewest_trials(submission: Submission, policies: Sequence[Policy]) -> int:
    """How many trials of each task were asked for at least: by its assignment, without one by the policy.

    A submission has the number that is recommended, where that is more. Its assignment was made by a policy
    that was in force while it may have been open: of several the least demanding counts.
    """
    if submission.loaded and not submission.n_trials:
        return 1
    numbers, at = list[int](), submission.received_at
    for policy, after in zip_longest(policies, policies[1:]):
        longest_open = timedelta(days=policy.assignment_days if submission.n_trials else 0)
        if policy.created_at <= at and (after is None or after.created_at > at - longest_open):
            numbers.append(policy.n_trials)
    return min([submission.n_trials or numbers[-1], *numbers]) if numbers else 1


def held_for_review(benchmark: Benchmark) -> QuerySet[Submission]:
    waiting = Submission.objects.filter(agent__benchmark=benchmark, status=Status.WAITING)
    return waiting.alias(judged=_JUDGED).filter(judged=Judged.IMPLAUSIBLE).order_by("id")


def without_held(submissions: QuerySet[Submission]) -> QuerySet[Submission]:
    return submissions.alias(judged=_JUDGED).exclude(judged=Judged.IMPLAUSIBLE)


def withdrawn_by_owner(benchmark: Benchmark, *, upto: int | None) -> set[int]:
    """Ids of agents of which their owner took something back, and no operator has approved since."""
    changes = StatusChange.objects.filter(BY_OWNER, submission__agent__benchmark=benchmark)
    return set(_not_approved(changes, benchmark, upto))


def withheld(
    benchmark: Benchmark,
    *,
    policy: Policy | None = None,
    upto: int | None = None,
    agent: Agent | None = None,
    after_board_alone: bool = False,
) -> dict[int, str]:
    """Why an agent may not be ranked, by its id: it took outcomes back, and nobody has approved since.

    After a board had shown it, or, unless that `after_board_alone` is asked for, of tasks that it ran again.
    `agent`: of this one alone.
    """
    policy = policy or policy_in_force(benchmark)
    if not (statuses := taking_back(policy)):
        return {}
    changes = StatusChange.objects.filter(submission__agent__benchmark=benchmark)
    changes = changes.filter(Q(after_board=True, status__in=statuses) | BY_OWNER)
    if agent is not None:
        changes = changes.filter(Q(submission__agent=agent) | Q(submission__agent__merged_into=agent))
    why: dict[int, str] = {}
    for pk, events in _not_approved(changes, benchmark, upto).items():
        gone = [one.submission_id for one in events]
        shown = any(one.after_board for one in events)
        if shown or (not after_board_alone and _ran_again(pk, gone, benchmark, upto)):
            why[pk] = (
                f"resubmitted: it took outcomes back, last on {events[-1].at:%Y-%m-%d}, and waits for an "
                "operator to approve"
            )
    return why


def taken_back_outcomes(agent: Agent) -> pa.Table:
    """Return what the owner of an agent took back since an operator last approved it."""
    theirs = Q(submission__agent=agent) | Q(submission__agent__merged_into=agent)
    changes = StatusChange.objects.filter(theirs, BY_OWNER)
    gone = _not_approved(changes, agent.benchmark, None).get(agent.pk, ())
    return _without_confirmed([one.submission_id for one in gone], None)


def _without_confirmed(submissions: list[int], upto: int | None) -> pa.Table:
    """Return outcomes of submissions, but for failures of the harness that an operator confirmed."""
    confirmed = _upto(InvalidConfirmation.objects.filter(submission__in=submissions), upto)
    ids = list(confirmed.values_list("submission_id", flat=True))
    condition = "s.id = ANY(%s) AND (o.valid OR s.id <> ALL(%s))"
    return _read(OUTCOMES.format(condition=condition), [submissions, ids], schema=READ_SCHEMA)


def _not_approved(
    changes: QuerySet[StatusChange], benchmark: Benchmark, upto: int | None
) -> dict[int, list[StatusChange]]:
    """Changes by the agent that they count for, those since an operator last approved it, in order."""
    found: dict[int, list[StatusChange]] = {}
    if every := list(_upto(changes, upto).select_related("submission").order_by("id")):
        merged, approved = merged_agents(benchmark, upto), approvals(benchmark, upto)
        for one in every:
            agent = merged.get(one.submission.agent_id, one.submission.agent_id)
            if approved.get(agent, -1) < (one.data_version or 0):
                found.setdefault(agent, []).append(one)
    return found


def _ran_again(agent: int, gone: list[int], benchmark: Benchmark, upto: int | None) -> bool:
    """Whether its owner ran tasks of submissions again that were taken back; see `rows.ran_again`."""
    agents = [agent, *(pk for pk, into in merged_agents(benchmark, upto).items() if into == agent)]
    changes = StatusChange.objects.filter(submission__agent__in=agents).exclude(data_version=None)
    latest = _upto(changes, upto).order_by("submission_id", "-id").distinct("submission_id")
    every = list(latest.select_related("submission__agent"))
    standing = [one.submission for one in every if one.status == Status.ACCEPTED]
    own = {
        one.submission_id for one in every if is_by_owner(one.submission) and one.judged != Judged.REVIEWED
    }
    if not own or max(own) < min(gone):
        return False
    outcomes = _without_confirmed([one.pk for one in standing], upto)
    return ran_again(_without_confirmed(gone, upto), outcomes, own)


def is_by_owner(submission: Submission) -> bool:
    return not submission.loaded and submission.submitted_by_id == submission.agent.owner_id


def taking_back(policy: Policy) -> tuple[Status, ...]:
    """What a submission becomes when its owner takes back what a board has shown, where that is withheld.

    Where the last delivery counts alone, each takes back those before it.
    """
    if policy.resubmission == Resubmission.FREE:
        return ()
    replaced = (Status.ACCEPTED,) if policy.duplicates == Duplicates.LATEST else ()
    return (Status.SUPERSEDED, Status.WITHDRAWN, *replaced)


def resubmitted(benchmark: Benchmark, *, policy: Policy, upto: int | None = None) -> set[int]:
    """Ids of agents with more results for their tasks since a board has shown them, where these count."""
    if policy.resubmission == Resubmission.FREE or policy.duplicates != Duplicates.MEAN:
        return set()
    again = StatusChange.objects.filter(
        submission__agent__benchmark=benchmark, after_board=True, status=Status.ACCEPTED
    )
    agents = set(_upto(again, upto).values_list("submission__agent_id", flat=True))
    merged = merged_agents(benchmark, upto) if agents else {}
    return {merged.get(pk, pk) for pk in agents}


def approvals(benchmark: Benchmark, upto: int | None) -> dict[int, int]:
    """The data version at which an operator last approved an agent, by its id."""
    latest = _upto(Approval.objects.filter(agent__benchmark=benchmark), upto).values_list("agent_id")
    rows = list(latest.annotate(version=Max("data_version")).order_by("version"))
    merged = merged_agents(benchmark, upto) if rows else {}
    # Of several that are one agent by now the last approval counts, for it comes last here.
    return {merged.get(pk, pk): version for pk, version in rows}


def first_lost_loads(benchmark: Benchmark, upto: int | None) -> dict[int, int]:
    """The data version of the first load of an agent that was withdrawn or replaced since, by its id."""
    came = _upto(StatusChange.objects.filter(status=Status.ACCEPTED, submission__loaded=True), upto)
    came = came.filter(submission__agent__benchmark=benchmark).exclude(data_version=None)
    came = came.exclude(submission__status=Status.ACCEPTED)
    rows = list(came.values_list("submission__agent").annotate(first=Min("data_version")))
    merged, first = merged_agents(benchmark, upto) if rows else {}, dict[int, int]()
    for pk, version in rows:
        of = merged.get(pk, pk)
        first[of] = min(version, first.get(of, version))
    return first


def _upto(events: QuerySet[Any], version: int | None) -> QuerySet[Any]:
    return events if version is None else events.filter(data_version__lte=version)
