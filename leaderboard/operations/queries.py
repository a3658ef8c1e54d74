"""Reads of operations. Nothing heavy is imported: intake asks them."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.db.models import OuterRef, Q, Subquery

from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.operations.models import JobRun, RerunAgent, RerunKind, RerunRequest, RerunStatus
from leaderboard.studies.answers import words
from leaderboard.studies.models import TaskSubset
from leaderboard.submissions.models import Status, StatusChange


def latest_run(benchmark: Benchmark, kind: str) -> JobRun | None:
    """The latest run of a job on a benchmark."""
    return JobRun.objects.filter(benchmark=benchmark, kind=kind).order_by("-id").first()


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
