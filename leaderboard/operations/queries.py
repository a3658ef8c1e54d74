"""Reads of operations. Nothing heavy is imported: intake asks them."""

from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.operations.models import RerunAgent, RerunKind, RerunRequest, RerunStatus


def open_request(benchmark: Benchmark, kind: RerunKind) -> RerunRequest | None:
    """The one request of this kind that is open; one of the kind *drift* turns assignments to full."""
    return benchmark.rerun_requests.filter(kind=kind, status=RerunStatus.OPEN).first()


def request_naming(agent: Agent) -> RerunRequest | None:
    """The open request that waits for this agent."""
    waiting = RerunAgent.objects.filter(agent=agent, arrived_at=None, request__status=RerunStatus.OPEN)
    first = waiting.select_related("request").order_by("request_id").first()
    return first.request if first else None
