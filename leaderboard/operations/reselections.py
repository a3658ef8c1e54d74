"""Putting another subset in the place of the one in use: proposed by a rule or by hand, decided by a person.

A proposal is computed first and stored second. Approval is one transaction with a data version of its own,
so that it has its place in the order of deliveries; what follows from it (calibration, board) is for the next
recompute, which the new data version calls for.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.errors import Conflict
from leaderboard.operations.acting import acting
from leaderboard.operations.events import emit
from leaderboard.operations.models import (
    Alert,
    EventKind,
    RerunKind,
    RerunStatus,
    Reselection,
    ReselectionStatus,
)
from leaderboard.studies.activations import activate
from leaderboard.studies.models import ESTIMATOR_VERSION, TaskSubset
from leaderboard.studies.queries import active_subset
from leaderboard.studies.rules import rules_sha256
from leaderboard.submissions.services import bump_data_version

Progress = Callable[[int, int], None]
N_NAMED = 5


class NothingWouldChange(Conflict):
    message = "Chosen again today, the subset would be the same: no task would enter or leave."


def propose(
    *,
    benchmark: Benchmark,
    by: User | None,
    reason: str,
    as_of: datetime,
    alert: Alert | None = None,
    progress: Progress | None = None,
) -> Reselection:
    """Compute what could replace the subset in use, and store it as the one open proposal."""
    from leaderboard.operations.services import compute_reselection  # a web worker never imports the core

    with acting(by=by, reason=reason):
        if benchmark.full_runs_only_at:
            raise Conflict(
                f"An operator asked for full runs only: {benchmark.full_runs_only_reason}",
                code="full_runs_only",
            )
        subset, data_version, content = compute_reselection(
            benchmark=benchmark, as_of=as_of, progress=progress
        )
        _check_worth_it(content)
        return _store(
            Reselection(
                benchmark=benchmark,
                previous=subset,
                data_version=data_version,
                estimator_version=ESTIMATOR_VERSION,
                reason=reason,
                alert=alert,
                content=content,
                proposed_by=by,
                proposed_at=as_of,
            )
        )


@transaction.atomic
def approve(
    *, reselection: Reselection, variant: str, by: User | None, reason: str, as_of: datetime
) -> TaskSubset:
    """Activate a variant of the open proposal as the next version of the subset, or nothing of it."""
    with acting(by=by, reason=reason):
        locked = _locked(reselection)
        benchmark, chosen = locked.benchmark, _variant(locked, variant)
        if obstacle := obstacle_to(locked):
            raise Conflict(
                f"The proposal cannot be approved any more: {obstacle}. Propose again.", code="outdated"
            )
        subset = activate(
            previous=locked.previous,
            content=locked.content,
            variant=variant,
            estimator_version=locked.estimator_version,
            policy=policy_in_force(benchmark),
            data_version=bump_data_version(benchmark=benchmark),
            as_of=as_of,
        )
        _close_what_was_open(locked.previous, by=by, replaced_by=subset, as_of=as_of)
        locked.subset, locked.variant = subset, variant
        _decide(locked, ReselectionStatus.APPROVED, by=by, reason=reason, as_of=as_of)
        emit(
            benchmark=benchmark,
            kind=EventKind.SUBSET_ACTIVATED,
            about=f"subset {subset.number}",
            payload=_payload(subset, chosen),
            as_of=as_of,
        )
        return subset


@transaction.atomic
def reject(*, reselection: Reselection, by: User | None, reason: str, as_of: datetime) -> Reselection:
    """Decide that the subset in use stays."""
    with acting(by=by, reason=reason):
        locked = _locked(reselection)
        _decide(locked, ReselectionStatus.REJECTED, by=by, reason=reason, as_of=as_of)
        return locked


def open_proposal(benchmark: Benchmark) -> Reselection | None:
    """Return the proposal that waits to be decided."""
    return benchmark.reselections.filter(status=ReselectionStatus.PROPOSED).first()


def obstacle_to(reselection: Reselection) -> str:
    """Say what has changed since that keeps a proposal from being approved; else empty."""
    benchmark, content = reselection.benchmark, reselection.content
    if active_subset(benchmark) != reselection.previous:
        return f"version {reselection.previous.number} of the subset is not in use any more"
    if benchmark.full_runs_only_at:
        return f"an operator asked for full runs only: {benchmark.full_runs_only_reason}"
    if rules_sha256(policy_in_force(benchmark)) != content["rules"]:
        return "the policy was changed since"
    if reselection.estimator_version != ESTIMATOR_VERSION:
        return "it was computed by an earlier version of the estimators"
    proposed = {task for variant in content["variants"].values() for task in variant.get("tasks", ())}
    retired = benchmark.tasks.filter(name__in=proposed).exclude(retired_at=None).order_by("name")
    names = list(retired.values_list("name", flat=True))
    return f"retired since: {_first(names)}" if names else ""


# ----------------------------------------------------------------------------------------------- proposing


def _check_worth_it(content: dict[str, Any]) -> None:
    """Refuse a proposal of which no variant is another subset."""
    known = [variant for variant in content["variants"].values() if "tasks" in variant]
    if not known:
        raise Conflict(
            f"There is no subset to propose: {content['variants']['plain']['reason']}.", code="unsuited"
        )
    if not any(_changes(variant) for variant in known):
        raise NothingWouldChange


def _changes(variant: dict[str, Any]) -> bool:
    return bool(variant["entering"] or variant["leaving"])


@transaction.atomic
def _store(proposal: Reselection) -> Reselection:
    """Store a proposal in the place of the open one, unless that rests on later outcomes."""
    benchmark = Benchmark.objects.select_for_update(no_key=True).get(pk=proposal.benchmark_id)
    if active_subset(benchmark) != proposal.previous:
        raise Conflict("Another subset was activated while this proposal was computed.", code="outdated")
    if older := open_proposal(benchmark):
        if older.data_version > proposal.data_version:
            raise Conflict(
                "A proposal on later outcomes was stored meanwhile; look at that one.",
                code="proposed_meanwhile",
            )
        _decide(
            older,
            ReselectionStatus.OUTDATED,
            by=proposal.proposed_by,
            reason=f"Proposed anew: {proposal.reason}",
            as_of=proposal.proposed_at,
        )
    proposal.save(force_insert=True)
    return proposal


# ------------------------------------------------------------------------------------------------ deciding


def _locked(reselection: Reselection) -> Reselection:
    """Return an open proposal with its benchmark, both locked: of two decisions at once one is made."""
    benchmark = Benchmark.objects.select_for_update(no_key=True).get(pk=reselection.benchmark_id)
    reselection_row = Reselection.objects.select_related("previous").get(pk=reselection.pk)
    if reselection_row.status != ReselectionStatus.PROPOSED:
        raise Conflict(
            f"This proposal is {reselection_row.status} already: {reselection_row.decided_reason}",
            code="not_proposed",
        )
    reselection_row.benchmark = reselection_row.previous.benchmark = benchmark
    return reselection_row


def _variant(reselection: Reselection, name: str) -> dict[str, Any]:
    variants = reselection.content["variants"]
    if name not in variants:
        raise Conflict(
            f"There is no variant {name!r}; there are {', '.join(variants)}.", code="no_such_variant"
        )
    chosen: dict[str, Any] = variants[name]
    if "tasks" not in chosen:
        raise Conflict(f"The variant {name} has no subset: {chosen['reason']}.", code="no_such_variant")
    if not _changes(chosen):
        raise NothingWouldChange(f"By the variant {name} the subset would stay; reject the proposal.")
    return chosen


def _decide(
    reselection: Reselection, status: ReselectionStatus, *, by: User | None, reason: str, as_of: datetime
) -> None:
    reselection.status, reselection.decided_by, reselection.decided_at, reselection.decided_reason = (
        status,
        by,
        as_of,
        reason,
    )
    reselection.save(
        update_fields=["status", "decided_by", "decided_at", "decided_reason", "subset", "variant"],
    )


def _close_what_was_open(
    previous: TaskSubset, *, by: User | None, replaced_by: TaskSubset, as_of: datetime
) -> None:
    """Close alerts of the subset that was replaced, and drift requests, which ask for runs to judge it by."""
    closed = {
        "closed_at": as_of,
        "closed_by": by,
        "closed_reason": f"version {replaced_by.number} of the subset took its place",
    }
    previous.alerts.filter(closed_at=None).update(**closed)
    requests = previous.rerun_requests.filter(kind=RerunKind.DRIFT, status=RerunStatus.OPEN)
    requests.update(status=RerunStatus.CANCELLED, **closed)


def _payload(subset: TaskSubset, chosen: dict[str, Any]) -> dict[str, Any]:
    return {
        "benchmark": subset.benchmark.slug,
        "subset": subset.number,
        "n_tasks": chosen["k"],
        "entering": [row["task"] for row in chosen["entering"]],
        "leaving": [row["task"] for row in chosen["leaving"]],
        "reason": subset.reason,
        "activated_at": subset.fixed_at.isoformat(),
    }


def _first(names: list[str]) -> str:
    more = f" and {len(names) - N_NAMED:,} more" if len(names) > N_NAMED else ""
    return ", ".join(names[:N_NAMED]) + more
