"""Adaptive assignment replayed on past agents: what it would have run, if it held, and what else would do.

Each past agent in turn is the newcomer: under ``loao`` all others are its past, under ``temporal`` those of
strictly earlier dates, 19 at least. Everything is fitted inside that fold, the calibration too. The agent
stops at the first look with a half-width ≤ h, else at the last, and is covered when |y − ŷ| ≤ half-width.

At k, the batch nearest to m/4, each way of choosing k tasks is completed alike (ŷ of `selection.adaptive`),
leaving one agent out, and compared by ``pairs_correct_full``: ``adaptive``, the first k tasks of the batches;
``mid_range``, the k pass rates nearest to .5; ``spread``; ``random``, mean over the seeds. The error of a
difference leaves out one agent, or all of one model.

Source: Clopper & Pearson, *Biometrika* 26 (1934) 404-413.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray
from analytics.drift.e_value import upper_share
from analytics.record import Record
from selection.adaptive import (
    batch_size,
    calibrated,
    check,
    completed,
    looks_of,
    nearest_batch,
    prepared,
    walk,
)
from selection.bands import HI, LO
from selection.errors import SelectionError
from selection.folds import CompleteAgents, generator, membership
from selection.intervals import MIN_FOR_QUANTILE
from selection.standings.choice import training
from selection.strategies import STRATEGIES, Training
from selection.validation.figures import jackknife, mean_known, shares
from selection.validation.nested import jackknife_groups

N_SEEDS = 100
TWO_SIDED = 0.975
COMPARED = ("adaptive", "mid_range", "spread", "random")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class StopReplay:
    """What stopping at a half-width would have meant for past agents.

    n, n_covered, n_never: agents replayed; those whose full score the interval held at the stop; those that
        never reach h.
    share_run: mean of k/m at the stop.
    covered_lo, covered_hi: of the share covered, 95%.
    """

    protocol: str
    half_width: float
    n: int
    n_covered: int
    n_never: int
    share_run: float
    covered_lo: float
    covered_hi: float


@dataclass(frozen=True)
class StrategyOrder:
    """How k tasks chosen in one way order agents.

    difference, se: of ``adaptive`` over this one, and its jackknife standard error; None for ``adaptive``.
    """

    strategy: str
    pairs_correct_full: float
    difference: float | None
    se: float | None


@dataclass(frozen=True)
class AdaptiveReplay:
    """The replay table of a board.

    n_agents, n_tasks, batch, k: past agents; tasks; tasks of a batch; tasks of the comparison.
    unavailable: why there is no replay in time; else empty.
    """

    n_agents: int
    n_tasks: int
    batch: int
    k: int
    looks: tuple[int, ...]
    replayed: tuple[StopReplay, ...]
    unavailable: str
    chosen: tuple[StrategyOrder, ...]


# Of one agent: |y − ŷ| and the calibrated half-width at each look
Way = tuple[FloatArray, FloatArray]


def replay(
    record: Record,
    half_widths: Sequence[float] = (0.05,),
    *,
    seeds: int = N_SEEDS,
    base_seed: int = 0,
    progress: Progress | None = None,
) -> AdaptiveReplay:
    """Replay adaptive assignment on the complete agents of a record.

    seeds, base_seed: random subsets, and what their generators start from.
    progress: called with (agents replayed, all).
    Raises SelectionError: not_adaptive: under 20 complete agents (19 past ones when one is left out), on
        graded outcomes, on one task, or a half-width that is none.
    """
    for half_width in half_widths:
        if not 0.0 < half_width < 1.0:
            raise SelectionError(
                f"a half-width lies between 0 and 1; here {half_width:g}", code="not_adaptive"
            )
    agents = training(record)
    m = agents.outcomes.shape[1]
    check(max(agents.n - 1, 0), m, record.graded_share)
    everyone, loao = np.arange(agents.n), list[Way]()
    for i in everyone.tolist():
        loao += _ways(agents, everyone[everyone != i], [i])
        if progress is not None:
            progress(i + 1, agents.n)
    in_time, unavailable = _in_time(agents)
    ways = {"loao": loao} | ({} if unavailable else {"temporal": in_time})
    rows = tuple(_replayed(name, h, ends, m) for name, ends in ways.items() for h in half_widths)
    k, looks = nearest_batch(m, 1 / 4), looks_of(m)
    chosen = compared(agents, k, seeds=seeds, base_seed=base_seed)
    return AdaptiveReplay(agents.n, m, batch_size(m), k, looks, rows, unavailable, chosen)


def compared(
    agents: CompleteAgents, k: int, *, seeds: int = N_SEEDS, base_seed: int = 0
) -> tuple[StrategyOrder, ...]:
    """Compare k tasks chosen adaptively with as many chosen otherwise, leaving one agent out."""
    everyone = np.arange(agents.n)
    estimates = np.array(
        [_estimates(agents, i, everyone[everyone != i], k, (seeds, base_seed)) for i in everyone.tolist()]
    )
    groups = jackknife_groups(agents)
    folds = np.column_stack([np.ones(agents.n), groups[:, None] != np.arange(groups.max() + 1)])
    by_choice = np.array([_pairs(agents.scores, column, folds) for column in estimates.T])
    table = np.vstack([by_choice[:3], by_choice[3:].mean(axis=0)])
    whole, without = table[:, 0], (table[0] - table)[:, 1:]
    errors = jackknife(without.T)
    return tuple(
        StrategyOrder(
            name,
            float(whole[s]),
            float(whole[0] - whole[s]) if s else None,
            float(errors[s]) if s else None,
        )
        for s, name in enumerate(COMPARED)
    )


# -------------------------------------------------------------------------------------------------- replays


def _in_time(agents: CompleteAgents) -> tuple[list[Way], str]:
    """Replay the agents of each date after those of earlier dates; or say why not."""
    n_undated = sum(day is None for day in agents.dates)
    if n_undated:
        return [], f"{n_undated} of {agents.n} complete agents have no date"
    days, ways = [day or date.min for day in agents.dates], list[Way]()
    for day in sorted(set(days)):
        past = np.array([i for i, other in enumerate(days) if other < day], dtype=np.intp)
        if past.size >= MIN_FOR_QUANTILE:
            ways += _ways(agents, past, [i for i, other in enumerate(days) if other == day])
    return ways, "" if ways else f"no agent has {MIN_FOR_QUANTILE} others of earlier dates"


def _ways(agents: CompleteAgents, past: IndexArray, newcomers: Sequence[int]) -> list[Way]:
    start, calibration = prepared(agents, past), calibrated(agents, past)
    ways = []
    for i in newcomers:
        looks = walk(start, agents.outcomes[i]).looks
        errors = np.abs(agents.scores[i] - np.array([look.score for look in looks]))
        ways.append((errors, calibration.half_widths(np.array([look.se for look in looks]))))
    return ways


def _replayed(protocol: str, half_width: float, ways: Sequence[Way], m: int) -> StopReplay:
    looks, stops, n_covered, n_never = looks_of(m), list[int](), 0, 0
    for errors, half_widths in ways:
        halves = np.round(half_widths, DECIMALS)
        enough = np.flatnonzero(halves <= half_width)
        stop = int(enough[0]) if enough.size else len(looks) - 1
        n_never += not enough.size
        n_covered += bool(np.round(errors[stop], DECIMALS) <= halves[stop])
        stops.append(looks[stop])
    lower, upper = clopper_pearson(n_covered, len(ways))
    share_run = float(np.mean(stops)) / m
    return StopReplay(protocol, half_width, len(ways), n_covered, n_never, share_run, lower, upper)


def clopper_pearson(n_covered: int, n: int) -> tuple[float, float]:
    """95% limits of a share, each tail at most 2.5%."""
    lower = 1.0 - upper_share(n - n_covered, n, level=TWO_SIDED) if n_covered else 0.0
    return lower, upper_share(n_covered, n, level=TWO_SIDED) if n_covered < n else 1.0


# ------------------------------------------------------------------------------------------------ strategies


def _estimates(
    agents: CompleteAgents, i: int, past: IndexArray, k: int, seeds: tuple[int, int]
) -> list[float]:
    start, outcomes = prepared(agents, past), agents.outcomes[i]
    rates = np.nanmean(agents.outcomes[past], axis=0)
    known = Training(agents.outcomes, agents.scores, past, rates)
    from_middle = np.round(np.abs(rates - (LO + HI) / 2), DECIMALS)
    middle = np.argsort(from_middle, kind="stable")[:k]
    choices = [np.concatenate(walk(start, outcomes).batches)[:k], middle]
    choices.append(STRATEGIES["spread"](known, k, None))
    draws = (generator(seeds[1], "adaptive", agents.names[i], draw) for draw in range(seeds[0]))
    choices += [STRATEGIES["random"](known, k, rng) for rng in draws]
    return [completed(start, outcomes, row).score for row in membership(choices, outcomes.size)]


def _pairs(scores: FloatArray, estimates: FloatArray, weights: FloatArray) -> FloatArray:
    """pairs_correct_full among the agents that each column keeps, shape (n_columns,)."""
    y, own = np.round(scores, DECIMALS), np.round(estimates, DECIMALS)
    by_score = np.sign(y[:, None] - y[None, :]).astype(np.int8)
    by_estimate = np.sign(own[:, None] - y[None, :]).astype(np.int8)
    agreement = np.asarray(by_score * by_estimate + 1, dtype=np.int8)
    return mean_known(shares(agreement, np.arange(y.size), by_score != 0, weights))
