"""Adaptive assignment replayed on past agents: what it would run, and whether fixed tasks order as well.

The theory is in ``analytics/README.md``, “The next task”.
"""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray
from analytics.drift.e_value import upper_share
from analytics.record import Record
from analytics.research.adaptive.assignment import (
    Stop,
    batch_size,
    calibrated,
    check,
    completed,
    half_widths,
    looks_of,
    nearest_batch,
    prepared,
    walk,
)
from selection.bands import HI, LO
from selection.folds import CompleteAgents, generator, membership
from selection.held_out import agreement
from selection.intervals import MIN_FOR_QUANTILE
from selection.standings.choice import training
from selection.strategies import STRATEGIES, Training
from selection.validation.figures import jackknife, mean_known, shares
from selection.validation.nested import jackknife_groups

N_SEEDS = 100
TWO_SIDED = 0.975
COMPARED = ("adaptive", "mid_range", "spread", "random")

Progress = Callable[[int, int], None]


# Of one agent: |y − ŷ| and the calibrated half-width at each look
Way = tuple[FloatArray, FloatArray]


def replay(
    record: Record,
    stops: Sequence[float],
    *,
    seeds: int,
    base_seed: int,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Replay adaptive assignment on the complete agents of a record.

    stops: half-widths of the interval, score.
    seeds: random subsets.
    Returns: ``n_agents``, ``n_tasks``, ``batch``, ``k`` (tasks of the comparison), ``looks``; ``replayed`` by
        protocol and half-width, with the share of tasks run and the 95% limits of the share covered;
        ``unavailable``: why there is no replay in time, else empty; ``chosen``, as `compared` gives it.
    Raises SelectionError: not_adaptive: under 20 complete agents (19 past ones when one is left out), on
        graded outcomes, on one task, or a half-width that is none.
    """
    for half_width in stops:
        Stop(half_width)
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
    k = nearest_batch(m, 1 / 4)
    return {
        "n_agents": agents.n,
        "n_tasks": m,
        "batch": batch_size(m),
        "k": k,
        "looks": list(looks_of(m)),
        "replayed": [_replayed(name, h, ends, m) for name, ends in ways.items() for h in stops],
        "unavailable": unavailable,
        "chosen": compared(agents, k, seeds=seeds, base_seed=base_seed),
    }


def compared(agents: CompleteAgents, k: int, *, seeds: int, base_seed: int) -> list[dict[str, Any]]:
    """Compare k tasks chosen adaptively with as many chosen otherwise, leaving one agent out.

    ``difference``, ``se``: of adaptive choice over this one, and its jackknife error; None for its own.
    """
    everyone = np.arange(agents.n)
    estimates = np.array(
        [_estimates(agents, i, everyone[everyone != i], k, (seeds, base_seed)) for i in everyone.tolist()]
    )
    groups = jackknife_groups(agents)
    folds = np.column_stack([np.ones(agents.n), groups[:, None] != np.arange(groups.max() + 1)])
    y, by_choice = np.round(agents.scores, DECIMALS), list[FloatArray]()
    for column in np.round(estimates.T, DECIMALS):
        table = agreement(y, everyone, np.ones((agents.n, agents.n), dtype=np.bool_), column, y)
        by_choice.append(mean_known(shares(table, everyone, table >= 0, folds)))
    figures = np.vstack([by_choice[:3], np.array(by_choice[3:]).mean(axis=0)])
    whole, without = figures[:, 0], (figures[0] - figures)[:, 1:]
    errors = jackknife(without.T)
    return [
        {
            "strategy": name,
            "pairs_correct_full": float(whole[s]),
            "difference": float(whole[0] - whole[s]) if s else None,
            "se": float(errors[s]) if s else None,
        }
        for s, name in enumerate(COMPARED)
    ]


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
        errors = np.abs(agents.scores[i] - np.array([one.score for one in looks]))
        ways.append((errors, half_widths(calibration, looks)))
    return ways


def _replayed(protocol: str, half_width: float, ways: Sequence[Way], m: int) -> dict[str, Any]:
    looks, stops, n_covered, n_never = looks_of(m), list[int](), 0, 0
    for errors, widths in ways:
        halves = np.round(widths, DECIMALS)
        enough = np.flatnonzero(halves <= half_width)
        stop = int(enough[0]) if enough.size else len(looks) - 1
        n_never += not enough.size
        n_covered += bool(np.round(errors[stop], DECIMALS) <= halves[stop])
        stops.append(looks[stop])
    lower, upper = clopper_pearson(n_covered, len(ways))
    return {
        "protocol": protocol,
        "half_width": half_width,
        "n": len(ways),
        "n_covered": n_covered,
        "n_never": n_never,
        "share_run": float(np.mean(stops)) / m,
        "covered_lo": lower,
        "covered_hi": upper,
    }


def clopper_pearson(n_covered: int, n: int) -> tuple[float, float]:
    """95% limits of a share, each tail at most 2.5%."""
    lower = 1.0 - upper_share(n - n_covered, n, level=TWO_SIDED) if n_covered else 0.0
    return lower, upper_share(n_covered, n, level=TWO_SIDED) if n_covered < n else 1.0


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
