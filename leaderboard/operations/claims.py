"""Names that are held: by an agent that others may not know yet, or by an assignment that came to nothing."""

from collections.abc import Collection
from datetime import datetime
from secrets import token_hex

from django.db.models import Exists, OuterRef, QuerySet

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Agent, AgentAlias, Benchmark, likeness
from leaderboard.operations.acting import acting
from leaderboard.operations.models import Assignment, AssignmentStatus
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import ever_counted

REASON = "an assignment under this name is over, and nothing was delivered"


def free_unused(*, benchmark: Benchmark, names: Collection[str], by: User | None, as_of: datetime) -> None:
    """Free these names for `by`, where somebody else asked for an assignment, let it expire, and delivered
    nothing. Who asked may deliver late as long as nobody else wants the name.

    The row stays with its assignments, under a name that nobody would take.
    """
    wanted = {likeness(name) for name in names}
    unused = _unused(benchmark, as_of).exclude(owner=by) if by else _unused(benchmark, as_of)
    held = [pk for pk, name in unused.values_list("pk", "name") if likeness(name) in wanted]
    if not held:
        return
    locked = benchmark.agents.filter(pk__in=held).order_by("id").select_for_update(no_key=True)
    with acting(by=by, reason=REASON):
        for agent in list(locked):
            if _unused(benchmark, as_of).filter(pk=agent.pk).exists():
                _free(agent, as_of)


def _unused(benchmark: Benchmark, as_of: datetime) -> QuerySet[Agent]:
    theirs = Assignment.objects.filter(agent=OuterRef("pk"))
    is_open = theirs.filter(status=AssignmentStatus.OPEN, expires_at__gt=as_of)
    delivered = Submission.objects.filter(agent=OuterRef("pk"))
    merged = Agent.objects.filter(merged_into=OuterRef("pk"))
    return benchmark.agents.filter(
        Exists(theirs), ~Exists(is_open), ~Exists(delivered), ~Exists(merged), merged_into=None
    )


def _free(agent: Agent, as_of: datetime) -> None:
    agent.assignments.filter(status=AssignmentStatus.OPEN).update(
        status=AssignmentStatus.EXPIRED, ended_at=as_of
    )
    agent.aliases.all().delete()
    agent.name, agent.owner = f"unused {agent.pk} {token_hex(8)}", None
    agent.save(update_fields=["name", "owner"])


def may_know(*, benchmark: Benchmark, name: str, by: User) -> bool:
    """Whether somebody may be told what stands under a name, or one like it: theirs, or what once counted."""
    alike = likeness(name)
    agents = {agent.pk for agent in benchmark.agents.only("pk", "name") if likeness(agent.name) == alike}
    before = AgentAlias.objects.filter(benchmark=benchmark).values_list("agent", "name")
    agents |= {pk for pk, alias in before if likeness(alias) == alike}
    theirs = set(benchmark.agents.filter(owner=by, pk__in=agents).values_list("pk", flat=True))
    others = agents - theirs
    counted = ever_counted().filter(agent__in=others).values_list("agent", flat=True).distinct()
    return others <= set(counted)
