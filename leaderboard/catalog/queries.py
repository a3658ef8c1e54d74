"""Reads of the catalog."""

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform

from analytics.names import first_names
from leaderboard.accounts.models import ApiToken, Scope, User, has_confirmed_address
from leaderboard.catalog.models import Agent, Benchmark, Membership, Policy, Role, Task, Visibility
from leaderboard.errors import Missing

MAX_NAMED = 20


class NoSuchBenchmark(Missing):
    message = "Unknown benchmark. Check the name."


def benchmark_of(slug: str) -> Benchmark:
    """Return the benchmark, for those who operate it."""
    if benchmark := Benchmark.objects.filter(slug=slug).first():
        return benchmark
    known = list(Benchmark.objects.order_by("slug").values_list("slug", flat=True))
    names = f"Known: {first_names(known, MAX_NAMED)}." if known else "None is loaded yet."
    raise NoSuchBenchmark(f"There is no benchmark {slug!r}. {names}")


def visible_benchmarks(user: User | None) -> QuerySet[Benchmark]:
    """The benchmarks this visitor may read: all but private and hidden ones, and those of members.

    Nobody sees a replay who does not see the benchmark that it replays.
    """
    if user is not None and user.is_staff:
        return Benchmark.objects.all()
    seen = ~Q(visibility=Visibility.PRIVATE) & Q(hidden_at=None)
    if user is not None:
        seen |= Q(Exists(Membership.objects.filter(benchmark=OuterRef("pk"), user=user)))
    source = Benchmark.objects.filter(seen, slug=KeyTextTransform("of", OuterRef("replay")))
    return Benchmark.objects.filter(seen, Q(replay__isnull=True) | Exists(source))


def visible_benchmark(slug: str, user: User | None) -> Benchmark:
    """Return the benchmark; to an outsider a private one does not exist."""
    if benchmark := visible_benchmarks(user).filter(slug=slug).first():
        return benchmark
    raise NoSuchBenchmark(f"There is no benchmark {slug!r}.")


def operated_benchmarks(user: User) -> QuerySet[Benchmark]:
    if user.is_staff:
        return Benchmark.objects.all()
    return Benchmark.objects.filter(memberships__user=user, memberships__role=Role.OPERATOR)


def role_of(user: User, benchmark: Benchmark) -> Role | None:
    if user.is_staff:
        return Role.OPERATOR
    role = Membership.objects.filter(user=user, benchmark=benchmark).values_list("role", flat=True).first()
    return Role(role) if role else None


def submits(user: User, benchmark: Benchmark) -> bool:
    """Whether this person may deliver: as a member, or as anybody where the policy of a public one lets them.

    Anybody is whoever has confirmed an address.
    """
    if role_of(user, benchmark) in (Role.SUBMITTER, Role.OPERATOR):
        return True
    is_public = benchmark.visibility == Visibility.PUBLIC and not benchmark.hidden_at
    return is_public and not policy_in_force(benchmark).members_only and has_confirmed_address(user)


def operates(token: ApiToken, benchmark: Benchmark) -> bool:
    """Whether the token acts as an operator: the lesser of its scopes and its owner's role."""
    return Scope.OPERATE in token.scopes and role_of(token.user, benchmark) == Role.OPERATOR


def policy_in_force(benchmark: Benchmark) -> Policy:
    return benchmark.policies.order_by("-number")[:1].get()


def active_tasks(benchmark: Benchmark) -> QuerySet[Task]:
    """The tasks that count, in task order: ascending by Unicode code point of the name."""
    return benchmark.tasks.filter(retired_at=None).order_by("name")


def merged_agents(benchmark: Benchmark, upto: int | None) -> dict[int, int]:
    """By the id of an agent that was merged, now or at a data version: whose its deliveries are."""
    merged = benchmark.agents.exclude(merged_into=None)
    if upto is not None:
        merged = merged.filter(merged_version__lte=upto)
    return dict(merged.values_list("id", "merged_into_id"))


def agents_of(benchmark: Benchmark) -> QuerySet[Agent]:
    return benchmark.agents.select_related("scaffold", "model", "owner").order_by("name")
