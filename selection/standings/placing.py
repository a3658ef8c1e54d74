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

One that was asked for tasks chosen for it, batch by batch, is placed on no task set: not on S, whatever of it
was among its tasks, nor on all tasks before it ran them. Once it was stopped, its score on all tasks is est
of `selection.staged` with the interval est ± t_ν·c·se. For comparisons its error is c·se, with one χ²_ν for
all agents of one study. Those that were stopped enter pass rates (`selection.standings.choice.teachers`), no
calibration and no monitor. One that stands on the podium ran all tasks, or has a standard error under 1 point
and cannot lead, or is recalled: asked for the rest (`selection.staged.walks.recalled`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, columns, read_only
from analytics.names import first_names
from analytics.record import Record
from selection.errors import SelectionError
from selection.prior import Staged
from selection.schema.board import Line, Standings
from selection.staged.walks import Staging, recalled
from selection.standings.full_scores import Completing, FullScoreEstimate, TooFewComplete
from selection.standings.terms import CHOSEN_TASKS, is_recalled
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
    record: Record, tasks: IndexArray, completing: Completing, *, of: str = "tasks"
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
            return lacking_under(record.compared, n_lacking, n_asked, zero=bool(record.fails[i]))
        return elsewhere(record.condition[i], record.compared)
    if record.about[i].adaptive_reason:
        return record.about[i].adaptive_reason
    if record.short[i]:
        short = np.flatnonzero(record.asked[i] & (record.n_places[i] == 0))
        lacking = short if record.n_too_few is None or short.size else np.flatnonzero(record.n_too_few[i])
        names = first_names([record.table.tasks[j] for j in lacking])
        tasks = counted(int(record.asked[i].sum()), "task")
        if short.size:
            asked = "" if record.asked[i].all() else " that it was asked to run"
            return f"it has no result of {short.size:,} of the {tasks}{asked}: {names}"
        of_asked = f"{lacking.size} of the {tasks} that it was asked to run"
        return f"{of_asked} have fewer trials than it was asked for: {names}"
    return ""


def _lacking(record: Record, tasks: IndexArray, i: int, n_lost: int, of: str) -> str:
    missing = tasks[record.table.n_valid[i, tasks] == 0]
    if missing.size and (record.n_places[i, missing] == 0).all():
        names = first_names([record.table.tasks[j] for j in missing[:3]], of=missing.size)
        were = "was" if missing.size == 1 else "were"
        under = f" under all {len(record.compared)} compared conditions" if len(record.compared) > 1 else ""
        return f"{missing.size} of {_among(tasks.size, of)} {were} not run{under}: {names}"
    n_trials = n_lost + int(record.table.n_valid[i, tasks].sum())
    noun = "result" if record.n_judged_again and record.n_judged_again[i] else "trial"  # of several judges
    on = f"{counted(n_trials, noun)} on {_among(tasks.size, of)}"
    return f"{n_lost} of its {on} {'has' if n_lost == 1 else 'have'} no valid outcome, more than 5%"


def _among(n_tasks: int, of: str) -> str:
    """Return 1 ranking task, 20 ranking tasks, for "ranking tasks"."""
    return f"{n_tasks:,} {of.replace('tasks', 'task', 1) if n_tasks == 1 else of}"


# More than a benchmark has: those of subsets come before in `FullScoreEstimate.calibration`
N_VERSIONS = 1_000_000


def owing(board: Standings, podium: int) -> tuple[Line, ...]:
    """Return who has to run the rest, whether it was asked for that or not.

    podium: P, the first places.
    """
    ranked = [line for line in board.agents if line.at["full"].rank is not None]
    errors = [line.at["full"].se if "chosen tasks" in line.marks else None for line in ranked]
    scores = np.array([line.at["full"].score for line in ranked], dtype=np.float64)
    rows = recalled(scores, np.array(errors, dtype=np.float64), Staging(podium=podium))
    return tuple(ranked[i] for i in rows.tolist())


def podium_text(board: Standings, podium: int) -> str:
    """Say that who stands on the podium ran all tasks, or who did not; empty where all agents did.

    Whoever is neither recalled nor has to be is known well enough; whoever is not recalled and had to be,
    an operator has excused.
    """
    if not any("chosen tasks" in line.marks for line in board.agents):
        return ""
    places = "first place" if podium == 1 else f"first {podium} places"
    excused = [line.agent for line in owing(board, podium) if not is_recalled(line)]
    but = f", but for {first_names(excused)}, excused by an operator" if excused else ""
    return (
        f"each agent on the {places} ran all tasks, or is recalled to run the rest, or has a standard error "
        f"under 1 point and a score at least two standard errors below the best{but}"
    )


def marked(record: Record, staged: Mapping[str, Staged]) -> Record:
    """Say of these agents why they are placed on no task set; not of those that ran all tasks."""
    if not staged:
        return record
    lacks = (record.n_places == 0).any(axis=1)
    about = tuple(
        one
        if (of := staged.get(one.name)) is None or (ran_all and not (of.se is not None and is_part))
        else replace(one, adaptive_reason=of.reason, stopped=of.se is not None, recalled=of.recalled)
        for one, ran_all, is_part in zip(record.about, record.ran_all.tolist(), lacks.tolist(), strict=True)
    )
    stopped = np.array([one.stopped for one in about], dtype=np.bool_)
    return replace(record, about=about, complete=record.complete & ~stopped)


def adaptive_estimates(record: Record, staged: Mapping[str, Staged]) -> dict[int, FullScoreEstimate]:
    """Return the full scores of those that have come to the end, by position.

    record: as `marked` gives it.
    """
    studies = sorted({one.study for one in staged.values()})
    estimated = {}
    for i, about in enumerate(record.about):
        one = staged.get(about.name)
        # More keeps one from a rank that took outcomes back, or ran under another condition
        is_barred = about.withheld or (record.condition and record.condition[i])
        if one is None or one.se is None or not about.adaptive_reason or is_barred:
            continue
        assert one.degrees is not None
        estimated[i] = FullScoreEstimate(
            score=one.score,
            lower=one.lower,
            upper=one.upper,
            se2=one.se**2,
            df=float(one.degrees),
            calibration=N_VERSIONS + studies.index(one.study),
            source=CHOSEN_TASKS,
        )
    return estimated


def is_chosen_for(record: Record) -> np.ndarray:
    """Agents that `marked` has marked, shape (n_agents,)."""
    return np.array([bool(one.adaptive_reason) for one in record.about], dtype=np.bool_)
