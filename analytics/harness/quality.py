"""What a harness is judged by besides reliability, and whether another configuration of it is better.

Discriminability, coverage, fitness, cost, its scorer; differences of R, D and C by a paired bootstrap.

Source: *Toward Meta-Harness Optimization*, Eqs. 28.2, 28.5-28.8, §28.10.3. Cohen, *Statistical Power
Analysis*, 1988, ch. 2. Bamber, *Journal of Mathematical Psychology* 12 (1975) 387-415 (AUC with ties).
Davison & Hinkley, *Bootstrap Methods*, 1997, §4.4.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.differences.estimates import NamedInterval, benjamini_hochberg
from analytics.errors import CoreError
from analytics.harness.gstudy import reliability_draws
from analytics.harness.tensor import ScoreTensor, percentile_interval, refuse, require_levels
from analytics.resampling import resampled_counts
from analytics.text import counted

N_DRAWS = 2000
WEIGHTS: Mapping[str, float] = MappingProxyType({"R": 0.40, "D": 0.35, "C": 0.25})
D_CEILING = 3.0
COST_PARTS = ("environment", "execution", "scoring")
NO_SPREAD = 1e-12  # of the mean square


@dataclass(frozen=True)
class Cost:
    """Cost of K·N·L cells by part; how many evaluations were measured, and τ over these."""

    n_evaluations: int
    n_measured: Mapping[str, int]
    mean_seconds: Mapping[str, float]
    usd: Mapping[str, float]

    @property
    def total_usd(self) -> float:
        """Cost of all parts."""
        return float(sum(self.usd.values()))

    @property
    def shares(self) -> dict[str, float]:
        """Share of each part in the seconds, sum 1."""
        total = sum(self.mean_seconds.values())
        return {part: seconds / total for part, seconds in self.mean_seconds.items()}


@dataclass(frozen=True)
class ScorerCalibration:
    """AUC of right against wrong reference solutions, mean over tasks; tasks that are all one."""

    auc: float
    by_task: Mapping[str, float]
    left_out: tuple[str, ...]


def pairwise_d(tensor: ScoreTensor) -> FloatArray:
    """Cohen's d of every pair of models, shape (n_models, n_models), 0 on the diagonal."""
    require_levels(tensor, "discriminability", models=2)
    n_scores = np.count_nonzero(~np.isnan(tensor.scores), axis=(1, 2))
    if n_scores.min() < 2:
        name = tensor.models[int(np.argmin(n_scores))]
        scores = f"{counted(int(n_scores.min()), 'score')} (at least 2 are needed)"
        raise refuse(f"discriminability is not measured: model {name!r} has {scores}")
    d = np.asarray(_pairwise_d(tensor, np.ones((1, len(tensor.tasks))))[0], dtype=np.float64)
    if np.isnan(d).any():
        a, b = (tensor.models[i] for i in np.argwhere(np.isnan(d))[0])
        raise refuse(f"discriminability is not measured: neither {a!r} nor {b!r} has any spread of scores")
    return d


def discriminability(tensor: ScoreTensor) -> float:
    """D(h), mean pairwise Cohen's d (Eq. 28.5), in standard deviations."""
    return float(_mean_of_pairs(pairwise_d(tensor)[None])[0])


def discriminability_draws(tensor: ScoreTensor, counts: npt.ArrayLike) -> FloatArray:
    """D(h) of resampled tasks, shape (n_draws,), from `counts`, (n_draws, n_tasks); NaN where undefined."""
    require_levels(tensor, "discriminability", models=2)
    return _mean_of_pairs(_pairwise_d(tensor, np.asarray(counts, dtype=np.float64)))


def discriminability_bootstrap(tensor: ScoreTensor, seed: int, n_draws: int = N_DRAWS) -> NamedInterval:
    """Percentile interval of D(h) under resampling of tasks."""
    require_levels(tensor, "a bootstrap over tasks", tasks=2)
    counts = resampled_counts(seed, "task bootstrap", len(tensor.tasks), n_draws)
    return percentile_interval(discriminability_draws(tensor, counts), "D")


def coverage(tensor: ScoreTensor) -> float:
    """C(h), share of the K·N·L cells with a valid score (Eq. 28.7), 0 to 1."""
    return float(tensor.valid.mean())


def coverage_draws(tensor: ScoreTensor, counts: npt.ArrayLike) -> FloatArray:
    """C(h) of resampled tasks, shape (n_draws,). `counts`: (n_draws, n_tasks)."""
    w = np.asarray(counts, dtype=np.float64)
    return np.asarray(w @ tensor.valid.mean(axis=(0, 2)) / w.sum(axis=1), dtype=np.float64)


def fitness(
    reliability: float, discriminability: float, coverage: float, weights: Mapping[str, float] = WEIGHTS
) -> float:
    """F(h) = α·R + β·min(D, 3)/3 + γ·C (Eq. 28.2), 0 to 1."""
    if not (0.0 <= reliability <= 1.0 and 0.0 <= coverage <= 1.0 and 0.0 <= discriminability < np.inf):
        raise refuse(f"no fitness of R = {reliability}, D = {discriminability}, C = {coverage}")
    capped = weights["D"] * min(discriminability, D_CEILING) / D_CEILING
    return weights["R"] * reliability + capped + weights["C"] * coverage


def cost(seconds: Mapping[str, npt.ArrayLike], n_evaluations: int, usd_per_hour: float) -> Cost:
    """Decompose the cost of N evaluations by part (Eq. 28.6), from seconds of some, NaN: not measured."""
    if set(seconds) != set(COST_PARTS):
        raise refuse(f"a cost needs seconds of {', '.join(COST_PARTS)}, not of {sorted(seconds)}")
    if n_evaluations < 1 or not 0.0 <= usd_per_hour < np.inf:
        raise refuse(f"no cost of {n_evaluations} evaluations at {usd_per_hour} USD an hour")
    measured = {}
    for part in COST_PARTS:
        values = np.asarray(seconds[part], dtype=np.float64)
        measured[part] = values = values[~np.isnan(values)]
        if not values.size or not ((values >= 0.0) & (values < np.inf)).all():
            raise refuse(f"no cost of {part}: its seconds were never measured, or one is below 0 or infinite")
    means = {part: float(values.mean()) for part, values in measured.items()}
    if not sum(means.values()) > 0.0:
        raise refuse("no cost by part: all measured seconds are 0")
    return Cost(
        n_evaluations=n_evaluations,
        n_measured=MappingProxyType({part: values.size for part, values in measured.items()}),
        mean_seconds=MappingProxyType(means),
        usd=MappingProxyType({part: n_evaluations * t * usd_per_hour / 3600.0 for part, t in means.items()}),
    )


def scorer_auc(task: Sequence[str], score: npt.ArrayLike, is_right: npt.ArrayLike) -> ScorerCalibration:
    """AUC of the scorer on reference solutions, (n_solutions,), mean over tasks, ties ½ (Eq. 28.8)."""
    from scipy.stats import mannwhitneyu

    names, right = np.asarray(task), np.asarray(is_right, dtype=np.bool_)
    values = np.asarray(score, dtype=np.float64)
    if not names.shape == values.shape == right.shape or not np.isfinite(values).all():
        raise refuse("reference solutions need a task, a finite score and a mark each")
    rows = {name: names == name for name in sorted(set(task))}
    both = {name: at for name, at in rows.items() if right[at].any() and not right[at].all()}
    if not both:
        raise refuse(f"no scorer AUC: none of {len(rows)} tasks has right and wrong reference solutions")
    by_task = {}  # U/(n_right·n_wrong) of Mann & Whitney
    for name, at in both.items():
        good, bad = values[at & right], values[at & ~right]
        u = mannwhitneyu(good, bad, method="asymptotic").statistic
        by_task[name] = float(u) / (good.size * bad.size)
    left_out = tuple(name for name in rows if name not in both)
    return ScorerCalibration(float(np.mean(list(by_task.values()))), MappingProxyType(by_task), left_out)


def _pairwise_d(tensor: ScoreTensor, counts: FloatArray) -> FloatArray:
    seen = ~np.isnan(tensor.scores)
    x = np.where(seen, tensor.scores - (np.nanmean(tensor.scores) if seen.any() else 0.0), 0.0)
    n, total, square = (counts @ part.sum(axis=2).T for part in (seen.astype(np.float64), x, x**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = total / n
        spread = square - n * means**2
        variances = np.where(n > 1, np.where(spread > NO_SPREAD * square, spread, 0.0) / (n - 1), np.nan)
    pooled = (variances[:, :, None] + variances[:, None, :]) / 2.0
    d = np.full(pooled.shape, np.nan)
    np.divide(np.abs(means[:, :, None] - means[:, None, :]), np.sqrt(pooled), out=d, where=pooled > 0.0)
    d[:, np.arange(len(tensor.models)), np.arange(len(tensor.models))] = 0.0
    return d


def _mean_of_pairs(d: FloatArray) -> FloatArray:
    k = d.shape[1]
    return np.asarray(d.sum(axis=(1, 2)) / (k * (k - 1)), dtype=np.float64)


METHOD = "paired bootstrap over tasks; runs and models not resampled"
FIGURES: dict[str, Callable[[ScoreTensor, npt.ArrayLike], FloatArray]] = {
    "R": reliability_draws,
    "D": discriminability_draws,
    "C": coverage_draws,
}


@dataclass(frozen=True)
class Change:
    """Difference of one figure (R, D or C) between two configurations.

    configuration: name of the second one; empty in `compare`.
    first, second, difference: None where it cannot be said, with the reason in `note`.
    p_adjusted: by Benjamini-Hochberg over all figures and configurations of `compare_several`.
    """

    configuration: str
    figure: str
    first: float | None
    second: float | None
    difference: float | None
    interval: NamedInterval | None
    p_value: float | None
    p_adjusted: float | None = None
    note: str = ""


def compare(
    first: ScoreTensor, second: ScoreTensor, seed: int, n_draws: int = N_DRAWS
) -> tuple[Change, Change, Change]:
    """ΔR, ΔD and ΔC, second minus first; models and tasks, two at least, are the same, runs may differ."""
    for noun, a, b in (("models", first.models, second.models), ("tasks", first.tasks, second.tasks)):
        if a != b:
            odd = sorted(set(a) ^ set(b))[0]
            raise refuse(f"a paired comparison needs the same {noun} in both; {odd!r} is only in one")
    if len(first.tasks) < 2:
        raise refuse("a paired comparison is not measured: one task (at least 2 are needed)")
    n_tasks = len(first.tasks)
    counts = np.vstack(
        [np.ones((1, n_tasks), int), resampled_counts(seed, "paired bootstrap", n_tasks, n_draws)]
    )
    r, d, c = (_change(figure, first, second, counts) for figure in FIGURES)
    return r, d, c


def compare_several(
    base: ScoreTensor, others: Mapping[str, ScoreTensor], seed: int, n_draws: int = N_DRAWS
) -> tuple[Change, ...]:
    """Compare every configuration with `base`, in name order, p-values adjusted over all of them."""
    changes = [
        replace(change, configuration=name)
        for name in sorted(others)
        for change in compare(base, others[name], seed, n_draws)
    ]
    tested = [change.p_value for change in changes if change.p_value is not None]
    adjusted = iter(benjamini_hochberg(tested).tolist())
    return tuple(
        change if change.p_value is None else replace(change, p_adjusted=next(adjusted)) for change in changes
    )


def _change(figure: str, first: ScoreTensor, second: ScoreTensor, counts: npt.NDArray[np.int64]) -> Change:
    try:
        a, b = (FIGURES[figure](tensor, counts) for tensor in (first, second))
        interval = percentile_interval((b - a)[1:], f"Δ{figure}", METHOD)
        if np.isnan(a[0] + b[0]):
            raise refuse(f"{figure} cannot be said of both configurations")
    except CoreError as refusal:
        return Change("", figure, None, None, None, None, None, note=str(refusal))
    p_value = two_sided_p((b - a)[1:])
    return Change("", figure, float(a[0]), float(b[0]), float(b[0] - a[0]), interval, p_value)


def two_sided_p(draws: FloatArray) -> float:
    """Twice the smaller tail of drawn differences beyond 0, at most 1."""
    tail = 1 + min(np.count_nonzero(draws <= 0.0), np.count_nonzero(draws >= 0.0))
    return min(1.0, 2.0 * tail / (draws.size + 1))
