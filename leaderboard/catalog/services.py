"""Writes to the catalog. Each runs inside the caller's transaction where there is one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Lower

from analytics.names import NOT_STATED, alike, forms, without_case
from leaderboard.accounts.models import User
from leaderboard.called import PROGRAM
from leaderboard.catalog.models import (
    Agent,
    AgentAlias,
    Benchmark,
    Membership,
    Model,
    Policy,
    Role,
    Scaffold,
    Task,
    folded,
)
from leaderboard.errors import Conflict, Refusal

N_NAMED = 20  # agents or tasks named in one message


Named = TypeVar("Named", Scaffold, Model)


class AgentDescription(NamedTuple):
    name: str
    scaffold: str
    model: str
    version: str = ""
    organisation: str = ""
    weights: str = ""


AGENT_OPTIONAL = AgentDescription._fields[3:]
NAMED = ("scaffold", "model")
DESCRIBED_OTHERWISE = "agent_described_otherwise"


class AgentMismatch(Conflict):
    message = "An agent with this or a similar name already exists and differs."


def require_address(slug: str) -> None:
    """Refuse a name of a new benchmark that a command would take for an option."""
    if not slug[:1].isalnum():
        raise Refusal(
            f"Invalid name for an address: {slug!r}. Begin with a letter or a digit.", code="not_a_slug"
        )


@transaction.atomic
def get_or_create_benchmark(*, slug: str, title: str) -> tuple[Benchmark, bool]:
    benchmark, created = Benchmark.objects.get_or_create(slug=slug, defaults={"title": title})
    if created:
        require_address(slug)
        Policy.objects.create(benchmark=benchmark, number=1)
    return benchmark, created


@transaction.atomic
def grant(*, user: User, benchmark: Benchmark, role: Role) -> None:
    """Give the person this role, unless theirs allows more already."""
    membership, created = Membership.objects.get_or_create(
        user=user, benchmark=benchmark, defaults={"role": role}
    )
    ranks = list(Role)
    if not created and ranks.index(Role(membership.role)) < ranks.index(role):
        Membership.objects.filter(pk=membership.pk).update(role=role)


def grouped_tasks(benchmark: Benchmark) -> dict[str, tuple[str, str]]:
    rows = benchmark.tasks.values_list("name", "category", "group")
    return {name: (category, group) for name, category, group in rows}


def ensure_tasks(
    *,
    benchmark: Benchmark,
    categories: Mapping[str, str | None],
    groups: Mapping[str, str | None] | None = None,
) -> int:
    """Make new tasks, give category and group to those that have none, and return how many are new."""
    delivered_by_field = {"category": categories, "group": groups or {}}
    known = {
        name: {"category": category, "group": group}
        for name, (category, group) in grouped_tasks(benchmark).items()
    }
    for field, delivered in delivered_by_field.items():
        _check_stays(field, {name: task[field] for name, task in known.items()}, delivered)
    new = [
        Task(
            benchmark=benchmark,
            name=name,
            category=category or "",
            group=delivered_by_field["group"].get(name) or "",
            position=position,
        )
        for position, (name, category) in enumerate(categories.items(), start=len(known))
        if name not in known
    ]
    Task.objects.bulk_create(new, ignore_conflicts=True)
    for field, values in delivered_by_field.items():
        for name, value in values.items():
            if value and name in known and not known[name][field]:
                benchmark.tasks.filter(name=name).update(**{field: value})
    return len(new)


def _check_stays(field: str, known: Mapping[str, str], delivered: Mapping[str, str | None]) -> None:
    moved = [name for name, value in delivered.items() if value and known.get(name, "") not in ("", value)]
    if moved:
        lines = (
            f"The task {name!r} is in the {field} {known[name]!r}, but came with {delivered[name]!r}."
            for name in moved[:N_NAMED]
        )
        message = "\n".join(lines) + _in_all(len(moved), "tasks")
        raise Conflict(message, code=f"task_in_another_{field}")


def ensure_agents(
    *,
    benchmark: Benchmark,
    descriptions: Iterable[AgentDescription],
    owner: User | None,
    describe_owned: bool = False,
) -> dict[str, Agent]:
    """Return the agents by the names given, made where new, each locked until the transaction ends.

    `describe_owned`: agents that submitters own are described as here from now on.

    The lock makes two deliveries for one agent wait for each other; it is taken in order of id, and after
    that of the owner's account, which the caller holds (`lock_account`), so that nobody waits in a circle. An
    agent is found under a name that it had before, too, and in the place of one that was merged stands the
    other.
    """
    described = list(descriptions)
    # Descriptions with the names that agents have now, where they had others before
    aliases = AgentAlias.objects.filter(benchmark=benchmark).alias(lower=Lower("name"))
    rows = aliases.filter(lower__in=[folded(d.name) for d in described]).exclude(
        name__in=benchmark.agents.values("name")  # merged, not renamed: it has a row of its own
    )
    now = {folded(name): present for name, present in rows.values_list("name", "agent__name")}
    descriptions = [d._replace(name=now.get(folded(d.name), d.name)) for d in described]
    names = [d.name for d in descriptions]
    known = {folded(name) for name in _same_names(benchmark, names).values_list("name", flat=True)}
    new = [d for d in descriptions if folded(d.name) not in known]
    if new:
        _check_looks_like_none(benchmark, new, by_operator=owner is None)
    if owner and new:
        _check_no_second_name(benchmark, new, owner)
    if new:
        _create_agents(benchmark, new, owner)
    agents = _locked(benchmark, names)
    if describe_owned:
        _describe_anew([(a, d) for d in descriptions if (a := agents[folded(d.name)]).owner])
    _check_same(((agents[folded(d.name)], d) for d in descriptions), by_operator=owner is None)
    by_id = {agent.pk: agent for agent in agents.values()}
    locked = (agents[folded(d.name)] for d in descriptions)
    return {d.name: by_id.get(a.merged_into_id or 0, a) for d, a in zip(described, locked, strict=True)}


def _locked(benchmark: Benchmark, names: list[str]) -> dict[str, Agent]:
    """The agents of these names and those that they were merged into, by name."""
    here = _same_names(benchmark, names)
    rows = benchmark.agents.filter(Q(pk__in=here.values("pk")) | Q(merged__in=here.values("pk"))).distinct()
    ids = sorted(rows.values_list("pk", flat=True))
    locked = benchmark.agents.filter(pk__in=ids).select_related("scaffold", "model", "owner")
    return {folded(a.name): a for a in locked.order_by("id").select_for_update(of=("self",), no_key=True)}


def _create_agents(benchmark: Benchmark, new: list[AgentDescription], owner: User | None) -> None:
    scaffolds = _ensure_names(Scaffold, [d.scaffold for d in new])
    models = _ensure_names(Model, [d.model for d in new])
    Agent.objects.bulk_create(
        (
            Agent(
                benchmark=benchmark,
                name=d.name,
                scaffold=scaffolds[folded(d.scaffold)],
                model=models[folded(d.model)],
                version=d.version,
                organisation=d.organisation,
                weights=d.weights,
                owner=owner,
            )
            for d in new
        ),
        ignore_conflicts=True,
    )


def _describe_anew(pairs: Sequence[tuple[Agent, AgentDescription]]) -> None:
    scaffolds = _ensure_names(Scaffold, [d.scaffold for _, d in pairs])
    models = _ensure_names(Model, [d.model for _, d in pairs])
    for agent, d in pairs:
        agent.name = d.name
        agent.scaffold, agent.model = scaffolds[folded(d.scaffold)], models[folded(d.model)]
        for field in AGENT_OPTIONAL:
            setattr(agent, field, getattr(d, field))
        agent.save(update_fields=["name", "scaffold", "model", *AGENT_OPTIONAL])


def _check_looks_like_none(
    benchmark: Benchmark, new: Iterable[AgentDescription], *, by_operator: bool
) -> None:
    """Refuse a new agent whose name reads like a known one; two that come at once may both be taken.

    An operator's may look like another as long as they differ in more than case and forms of letters.
    """
    before = AgentAlias.objects.filter(benchmark=benchmark).values_list("name", flat=True)
    known = [*before, *benchmark.agents.values_list("name", flat=True)]
    alike_names = look_alikes([d.name for d in new], known)
    if by_operator:
        both = alike_names.items()
        alike_names = {name: one for name, one in both if without_case(name) == without_case(one)}
    hint = f" Or rename it: {PROGRAM} rename {benchmark} OLD NEW --reason TEXT" if by_operator else ""
    refuse_look_alikes("agent", alike_names, hint)


def reads_like(kind: str, name: str, known: str) -> str:
    return f"The {kind} {name!r} reads like {known!r}, which already exists"


def look_alikes(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Names that read like a known one which is spelt otherwise, each with one of those."""
    by_form: dict[str, list[str]] = {}
    for other in known:
        for form in forms(other):
            by_form.setdefault(form, []).append(other)
    others = {name: [one for form in forms(name) for one in by_form.get(form, ())] for name in names}
    twins = {
        name: [one for one in spellings if folded(one) != folded(name)] for name, spellings in others.items()
    }
    return {name: min(spellings) for name, spellings in twins.items() if spellings}


def refuse_look_alikes(kind: str, known_of: Mapping[str, str], hint: str = "") -> None:
    if known_of:
        lines = (
            f"{reads_like(kind, name, known)}. Use that spelling or another name.{hint}"
            for name, known in list(known_of.items())[:N_NAMED]
        )
        message = "\n".join(lines) + _in_all(len(known_of), f"{kind}s")
        raise AgentMismatch(message, code="looks_like_another")


def _check_no_second_name(
    benchmark: Benchmark, descriptions: Iterable[AgentDescription], owner: User
) -> None:
    """Refuse an agent that its owner has delivered under another name, whatever became of it; a scaffold,
    model or version that reads the same is the same here.

    The owner's account is locked, so that two such names that come at once wait for each other.
    """
    owned = benchmark.agents.filter(owner=owner).order_by("id")
    rows = owned.values_list("name", "scaffold__name", "model__name", "version")
    theirs = [AgentDescription(*row) for row in rows]
    for described in descriptions:
        same = (one.name for one in theirs if all(map(alike, one[1:4], described[1:4])))  # but for the name
        if (name := next(same, described.name)) != described.name:
            raise Conflict(
                f"You have delivered this agent before as {name!r}: {described.name!r} has the same scaffold "
                f"{described.scaffold!r}, model {described.model!r} and "
                f"{f'version {described.version!r}' if described.version else 'no version'}. "
                "Deliver further runs under that name, or give a changed agent a version of its own.",
                code="second_name",
                agents=[name, described.name],
            )


def complete_agents(
    *, benchmark: Benchmark, agents: Mapping[str, Agent], descriptions: Iterable[AgentDescription]
) -> int:
    """Fill in what an operator states of agents and nobody stated before; near the transaction's end.

    Returns how many agents got a scaffold or a model: the caller counts a data version for these.
    """
    completed, named = list[Agent](), set[int]()
    pairs = [(agents[described.name], described) for described in descriptions]
    free = [(agent, described) for agent, described in pairs if agent.owner is None]
    scaffolds = _ensure_names(
        Scaffold, [one.scaffold for agent, one in free if _adds(one, agent, "scaffold")]
    )
    models = _ensure_names(Model, [one.model for agent, one in free if _adds(one, agent, "model")])
    for agent, described in free:
        if _adds(described, agent, "scaffold"):
            agent.scaffold = scaffolds[folded(described.scaffold)]
            named.add(agent.pk)
        if _adds(described, agent, "model"):
            agent.model = models[folded(described.model)]
            named.add(agent.pk)
    for agent, described in pairs:
        added = [name for name in AGENT_OPTIONAL if getattr(described, name) and not getattr(agent, name)]
        for field in added:
            setattr(agent, field, getattr(described, field))
        if added or agent.pk in named:
            completed.append(agent)
    if completed:
        Agent.objects.bulk_update(completed, [*AGENT_OPTIONAL, *NAMED])
        bump_shown_version(benchmark=benchmark)
    return len(named)


def _adds(described: AgentDescription, agent: Agent, field: str) -> bool:
    """Whether a scaffold or model is stated here, and was not before."""
    return _is_stated(getattr(described, field)) and not _is_stated(getattr(agent, field).name)


def _is_stated(text: str) -> bool:
    return folded(text) not in ("", NOT_STATED)


def bump_shown_version(*, benchmark: Benchmark) -> None:
    """Say that something else changes that a page shows: the last statement but that of the data version."""
    Benchmark.objects.filter(pk=benchmark.pk).update(shown_version=F("shown_version") + 1)


def _same_names(benchmark: Benchmark, names: list[str]) -> QuerySet[Agent]:
    lower = [folded(name) for name in names]
    return benchmark.agents.alias(lower=Lower("name")).filter(lower__in=lower)


def _ensure_names(kind: type[Named], names: list[str]) -> dict[str, Named]:
    """Return rows by lower-case name; the first spelling that came stays."""
    spelled = {folded(name): name for name in reversed(names)}
    rows = kind._default_manager.alias(lower=Lower("name")).filter(lower__in=spelled)
    known: dict[str, Named] = {folded(row.name): row for row in rows}
    absent = [
        kind(name=NOT_STATED if name == NOT_STATED else spelled[name])
        for name in sorted(spelled.keys() - known.keys())
    ]
    if not absent:
        return known
    kind._default_manager.bulk_create(absent, ignore_conflicts=True)
    return {folded(row.name): row for row in rows.all()}


def _check_same(pairs: Iterable[tuple[Agent, AgentDescription]], *, by_operator: bool) -> None:
    """Refuse agents that are known otherwise; an operator may state what nobody stated, or leave it out."""
    differing = []
    for agent, described in pairs:
        optional = {field: getattr(agent, field) for field in AGENT_OPTIONAL}
        stored = AgentDescription(agent.name, agent.scaffold.name, agent.model.name, **optional)
        fields = [] if stored.name == described.name else ["name"]
        for field in (*NAMED, "version"):
            value, known = getattr(described, field), getattr(stored, field)
            is_open = by_operator and (
                not _is_stated(value)
                or (not _is_stated(known) and (field == "version" or agent.owner is None))
            )
            if value and folded(value) != folded(known) and not is_open:
                fields.append(field)
        if fields:
            differing.append((agent, stored, described, fields))
    if not differing:
        return
    sentences = []
    for agent, stored, described, fields in differing[:N_NAMED]:
        here, new = (
            ", ".join(f"{field} {getattr(side, field)!r}" for field in fields) for side in (stored, described)
        )
        sentence = f"The agent {described.name!r} is known here with {here}, but was delivered with {new}; "
        if fields == ["name"]:
            sentences.append(f"{sentence}spell it as before.")
        elif by_operator and agent.owner:
            sentences.append(f"{sentence}{agent.owner} owns the name. Add --own to take it over.")
        else:
            sentences.append(f"{sentence}a changed agent needs a name of its own.")
    raise AgentMismatch(
        "\n".join(sentences) + _in_all(len(differing), "agents"),
        code=DESCRIBED_OTHERWISE,
        agents=[
            {"stored": stored._asdict(), "delivered": described._asdict()}
            for _, stored, described, _ in differing[:N_NAMED]
        ],
    )


def _in_all(n: int, noun: str) -> str:
    return f"\n({n:,} {noun} in all)" if n > N_NAMED else ""
