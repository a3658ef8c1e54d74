"""Which tasks new agents are asked to run: when a version of S is fixed, and its rows."""

from django.db import transaction

from analytics.errors import CoreError
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.board_inputs import subset_versions
from leaderboard.studies.history import Moment, moments
from leaderboard.studies.models import ESTIMATOR_VERSION, Calibration, SubsetTask, TaskSubset
from leaderboard.studies.queries import active_subset, tasks_sha256
from leaderboard.studies.records import Reader, Snapshot
from selection.prior import PriorDecisions
from selection.rules import BY_CALIBRATION
from selection.standings.answering import basis_of
from selection.standings.choice import Choice, band_of, choice, n_teaching, training
from selection.standings.full_scores import fitted_on


def get_or_compute_calibration(reader: Reader, subset: TaskSubset, *, tasks: list[int]) -> Calibration | None:
    """Return the calibration in use; None where the policy names none, or there is no fit yet.

    It is fitted at the delivery that fixed the subset, or at the approval that activated it, and anew at each
    delivery, or operator's word for one, that reaches `refit_every` complete agents more than it was fitted
    to, on all that are complete then, or that is the first under a policy that names another estimator. Where
    other tasks are active now, which `tasks` names by id, the same agents are fitted on these too. None, too,
    where no task of the subset is active any more: then nothing is estimated from it, and everybody is asked
    for all tasks.
    """
    if reader.policy.estimator not in BY_CALIBRATION or not subset.tasks.filter(pk__in=tasks).exists():
        return None
    stored = subset.calibrations.filter(estimator_version=ESTIMATOR_VERSION).order_by("-data_version", "id")
    last = stored.first() or _fitted(reader, subset, fixing(subset))
    after = last.data_version if last else subset.data_version
    for moment in moments(reader.benchmark, upto=reader.data_version, after=after):
        if not moment.is_policy and moment.n_candidates >= _needed(last, moment):
            last = _fitted(reader, subset, moment, at_least=_needed(last, moment)) or last
    if last is None or last.active == tasks_sha256(tasks):
        return last
    present = stored.filter(data_version=last.data_version, active=tasks_sha256(tasks)).first()
    moment = Moment(last.data_version, subset.fixed_at, last.policy, False, last.n_agents)
    return present or _fitted(reader, subset, moment, tasks=tasks)


def fixing(subset: TaskSubset) -> Moment:
    """The delivery that fixed a first version, or the approval that activated a later one."""
    return Moment(subset.data_version, subset.fixed_at, subset.policy, False, subset.n_complete)


def _needed(last: Calibration | None, moment: Moment) -> int:
    if last is None or moment.policy.estimator != last.estimator:
        return 1
    return last.n_agents + moment.policy.refit_every


def _fitted(
    reader: Reader, subset: TaskSubset, moment: Moment, *, at_least: int = 1, tasks: list[int] | None = None
) -> Calibration | None:
    if moment.policy.estimator not in BY_CALIBRATION:
        return None
    then = reader.at(moment, subset, tasks=tasks)
    if then is None or then.n_complete < at_least:
        return None
    try:
        # Leave out each agent, each scaffold, and all from each date on, with the selection made anew
        record = then.record
        fit_basis = basis_of(record, then.rules, PriorDecisions(subsets=subset_versions(subset)))
        agents = training(record, fit_basis.scores)
        names = tuple(record.table.tasks[j] for j in fit_basis.subset)
        fitted = fitted_on(agents, names, then.rules)
        ids, ridge = {agent.name: agent.pk for agent in then.agents}, None
        if fitted.estimator == "ridge":
            # Of scikit-learn, which no web worker imports, what is stored is all that an answer needs
            from selection.estimators import FullScore

            on_subset = agents.outcomes[:, fit_basis.subset]
            ridge = FullScore().fit(on_subset, agents.scores).calibration_.as_plain()
        made = {
            "estimator": fitted.estimator,
            "ridge": ridge,
            "n_agents": len(fitted.agents),
            "agents": [ids[name] for name in fitted.agents],
            "tasks": [then.task_ids[j] for j in fit_basis.subset],
        } | {name: list(getattr(fitted, name)) for name in Calibration.OF_AGENTS}
    except CoreError:  # the answer tells of it, where it says that nothing is estimated
        return None
    return Calibration.objects.get_or_create(
        subset=subset,
        data_version=moment.data_version,
        active=tasks_sha256(then.task_ids),
        estimator_version=ESTIMATOR_VERSION,
        defaults=made | {"policy": moment.policy},
    )[0]


def get_or_compute_subset(reader: Reader) -> TaskSubset | None:
    """Return the version in use, fixed where a delivery has reached `subset_from` teaching agents.

    It is chosen on the data and by the rules of that delivery, as if a recompute had followed it. Where the
    band is unsuited then, each further teaching agent tries again, and so does a new policy row. A version
    that is fixed stays: neither withdrawals nor policy rows change it, only an approved reselection, which
    is an event of the same order as deliveries.
    """
    if active := active_subset(reader.benchmark, upto=reader.data_version):
        return active
    for moment in moments(reader.benchmark, upto=reader.data_version, stopped_too=True):
        if moment.n_candidates < moment.policy.subset_from:
            continue
        then = reader.at(moment)
        if then is not None and n_teaching(then.record) >= moment.policy.subset_from:
            chosen = choice(then.record, then.rules, PriorDecisions())
            if chosen.line is not None:
                return _fix(then, chosen, moment)
    return None


@transaction.atomic
def _fix(then: Snapshot, chosen: Choice, moment: Moment) -> TaskSubset:
    Benchmark.objects.select_for_update(no_key=True).get(pk=then.benchmark.pk)
    if active := active_subset(then.benchmark, upto=moment.data_version):
        return active  # another worker fixed the same meanwhile
    line = chosen.line
    assert line is not None
    incumbents = [agent.pk for agent, chose in zip(then.agents, chosen.incumbents, strict=True) if chose]
    subset = TaskSubset.objects.create(
        benchmark=then.benchmark,
        number=1,
        policy=moment.policy,
        data_version=moment.data_version,
        estimator_version=ESTIMATOR_VERSION,
        lo=line.lo,
        hi=line.hi,
        widened=line.widened,
        provisional=line.provisional,
        strategy=line.strategy,
        chosen_from=incumbents,
        compared=then.compared,
        n_complete=line.n_complete,
        n_tasks=then.record.n_tasks,
        reason=line.reason,
        fixed_at=moment.at,
    )
    rates = band_of(then.record, then.rules).pass_rates.tolist()
    SubsetTask.objects.bulk_create(
        SubsetTask(subset=subset, task_id=then.task_ids[j], pass_rate=rates[j]) for j in chosen.tasks.tolist()
    )
    return subset
