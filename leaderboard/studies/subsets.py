"""Which tasks new agents are asked to run: when a version of S is fixed, and its rows."""

from django.db import transaction

from leaderboard.catalog.models import Benchmark
from leaderboard.studies.history import Moment, moments
from leaderboard.studies.models import ESTIMATOR_VERSION, SubsetTask, TaskSubset
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader, Snapshot
from selection.prior import PriorDecisions
from selection.standings.choice import Choice, band_of, choice


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
        if then is not None and then.n_teaching >= moment.policy.subset_from:
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
