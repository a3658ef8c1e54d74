"""Bands of other widths, validated as the one in use is; and what else strategies would take of its tasks.

The theory is in ``selection/README.md``, “Nested validation”.

Not done here
-------------
No width is recommended: choosing the best one by these figures would be optimistic.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, Figures 5 and 7.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from selection.bands import Band, mid_range
from selection.folds import CompleteAgents, Fold, FoldBands, Plan, Rule, fold_bands
from selection.held_out import choose
from selection.validation.operations import operations, too_many
from selection.validation.study import NestedStudy, is_enough, measure

BANDS = (
    (0.45, 0.55),
    (0.40, 0.60),
    (0.35, 0.65),
    (0.30, 0.70),
    (0.25, 0.75),
    (0.20, 0.80),
    (0.15, 0.85),
    (0.10, 0.90),
)
LEFT_OUT = "loao"
WITH_ERRORS = ("rho", "pairs_correct_full")


@dataclass(frozen=True)
class Width:
    """A band of one width, with each agent in turn left out.

    size: tasks of the band over all complete agents; 0 without one.
    n: agents that were held out and scored.
    se: jackknife standard errors of both.
    reason: why there are no figures; "" where there are.
    """

    lo: float
    hi: float
    in_use: bool
    size: int
    n: int
    rho: float | None
    pairs_correct_full: float | None
    se: Mapping[str, float | None]
    reason: str


@dataclass(frozen=True)
class Overlap:
    """How many of a strategy's tasks lie in the band in use.

    n_shared: None of `random`, whose share is k/m on average, and where the strategy gives no subset.
    reason: why there is none; "" where there is one.
    """

    strategy: str
    n_shared: int | None
    share: float | None
    reason: str


@dataclass(frozen=True)
class Bands:
    """Other widths, and overlaps; `reason` says why there are no widths."""

    widths: tuple[Width, ...]
    overlaps: tuple[Overlap, ...]
    reason: str


def bands(study: NestedStudy, band: Band, strategies: Sequence[str], why_not: str) -> Bands:
    """Validate bands of other widths, and compare what strategies choose with the band in use.

    band: in use, of all complete agents.
    strategies: those that run.
    why_not: why no agent can be left out; "" where it can.
    """
    if not band.suited:
        return Bands((), (), band.reason)
    overlaps = tuple(_overlap(study, band, name) for name in strategies if name != "mid_range")
    if why_not:
        return Bands((), overlaps, why_not)
    in_use = (round(band.lo, 9), round(band.hi, 9))
    edges = sorted({*BANDS, in_use}, key=lambda one: (one[1] - one[0], one))
    return Bands(tuple(_width(study, lo, hi, (lo, hi) == in_use) for lo, hi in edges), overlaps, "")


def _width(study: NestedStudy, lo: float, hi: float, in_use: bool) -> Width:
    agents, rule = study.agents, Rule(lo, hi, study.rule.history_window, widening=False)
    whole = _of_everyone(agents, rule)
    size = whole.tasks[0].size
    of_folds = fold_bands(agents, Plan(LEFT_OUT, study.bands[LEFT_OUT].folds, ""), rule)
    n_used = sum(tasks.size > 0 for tasks in of_folds.tasks)
    if not size or not is_enough(n_used, len(of_folds.folds)):
        return Width(
            lo, hi, in_use, size, 0, None, None, {}, _why_thin(agents, whole, rule, n_used, of_folds)
        )
    alone = replace(
        study,
        bands={LEFT_OUT: of_folds},
        nulls={},
        estimators=study.estimators[:1],
        not_estimated={},
        rule=rule,
        coverage_of="",
    )
    figures = measure(alone, LEFT_OUT, "mid_range")[0].figures
    errors = {name: figures.se.get(name) for name in WITH_ERRORS}
    return Width(
        lo, hi, in_use, size, figures.n, figures.rho, figures.pairs_correct_full, errors, figures.reason
    )


def _of_everyone(agents: CompleteAgents, rule: Rule) -> FoldBands:
    everyone = Fold("everyone", np.empty(0, dtype=np.intp), np.arange(agents.n))
    return fold_bands(agents, Plan("everyone", (everyone,), ""), rule)


def _why_thin(agents: CompleteAgents, whole: FoldBands, rule: Rule, n_used: int, of_folds: FoldBands) -> str:
    if whole.tasks[0].size:
        n_folds = len(of_folds.folds)
        return f"{n_folds - n_used} of {n_folds} folds have no subset; at most a fifth may lack one"
    rows = whole.counted[0]
    band = mid_range(
        agents.outcomes[rows], agents.weights[rows], lo=rule.lo, hi=rule.hi, widening=False
    ).reason
    return band.partition(";")[0]


def _overlap(study: NestedStudy, band: Band, strategy: str) -> Overlap:
    if strategy == "random":
        return Overlap(strategy, None, band.size / band.n_tasks, "")
    everyone = _of_everyone(study.agents, study.rule)
    if why := too_many(operations(strategy, [everyone], 1)):
        return Overlap(strategy, None, None, why)
    chosen = choose(study.agents, everyone, strategy, study.rule, study.base_seed, "overlap", 0)
    if not chosen.tasks:
        return Overlap(strategy, None, None, chosen.refusal)
    n_shared = int(np.isin(chosen.tasks[0], band.tasks).sum())
    return Overlap(strategy, n_shared, n_shared / chosen.tasks[0].size, "")
