"""Bands of other widths, validated as the one in use is; and what else strategies would take of its tasks.

Floating-point operations that a strategy takes under the protocols follow from sizes alone. The theory is
in ``selection/README.md``, “Nested validation”.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, Figures 5 and 7. Golub & Van Loan, *Matrix
Computations*, 4th ed. 2013, §1.1, §4.2 (products, Cholesky factors).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from analytics.arrays import FloatArray
from selection.bands import Band, mid_range
from selection.folds import CompleteAgents, Fold, FoldBands, Plan, Rule, fold_bands
from selection.held_out import choose
from selection.staged.teaching import N_FOLDS
from selection.strategies import FITTED
from selection.validation.study import NestedStudy, is_enough, measure

MAX_OPERATIONS = 2e13
ALONE = 10.0
N_NEWTON_STEPS = 5


def operations(strategy: str, bands: Iterable[FoldBands], n_draws: int = 1) -> float:
    """About how many operations a strategy takes in all folds that have a band.

    strategy: a key of `selection.strategies.STRATEGIES`.
    bands: one for each protocol.
    n_draws: of `random`, in each fold.
    """
    counts = list[float]()
    for of_protocol in bands:
        n, h, k = _sizes(of_protocol)
        ridge = np.minimum(n**2 * k + n**3 / 3 + n**2 * h, k**3 / 3 + k**2 * h)
        counts.append(float(np.sum(ridge + _choosing(strategy, n, k, float(of_protocol.rates.shape[1])))))
    return sum(counts) * n_draws if strategy == "random" else sum(counts)


def coverage_operations(strategy: str, bands: Iterable[FoldBands], estimator: str = "ridge") -> float:
    """About how many operations choosing and estimating again in the inner folds of all folds takes.

    estimator: one of `selection.full_scores.ESTIMATORS`.
    """
    counts = list[float]()
    for of_protocol in bands:
        (n, _, k), m = _sizes(of_protocol), float(of_protocol.rates.shape[1])
        if estimator == "completion":
            counts.append(float(np.sum(np.minimum(n, N_FOLDS) * _rasch(n, m))))
        else:
            counts.append(float(np.sum(n * _choosing(strategy, n, k, m))))
    return sum(counts)


def too_many(count: float) -> str:
    """Say that a count is more than `MAX_OPERATIONS`; "" where it is not."""
    if count <= MAX_OPERATIONS:
        return ""
    return f"about {count:.0e} floating-point operations, more than {MAX_OPERATIONS:.0e}"


def _sizes(bands: FoldBands) -> tuple[FloatArray, FloatArray, FloatArray]:
    """n, h and k of the folds that have a band."""
    used = [f for f, tasks in enumerate(bands.tasks) if tasks.size]
    sizes = [(bands.folds[f].training.size, bands.folds[f].held_out.size, bands.tasks[f].size) for f in used]
    n, h, k = np.array(sizes, dtype=np.float64).reshape(-1, 3).T
    return n, h, k


def _choosing(strategy: str, n: FloatArray, k: FloatArray, m: float) -> FloatArray:
    if strategy == "greedy":
        return 10 * ALONE * n * k * (m - k / 2)
    return _rasch(n, m) if strategy in FITTED else np.zeros_like(n)


def _rasch(n: FloatArray, m: float) -> FloatArray:
    small, large = np.minimum(n, m), np.maximum(n, m)
    return np.asarray(N_NEWTON_STEPS * (small**2 * large + small**3 / 3 + 10 * ALONE * n * m))


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


def edges_around(band: Band) -> list[tuple[float, float]]:
    """Return the edges of the bands that are validated, that in use among them; none where it is unsuited."""
    edges = {*BANDS, _edges(band)} if band.suited else set()
    return sorted(edges, key=lambda one: (one[1] - one[0], one))


def _edges(band: Band) -> tuple[float, float]:
    return round(band.lo, 9), round(band.hi, 9)


def bands(
    study: NestedStudy, band: Band, strategies: Sequence[str], widths: Sequence[dict[str, Any]], why_not: str
) -> dict[str, Any]:
    """Tell bands of other widths, and compare what strategies choose with the band in use.

    widths: what `width` says of each of `edges_around`.
    why_not: why no agent can be left out; "" where it can.
    Returns: ``widths``, with every agent in turn left out, each with figures or a reason why there are none;
        ``overlaps``: tasks of a strategy that lie in the band in use, or a reason; ``reason``: why there are
        no widths.
    """
    if not band.suited:
        return {"widths": [], "overlaps": [], "reason": band.reason}
    overlaps = [_overlap(study, band, name) for name in strategies if name != "mid_range"]
    marked = [one | {"in_use": (one["lo"], one["hi"]) == _edges(band)} for one in widths]
    return {"widths": marked, "overlaps": overlaps, "reason": why_not}


def width(study: NestedStudy, folds: Sequence[Fold], lo: float, hi: float) -> dict[str, Any]:
    """Validate the band between two pass rates, with every agent in turn left out."""
    agents, rule = study.agents, Rule(lo, hi, study.rule.history_window, widening=False)
    whole = _of_everyone(agents, rule)
    size = whole.tasks[0].size
    of_folds = fold_bands(agents, Plan(LEFT_OUT, tuple(folds), ""), rule)
    n_used, n_folds = sum(tasks.size > 0 for tasks in of_folds.tasks), len(of_folds.folds)
    found: dict[str, Any] = {"lo": lo, "hi": hi, "in_use": False, "size": size, "n": 0, "rho": None}
    found |= {"pairs_correct_full": None, "se": {}, "reason": ""}
    if not size:
        outcomes = agents.outcomes[whole.counted[0]]
        why = mid_range(outcomes, lo=lo, hi=hi, widening=False).reason.partition(";")[0]
        return found | {"reason": why}
    if not is_enough(n_used, n_folds):
        thin = f"{n_folds - n_used} of {n_folds} folds have no subset; at most a fifth may lack one"
        return found | {"reason": thin}
    alone = replace(
        study,
        bands={LEFT_OUT: of_folds},
        nulls={},
        estimators=study.estimators[:1],
        not_estimated={},
        rule=rule,
        coverage_of="",
    )
    figures = measure(alone, LEFT_OUT, "mid_range").figures
    names = ("n", "rho", "pairs_correct_full", "reason")
    errors = {"se": {name: figures.se.get(name) for name in WITH_ERRORS}}
    return found | {name: getattr(figures, name) for name in names} | errors


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
