"""Reads of operations. Nothing heavy is imported: intake asks them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery

from leaderboard.boards.models import Entry
from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.errors import Conflict, Missing
from leaderboard.operations.models import (
    JobRun,
    JobStatus,
    Lane,
    RerunAgent,
    RerunKind,
    RerunRequest,
    RerunStatus,
)
from leaderboard.studies.answers import words
from leaderboard.studies.models import TaskSubset
from leaderboard.submissions.models import LIVE, Status, StatusChange, Submission

AT_ONCE = datetime.min.replace(tzinfo=UTC)


class NoSuchSubmission(Missing):
    message = "Unknown submission. Check the id."


class CountsNoMore(Conflict):
    message = "This submission was refused, replaced or withdrawn and no longer counts."


def waiting_text(benchmark: Benchmark, kind: str) -> str:
    """Say that a long job runs, is queued, or starts after another one; empty where no long job is open."""
    of_lane = JobRun.objects.filter(lane=Lane.LONG, status__in=(JobStatus.QUEUED, JobStatus.RUNNING))
    runs = {(run.benchmark_id, run.kind): run.status for run in of_lane}
    if own := runs.get((benchmark.pk, kind)):
        return f"It is {own}."
    return "It starts after another long job." if runs and benchmark.data_version else ""


def open_request(benchmark: Benchmark, kind: RerunKind) -> RerunRequest | None:
    """The one request of this kind that is open; one of the kind *drift* turns assignments to full."""
    return benchmark.rerun_requests.filter(kind=kind, status=RerunStatus.OPEN).first()


def accounts_behind(subset: TaskSubset, monitor: Mapping[str, Any]) -> str:
    """Whose agents a monitor speaks of: those that it names, or all that came after the subset was fixed.

    With addresses: for operators alone.
    """
    accepted = StatusChange.objects.filter(status=Status.ACCEPTED, submission__agent=OuterRef("pk"))
    first = Subquery(accepted.order_by("data_version").values("data_version")[:1])
    agents = subset.benchmark.agents.annotate(first=first).filter(first__gt=subset.data_version)
    if named := monitor.get("evidence", {}).get("agents"):
        agents = agents.filter(name__in=named)
    n_agents = Counter(agents.values_list("owner__email", flat=True))
    behind = [(email or "loaded", words.counted(n, "agent")) for email, n in n_agents.most_common()]
    return ", ".join(f"{whose} ({n})" for whose, n in behind)


def is_recalled(agent: int) -> bool:
    """Whether a recall waits for the agent of this id, which stands by its estimate meanwhile."""
    recall = {"request__kind": RerunKind.RECALL, "request__status": RerunStatus.OPEN}
    return RerunAgent.objects.filter(agent=agent, arrived_at=None, **recall).exists()


def request_naming(agent: Agent) -> RerunRequest | None:
    """The open request that waits for this agent, or the recall whose deadline it let pass."""
    overdue = Q(request__kind=RerunKind.RECALL, request__status=RerunStatus.EXPIRED)
    awaited = RerunAgent.objects.filter(agent=agent, arrived_at=None)
    waiting = awaited.filter(Q(request__status=RerunStatus.OPEN) | overdue)
    first = waiting.select_related("request").order_by("request_id").first()
    return first.request if first else None


def pace(benchmark: Benchmark) -> timedelta:
    return timedelta(seconds=policy_in_force(benchmark).publish_every)


def may_publish_at(benchmark: Benchmark) -> datetime:
    """From when on the clock may publish another board; a person may at any time."""
    latest = benchmark.boards.order_by("-number").values_list("published_at", flat=True).first()
    return AT_ONCE if latest is None else latest + pace(benchmark)


def has_been_shown(agent: Agent, before: datetime | None = None) -> bool:
    """Whether a board has shown this agent, so that its owner knows, or knew before, how it came out."""
    shown = Entry.objects.filter(agent__in=filter(None, (agent.pk, agent.merged_into_id)))
    return (shown if before is None else shown.filter(board__published_at__lte=before)).exists()


def locked_benchmark(benchmark: Benchmark) -> Benchmark:
    """The benchmark as it is now; whoever changes what hangs on it waits for the other."""
    return Benchmark.objects.select_for_update(no_key=True).get(pk=benchmark.pk)


def locked_submissions(uuids: Sequence[UUID]) -> list[Submission]:
    """Return live submissions, their agents locked in the order in which deliveries lock them."""
    named = Q(submissions__uuid__in=uuids) | Q(merged__submissions__uuid__in=uuids)
    ids = set(Agent.objects.filter(named).values_list("id", flat=True))
    list(Agent.objects.filter(pk__in=ids).order_by("id").select_for_update(no_key=True))
    rows = Submission.objects.filter(uuid__in=uuids).select_related("agent__benchmark", "agent__owner")
    submissions = list(rows.order_by("id"))
    if absent := set(uuids) - {submission.uuid for submission in submissions}:
        raise NoSuchSubmission(f"There is no submission {', '.join(sorted(map(str, absent)))}.")
    for submission in submissions:
        if submission.status not in LIVE:
            raise CountsNoMore(f"The submission {submission.uuid} is {submission.status}; it does not count.")
    return submissions
