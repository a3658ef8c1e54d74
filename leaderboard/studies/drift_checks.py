"""What the monitors say of a benchmark's subset on its present data, stored as a check."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from analytics.drift import rank_fidelity
from analytics.drift.erosion import NAME as EROSION
from analytics.drift.saturation import NAME as SATURATION
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.board_inputs import versions
from leaderboard.studies.models import DriftCheck, ValidationStudy
from leaderboard.studies.queries import active_subset, latest_study
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import find_study, store_study
from leaderboard.studies.staged_studies import Decisions, published_of
from selection.prior import PriorDecisions, Promise
from selection.staged.text import fallen, is_below_mostly
from selection.watch import findings

VERDICT = "verdict"  # the monitor of validations: whether their verdict has fallen below mostly
OF_TASKS = (EROSION, SATURATION)  # monitors of what the tasks still tell, whoever runs them


def get_or_compute_drift_check(
    *,
    snapshot: Snapshot,
    promises: Mapping[int, Mapping[str, float]],
    sampled: Mapping[str, float],
    decisions: Decisions,
    as_of: datetime,
) -> tuple[DriftCheck, bool]:
    """Return the check of the present data and whether it was made just now.

    `promises` are by agent id: score, lower and upper, as a board estimated them before the agent ran all
    tasks; `sampled` are the complete agents that were drawn for it, by name. `decisions` hold what was
    published of agents when they were stopped.
    """
    subset = active_subset(snapshot.benchmark, upto=snapshot.data_version)
    if check := find_study(DriftCheck, snapshot=snapshot, subset=subset):
        return check, False
    prior = PriorDecisions(
        subsets=versions(subset),
        promises={
            agent.name: Promise(promise["score"], (promise["lower"], promise["upper"]))
            for agent in snapshot.agents
            if (promise := promises.get(agent.pk))
        },
        sampled=sampled,
        published=published_of(decisions, sampled),
        walks={name: study.result for name, (study, _) in decisions.items()},
    )
    result = findings(snapshot.record, snapshot.rules, prior).as_plain()
    return store_study(DriftCheck, snapshot=snapshot, subset=subset, result=result, as_of=as_of), True


def why_reselect(monitor: Mapping[str, Any]) -> str:
    """Say why a monitor asks for another subset, empty where it does not.

    Fidelity does once ρ is under its limit; erosion and saturation do, for what they count are tasks that
    have left the band. A subset that is solved while the benchmark is not warns, and asks for another.
    """
    if monitor["name"] == VERDICT and monitor["state"] == "alert":
        return f"{VERDICT}: {monitor['reason']}"
    evidence = monitor["evidence"]
    asks = monitor["state"] == "alert" or evidence.get("subset_alone")
    if not asks or monitor["name"] not in (rank_fidelity.NAME, *OF_TASKS):
        return ""
    rho = evidence.get("rho_full")
    if monitor["name"] == rank_fidelity.NAME and (rho is None or rho >= rank_fidelity.RHO_LIMIT):
        return ""
    return f"{monitor['name']}: {monitor['reason']}"


def verdict_found(benchmark: Benchmark) -> dict[str, Any]:
    """What the latest validation says, beside the last one before it whose verdict was mostly or better."""
    latest = latest_study(ValidationStudy, benchmark)
    if latest is None:
        return {"name": VERDICT, **fallen(None, {}), "validation": None}
    earlier = benchmark.validationstudy_set.filter(pk__lt=latest.pk).order_by("-pk")
    good = (
        one.result for one in earlier if (found := _verdict(one)) is not None and not is_below_mostly(found)
    )
    return {"name": VERDICT, **fallen(next(good, None), latest.result), "validation": latest.pk}


def was_better_since(benchmark: Benchmark, validation: int) -> bool:
    """Whether a verdict after this validation was not below mostly."""
    since = benchmark.validationstudy_set.filter(pk__gt=validation)
    return any(not is_below_mostly(_verdict(one)) for one in since)


def _verdict(study: ValidationStudy) -> dict[str, Any] | None:
    verdict: dict[str, Any] | None = study.result.get("replay", {}).get("verdict")
    return verdict
