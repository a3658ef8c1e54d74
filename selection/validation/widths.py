"""Bands of other widths, validated as the one in use is; and what else strategies would take of its tasks.

The theory is in ``selection/README.md``, “Nested validation”.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, Figures 5 and 7.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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


def bands(study: NestedStudy, band: Band, strategies: Sequence[str], why_not: str) -> dict[str, Any]:
    """Validate bands of other widths, and compare what strategies choose with the band in use.

    band: in use, of all complete agents.
    strategies: those that run.
    why_not: why no agent can be left out; "" where it can.
    Returns: ``widths``, with every agent in turn left out, each with figures or a reason why there are none;
        ``overlaps``: tasks of a strategy that lie in the band in use, or a reason; that of `random` is k/m
        on average; ``reason``: why there are no widths.
    """
    if not band.suited:
        return {"widths": [], "overlaps": [], "reason": band.reason}
    overlaps = [_overlap(study, band, name) for name in strategies if name != "mid_range"]
    if why_not:
        return {"widths": [], "overlaps": overlaps, "reason": why_not}
    in_use = (round(band.lo, 9), round(band.hi, 9))
    edges = sorted({*BANDS, in_use}, key=lambda one: (one[1] - one[0], one))
    widths = [_width(study, lo, hi, (lo, hi) == in_use) for lo, hi in edges]
    return {"widths": widths, "overlaps": overlaps, "reason": ""}


def _width(study: NestedStudy, lo: float, hi: float, in_use: bool) -> dict[str, Any]:
    agents, rule = study.agents, Rule(lo, hi, study.rule.history_window, widening=False)
    whole = _of_everyone(agents, rule)
    size = whole.tasks[0].size
    of_folds = fold_bands(agents, Plan(LEFT_OUT, study.bands[LEFT_OUT].folds, ""), rule)
    n_used, n_folds = sum(tasks.size > 0 for tasks in of_folds.tasks), len(of_folds.folds)
    width: dict[str, Any] = {"lo": lo, "hi": hi, "in_use": in_use, "size": size, "n": 0, "rho": None}
    width |= {"pairs_correct_full": None, "se": {}, "reason": ""}
    if not size:
        rows = whole.counted[0]
        outcomes, weights = agents.outcomes[rows], agents.weights[rows]
        why = mid_range(outcomes, weights, lo=lo, hi=hi, widening=False).reason.partition(";")[0]
        return width | {"reason": why}
    if not is_enough(n_used, n_folds):
        thin = f"{n_folds - n_used} of {n_folds} folds have no subset; at most a fifth may lack one"
        return width | {"reason": thin}
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
    names = ("n", "rho", "pairs_correct_full", "reason")
    errors = {"se": {name: figures.se.get(name) for name in WITH_ERRORS}}
    return width | {name: getattr(figures, name) for name in names} | errors


def _of_everyone(agents: CompleteAgents, rule: Rule) -> FoldBands:
    everyone = Fold("everyone", np.empty(0, dtype=np.intp), np.arange(agents.n))
    return fold_bands(agents, Plan("everyone", (everyone,), ""), rule)


def _overlap(study: NestedStudy, band: Band, strategy: str) -> dict[str, Any]:
    overlap: dict[str, Any] = {"strategy": strategy, "n_shared": None, "share": None, "reason": ""}
    if strategy == "random":
        return overlap | {"share": band.size / band.n_tasks}
    everyone = _of_everyone(study.agents, study.rule)
    if why := too_many(operations(strategy, [everyone], 1)):
        return overlap | {"reason": why}
    chosen = choose(study.agents, everyone, strategy, study.rule, study.base_seed, "overlap", 0)
    if not chosen.tasks:
        return overlap | {"reason": chosen.refusal}
    n_shared = int(np.isin(chosen.tasks[0], band.tasks).sum())
    return overlap | {"n_shared": n_shared, "share": n_shared / chosen.tasks[0].size}
