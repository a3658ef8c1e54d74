"""Names of agents: corrected by an operator, or held.

An agent gets another name, or two are one; old names stay known. A name may be held by an agent that others
may not know yet, or by an assignment that came to nothing.
"""

import shlex
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from secrets import token_hex

from django.db import IntegrityError, transaction
from django.db.models import Exists, Manager, OuterRef, Q, QuerySet
from django.db.models.functions import Lower

from analytics.names import alike, forms, mark_in, without_case
from leaderboard.accounts.models import User
from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Agent, AgentAlias, Benchmark, folded
from leaderboard.catalog.services import AgentDescription, look_alikes, refuse_look_alikes
from leaderboard.errors import Conflict, Faulty, Missing, Refusal
from leaderboard.operations.acting import acting
from leaderboard.operations.models import Assignment, AssignmentStatus
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.parsing.flat import Fault, excerpt, is_name
from leaderboard.submissions.queries import (
    ever_counted,
    live_outcomes,
    trusted_accounts,
    verified_submissions,
)
from leaderboard.submissions.rows import KEY
from leaderboard.submissions.services import bump_data_version

MADE_OF = {"scaffold": "scaffold__name", "model": "model__name"}
HELD_FOR = timedelta(days=1)
REASON = "an assignment was asked for under this name over a day ago, and nothing was delivered"


def agent_named(benchmark: Benchmark, name: str) -> Agent:
    if agent := benchmark.agents.select_related("benchmark").filter(name=name).first():
        return agent
    raise Missing(f"Unknown agent {name!r} on {benchmark}. Check the spelling.", code="no_such_agent")


@transaction.atomic
def rename(*, agent: Agent, name: str, by: User | None, reason: str, as_of: datetime) -> Agent:
    """Call an agent by another name from now on; deliveries under the old one are still its own.

    Boards that were published keep the name under which they showed it.
    """
    (locked,) = _locked([agent])
    if locked.merged_into_id:
        raise Conflict(
            f"{locked.name!r} was merged into {locked.merged_into}; rename that one.", code="merged_already"
        )
    if not is_name(name):
        raise Refusal("Invalid name. Use 1 to 255 visible characters.", code="not_a_name")
    _check_free(locked, name)
    with acting(by=by, reason=reason):
        if folded(name) != folded(locked.name):
            locked.aliases.alias(lower=Lower("name")).filter(lower=folded(name)).delete()
            _alias(locked, locked.name, by=by, reason=reason, as_of=as_of)
        # Of two that take one name at once the second is refused by the database
        locked.name = name
        try:
            with transaction.atomic():
                locked.save(update_fields=["name"])
        except IntegrityError:
            raise Conflict(f"Another agent has the name {name!r}.", code="name_taken") from None
        bump_data_version(benchmark=locked.benchmark)
    return locked


@transaction.atomic
def merge(*, agent: Agent, into: Agent, by: User | None, reason: str, as_of: datetime) -> Agent:
    """Let all that an agent delivered, and what comes under its name, count as another agent's."""
    locked = {one.pk: one for one in _locked([agent, into])}
    source, target = locked[agent.pk], locked[into.pk]
    check_mergeable(source, target)
    with acting(by=by, reason=reason):
        version = bump_data_version(benchmark=target.benchmark)
        source.merged.update(merged_into=target)
        source.merged_into, source.merged_version = target, version
        source.save(update_fields=["merged_into", "merged_version"])
        source.aliases.update(agent=target)
        _alias(target, source.name, by=by, reason=reason, as_of=as_of)
        expire(source.assignments, as_of)
    return target


def expire(assignments: "Manager[Assignment] | QuerySet[Assignment]", as_of: datetime) -> int:
    still_open = assignments.filter(status=AssignmentStatus.OPEN)
    return still_open.update(status=AssignmentStatus.EXPIRED, ended_at=as_of)


def check_mergeable(source: Agent, target: Agent) -> None:
    if source.merged_into_id:
        raise Conflict(
            f"{source.name!r} was merged into {source.merged_into} already.", code="merged_already"
        )
    why = ""
    if source.pk == target.pk:
        why = "they are one agent already"
    elif source.benchmark_id != target.benchmark_id:
        why = "they are of different benchmarks"
    elif target.merged_into_id:
        why = f"{target.name!r} was merged itself, into {target.merged_into}"
    else:
        key = [name for name in KEY if name != "agent"]
        one, other = (live_outcomes([agent.pk]).select(key) for agent in (source, target))
        if n_shared := int(one.join(other, keys=key, join_type="inner").num_rows):
            why = f"both hold an outcome of the same task, setting and trial, {n_shared:,} times"
    if why:
        raise Conflict(f"Cannot merge {source.name!r} into {target.name!r}: {why}.", code="cannot_merge")


def _locked(agents: Iterable[Agent]) -> list[Agent]:
    """The agents, locked in the order in which deliveries lock them."""
    rows = Agent.objects.filter(pk__in=[agent.pk for agent in agents]).select_related("benchmark")
    return list(rows.order_by("id").select_for_update(no_key=True, of=("self",)))


def _check_free(agent: Agent, name: str) -> None:
    others = agent.benchmark.agents.exclude(pk=agent.pk).values_list("name", "merged_into__name", "name")
    gone = AgentAlias.objects.filter(benchmark=agent.benchmark).exclude(agent=agent)
    for other, merged_into, now in (
        *others,
        *gone.values_list("name", "agent__merged_into__name", "agent__name"),
    ):
        if without_case(other) == without_case(name):
            names = shlex.join([str(agent.benchmark), agent.name, merged_into or now])
            raise Conflict(
                f"Another agent has or had the name {other!r}. "
                f"To join them: {PROGRAM} merge {names} --reason TEXT",
                code="name_taken",
            )


def _alias(agent: Agent, name: str, *, by: User | None, reason: str, as_of: datetime) -> None:
    AgentAlias.objects.create(
        agent=agent, benchmark=agent.benchmark, name=name, reason=reason, at=as_of, by=by
    )


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
                expire(agent.assignments, as_of)
                agent.aliases.all().delete()
                agent.name, agent.owner = f"unused {agent.pk} {token_hex(8)}", None
                agent.save(update_fields=["name", "owner"])


def _unused(benchmark: Benchmark, as_of: datetime) -> QuerySet[Agent]:
    theirs = Assignment.objects.filter(agent=OuterRef("pk"))
    recent = theirs.filter(created_at__gt=as_of - HELD_FOR)
    delivered = Submission.objects.filter(agent=OuterRef("pk"))
    merged = Agent.objects.filter(merged_into=OuterRef("pk"))
    return benchmark.agents.filter(
        Exists(theirs), ~Exists(recent), ~Exists(delivered), ~Exists(merged), merged_into=None
    )


def may_know(*, benchmark: Benchmark, name: str, by: User | None) -> bool:
    """Whether somebody, or for None anybody, may know what stands under a name, or one like it: theirs, or
    what once counted.
    """
    agents = {pk for pk, known in benchmark.agents.values_list("pk", "name") if alike(known, name)}
    before = AgentAlias.objects.filter(benchmark=benchmark).values_list("agent", "name")
    agents |= {pk for pk, alias in before if alike(alias, name)}
    theirs = set(by.agents.filter(pk__in=agents).values_list("pk", flat=True)) if by else set[int]()
    others = agents - theirs
    counted = ever_counted().filter(agent__in=others).values_list("agent", flat=True).distinct()
    return others <= set(counted)


def check_no_marks(benchmark: Benchmark, described: AgentDescription) -> None:
    """Refuse names that may pass for a mark of the board, unless an agent there has them or had them."""
    faults = []
    for field, text in described._asdict().items():
        known = Q(**{MADE_OF.get(field, field): text}) | Q(aliases__name=text)
        if (sign := mark_in(text)) and not benchmark.agents.filter(known).exists():
            rule = f"has the sign {sign} (U+{ord(sign):04X}), as a mark of the board; use plain letters"
            faults.append(Fault(None, "agent" if field == "name" else field, excerpt(text), rule))
    if faults:
        raise Faulty(faults=tuple(faults))


def check_made_of(agent: Agent) -> None:
    """Refuse a scaffold or model that reads like another of the benchmark, of an agent without a delivery.

    It is compared with its owner's, and with agents that count and are verified or of a trusted account.
    """
    benchmark = agent.benchmark
    vouched = Q(agent__owner__in=trusted_accounts(benchmark)) | Q(pk__in=verified_submissions(benchmark))
    counting = Submission.objects.filter(
        vouched | Q(loaded=True), agent=OuterRef("pk"), status=Status.ACCEPTED
    )
    others = benchmark.agents.exclude(pk=agent.pk).filter(Exists(counting) | Q(owner=agent.owner))
    for kind, field in MADE_OF.items():
        name, names = getattr(agent, kind).name, set(others.values_list(field, flat=True))
        if name not in names:
            refuse_look_alikes(kind, look_alikes([name], names))
