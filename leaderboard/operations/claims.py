"""Names that are held: by an agent that others may not know yet, or by an assignment that came to nothing."""

from collections.abc import Collection
from datetime import datetime, timedelta
from secrets import token_hex

from django.db.models import Exists, OuterRef, Q, QuerySet

from analytics.names import alike, forms
from leaderboard.accounts.models import User
from leaderboard.catalog.models import Agent, AgentAlias, Benchmark
from leaderboard.catalog.services import look_alikes, refuse_look_alikes
from leaderboard.operations.acting import acting
from leaderboard.operations.models import Assignment, AssignmentStatus
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import ever_counted

HELD_FOR = timedelta(days=1)
REASON = "an assignment was asked for under this name over a day ago, and nothing was delivered"


def free_unused(*, benchmark: Benchmark, names: Collection[str], by: User | None, as_of: datetime) -> None:
    """Free these names for `by`, where somebody else asked for an assignment over a day ago and delivered
    nothing. Who asked may still deliver as long as nobody else wants the name.

    The row stays with its assignments, under a name that nobody would take.
    """
    wanted = frozenset().union(*map(forms, names))
    unused = _unused(benchmark, as_of).exclude(owner=by) if by else _unused(benchmark, as_of)
    claimed = [pk for pk, name in unused.values_list("pk", "name") if not wanted.isdisjoint(forms(name))]
    if not claimed:
        return
    locked = benchmark.agents.filter(pk__in=claimed).order_by("id").select_for_update(no_key=True)
    with acting(by=by, reason=REASON):
        for agent in list(locked):
            if _unused(benchmark, as_of).filter(pk=agent.pk).exists():
                _free(agent, as_of)


def _unused(benchmark: Benchmark, as_of: datetime) -> QuerySet[Agent]:
    theirs = Assignment.objects.filter(agent=OuterRef("pk"))
    recent = theirs.filter(created_at__gt=as_of - HELD_FOR)
    delivered = Submission.objects.filter(agent=OuterRef("pk"))
    merged = Agent.objects.filter(merged_into=OuterRef("pk"))
    return benchmark.agents.filter(
        Exists(theirs), ~Exists(recent), ~Exists(delivered), ~Exists(merged), merged_into=None
    )


def _free(agent: Agent, as_of: datetime) -> None:
    agent.assignments.filter(status=AssignmentStatus.OPEN).update(
        status=AssignmentStatus.EXPIRED, ended_at=as_of
    )
    agent.aliases.all().delete()
    agent.name, agent.owner = f"unused {agent.pk} {token_hex(8)}", None
    agent.save(update_fields=["name", "owner"])


def may_know(*, benchmark: Benchmark, name: str, by: User) -> bool:
    """Whether somebody may know what stands under a name, or one like it: theirs, or what once counted."""
    agents = {pk for pk, known in benchmark.agents.values_list("pk", "name") if alike(known, name)}
    before = AgentAlias.objects.filter(benchmark=benchmark).values_list("agent", "name")
    agents |= {pk for pk, alias in before if alike(alias, name)}
    theirs = set(benchmark.agents.filter(owner=by, pk__in=agents).values_list("pk", flat=True))
    others = agents - theirs
    counted = ever_counted().filter(agent__in=others).values_list("agent", flat=True).distinct()
    return others <= set(counted)


def check_made_of(agent: Agent) -> None:
    """Refuse a scaffold or model that reads like another of the benchmark, of an agent without a delivery.

    Those of agents that nobody else may know of yet are not compared.
    """
    counted = ever_counted().filter(agent=OuterRef("pk"))
    others = agent.benchmark.agents.exclude(pk=agent.pk).filter(Exists(counted) | Q(owner=agent.owner))
    made_of = list(others.values_list("scaffold__name", "model__name"))
    for kind, names in (("scaffold", {one for one, _ in made_of}), ("model", {one for _, one in made_of})):
        name = getattr(agent, kind).name
        if name not in names:
            refuse_look_alikes(look_alikes(kind, [name], names))
