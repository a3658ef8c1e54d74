"""An operator's own run of tasks drawn at random, held against what a submission says."""

import numpy as np
from django.utils.crypto import salted_hmac

from analytics.rerun import Agreement as Agreement
from analytics.rerun import agreement, task_means
from leaderboard.catalog.models import Task
from leaderboard.errors import Refusal
from leaderboard.submissions.models import Submission
from leaderboard.submissions.parsing.flat import FlatFile
from leaderboard.submissions.queries import outcomes_of

N_FEWEST = 20
N_NAMED = 5


class TooFewTasks(Refusal):
    """A rerun needs more tasks than the submission has."""


class NotTheDrawnTasks(Refusal):
    """The file holds other tasks than those that were drawn."""


def drawn_tasks(submission: Submission, n: int = N_FEWEST) -> list[str]:
    """The first n tasks of its random order: the same at each call, and known to this installation alone."""
    order = _in_random_order(submission)
    if len(order) < max(n, N_FEWEST):
        raise TooFewTasks(
            f"The submission has valid outcomes on {len(order)} active tasks; {max(n, N_FEWEST)} are needed. "
            "Look at its logs instead, and verify it with --note."
        )
    return order[:n]


def compared_with(submission: Submission, flat: FlatFile) -> Agreement:
    """Compare it with the operator's run, a file of one agent on the tasks drawn."""
    if len(flat.agents) != 1:
        raise NotTheDrawnTasks(f"The file holds {len(flat.agents)} agents; expected is one.")
    second = task_means(np.asarray(flat.tasks)[flat.task[flat.valid]], flat.outcome[flat.valid])
    drawn = drawn_tasks(submission, max(len(second), N_FEWEST))
    _check(drawn, second)
    first = _first_means(submission)
    return agreement(np.array([first[task] for task in drawn]), np.array([second[task] for task in drawn]))


def _check(drawn: list[str], second: dict[str, float]) -> None:
    lacking = [task for task in drawn if task not in second]
    if others := sorted(set(second).difference(drawn)):
        raise NotTheDrawnTasks(
            f"{len(others)} tasks of the file were not drawn: {', '.join(others[:N_NAMED])}. Run the tasks "
            f"that --draw {len(drawn)} names."
        )
    if lacking:
        raise NotTheDrawnTasks(
            f"{len(lacking)} of {len(drawn)} drawn tasks have no valid outcome in the file: "
            f"{', '.join(lacking[:N_NAMED])}. Run them too."
        )


def _in_random_order(submission: Submission) -> list[str]:
    def key(task: str) -> bytes:
        return salted_hmac("verify", f"{submission.uuid}:{task}", algorithm="sha256").digest()

    return sorted(_first_means(submission), key=key)


def _first_means(submission: Submission) -> dict[str, float]:
    rows = outcomes_of([submission.pk])
    names = dict(
        Task.objects.filter(benchmark=submission.agent.benchmark, retired_at=None).values_list("pk", "name")
    )
    pks, valid = rows["task"].to_numpy(), rows["valid"].to_numpy(zero_copy_only=False)
    is_shown = valid & np.isin(pks, list(names))
    return task_means(np.array([names[pk] for pk in pks[is_shown]]), rows["value"].to_numpy()[is_shown])
