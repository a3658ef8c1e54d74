"""Putting another subset in the place of the one in use: proposed by a rule or by hand, decided by a person.

A proposal is computed first and stored second. Approval is one transaction with a data version of its own,
so that it has its place in the order of deliveries; what follows from it (calibration, board) is for the next
recompute, which the new data version calls for.

A proposal as a reader sees it: the subset in use beside each that could take its place.
"""

from collections.abc import Mapping, Sequence
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
from leaderboard.operations.queries import locked_benchmark
from leaderboard.operations.runs import Progress
from leaderboard.studies.answers import replay_row, words
from leaderboard.studies.models import ESTIMATOR_VERSION, TaskSubset
from leaderboard.studies.queries import active_subset
from leaderboard.studies.rules import rules_sha256
from leaderboard.studies.versions import activate
from leaderboard.submissions.services import bump_data_version

N_NAMED = 5


class NothingWouldChange(Conflict):
    message = "No change: the same ranking tasks would be chosen today."


def propose(
    *,
    benchmark: Benchmark,
    by: User | None,
    reason: str,
    as_of: datetime,
    alert: Alert | None = None,
    progress: Progress | None = None,
) -> Reselection:
    from leaderboard.operations.services import compute_reselection  # a web worker never imports the core

    with acting(by=by, reason=reason):
        if benchmark.full_runs_only_at:
            why = benchmark.full_runs_only_reason
            raise Conflict(f"An operator asked for full runs only: {why}", code="full_runs_only")
        subset, version, content = compute_reselection(benchmark=benchmark, as_of=as_of, progress=progress)
        known = [variant for variant in content["variants"].values() if "tasks" in variant]
        if not known:
            why = content["variants"]["plain"]["reason"]
            raise Conflict(f"No proposal is possible: {why}.", code="unsuited")
        if not any(_changes(variant) for variant in known):
            raise NothingWouldChange
        return _store(
            Reselection(
                benchmark=benchmark,
                previous=subset,
                data_version=version,
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
        # Alerts of the subset that was replaced, and drift requests, which ask for runs to judge it by
        why = f"version {subset.number} of the subset took its place"
        closed = {"closed_at": as_of, "closed_by": by, "closed_reason": why}
        locked.previous.alerts.filter(closed_at=None).update(**closed)
        requests = locked.previous.rerun_requests.filter(kind=RerunKind.DRIFT, status=RerunStatus.OPEN)
        requests.update(status=RerunStatus.CANCELLED, **closed)
        locked.subset, locked.variant = subset, variant
        _decide(locked, ReselectionStatus.APPROVED, by=by, reason=reason, as_of=as_of)
        payload = {
            "benchmark": benchmark.slug,
            "subset": subset.number,
            "n_tasks": chosen["k"],
            "entering": [row["task"] for row in chosen["entering"]],
            "leaving": [row["task"] for row in chosen["leaving"]],
            "reason": subset.reason,
            "activated_at": subset.fixed_at.isoformat(),
        }
        emit(benchmark, EventKind.SUBSET_ACTIVATED, f"subset {subset.number}", payload, as_of)
        return subset


@transaction.atomic
def reject(*, reselection: Reselection, by: User | None, reason: str, as_of: datetime) -> Reselection:
    with acting(by=by, reason=reason):
        locked = _locked(reselection)
        _decide(locked, ReselectionStatus.REJECTED, by=by, reason=reason, as_of=as_of)
        return locked


def open_proposal(benchmark: Benchmark) -> Reselection | None:
    return benchmark.reselections.filter(status=ReselectionStatus.PROPOSED).first()


def obstacle_to(reselection: Reselection) -> str:
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
    return f"retired since: {words.first_names(names, N_NAMED)}" if names else ""


# ----------------------------------------------------------------------------------------------- proposing


def _changes(variant: dict[str, Any]) -> bool:
    return bool(variant["entering"] or variant["leaving"])


@transaction.atomic
def _store(proposal: Reselection) -> Reselection:
    """Store a proposal in the place of the open one, unless that rests on later outcomes."""
    benchmark = locked_benchmark(proposal.benchmark)
    if active_subset(benchmark) != proposal.previous:
        raise Conflict("Other ranking tasks were activated meanwhile. Make a new proposal.", code="outdated")
    if older := open_proposal(benchmark):
        if older.data_version > proposal.data_version:
            raise Conflict(
                "A proposal on later outcomes was stored meanwhile; look at that one.",
                code="proposed_meanwhile",
            )
        reason, at = f"Proposed anew: {proposal.reason}", proposal.proposed_at
        _decide(older, ReselectionStatus.OUTDATED, by=proposal.proposed_by, reason=reason, as_of=at)
    proposal.save(force_insert=True)
    return proposal


# ------------------------------------------------------------------------------------------------ deciding


def _locked(reselection: Reselection) -> Reselection:
    """Return an open proposal with its benchmark, both locked: of two decisions at once one is made."""
    benchmark = locked_benchmark(reselection.benchmark)
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
    decided = {"status": status, "decided_by": by, "decided_at": as_of, "decided_reason": reason}
    for field, value in decided.items():
        setattr(reselection, field, value)
    reselection.save(update_fields=[*decided, "subset", "variant"])


LABELS = {"plain": "Plain rule", "hysteresis": "With hysteresis"}
ANEW = "Chosen each time"


class Variant:
    """A subset that could be activated, agents under `names` by id; where there is none, `reason` says why.

    Rows, `figures` and `cost` (US dollars for a run) are those of `Reselection.content`: tasks with their
    pass rates `then`, when the subset in use was chosen, and `now`; in `deltas` what agents lack on the new
    subset; in `stands` their places before and after, and whether rank or `how` they have it `moves`. The
    board would be ordered by `target`.
    """

    def __init__(self, name: str, content: Mapping[str, Any], names: Mapping[int, str]) -> None:
        self.name, self.label = name, LABELS[name]
        self.reason: str = content["reason"]
        self.k: int | None = content.get("k")
        self.hysteresis: float = content.get("hysteresis", 0.0)
        self.widened: bool = content.get("widened", False)
        self.entering: Sequence[dict[str, Any]] = content.get("entering", ())
        self.leaving: Sequence[dict[str, Any]] = content.get("leaving", ())
        self.figures: Mapping[str, Any] | None = content.get("figures")
        self.cost: Mapping[str, Any] | None = content.get("cost")
        self.deltas = [row | {"agent": names[row["agent"]]} for row in content.get("deltas", ())]
        board = content.get("board", {})
        self.target_before: str = board.get("target_before", "")
        self.target: str = board.get("target_after", "")
        self.stands: list[dict[str, Any]] = []
        for row in board.get("agents", ()):
            moves = any(row["before"][figure] != row["after"][figure] for figure in ("rank", "how"))
            self.stands.append({**row, "agent": names[row["agent"]], "moves": moves})

    @property
    def changes(self) -> bool:
        return bool(self.entering or self.leaving)


class Comparison:
    """A proposal, agents under the names that they have now.

    `n_versions_since` counts changes of the data since, `obstacle` forbids its approval. `replays` has a line
    for each subset that was replayed; one that was proposed has seen the outcomes.
    """

    def __init__(self, reselection: Reselection) -> None:
        self.row, content, benchmark = reselection, reselection.content, reselection.benchmark
        self.n_versions_since = benchmark.data_version - reselection.data_version
        is_open = reselection.status == ReselectionStatus.PROPOSED
        self.obstacle = obstacle_to(reselection) if is_open else f"it is {reselection.status} already"
        names = dict(benchmark.agents.values_list("id", "name"))
        self.variants = [Variant(name, content["variants"][name], names) for name in LABELS]
        self.in_use: dict[str, Any] = content["kept"]
        replays = content.get("replays", {})
        in_use = {"in_use": f"Version {reselection.previous.number}, in use"}
        labels = in_use | LABELS | {"anew": ANEW}
        self.replays = [
            {"ranking tasks": label} | replay_row(replays[name])
            for name, label in labels.items()
            if name in replays
        ]
