"""What open requests and alerts say of a benchmark: its phase, a notice, and whose full runs were drawn."""

from django.db.models import QuerySet

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.models import (
    Assignment,
    AssignmentStatus,
    RerunAgent,
    RerunKind,
    RerunRequest,
    RerunStatus,
)
from leaderboard.operations.queries import open_request
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.queries import Reruns
from leaderboard.studies.staged_steps import DRAWN


def known_reruns(benchmark: Benchmark, subset: TaskSubset | None) -> Reruns:
    """What a board has to know of rerun requests on the subset in use."""
    recalled, late = (_awaited(benchmark, status) for status in (RerunStatus.OPEN, RerunStatus.EXPIRED))
    overdue = tuple(sorted({*late, *_drawn_in_vain(benchmark)}))
    if subset is None:
        return Reruns(recalled=recalled, overdue=overdue)
    drawn = RerunAgent.objects.filter(request__subset=subset, sampled=True).order_by("request_id")
    request = open_request(benchmark, RerunKind.DRIFT)
    return Reruns(
        revalidating=_revalidating(request) if request else "",
        not_revalidated="" if request else _not_revalidated(benchmark, subset),
        sampled=dict(drawn.values_list("agent_id", "inclusion")),
        recalled=recalled,
        overdue=overdue,
    )


def _awaited(benchmark: Benchmark, status: RerunStatus) -> tuple[int, ...]:
    """Ids of the agents whose recall has this status, and whose runs have not arrived."""
    recalls = {"request__kind": RerunKind.RECALL, "request__status": status, "arrived_at": None}
    awaited = RerunAgent.objects.filter(request__benchmark=benchmark, **recalls)
    return tuple(awaited.order_by("agent_id").values_list("agent_id", flat=True))


def _drawn_in_vain(benchmark: Benchmark) -> QuerySet[Assignment, int]:
    """Ids of the agents that were drawn to run the rest, and ran it or let its days pass.

    Who ran it has a measured score, unless it took the rest back.
    """
    drawn = Assignment.objects.filter(decisions__contains=[{"stage": DRAWN}])
    over = drawn.filter(agent__benchmark=benchmark).exclude(status=AssignmentStatus.OPEN)
    return over.values_list("agent_id", flat=True)


def _revalidating(request: RerunRequest) -> str:
    return f"full runs are asked for until {request.deadline:%Y-%m-%d}, of new agents too: {request.reason}"


def _not_revalidated(benchmark: Benchmark, subset: TaskSubset) -> str:
    """Say it of open alerts whose runs did not come; empty without one."""
    alerts = benchmark.alerts.filter(
        subset=subset, closed_at=None, request__status=RerunStatus.EXPIRED
    ).order_by("opened_at", "id")
    if not (late := list(alerts.select_related("request"))):
        return ""
    monitors = ", ".join(alert.monitor for alert in late)
    deadline = max(alert.request.deadline for alert in late if alert.request)
    return (
        f"the subset was not revalidated since {late[0].opened_at:%Y-%m-%d}: a monitor alarmed ({monitors}), "
        f"and not all full runs that were asked for came by {deadline:%Y-%m-%d}"
    )
