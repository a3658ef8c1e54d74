"""Figures of single tasks: pass rates, discrimination, outcomes expected from neighbours, what counts.

The theory is in ``selection/README.md``, “Single tasks”. Source: Henrysson, *Psychometrika* 28 (1963) 211-218
(corrected item-total correlation). The expectation by neighbours is this project's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc

from analytics.arrays import DECIMALS, CountArray, FloatArray, IndexArray, Mask, ratio, read_only
from analytics.record import AgentRow, Compared, Counting, Delivery, Record, Rows, agent_rows, in_part
from analytics.record.rows import Setting
from selection.bands import in_band as in_band
from selection.bands import pass_rates

REACH = 5
PASSED = 0.5
SELDOM, OFTEN = 20, 80  # percent, rounded as pages show them
MIN_NEIGHBOURS = 4
MIN_AGENTS = 3
MIN_VARIANCE = 1e-12  # below it all are equal but for rounding


def is_graded(rows: Sequence[AgentRow]) -> bool:
    """Whether over 5% of the valid outcomes lie between 0 and 1."""
    counts = [(row.n_graded, int(row.n_valid.sum())) for row in rows]
    return 20 * sum(n for n, _ in counts) > sum(n for _, n in counts)


def n_counted(row: AgentRow, *, zero: bool) -> int | None:
    """Return how many of the outcomes that an agent delivered count, gaps of the harness among them.

    zero: whether absent outcomes count as failures too: then the passes are Σ_j R_j·X_j, where one condition
        is compared, and None stands where outcomes lie between 0 and 1.
    """
    if not zero:
        return int(row.n_valid.sum() + row.n_gaps.sum())
    if row.n_graded:
        return None
    return row.n_failed + round(float(np.nansum(row.means * row.n_valid)))


def nearly_complete(outcomes: FloatArray) -> Mask:
    """Return which agents have an outcome on at least 95% of the tasks, or all where none has, (n,)."""
    n_valid = np.count_nonzero(~np.isnan(outcomes), axis=1)
    nearly_all = (20 * n_valid >= 19 * outcomes.shape[1]) & (n_valid > 0)
    return np.asarray(nearly_all if nearly_all.any() else n_valid > 0, dtype=np.bool_)


def rates(outcomes: FloatArray) -> FloatArray:
    """Return the pass rate of each task over the agents on equal terms, (m,); NaN where none has run it."""
    comparable = outcomes[nearly_complete(outcomes)]
    return pass_rates(comparable) if comparable.size else np.full(outcomes.shape[1], np.nan)


def by_rate(p: FloatArray) -> IndexArray:
    """Return the tasks from the easiest on, (m,); equal ones in their order, those without a rate last."""
    return np.argsort(-np.round(np.nan_to_num(p, nan=-1.0), DECIMALS), kind="stable")


def discriminations(outcomes: FloatArray, tasks: Sequence[int] | slice = slice(None)) -> FloatArray:
    """Return the corrected item-total correlation of each of the tasks over the agents on equal terms.

    NaN where fewer than 3 agents have run the task, or where all of them did equally well on it, or on the
    others.
    """
    comparable = outcomes[nearly_complete(outcomes)]
    n_others = np.count_nonzero(~np.isnan(comparable), axis=1)[:, np.newaxis] - 1
    total, own = np.nansum(comparable, axis=1, keepdims=True), comparable[:, tasks]
    both = ~np.isnan(own) & (n_others > 0)
    n = both.sum(axis=0)
    x, y = (
        _centred(values, both, n)
        for values in (own, np.divide(total - own, n_others, out=np.zeros(own.shape), where=both))
    )
    xx, yy = (x * x).sum(axis=0), (y * y).sum(axis=0)
    is_known = (n >= MIN_AGENTS) & (np.minimum(xx, yy) >= MIN_VARIANCE * n)
    found = np.full(n.shape, np.nan)
    np.divide((x * y).sum(axis=0), np.sqrt(xx * yy), out=found, where=is_known)
    return np.clip(found, -1.0, 1.0)


def _centred(values: FloatArray, known: Mask, n: CountArray) -> FloatArray:
    """Return differences to the mean of each column over what is known, (n, m); 0 elsewhere."""
    means = np.where(known, values, 0.0).sum(axis=0) / np.maximum(n, 1)
    return np.where(known, values - means, 0.0)


def group_means(outcomes: FloatArray, n_groups: int) -> list[FloatArray]:
    """Return the mean outcome on each task of so many groups of successive rows, (m,) each; NaN: none."""
    return [_column_means(group)[0] for group in np.array_split(outcomes, n_groups)]


def _column_means(rows: FloatArray) -> tuple[FloatArray, CountArray]:
    n = np.count_nonzero(~np.isnan(rows), axis=0)
    return ratio(np.nansum(rows, axis=0), n), np.asarray(n, dtype=np.int32)


def weaker_passing(outcomes: FloatArray, ranks: FloatArray) -> int:
    """Count the agents that pass a task although a better ranked one fails it.

    outcomes: (n,); on the task; NaN: missing.
    ranks: (n,); NaN: without a rank, and not counted.
    """
    failing = ranks[outcomes < PASSED]
    best = np.nanmin(failing, initial=np.inf)
    return int(np.count_nonzero((outcomes >= PASSED) & (ranks > best)))


@dataclass(frozen=True, eq=False)
class ExpectedOutcomes:
    """What an agent's neighbours in rank lead one to expect of it.

    means: (m,); e; NaN where no neighbour has run the task.
    difference: d; 0 where they share no task.
    n_neighbours: (m,); with an outcome on the task.
    passes, failures: tasks that it surprisingly passed and failed, the most surprising first.
    n_seldom, n_often: tasks with its outcome on which at most 20%, at least 80% was expected.
    passes_by_chance, failures_by_chance: how many of either kind trials that pass at the expected rates would
        bring; None where outcomes are no passes and failures.
    """

    means: FloatArray
    difference: float
    n_neighbours: CountArray
    passes: IndexArray
    failures: IndexArray
    n_seldom: int
    n_often: int
    passes_by_chance: float | None
    failures_by_chance: float | None


def n_pass_fail(row: AgentRow) -> FloatArray:
    """Return of how many passes and failures each outcome is the mean, (m,); NaN where of anything else."""
    is_so = np.isclose(row.n_trials, row.n_valid) & (row.n_graded == 0)
    return np.where(is_so, row.n_valid, np.nan)


def expected(
    outcomes: FloatArray, i: int, reach: int = REACH, n_trials: FloatArray | float = 1.0
) -> ExpectedOutcomes:
    """Compare an agent with those next to it.

    outcomes: (n, m); rows in the order of the board.
    reach: h, rows on either side.
    n_trials: (m,); R of the agent, as `n_pass_fail` has them.
    """
    rows = [row for row in range(max(0, i - reach), min(len(outcomes), i + reach + 1)) if row != i]
    theirs, n = _column_means(outcomes[rows])
    own, has_neighbours = outcomes[i], n >= MIN_NEIGHBOURS
    both = ~np.isnan(own) & ~np.isnan(theirs)
    difference = float((own[both] - theirs[both]).mean()) if both.any() else 0.0
    means = np.clip(theirs + difference, 0.0, 1.0)
    shown = np.round(100 * means)
    seldom, often = (has_neighbours & both & known for known in (shown <= SELDOM, shown >= OFTEN))
    least = np.ceil(PASSED * n_trials)
    chances = betainc(least, n_trials - least + 1.0, means)
    passes, failures = np.flatnonzero(seldom & (own >= PASSED)), np.flatnonzero(often & (own < PASSED))
    return ExpectedOutcomes(
        means=read_only(means),
        difference=difference,
        n_neighbours=read_only(n),
        passes=passes[np.argsort(np.round(means[passes], DECIMALS), kind="stable")],
        failures=failures[np.argsort(-np.round(means[failures], DECIMALS), kind="stable")],
        n_seldom=int(seldom.sum()),
        n_often=int(often.sum()),
        passes_by_chance=_sum(chances[seldom]),
        failures_by_chance=_sum(1.0 - chances[often]),
    )


def _sum(chances: FloatArray) -> float | None:
    return None if np.isnan(chances).any() else float(chances.sum())


def delivered_means(record: Record, agent: int, n_trials: int) -> dict[str, float | None]:
    """Return the mean outcomes of the tasks that an agent delivered whole, by name; None: invalid.

    A task is there with all of its trials, under each condition that is compared.

    n_trials: asked for of each task, under each condition.
    """
    n_places = n_trials * max(len(record.compared), 1)
    return _whole(record.table.tasks, record.table.means[agent], record.n_places[agent], n_places)


def means_so_far(
    rows: Rows,
    *,
    tasks: Sequence[str],
    settings: Sequence[Setting],
    deliveries: Sequence[Delivery],
    counting: Counting,
    compared: Compared,
    n_trials: int,
) -> dict[str, float | None]:
    """Return the same of one agent that is still delivering, from its rows (`analytics.record.agent_rows`).

    The record counts as many trials as there are on the task with the fewest; here a task that lacks some is
    left out, so that the others tell what they will tell once it has them.
    """
    known: Any = {
        "n_agents": 1,
        "settings": settings,
        "deliveries": deliveries,
        "counting": counting,
        "compared": compared,
    }
    in_rows = np.flatnonzero(~in_part(rows, tasks=tasks, n_trials=n_trials, **known)[0])
    if not in_rows.size:
        return {}
    left = [tasks[j] for j in in_rows.tolist()]
    (own,) = agent_rows(rows.on(in_rows, len(tasks)), tasks=left, **known)
    return _whole(left, own.means, own.n_places, n_trials * max(len(compared.conditions), 1))


def _whole(
    tasks: Sequence[str], means: FloatArray, n_places: CountArray, n_asked: int
) -> dict[str, float | None]:
    there = np.flatnonzero(n_places >= n_asked).tolist()
    return {tasks[j]: None if np.isnan(means[j]) else float(means[j]) for j in there}
