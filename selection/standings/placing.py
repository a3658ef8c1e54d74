"""Who is ranked on a set of tasks: directly, completed, linked, or listed with the reason why not.

==========  ==============================================================================================
how         when
==========  ==============================================================================================
direct      every place delivered, none a gap
completed   every place delivered, at most 5% of them gaps; what is missing is completed
linked      ranked directly under an earlier version of S, with all of it, and at least 50% of today's S
incomplete  everyone else, and whoever may not be ranked: withheld, under another condition, or a submitter
            that never delivered a place it was asked for
==========  ==============================================================================================

Completion and its error are `selection.linking`'s; they need 10 complete agents. An unranked agent has no
score, only the bounds that its missing outcomes leave, [Σ/k, (Σ + n_missing)/k].

Symbols: X ``outcomes`` (k,) 0 to 1, v_link ``v_link`` score².

Source
------
As in `selection.linking`. Manski, *Partial Identification of Probability Distributions*, 2003 (bounds).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from analytics.record import Record
from selection.errors import SelectionError
from selection.linking import FEWEST_COMPLETE, Reference, complete, reference
from selection.standings.words import counted, first_names

How = Literal["direct", "completed", "linked", "incomplete"]


@dataclass(frozen=True, eq=False)
class Placed:
    """One agent on a set of k tasks.

    Attributes
    ----------
    how : {"direct", "completed", "linked", "incomplete"}
    outcomes : float array, shape (k,), or None
        Missing ones completed; None for an agent that is not ranked.
    score : float or None
        Their mean.
    v_link, df_link : float
        Variance that completing adds, and its degrees of freedom.
    n_valid, n_missing : int
        Tasks with a valid outcome; tasks without one that the agent was asked for.
    bounds : (float, float)
    reason : str
        Why it is not ranked; else empty.
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


def place(
    record: Record, tasks: IndexArray, earlier: Sequence[IndexArray] = (), *, of: str = "tasks"
) -> tuple[Placed, ...]:
    """Place every agent on these tasks.

    Parameters
    ----------
    record : Record
    tasks : int array, shape (k,)
        Each with a valid outcome of a complete agent, where there is one; k ≥ 1.
    earlier : sequence of int arrays
        Active tasks of earlier versions of the subset, by which agents may be linked.
    of : str
        What the tasks are called in reasons.
    """
    agents = reference(record.table.means[record.complete], tasks) if record.complete.any() else None
    direct = record.is_direct(tasks)
    linked = _linkable(record, tasks, earlier)
    barred = [barred_by(record, i) for i in range(record.n_agents)]
    return tuple(
        _placed(record, tasks, i, agents, barred[i], bool(direct[i]), bool(linked[i]), of)
        for i in range(record.n_agents)
    )


def barred_by(record: Record, i: int) -> str:
    """Why agent i is ranked on no tasks; else empty."""
    if record.about[i].withheld:
        return record.about[i].withheld
    if record.condition and record.condition[i]:
        compared = " and ".join(record.compared)
        return f"ran under {record.condition[i]}" + (f"; compared is {compared}" if compared else "")
    short = short_of(record, i)
    if short.size:
        names = first_names([record.table.tasks[j] for j in short])
        return (
            f"{short.size} of the {counted(int(record.asked[i].sum()), 'task')} that it was asked to run "
            f"never arrived: {names}"
        )
    return ""


def short_of(record: Record, i: int) -> IndexArray:
    """Tasks that a submitter's agent was asked to run and never delivered a place of."""
    if record.operator[i]:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(record.asked[i] & (record.n_places[i] == 0))


# ------------------------------------------------------------------------------------------------- one agent


def _placed(
    record: Record,
    tasks: IndexArray,
    i: int,
    agents: Reference | None,
    barred: str,
    direct: bool,
    linked: bool,
    of: str,
) -> Placed:
    here = record.table.means[i, tasks]
    missing = np.isnan(here)
    if barred or not (direct or linked):
        return _unranked(record, tasks, i, barred or _reason(record, tasks, i, of))
    if not missing.any():
        return _ranked(record, tasks, i, "direct", here)
    try:
        return _completed(record, tasks, i, agents, "completed" if direct else "linked")
    except SelectionError as refusal:
        return _unranked(record, tasks, i, str(refusal))


def _completed(record: Record, tasks: IndexArray, i: int, agents: Reference | None, how: How) -> Placed:
    n = agents.n_complete if agents else 0
    if agents is None or n < FEWEST_COMPLETE:
        n_missing = int(np.isnan(record.table.means[i, tasks]).sum())
        verb = "lacks" if n_missing == 1 else "lack"
        raise SelectionError(
            f"{n_missing} of {counted(tasks.size, 'task')} {verb} a valid outcome; completing them needs "
            f"{FEWEST_COMPLETE} complete agents and there {'is' if n == 1 else 'are'} {n}"
        )
    outcomes, error = complete(agents, record.table.means[i])
    return _ranked(record, tasks, i, how, outcomes, error.v_link, float(error.degrees))


def _ranked(
    record: Record,
    tasks: IndexArray,
    i: int,
    how: How,
    outcomes: FloatArray,
    v_link: float = 0.0,
    df_link: float = np.inf,
) -> Placed:
    n_valid, n_missing, bounds = _counts(record, tasks, i)
    score = float(np.mean(outcomes))
    return Placed(how, read_only(outcomes), score, v_link, df_link, n_valid, n_missing, bounds, "")


def _unranked(record: Record, tasks: IndexArray, i: int, reason: str) -> Placed:
    n_valid, n_missing, bounds = _counts(record, tasks, i)
    return Placed("incomplete", None, None, 0.0, np.inf, n_valid, n_missing, bounds, reason)


def _counts(record: Record, tasks: IndexArray, i: int) -> tuple[int, int, tuple[float, float]]:
    """Valid tasks, those asked for and missing, and the bounds that all that is missing leaves."""
    here = record.table.means[i, tasks]
    missing = np.isnan(here)
    total, k = float(np.nansum(here)), tasks.size
    n_gone = int(np.count_nonzero(missing))
    n_missing = int(np.count_nonzero(missing & record.asked[i, tasks]))
    return k - n_gone, n_missing, (total / k, (total + n_gone) / k)


def _linkable(record: Record, tasks: IndexArray, earlier: Sequence[IndexArray]) -> Mask:
    """Agents ranked directly under an earlier version, with all of it, and at least 50% of today's tasks."""
    ranked = np.zeros(record.n_agents, dtype=np.bool_)
    for version in earlier:
        ranked |= record.is_direct(version) & (record.n_places[:, version] > 0).all(axis=1)
    enough = 2 * np.count_nonzero(record.table.n_valid[:, tasks] > 0, axis=1) >= tasks.size
    return np.asarray(ranked & enough, dtype=np.bool_)


def _reason(record: Record, tasks: IndexArray, i: int, of: str) -> str:
    """Why an agent that may be ranked has not run what it takes."""
    missing = tasks[np.isnan(record.table.means[i, tasks])]
    never = missing[record.n_places[i, missing] == 0]
    names = first_names([record.table.tasks[j] for j in missing])
    if never.size == missing.size:
        return f"{missing.size} of {tasks.size} {of} were not run: {names}"
    return f"{missing.size} of {tasks.size} {of} lack a valid outcome, more than 5%: {names}"
