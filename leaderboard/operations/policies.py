"""Changing the rules of a benchmark: a new row of its policy, checked as a whole."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Assigning, Benchmark, Duplicates, Policy
from leaderboard.catalog.queries import active_tasks, policy_in_force
from leaderboard.catalog.rules import COMMON, RULES
from leaderboard.errors import Conflict, Faulty
from leaderboard.notify import wake
from leaderboard.operations.acting import AT_COMMAND_LINE, acting
from leaderboard.submissions.parsing.flat import Fault, excerpt


def policy_changed_meanwhile() -> Conflict:
    return Conflict("The policy was changed meanwhile; look at it again.", code="policy_changed_meanwhile")


def changed_policy(*, benchmark: Benchmark, values: Mapping[str, str]) -> Policy:
    """Return the policy in force with these fields set, not yet stored; every fault is named at once."""
    before = policy_in_force(benchmark)
    changed, faults = _values(benchmark, values)
    in_force = {field: getattr(before, field) for field in RULES}
    policy = Policy(benchmark=benchmark, number=before.number + 1, **(in_force | changed))
    if not faults and not policy.band_lo < policy.band_hi:
        of_lo = Fault(None, "band_lo", f"{policy.band_lo}", f"it has to lie below band_hi, {policy.band_hi}")
        of_hi = Fault(None, "band_hi", f"{policy.band_hi}", f"it has to lie above band_lo, {policy.band_lo}")
        faults.append(of_lo if policy.band_hi == before.band_hi else of_hi)
    if not faults and policy.assignment == Assigning.STAGED and policy.duplicates != Duplicates.MEAN:
        rule = "it has to be `mean` where `assignment` is `staged`: each batch is a delivery of its own"
        faults.append(Fault(None, "duplicates", policy.duplicates, rule))
    if faults:
        raise Faulty("The policy was not changed.", faults=tuple(faults))
    return policy


def _values(benchmark: Benchmark, texts: Mapping[str, str]) -> tuple[dict[str, Any], list[Fault]]:
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for field, text in texts.items():
        if field not in RULES:
            rule = f"is not a field of a policy; known are {', '.join(RULES)}"
            faults.append(Fault(None, excerpt(field), None, rule))
            continue
        try:
            is_common = field == "universe" and text == COMMON
            values[field] = _common_tasks(benchmark) if is_common else RULES[field].read(text)
        except (ValueError, KeyError, RecursionError):
            faults.append(Fault(None, field, excerpt(text), f"it is {RULES[field].words}"))
    return values, faults + _unknown_tasks(benchmark, values.get("universe"))


def _common_tasks(benchmark: Benchmark) -> list[str]:
    from leaderboard.operations.coverage import common_tasks  # imports the core: not with every web worker

    return common_tasks(benchmark)


def _unknown_tasks(benchmark: Benchmark, universe: Sequence[str] | None) -> list[Fault]:
    unknown = set(universe or ()) - set(active_tasks(benchmark).values_list("name", flat=True))
    return [Fault(None, "universe", excerpt(name), "is not an active task") for name in sorted(unknown)]


def changes(before: Policy, after: Policy) -> dict[str, tuple[Any, Any]]:
    """The fields that differ, with both values."""
    both = {field: (getattr(before, field), getattr(after, field)) for field in RULES}
    return {field: pair for field, pair in both.items() if pair[0] != pair[1]}


@transaction.atomic
def put_in_force(*, policy: Policy, by: User | None = None, reason: str = AT_COMMAND_LINE) -> None:
    """Store a changed policy, unless another was stored since it was read."""
    Benchmark.objects.select_for_update(no_key=True).get(pk=policy.benchmark_id)
    if policy_in_force(policy.benchmark).number != policy.number - 1:
        raise policy_changed_meanwhile()
    policy.created_by = by
    with acting(by=by, reason=reason):
        policy.save(force_insert=True)
    wake()
