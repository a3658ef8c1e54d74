"""Which agents of a record were asked for tasks chosen for them, and where that has led them.

What an agent was asked for stands with its deliveries, so that a record of any data version tells the same.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from analytics.record import Record
from leaderboard.catalog.models import Task
from leaderboard.studies.adaptive_steps import step
from leaderboard.studies.models import AdaptiveStudy
from leaderboard.submissions.queries import Delivery
from selection.adaptive_steps import delivered_means
from selection.given import Adaptive

OVER = "its tasks were chosen for it, so that it is ranked by its estimated score on all tasks alone"
GOING_ON = "its tasks are chosen for it, batch by batch, and not all of them have arrived"


class Chosen(NamedTuple):
    """The study that chose an agent's tasks, these in order, and how many trials of each were asked for."""

    study: int
    tasks: list[str]
    n_trials: int


def chosen_for(mine: Sequence[Delivery], tasks: Collection[Task]) -> Chosen | None:
    """What was chosen for an agent; None for one that was not asked so."""
    asked = [one for one in mine if one.study is not None]
    if not asked:
        return None
    names = {task.pk: task.name for task in tasks}
    longest = max(asked, key=lambda one: len(one.chosen))
    assert longest.study is not None
    return Chosen(longest.study, [names[pk] for pk in longest.chosen], longest.n_trials or 1)


def adaptive_of(record: Record, chosen: Mapping[str, Chosen]) -> dict[str, Adaptive]:
    """Where these agents stand by the outcomes that count."""
    studies = AdaptiveStudy.objects.select_related("policy").in_bulk({one.study for one in chosen.values()})
    place = {name: i for i, name in enumerate(record.table.agents)}
    return {
        name: _adaptive(record, place[name], studies[one.study], one)
        for name, one in chosen.items()
        if name in place
    }


def _adaptive(record: Record, i: int, study: AdaptiveStudy, chosen: Chosen) -> Adaptive:
    means = delivered_means(record, i, chosen.n_trials)
    found = step(study, asked=chosen.tasks, means=means, active=set(record.table.tasks))
    told = Adaptive(
        study=(study.data_version, study.policy.number),
        n=int(study.result["agents"]),
        reason=OVER if found.done else GOING_ON,
    )
    if not found.done or found.se is None:
        return told
    return Adaptive(told.study, told.n, told.reason, found.k, found.score, found.lower, found.upper, found.se)
