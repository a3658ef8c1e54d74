"""Stability of the ranking: with other tasks, with other runs, and against an order predicted.

Source: *Toward Meta-Harness Optimization*, §28.10.5. Kendall, *Rank Correlation Methods*, 1970, ch. 3. Page,
*Journal of the American Statistical Association* 58 (1963) 216-230.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.arrays import DECIMALS, FloatArray, Mask, ratio
from analytics.differences.estimates import NamedInterval
from analytics.drift.rank_correlation import kendall
from analytics.harness.tensor import ScoreTensor, percentile_interval, refuse, require_levels
from analytics.resampling import generator, resampled_counts

N_DRAWS = 1000
N_SPLITS = 100
N_TOP = 3


@dataclass(frozen=True)
class RankStability:
    """Agreement of the ranking with those of resampled tasks: mean τ_b, and its percentiles.

    top_3_change: share of the samples with another set of three best models; None with three models or fewer.
    """

    tau: float
    interval: NamedInterval
    top_3_change: float | None
    n_draws: int


@dataclass(frozen=True)
class SplitHalf:
    """Agreement of the rankings by two disjoint sets of runs: mean and sd of τ_b over the splits.

    sd: None with one split; with few runs there are few splits, so that it is no standard error.
    runs: ⌊L/2⌋ and L − ⌊L/2⌋.
    """

    tau: float
    sd: float | None
    n_splits: int
    runs: tuple[int, int]


@dataclass(frozen=True)
class PageTest:
    """Page's test that the models ascend in the order predicted: L, and its p, exact or asymptotic."""

    statistic: float
    p_value: float
    method: str
    n_tasks: int
    n_models: int


def rank_stability(tensor: ScoreTensor, seed: int, n_draws: int = N_DRAWS) -> RankStability:
    """Resample tasks and compare rankings."""
    require_levels(tensor, "ranking stability", models=2, tasks=2)
    counts = resampled_counts(seed, "task bootstrap", len(tensor.tasks), n_draws)
    full = _scores(tensor, np.ones((1, len(tensor.tasks))), slice(None))[0]
    resampled = _scores(tensor, counts, slice(None))
    taus = np.array([_tau(full, scores) for scores in resampled])
    change = None
    if full.size > N_TOP:
        best = np.sort(np.argsort(-full, kind="stable")[:N_TOP])
        others = np.sort(np.argsort(-resampled, axis=1, kind="stable")[:, :N_TOP], axis=1)
        change = float(np.mean((others != best).any(axis=1)))
    return RankStability(float(taus.mean()), percentile_interval(taus, "τ_b"), change, n_draws)


def split_half(tensor: ScoreTensor, seed: int, n_splits: int = N_SPLITS) -> SplitHalf:
    """Compare the rankings by ⌊L/2⌋ random runs and by the rest."""
    require_levels(tensor, "split-half agreement", models=2, runs=2)
    if n_splits < 1:
        raise refuse(f"{n_splits} splits; at least 1 is needed")
    n_runs = len(tensor.runs)
    taus, everything = np.empty(n_splits), np.ones((1, len(tensor.tasks)))
    for d in range(n_splits):
        order = generator(seed, "split half", d).permutation(n_runs)
        halves = (order[: n_runs // 2], order[n_runs // 2 :])
        taus[d] = _tau(*(_scores(tensor, everything, half)[0] for half in halves))
    if np.isnan(taus).any():
        raise refuse("split-half agreement is not measured: in some half the models cannot be ranked")
    sd = float(taus.std(ddof=1)) if n_splits > 1 else None
    return SplitHalf(float(taus.mean()), sd, n_splits, (n_runs // 2, n_runs - n_runs // 2))


def page_test(tensor: ScoreTensor, predicted: Sequence[str]) -> PageTest:
    """Page's test of an order of models, worst first, stated beforehand; on tasks with all scores.

    An order read off the same scores would make the p-value meaningless.
    """
    from scipy.stats import page_trend_test

    require_levels(tensor, "Page's test", models=3, tasks=2)
    if sorted(predicted) != list(tensor.models):
        raise refuse(f"the order predicted names {list(predicted)}, not each of {list(tensor.models)} once")
    cells, seen = _cell_means(tensor.scores)
    blocks = cells[:, seen.all(axis=0)][[tensor.models.index(name) for name in predicted]].T
    if len(blocks) < 2:
        raise refuse(f"Page's test is not measured: {len(blocks)} tasks have a score of every model")
    trend = page_trend_test(np.round(blocks, DECIMALS))
    return PageTest(float(trend.statistic), float(trend.pvalue), str(trend.method), *blocks.shape)


def _cell_means(scores: FloatArray) -> tuple[FloatArray, Mask]:
    """Mean over runs of every model and task, 0 where there is none, and whether there is one."""
    seen = ~np.isnan(scores)
    n = seen.sum(axis=2)
    return np.where(seen, scores, 0.0).sum(axis=2) / np.maximum(n, 1), n > 0


def _scores(tensor: ScoreTensor, counts: npt.ArrayLike, runs: slice | npt.NDArray[np.int64]) -> FloatArray:
    """Scores of resampled tasks over some runs, shape (n_draws, n_models); NaN for a model without any."""
    cells, seen = _cell_means(tensor.scores[:, :, runs])
    w = np.asarray(counts, dtype=np.float64)
    total, n = w @ cells.T, w @ seen.T
    return np.round(ratio(total, n), DECIMALS)


def _tau(a: FloatArray, b: FloatArray) -> float:
    if np.isnan(a).any() or np.isnan(b).any():
        return float("nan")
    tau = kendall(a, b)
    return float("nan") if tau is None else tau
