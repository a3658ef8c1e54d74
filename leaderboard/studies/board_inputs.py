"""What was decided and measured before, from rows to what the core takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

from analytics.differences.kept_draws import KeptDraws
from analytics.tee.benchmark import facets_of
from leaderboard.catalog.models import Assigning, Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.studies.models import Calibration, StagedStudy, TaskSubset, ValidationStudy, VarianceStudy
from leaderboard.studies.queries import NO_RERUNS, Reruns, active_subset, latest_study
from leaderboard.studies.records import Snapshot
from leaderboard.studies.rules import rules_sha256
from leaderboard.studies.staged_steps import degrees_of
from selection.full_scores import FitCache
from selection.prior import OVERDUE, FittedOn, PriorDecisions, Staged, SubsetVersion, Variances
from selection.ridge import RidgeFit

ESTIMATE = ("score", "lower", "upper", "se")
DRAWS, FITS = KeptDraws(), FitCache()  # of the answers that this process gave


@dataclass(frozen=True)
class BoardInputs:
    """The rows that an answer rests on: with the data they make the key of a board."""

    benchmark: Benchmark
    policy: Policy
    subset: TaskSubset | None
    calibration: Calibration | None
    validation: ValidationStudy | None
    variance: VarianceStudy | None
    reruns: Reruns = NO_RERUNS
    sampled: Mapping[str, float] = field(default_factory=dict)  # those of them that are complete, by name
    staged: Mapping[str, Staged] = field(default_factory=dict)  # as the outcomes tell

    @property
    def data_version(self) -> int:
        return self.benchmark.data_version

    @property
    def full_runs_only(self) -> str:
        return self.benchmark.full_runs_only_reason

    @cached_property
    def rules_sha256(self) -> str:
        return rules_sha256(
            self.policy,
            full_runs_only=self.full_runs_only,
            revalidating=self.reruns.revalidating,
            not_revalidated=self.reruns.not_revalidated,
            sampled=self.sampled,
            recalled=self.reruns.recalled,
            overdue=self.reruns.overdue,
        )

    def prior_decisions(self) -> PriorDecisions:
        """The same for the core."""
        return PriorDecisions(
            subsets=versions(self.subset),
            fitted=_fitted_on(self.calibration) if self.calibration else None,
            validation=self.validation.result if self.validation else None,
            variances=Variances(facets_of(self.variance.result)) if self.variance else Variances(),
            full_runs_only=self.full_runs_only,
            draws=DRAWS,
            fits=FITS,
            revalidating=self.reruns.revalidating,
            not_revalidated=self.reruns.not_revalidated,
            sampled=self.sampled,
            staged=self.staged,
            podium=self.podium,
        )

    @property
    def podium(self) -> int | None:
        """The places that are run in full; None where tasks are not assigned so."""
        return self.policy.podium if self.policy.assignment == Assigning.STAGED else None


def board_inputs(
    now: Snapshot,
    subset: TaskSubset | None,
    calibration: Calibration | None,
    reruns: Reruns = NO_RERUNS,
) -> BoardInputs:
    """Add the studies that stand."""
    both = zip(now.agents, now.record.complete, strict=True)
    complete = {agent.pk: agent.name for agent, is_there in both if is_there}
    return replace(
        _standing(now.benchmark, now.policy, subset, reruns),
        calibration=calibration,
        staged=_recalled(now, _restated(now), reruns),
        sampled={complete[pk]: share for pk, share in reruns.sampled.items() if pk in complete},
    )


def _restated(now: Snapshot) -> Mapping[str, Staged]:
    """Agents that were asked batch by batch, those that were stopped by the fit to the present data.

    By that which decided where there is none.
    """
    study = latest_study(StagedStudy, now.benchmark) if now.staged else None
    if study is None or study.data_version != now.data_version:
        return now.staged
    estimates = study.result.get("estimates", {})
    of_study: dict[str, Any] = {
        "study": (study.data_version, study.policy.number),
        "n": int(study.result["agents"]),
        "degrees": degrees_of(study),
    }
    return {
        name: replace(one, **of_study, **{field: estimates[name][field] for field in ESTIMATE})
        if one.se is not None and name in estimates
        else one
        for name, one in now.staged.items()
    }


def _recalled(now: Snapshot, staged: Mapping[str, Staged], reruns: Reruns) -> Mapping[str, Staged]:
    """Mark those whose remaining tasks are awaited, and rank none whose did not come in time."""
    ids = {agent.name: agent.pk for agent in now.agents if agent.name in staged}
    return {
        name: Staged(study=one.study, n=one.n, reason=OVERDUE)
        if ids[name] in reruns.overdue
        else replace(one, recalled=ids[name] in reruns.recalled)
        for name, one in staged.items()
    }


def standing(benchmark: Benchmark, reruns: Reruns = NO_RERUNS) -> BoardInputs:
    """What stands now, without reading any outcome: what an answer that is to be made will rest on."""
    return _standing(benchmark, policy_in_force(benchmark), active_subset(benchmark), reruns)


def _standing(benchmark: Benchmark, policy: Policy, subset: TaskSubset | None, reruns: Reruns) -> BoardInputs:
    return BoardInputs(
        benchmark=benchmark,
        policy=policy,
        subset=subset,
        calibration=None,
        validation=latest_study(ValidationStudy, benchmark),
        variance=latest_study(VarianceStudy, benchmark),
        reruns=reruns,
    )


def versions(subset: TaskSubset | None) -> tuple[SubsetVersion, ...]:
    """The version in use and those before it; another may have come since, which is not of this answer."""
    if subset is None:
        return ()
    known = subset.benchmark.subsets.filter(number__lte=subset.number).order_by("number")
    names = _names(subset.benchmark)
    return tuple(_version(one, names) for one in known)


def _version(subset: TaskSubset, names: dict[int, str]) -> SubsetVersion:
    return SubsetVersion(
        number=subset.number,
        tasks=tuple(subset.members.order_by("task__name").values_list("task__name", flat=True)),
        chosen_from=tuple(sorted(names[pk] for pk in subset.chosen_from)),
        arrival=subset.data_version,
        fixed_on=subset.fixed_at.date(),
        lo=subset.lo,
        hi=subset.hi,
        widened=subset.widened,
        provisional=subset.provisional,
        strategy=subset.strategy,
        reason=subset.reason,
        n_complete=subset.n_complete,
        n_tasks=subset.n_tasks,
    )


def _fitted_on(calibration: Calibration) -> FittedOn:
    """Its agents under their present names, in the order of these."""
    names = _names(calibration.subset.benchmark)
    tasks = dict(calibration.subset.tasks.values_list("id", "name"))
    columns_of_agents = [getattr(calibration, column) for column in Calibration.OF_AGENTS]
    rows = sorted(
        zip([names[pk] for pk in calibration.agents], *columns_of_agents, strict=True), key=itemgetter(0)
    )
    agents, *columns = zip(*rows, strict=True)
    return FittedOn(
        estimator=calibration.estimator,
        tasks=tuple(tasks[pk] for pk in calibration.tasks),
        agents=agents,
        ridge=RidgeFit.of_plain(calibration.ridge) if calibration.ridge else None,
        **dict(zip(Calibration.OF_AGENTS, columns, strict=True)),
    )


def _names(benchmark: Benchmark) -> dict[int, str]:
    return dict(benchmark.agents.values_list("id", "name"))
