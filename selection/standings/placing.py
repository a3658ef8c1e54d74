"""Who is ranked on a set of tasks: directly, completed, or listed with the reason why not.

==========  ==============================================================================================
how         when
==========  ==============================================================================================
direct      every place delivered, none a gap
completed   every place delivered, at most 5% of them gaps; what is missing is completed
incomplete  everyone else, and whoever may not be ranked: withheld, under another condition, asked for
            tasks chosen for it, or a submitter that never delivered a place it was asked for
==========  ==============================================================================================

An unranked agent has no score, only the bounds that its missing outcomes leave, [Σ/k, (Σ + n_missing)/k].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, columns, read_only
from analytics.record import Record
from selection.errors import SelectionError
from selection.standings.full_scores import Completing, TooFewComplete
from selection.standings.terms import first_names
from selection.standings.words import counted, elsewhere, lacking_under

How = Literal["direct", "completed", "incomplete"]


@dataclass(frozen=True, eq=False)
class AgentOnTasks:
    """One agent on a set of k tasks.

    outcomes: (k,); missing ones completed; None for an agent that is not ranked.
    score: their mean.
    v_link, df_link: variance that completing adds, and its degrees of freedom.
    n_valid, n_missing: tasks with a valid outcome; places without one, a task that was not run being as many
        as the others.
    reason: why it is not ranked; else empty.
    """

    how: How
    outcomes: FloatArray | None
    score: float | None
    v_link: float
    df_link: float
    n_valid: int
    n_missing: int
    bounds: tuple[float, float]
    reason: str


def rated_tasks(record: Record) -> IndexArray:
    """Tasks that some complete agent has a valid outcome for; all of them where nobody is complete."""
    rated = (record.table.n_valid[record.complete] > 0).any(axis=0)
    return np.flatnonzero(rated) if rated.any() else np.arange(record.n_tasks)


def ran_all(record: Record) -> Mask:
    """Agents that delivered at least 95% of the tasks, whatever became of the outcomes, shape (n_agents,)."""
    n_delivered = np.count_nonzero(record.n_places > 0, axis=1)
    return np.asarray(record.complete | (20 * n_delivered >= 19 * record.n_tasks), dtype=np.bool_)


def place_on_all(record: Record, completing: Completing | None = None) -> tuple[AgentOnTasks, ...]:
    """Place every agent on all tasks that somebody complete has run; `completing` as in `place`."""
    return place(record, rated_tasks(record), completing or Completing(record))


def scores_of(on_tasks: Sequence[AgentOnTasks]) -> FloatArray:
    """Scores of agents, shape (n_agents,); NaN for one that is not placed."""
    return np.array([np.nan if one.score is None else one.score for one in on_tasks], dtype=np.float64)


def place(
    record: Record,
    tasks: IndexArray,
    completing: Completing,
    *,
    of: str = "tasks",
) -> tuple[AgentOnTasks, ...]:
    """Place every agent on these tasks.

    tasks: (k,); each with a valid outcome of a complete agent, where there is one; k ≥ 1.
    of: what the tasks are called in reasons.
    """
    direct = record.is_direct(tasks)
    lower, upper, n_missing = record.bounds(tasks)
    cells = columns(record.table.means, tasks)
    n_valid, on_tasks = np.count_nonzero(~np.isnan(cells), axis=1), list[AgentOnTasks]()
    how: How
    for i in range(record.n_agents):
        counts = int(n_valid[i]), int(n_missing[i]), (float(lower[i]), float(upper[i]))
        reason = barred_by(record, i)
        if not reason and not direct[i]:
            reason = _lacking(record, tasks, i, counts[1], of)
        how, outcomes, v_link, df_link = "direct", cells[i], 0.0, np.inf
        if not reason and counts[0] < tasks.size:
            try:
                outcomes, scale, se = completing.filled(i, tasks)
                how, v_link, df_link = "completed", (scale.c * se) ** 2, float(scale.degrees)
            except TooFewComplete as refusal:
                lacks = tasks.size - counts[0]
                verb = "has" if lacks == 1 else "have"
                reason = f"{lacks} of {_among(tasks.size, of)} {verb} no valid outcome; {refusal}"
            except SelectionError as refusal:
                reason = str(refusal)
        if reason:
            on_tasks.append(AgentOnTasks("incomplete", None, None, 0.0, np.inf, *counts, reason))
        else:
            score = float(np.mean(outcomes))
            on_tasks.append(AgentOnTasks(how, read_only(outcomes), score, v_link, df_link, *counts, ""))
    return tuple(on_tasks)


def barred_by(record: Record, i: int) -> str:
    """Why agent i is ranked on no tasks; else empty."""
    if record.about[i].withheld:
        return record.about[i].withheld
    if record.condition and record.condition[i]:
        n_lacking, n_asked = int(record.n_lacking[i]), int(record.asked[i].sum())
        if n_lacking:
            return lacking_under(record.compared, n_lacking, n_asked, zero=record.counting.missing == "zero")
        return elsewhere(record.condition[i], record.compared)
    if record.about[i].adaptive_reason:
        return record.about[i].adaptive_reason
    if record.short[i]:
        short = np.flatnonzero(record.asked[i] & (record.n_places[i] == 0))
        lacking = short if record.n_too_few is None or short.size else np.flatnonzero(record.n_too_few[i])
        names = first_names([record.table.tasks[j] for j in lacking])
        tasks = counted(int(record.asked[i].sum()), "task")
        how = "never arrived" if short.size else "have fewer trials than it was asked for"
        return f"{lacking.size} of the {tasks} that it was asked to run {how}: {names}"
    return ""


def _lacking(record: Record, tasks: IndexArray, i: int, n_lost: int, of: str) -> str:
    missing = tasks[~record.table.valid()[i, tasks]]
    if missing.size and (record.n_places[i, missing] == 0).all():
        names = first_names([record.table.tasks[j] for j in missing])
        were = "was" if missing.size == 1 else "were"
        return f"{missing.size} of {_among(tasks.size, of)} {were} not run: {names}"
    n_trials = n_lost + int(record.table.n_valid[i, tasks].sum())
    on = f"{counted(n_trials, 'trial')} on {_among(tasks.size, of)}"
    return f"{n_lost} of its {on} {'has' if n_lost == 1 else 'have'} no valid outcome, more than 5%"


def _among(n_tasks: int, of: str) -> str:
    """Return 1 task of the subset, 20 tasks of the subset, for "tasks of the subset"."""
    return f"{n_tasks:,} {of.replace('tasks', 'task', 1) if n_tasks == 1 else of}"
