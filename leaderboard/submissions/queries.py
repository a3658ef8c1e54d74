"""Reads of submissions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet

from leaderboard.catalog.models import Benchmark, Duplicates, Policy, Resubmission
from leaderboard.catalog.queries import merged_agents, policy_in_force
from leaderboard.submissions.copying import copy_out
from leaderboard.submissions.models import (
    COUNTING,
    LIVE,
    Approval,
    InvalidConfirmation,
    Setting,
    Status,
    StatusChange,
    Submission,
)
from leaderboard.submissions.rows import LIVE_SCHEMA, MEASURED_SCHEMA, READ_SCHEMA, standing

OUTCOMES = """
    SELECT o.submission_id, s.agent_id, o.task_id, o.setting_id, o.trial, o.value, o.valid
    FROM submissions_outcome o JOIN submissions_submission s ON s.id = o.submission_id
    WHERE {condition}
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
MEASURED_OUTCOMES = """
    SELECT o.submission_id, s.agent_id, o.task_id, o.setting_id, o.trial, o.value, o.valid, d.cost_usd,
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


TEXTS = """
    SELECT DISTINCT m.key, m.value FROM submissions_outcomedetail d, jsonb_each_text(d.metadata) m
    WHERE d.submission_id = %s
"""


def ever_counted() -> QuerySet[Submission]:
    """What counts, or did until it was replaced or taken back; not what was taken back while it waited."""
    accepted = StatusChange.objects.filter(submission=OuterRef("pk"), status=Status.ACCEPTED)
    return Submission.objects.filter(Exists(accepted), status__in=COUNTING)


def live_outcomes(agents: Iterable[int]) -> pa.Table:
    """All outcomes that stand for these agents, and for those merged into them: a new one may not hold the
    same key.

    The key of a `free` one, a confirmed failure of the harness, may be delivered again.
    """
    ids = list(agents)
    return copy_out(LIVE_OUTCOMES, [ids, ids, list(LIVE)], schema=LIVE_SCHEMA)


def standing_submissions(agent: int, new: Submission | None = None) -> dict[int, Submission]:
    """What stands for an agent, by id: what counts in order of arrival, then what does not count yet.

    Last comes what is `new`, under the id 0 where it is not stored. What another one is to replace is left
    out.
    """
    theirs = Submission.objects.filter(Q(agent=agent) | Q(agent__merged_into=agent), status__in=LIVE)
    replaced = theirs.exclude(replaces=None).values("replaces")
    found = by_arrival(theirs.exclude(pk__in=replaced))
    if new is not None:
        gone = (new.pk, new.replaces_id)
        return {pk: one for pk, one in found.items() if pk not in gone} | {new.pk or 0: new}
    return found


def by_arrival(submissions: QuerySet[Submission]) -> dict[int, Submission]:
    """By id, in the order in which they came to count; last what does not count yet."""
    arrival = F("arrival").asc(nulls_last=True)
    dated = submissions.alias(arrival=Max("status_changes__data_version"))
    return {one.pk: one for one in dated.order_by(arrival, "id")}


def outcomes_of(submissions: Iterable[int]) -> pa.Table:
    query = OUTCOMES.format(condition="s.id = ANY(%s)")
    return standing(copy_out(query, [list(submissions)], schema=READ_SCHEMA))


def n_outcomes_of(submissions: Iterable[int]) -> dict[int, int]:
    """The number of outcomes of each."""
    return dict(Submission.objects.filter(pk__in=list(submissions)).values_list("pk", "n_outcomes"))


def measured_outcomes_of(submissions: Iterable[int]) -> pa.Table:
    """Return the outcomes with cost in US dollars, tokens, seconds and what people said of each trial."""
    return standing(copy_out(MEASURED_OUTCOMES, [list(submissions)], schema=MEASURED_SCHEMA))


def texts_of(submission: int) -> list[tuple[str, pa.Array]]:
    """The distinct texts of a submission's metadata, by column."""
    schema = pa.schema({"name": pa.string(), "text": pa.string()})
    found = copy_out(TEXTS, [submission], schema=schema)
    return [
        (name, found.filter(pc.equal(found["name"], name))["text"])
        for name in pc.unique(found["name"]).to_pylist()
    ]


def settings_of(benchmark: Benchmark) -> dict[tuple[object, ...], int]:
    """The id of each setting by its facets (prompt_variant, judge, temperature, run)."""
    rows = Setting.objects.filter(benchmark=benchmark).values_list("id", *Setting.FACETS)
    return {tuple(facets): pk for pk, *facets in rows}


@dataclass(frozen=True)
class Delivery:
    """An accepted submission. Those of one transaction share their `arrival`, a data version.

    `confirmed`: its invalid outcomes are failures of the harness. `asked`: ids of tasks; None: all active.
    `chosen`: the same in the order in which the study of id `study` chose them for its agent; else empty.
    """

    submission: int
    uuid: UUID
    agent_id: int
    arrival: int
    operator: bool
    asked: frozenset[int] | None
    n_trials: int | None
    confirmed: bool
    submitted_at: datetime | None
    received_at: datetime
    backdated: bool
    imprecise: bool
    links: dict[str, str]
    study: int | None
    chosen: tuple[int, ...]


def deliveries(benchmark: Benchmark, upto: int | None = None) -> list[Delivery]:
    """What counts now, or counted at the data version `upto`; by agent, in order of arrival.

    What an agent delivered that was merged is of the other one from that data version on.
    """
    changes = _upto(StatusChange.objects.filter(submission__agent__benchmark=benchmark), upto)
    latest = changes.exclude(data_version=None).order_by("submission_id", "-id").distinct("submission_id")
    confirmations = _upto(InvalidConfirmation.objects.filter(submission__agent__benchmark=benchmark), upto)
    confirmed = set(confirmations.values_list("submission_id", flat=True))
    merged = merged_agents(benchmark, upto)
    delivered = [
        _delivery(change, confirmed, merged)
        for change in latest.select_related("submission")
        if change.status == Status.ACCEPTED
    ]
    return sorted(delivered, key=lambda one: (one.agent_id, one.arrival, one.submission))


def _delivery(accepted: StatusChange, confirmed: set[int], merged: Mapping[int, int]) -> Delivery:
    submission = accepted.submission
    assert accepted.data_version is not None
    return Delivery(
        submission=submission.pk,
        uuid=submission.uuid,
        agent_id=merged.get(submission.agent_id, submission.agent_id),
        arrival=accepted.data_version,
        operator=submission.loaded,
        asked=None if submission.asked is None else frozenset(submission.asked),
        n_trials=submission.n_trials,
        confirmed=submission.loaded or submission.pk in confirmed,
        submitted_at=submission.submitted_at,
        received_at=submission.received_at,
        backdated=submission.backdated,
        imprecise=submission.imprecise,
        links=submission.links,
        study=submission.study_id,
        chosen=tuple(submission.asked or ()) if submission.study_id else (),
    )


def withheld(
    benchmark: Benchmark, *, policy: Policy | None = None, upto: int | None = None
) -> dict[int, str]:
    """Why an agent may not be ranked, by its id: it took outcomes back, and nobody has approved since."""
    statuses = taking_back(policy or policy_in_force(benchmark))
    changes = _after_board(benchmark, upto).filter(status__in=statuses)
    taken_back = _latest(changes, "submission__agent_id", benchmark, upto)
    approved = approvals(benchmark, upto) if taken_back else {}
    return {
        agent: f"resubmitted: it took outcomes back on {at:%Y-%m-%d}, after a board had shown it, and waits "
        "for an operator to approve"
        for agent, (version, at) in taken_back.items()
        if approved.get(agent, -1) < version
    }


def taking_back(policy: Policy) -> tuple[Status, ...]:
    """What a submission becomes when its owner takes back what a board has shown, where that is withheld.

    Where the last delivery counts alone, each takes back those before it.
    """
    if policy.resubmission == Resubmission.FREE:
        return ()
    replaced = (Status.ACCEPTED,) if policy.duplicates == Duplicates.LATEST else ()
    return (Status.SUPERSEDED, Status.WITHDRAWN, *replaced)


def run_again(benchmark: Benchmark, *, policy: Policy, upto: int | None = None) -> set[int]:
    """Ids of agents that ran their tasks again after a board had shown them, where all deliveries count."""
    if policy.resubmission == Resubmission.FREE or policy.duplicates != Duplicates.MEAN:
        return set()
    again = _after_board(benchmark, upto).filter(status=Status.ACCEPTED)
    found = set(again.values_list("submission__agent_id", flat=True))
    merged = merged_agents(benchmark, upto) if found else {}
    return {merged.get(pk, pk) for pk in found}


def _after_board(benchmark: Benchmark, upto: int | None) -> QuerySet[StatusChange]:
    changes = StatusChange.objects.filter(submission__agent__benchmark=benchmark, after_board=True)
    return _upto(changes, upto)


def approvals(benchmark: Benchmark, upto: int | None = None) -> dict[int, int]:
    """The data version at which an operator last approved an agent, by its id."""
    given = _upto(Approval.objects.filter(agent__benchmark=benchmark), upto)
    approved = _latest(given, "agent_id", benchmark, upto)
    return {agent: version for agent, (version, _) in approved.items()}


def _latest(
    events: QuerySet[Any], agent: str, benchmark: Benchmark, upto: int | None
) -> dict[int, tuple[int, datetime]]:
    latest = events.values_list(agent).annotate(version=Max("data_version"), last=Max("at"))
    rows = list(latest.order_by("version"))
    merged = merged_agents(benchmark, upto) if rows else {}
    # Of several that are one agent by now the last event counts, for it comes last here.
    return {merged.get(pk, pk): (version, at) for pk, version, at in rows}


def _upto(events: QuerySet[Any], version: int | None) -> QuerySet[Any]:
    return events if version is None else events.filter(data_version__lte=version)
