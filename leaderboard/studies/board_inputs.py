"""What was decided and measured before, from rows to what the core takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

from analytics.differences.kept_draws import KeptDraws
from analytics.differences.rows import NEVER_MEASURED, facets_of
from leaderboard.catalog.models import Assigning, Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.studies.models import Calibration, StagedStudy, TaskSubset, ValidationStudy, VarianceStudy
from leaderboard.studies.queries import NO_RERUNS, Reruns, active_subset, latest_study
from leaderboard.studies.records import Snapshot
from leaderboard.studies.rules import rules_sha256
from leaderboard.studies.staged_steps import degrees_of
from selection.full_scores import FitCache
from selection.prior import OVERDUE, FittedOn, PriorDecisions, Staged, SubsetVersion
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
        return PriorDecisions(
            subsets=subset_versions(self.subset),
            fitted=_fitted_on(self.calibration) if self.calibration else None,
            validation=self.validation.result if self.validation else None,
            facets=facets_of(self.variance.result) if self.variance else NEVER_MEASURED,
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
    now: Snapshot, subset: TaskSubset | None, calibration: Calibration | None, reruns: Reruns = NO_RERUNS
) -> BoardInputs:
    both = zip(now.agents, now.record.complete, strict=True)
    complete = {agent.pk: agent.name for agent, is_there in both if is_there}
    return replace(
        _standing(now.benchmark, now.policy, subset, reruns),
        calibration=calibration,
        staged=_staged(now, reruns),
        sampled={complete[pk]: share for pk, share in reruns.sampled.items() if pk in complete},
    )


def _staged(now: Snapshot, reruns: Reruns) -> dict[str, Staged]:
    """Agents that were asked batch by batch, those that were stopped by the fit to the present data.

    By that which decided where there is none. Those whose remaining tasks are awaited are marked, and none is
    ranked whose did not come in time.
    """
    study = latest_study(StagedStudy, now.benchmark) if now.staged else None
    estimates, of_study = dict[str, Any](), dict[str, Any]()
    if study is not None and study.data_version == now.data_version:
        estimates = study.result.get("estimates", {})
        of_study = {"study": (study.data_version, study.policy.number), "n": int(study.result["agents"])}
        of_study["degrees"] = degrees_of(study)
    ids = {agent.name: agent.pk for agent in now.agents if agent.name in now.staged}
    staged = {}
    for name, one in now.staged.items():
        if one.se is not None and name in estimates:
            one = replace(one, **of_study, **{field: estimates[name][field] for field in ESTIMATE})
        if ids[name] in reruns.overdue:
            staged[name] = Staged(study=one.study, n=one.n, reason=OVERDUE)
        else:
            staged[name] = replace(one, recalled=ids[name] in reruns.recalled)
    return staged


def current_inputs(benchmark: Benchmark, reruns: Reruns = NO_RERUNS) -> BoardInputs:
    """Inputs of the next board, without reading outcomes."""
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


def subset_versions(subset: TaskSubset | None) -> tuple[SubsetVersion, ...]:
    """The version in use and those before it; another may have come since, which is not of this answer."""
    if subset is None:
        return ()
    names = _names(subset.benchmark)
    return tuple(
        SubsetVersion(
            tasks=tuple(one.members.order_by("task__name").values_list("task__name", flat=True)),
            chosen_from=tuple(sorted(names[pk] for pk in one.chosen_from)),
            arrival=one.data_version,
            fixed_on=one.fixed_at.date(),
            **{name: getattr(one, name) for name in TaskSubset.VERSION_FIELDS},
        )
        for one in subset.benchmark.subsets.filter(number__lte=subset.number).order_by("number")
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
