"""Which agents of a record were asked for tasks chosen for them, and where that has led them.

What an agent was asked for stands with its deliveries, so that a record of any data version tells the same.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from analytics.record import Record
from leaderboard.catalog.models import Task
from leaderboard.studies.models import StagedStudy
from leaderboard.studies.staged_steps import DRAWN, STOPPED, degrees_of, step
from leaderboard.submissions.queries import AcceptedSubmission
from selection.prior import GOING_ON, OVER, Staged
from selection.staged.delivered import delivered_means

ENDED = (STOPPED, DRAWN)  # one that was drawn has its estimate until it delivers some of the rest


class ChosenTasks(NamedTuple):
    """The study that chose an agent's tasks, these in order, and how many trials of each were asked for."""

    study: int
    tasks: list[str]
    n_trials: int


def chosen_tasks_of(mine: Sequence[AcceptedSubmission], tasks: Collection[Task]) -> ChosenTasks | None:
    """What was chosen for an agent; None for one that was not asked so."""
    by_study = [one for one in mine if one.study is not None]
    if not by_study:
        return None
    names = {task.pk: task.name for task in tasks}
    longest = max(by_study, key=lambda one: len(one.chosen))
    assert longest.study is not None
    return ChosenTasks(longest.study, [names[pk] for pk in longest.chosen], longest.n_trials or 1)


def staged_of(record: Record, chosen: Mapping[str, ChosenTasks]) -> dict[str, Staged]:
    """Where these agents stand by the outcomes that count."""
    studies = StagedStudy.objects.select_related("policy").in_bulk({one.study for one in chosen.values()})
    place = {name: i for i, name in enumerate(record.table.agents)}
    return {
        name: _staged(record, place[name], studies[one.study], one)
        for name, one in chosen.items()
        if name in place
    }


def _staged(record: Record, i: int, study: StagedStudy, chosen: ChosenTasks) -> Staged:
    means = delivered_means(record, i, chosen.n_trials)
    active, name = set(record.table.tasks), record.table.agents[i]
    next_step = step(study, tasks_run=chosen.tasks, means=means, active=active, agent=name)
    is_estimated = next_step.stage in ENDED and next_step.score is not None
    staged = Staged(
        study=(study.data_version, study.policy.number),
        n=int(study.result["agents"]),
        reason=OVER if is_estimated else GOING_ON,
    )
    if not is_estimated:
        return staged
    return replace(
        staged,
        k=next_step.n_run,
        score=next_step.score,
        lower=next_step.lower,
        upper=next_step.upper,
        se=next_step.se,
        degrees=degrees_of(study),
    )
