"""Trials that an operator's file does not hold, of a task that it does hold: how many were to be expected.

Source: The rule is this project's own (docs/decisions/trials-that-count.md).
"""

from collections.abc import Sequence

import numpy as np

from analytics.arrays import CodeArray, CountArray, FloatArray, Mask
from analytics.names import first_names
from analytics.outcome_table import CellMoments

MIN_OTHERS = 5
MIN_REPEATED = 5
N_NAMED = 3


def expected_trials(n_places: CountArray, loaded: Mask) -> CodeArray:
    """Return E_a of each agent, (n_agents,), 0 of one not loaded; no place is 0."""
    own, others, most = _trials(n_places, loaded)
    return np.asarray(np.maximum(own, np.minimum(most, others)), dtype=np.int64)


def fewer_trials(n_places: CountArray, loaded: Mask) -> Mask:
    """Find loaded agents with fewer trials on each task than nearly all cells of the others, (n_agents,)."""
    _, others, most = _trials(n_places, loaded)
    return np.asarray((most > 0) & (most < others), dtype=np.bool_)


def _trials(n_places: CountArray, loaded: Mask) -> tuple[CodeArray, CodeArray, CodeArray]:
    """Return R₉₅ of an agent's own cells, R₉₅ of the others', the most of one cell, (n_agents,) each."""
    expected = np.where(loaded[:, None], n_places, 0)
    levels = np.flatnonzero(np.bincount(expected.reshape(-1)))
    n_cells = np.zeros((len(n_places), levels.size), dtype=np.int64)
    for column, level in enumerate(levels):
        n_cells[:, column] = np.count_nonzero(expected == level, axis=1)
    n_cells[:, levels == 0] = 0
    others = _of_nearly_all(levels, n_cells.sum(axis=0) - n_cells)
    there = n_cells.any(axis=1)
    others[there.sum() - there < MIN_OTHERS] = 0
    most = np.where(n_cells > 0, levels, 0).max(axis=1, initial=0)
    return _of_nearly_all(levels, n_cells), others, np.asarray(most, dtype=np.int64)


def absent_trials(n_places: CountArray, loaded: Mask) -> CountArray:
    """Return the places that each cell lacks, max(E_a − n, 0) where n > 0, (n_agents, n_tasks)."""
    lacking = np.maximum(expected_trials(n_places, loaded)[:, None] - n_places, 0)
    return np.asarray(np.where(n_places > 0, lacking, 0), dtype=np.int32)


def with_failures(cells: CellMoments, n_absent: CountArray) -> CellMoments:
    """Return the cells, (n_agents, n_tasks), with so many failures more, only where one has a valid trial."""
    if not n_absent.any():
        return cells
    at = np.nonzero(n_absent)
    n, x, s2 = cells.n_valid[at].astype(np.float64), cells.means[at], cells.trial_variances[at]
    expected = n + n_absent[at]
    means, variances, n_trials = (one.copy() for one in (cells.means, cells.trial_variances, cells.n_trials))
    means[at] = n * x / expected
    squares = (n - 1) * np.nan_to_num(s2) + n * x**2 - expected * means[at] ** 2
    variances[at] = np.maximum(squares, 0.0) / (expected - 1)
    n_trials[at] *= expected / n
    return CellMoments(means, (cells.n_valid + n_absent).astype(np.int32), variances, n_trials)


def uneven(
    agents: Sequence[str], n_places: CountArray, n_absent: CountArray, loaded: Mask, *, zero: bool
) -> tuple[str, ...]:
    """Say which loaded agents lack trials on some tasks, and how many may have been meant to."""
    n, lack = len(n_places), np.flatnonzero(n_absent.any(axis=1)).tolist()
    named = first_names([agents[i] for i in lack], N_NAMED)
    expected = n_places + n_absent
    differs = ((expected > 0) & (expected < expected.max(axis=1, initial=0)[:, None])).any(axis=1)
    n_unequal = int((loaded & differs).sum())
    lacking = (
        f"{len(lack)} of {n} agents ran some tasks fewer times than most of theirs, or than most others did "
        f"({named}): missing results {'count as failures' if zero else 'stay missing'}"
    )
    unequal = (
        f"{n_unequal} of {n} agents {'has' if n_unequal == 1 else 'have'} fewer trials on some tasks "
        "than on others: each task counts with the trials that it has"
    )
    return tuple(reason for reason, holds in ((lacking, lack), (unequal, n_unequal)) if holds)


def passes_alone(agents: Sequence[str]) -> tuple[str, ...]:
    """Say of which agents only passes were delivered, though they lack tasks or trials."""
    n = len(agents)
    if not n:
        return ()
    named = first_names(agents, N_NAMED)
    who, lack = ("1 agent has", "lacks") if n == 1 else (f"{n} agents have", "lack")
    high = "its failures were left out, its score is" if n == 1 else "failures were left out, scores are"
    return (f"{who} only passes and {lack} tasks or trials: {named}; if {high} too high",)


def repeats_of_failures(means: FloatArray, n_places: CountArray) -> Mask:
    """Find agents that passed all tasks of the fewest trials and failed on all others, (n_agents,)."""
    ran = n_places > 0
    fewest = np.where(ran, n_places, np.iinfo(n_places.dtype).max).min(axis=1, initial=1 << 30)
    more = ran & (n_places > fewest[:, None])
    many = np.minimum(more.sum(axis=1), (ran & ~more).sum(axis=1)) >= MIN_REPEATED
    return np.asarray(many & (((means == 1.0) == ~more) | ~ran).all(axis=1), dtype=np.bool_)


def failures_repeated(agents: Sequence[str]) -> tuple[str, ...]:
    """Say of which agents more trials were delivered of just those tasks on which they failed."""
    if not agents:
        return ()
    have = "agent has" if len(agents) == 1 else "agents have"
    return (
        f"{len(agents)} {have} more trials on just those tasks with a failure: "
        f"{first_names(agents, N_NAMED)}; if failed tasks were run again, the scores are too high",
    )


def _of_nearly_all(levels: CodeArray, n_cells: CodeArray) -> CodeArray:
    """R₉₅ of each row of counts by level, (n_rows,), 0 without a cell: 20·(cells ≥ R) ≥ 19·(all cells)."""
    at_least = n_cells[:, ::-1].cumsum(axis=1)[:, ::-1]
    total = n_cells.sum(axis=1, keepdims=True)
    enough = (20 * at_least >= 19 * total) & (total > 0)
    return np.asarray(np.where(enough, levels, 0).max(axis=1, initial=0), dtype=np.int64)
