"""Studies of present data: validation, variance components and their projection, and what monitors say."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.conf import settings

from analytics.differences.rows import Facet
from analytics.drift import rank_fidelity
from analytics.drift.before_and_since import EROSION
from analytics.drift.monitor import RUNS_HELP
from analytics.drift.saturation import NAME as SATURATION
from analytics.errors import CoreError
from analytics.tee.agent_projection import as_seen, project_agent, task_groups
from analytics.tee.benchmark import FACETS, TrialOutcomes, variance_study
from analytics.tee.report import BoardEstimate
from leaderboard.catalog.models import Assigning, Benchmark
from leaderboard.errors import Conflict, Refusal
from leaderboard.studies.board_inputs import subset_versions
from leaderboard.studies.models import DriftCheck, ValidationStudy, VarianceStudy
from leaderboard.studies.queries import active_subset, latest_study
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import CheckClaim, get_or_compute
from leaderboard.studies.staged_studies import Decisions, Progress, published_of, rule_of, walks_of
from leaderboard.submissions.queries import outcomes_of, settings_of
from selection.prior import PriorDecisions, Promise
from selection.staged.text import fallen, is_below_mostly
from selection.standings.targets import grouping, on_all_tasks
from selection.watch import findings

if TYPE_CHECKING:
    from selection.validation.nested import Spread


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

    def compute() -> dict[str, Any]:
        prior = PriorDecisions(
            subsets=subset_versions(subset),
            promises={
                agent.name: Promise(promise["score"], (promise["lower"], promise["upper"]))
                for agent in snapshot.agents
                if (promise := promises.get(agent.pk))
            },
            sampled=sampled,
            published=published_of(decisions, sampled),
            fits_asked_by={name: study.result for name, (study, _) in decisions.items()},
        )
        return findings(snapshot.record, snapshot.rules, prior).as_plain()

    return get_or_compute(DriftCheck, compute, snapshot=snapshot, as_of=as_of, subset=subset)


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


def asks_for_runs(monitor: str, *, is_staged: bool) -> bool:
    """Whether full runs settle what a monitor alerts of; of the verdict they do not."""
    help = "never" if monitor == VERDICT else RUNS_HELP.get(monitor, "always")
    return help == "always" or (help == "unless staged" and not is_staged)


def verdict_found(benchmark: Benchmark) -> dict[str, Any]:
    """What the latest validation says, beside the last one before it whose verdict was mostly or better."""
    latest = latest_study(ValidationStudy, benchmark)
    if latest is None:
        return {"name": VERDICT, **fallen(None, {}), "validation": None}
    earlier = benchmark.validationstudy_set.filter(pk__lt=latest.pk).order_by("-pk")
    verdicts = ((one, _verdict(one)) for one in earlier)
    good = (one.result for one, found in verdicts if found is not None and not is_below_mostly(found))
    return {"name": VERDICT, **fallen(next(good, None), latest.result), "validation": latest.pk}


def was_better_since(benchmark: Benchmark, validation: int) -> bool:
    since = benchmark.validationstudy_set.filter(pk__gt=validation)
    return any(not is_below_mostly(_verdict(one)) for one in since)


def _verdict(study: ValidationStudy) -> dict[str, Any] | None:
    verdict: dict[str, Any] | None = study.result.get("replay", {}).get("verdict")
    return verdict


def project_error(
    *, study: VarianceStudy, design: Mapping[str, int], estimand: str, sensitivity: str
) -> dict[str, Any]:
    """Project the error of one agent's mean; what the design leaves open is as in the study."""
    if not study.result["available"]:
        raise Conflict(
            f"The latest variance study has no components: {study.result['reason']}.", code="no_components"
        )
    try:
        parts = {one["name"]: one["variance"] for one in study.result["components"]}
        design = {**as_seen(study.result["levels"], parts), **design}
        projection = project_agent(study.result, design, estimand=estimand, sensitivity=sensitivity)
    except CoreError as refusal:
        raise Conflict(
            f"These variances do not allow this design: {refusal}.", code="cannot_project"
        ) from refusal
    return {"data_version": study.data_version, **projection}


CONDITION = ("prompt", "judge", "temperature")


def get_or_compute_variance(
    *, snapshot: Snapshot, as_of: datetime, check_claim: CheckClaim
) -> tuple[VarianceStudy, bool]:
    def compute() -> dict[str, Any]:
        record = snapshot.record
        names = np.array(record.table.agents, dtype=object)
        outcomes, groups = _outcomes(snapshot), grouping(record, snapshot.rules).groups

        def on_board(facets: Sequence[Facet]) -> dict[str, BoardEstimate]:
            """What the board states of agents that ran nothing but the conditions it compares."""
            ran = np.unique(np.stack([outcomes.columns[name] for name in ("agent", *CONDITION)]), axis=1)[0]
            known, n_conditions = np.unique(ran, return_counts=True)
            same = set(known[n_conditions == max(1, len(snapshot.compared))].tolist())
            return {
                name: BoardEstimate(at.score, at.se, at.lower, at.upper, at.naive_se, at.reason)
                for name, at in on_all_tasks(record, facets).items()
                if name in same and at.score is not None
            }

        return variance_study(
            outcomes,
            complete=names[record.ran_all].tolist(),
            n_tasks=record.n_tasks,
            voices=names[record.telling].tolist(),
            on_board=on_board,
            groups=task_groups(record.table.means[record.ran_all & record.telling], groups)
            if groups
            else None,
        )

    return get_or_compute(VarianceStudy, compute, snapshot=snapshot, as_of=as_of, check_claim=check_claim)


def _outcomes(snapshot: Snapshot) -> TrialOutcomes:
    """All accepted valid outcomes, those of conditions that are not compared too: pilots feed this alone."""
    rows = outcomes_of(one.submission.pk for one in snapshot.deliveries)
    agents = {agent.pk: agent.name for agent in snapshot.agents}
    tasks = dict(zip(snapshot.task_ids, snapshot.record.table.tasks, strict=True))
    known = pc.and_(rows["valid"], pc.is_in(rows["task"], pa.array(tasks, pa.int32())))
    rows = rows.filter(pc.and_(known, pc.is_in(rows["agent"], pa.array(agents, pa.int64()))))
    columns = {"agent": _labels_of(rows["agent"], agents), "task": _labels_of(rows["task"], tasks)}
    settings_by_facets = settings_of(snapshot.benchmark).items()
    for i, facet in enumerate(FACETS):  # as Setting.FACETS has them
        columns[facet] = _labels_of(rows["setting"], {pk: str(of[i]) for of, pk in settings_by_facets})
    return TrialOutcomes(columns, rows["value"].to_numpy(), rows["trial"].to_numpy())


def _labels_of(ids: pa.ChunkedArray, labels: dict[int, str]) -> np.ndarray:
    present, codes = np.unique(ids.to_numpy(), return_inverse=True)
    return np.array([labels[pk] for pk in present.tolist()], dtype=np.str_)[codes]


class ClosedFormsDiffer(Refusal):
    message = "Closed forms and scikit-learn disagree, so the validation is not published."


def get_or_compute_validation(
    *,
    snapshot: Snapshot,
    decisions: Decisions,
    as_of: datetime,
    n_jobs: int,
    progress: Progress | None,
    check_claim: CheckClaim,
) -> tuple[ValidationStudy, bool]:
    """Raises ClosedFormsDiffer."""

    def compute() -> dict[str, Any]:
        from selection.refitted import MAX_DIFFERENCE, refitted
        from selection.standings.validating import validation_of

        check = refitted(snapshot.record, snapshot.rules)  # the closed forms held against scikit-learn
        if check and not check["difference"] <= MAX_DIFFERENCE:
            raise ClosedFormsDiffer(
                f"The closed form predicts {check['closed_form']!r} and scikit-learn "
                f"{check['scikit_learn']!r} {check['where']}: they differ by {check['difference']:.1g}, more "
                f"than {MAX_DIFFERENCE:.0g}. This validation is not published.",
                **check,
            )
        is_full = snapshot.policy.assignment == Assigning.FULL
        result = validation_of(
            snapshot.record,
            snapshot.rules,
            rule=None if is_full else rule_of(snapshot.policy),
            walks=walks_of(decisions),
            spread=spread_over(n_jobs),
            progress=progress,
        )
        return result | {"refitted": check}

    return get_or_compute(ValidationStudy, compute, snapshot=snapshot, as_of=as_of, check_claim=check_claim)


NO_WARNING = {"distributed.admin.large-graph-warning-threshold": "1TB"}  # a unit holds all outcomes


def spread_over(n_jobs: int) -> "Spread | None":
    """Return how units are spread; None where this process does them itself.

    On processes of this machine, or on a Dask cluster where DASK_SCHEDULER_ADDRESS names one: its workers
    run the same release, and need neither the database nor a setting. docs/decisions/jobs.md tells why
    joblib's own backend for Dask is not used.
    """
    if settings.DASK_SCHEDULER_ADDRESS:
        return cluster(settings.DASK_SCHEDULER_ADDRESS)
    from selection.validation.nested import processes

    return processes(n_jobs) if n_jobs > 1 else None


def cluster(address: str, *, patience: float = 30.0) -> "Spread":
    """Spread over the workers of a Dask scheduler.

    A unit whose worker dies is done again by another, as the scheduler holds what it needs; one that ends
    several workers raises, and so does a cluster that has no workers for `patience` seconds. Only so many
    units are sent ahead as keep the workers busy.
    """

    def spread(function: Callable[..., Any], units: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        import dask
        from distributed import Client

        try:
            client = Client(address, timeout=patience, set_as_default=False)
        except OSError as error:
            raise Refusal(
                f"No Dask scheduler answers at {address}. Check DASK_SCHEDULER_ADDRESS.",
                code="cluster_unreachable",
            ) from error
        with client, dask.config.set(NO_WARNING):
            waiting = (client.submit(function, *unit, pure=False) for unit in units)
            n = _n_threads(client, address, patience)
            sent = deque(islice(waiting, n + n))  # two for each thread, so that none waits
            while sent:
                yield _answer(sent.popleft(), client, address, patience)
                sent.extend(islice(waiting, 1))

    return spread


def _answer(future: Any, client: Any, address: str, patience: float) -> Any:
    while True:
        try:
            return future.result(timeout=patience)
        except TimeoutError:
            _n_threads(client, address, patience)


def _n_threads(client: Any, address: str, patience: float) -> int:
    """Wait for a worker, and count the threads of all."""
    try:
        client.wait_for_workers(1, timeout=patience)
    except TimeoutError as error:
        raise Refusal(
            f"The Dask scheduler at {address} has no workers.", code="cluster_unreachable"
        ) from error
    return sum(client.nthreads().values())
