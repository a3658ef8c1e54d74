"""The G-study of a harness: variance components, reliability and the smallest detectable difference.

Source: *Toward Meta-Harness Optimization*, Eqs. 28.3, 28.4, 28.9. Brennan, *Generalizability Theory*, 2001,
ch. 3, 4. McGraw & Wong, *Psychological Methods* 1 (1996) 30-46, Table 7. Domain and finite MDES are this
project's own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import fdtri, stdtrit

from analytics import reml
from analytics.arrays import FloatArray, ratio
from analytics.differences.estimates import NamedInterval
from analytics.harness.tensor import BOOTSTRAP, ScoreTensor, percentile_interval, refuse, require_levels
from analytics.resampling import resampled_counts

N_DRAWS = 2000
NORMAL_MULTIPLIER = 2.80
TERMS = ("model", "task", "run", "model:task", "model:run", "task:run", "residual")
ALL_EQUAL = 1e-18
ROUNDING = 1e-12  # of the mean square
TOO_LOW = f"{BOOTSTRAP} and runs; too low where noise is large"


@dataclass(frozen=True)
class VarianceComponents:
    """Components by the names of `TERMS`, score², ≥ 0; which are 0; by "anova" or "reml"."""

    variances: Mapping[str, float]
    boundary: tuple[str, ...]
    method: Literal["anova", "reml"]


@dataclass(frozen=True)
class Mdes:
    """Smallest difference of two models that is found with power .80, in the unit of the score.

    published: Eq. 28.9 as printed; kept for comparison, not to be shown.
    domain, finite: for tasks like these, and for these tasks (with its standard error and ν).
    """

    published: float
    domain: float
    finite: float
    se_finite: float
    df: int


def variance_components(tensor: ScoreTensor) -> VarianceComponents:
    """Estimate the seven variance components; needs two models, two tasks and two runs."""
    require_levels(tensor, "the G-study", models=2, tasks=2, runs=2)
    if not tensor.complete:
        # Fit the seven components to the cells that have a score
        places = np.nonzero(~np.isnan(tensor.scores))
        names = {"model": tensor.models, "task": tensor.tasks, "run": tensor.runs}
        columns = {
            facet: [levels[code] for code in codes]
            for (facet, levels), codes in zip(names.items(), places, strict=True)
        }
        fitted = reml.fit(columns, tensor.scores[places], random=" + ".join(TERMS[:-1]))
        variances = fitted.components | {"residual": fitted.residual}
        return VarianceComponents(MappingProxyType(variances), fitted.boundary, "reml")
    estimates = components_of_counts(tensor, np.ones((1, len(tensor.tasks))))[0]
    estimate_of = dict(zip(TERMS, estimates.tolist(), strict=True))
    clipped = {term: max(estimate, 0.0) for term, estimate in estimate_of.items()}
    boundary = tuple(term for term, estimate in estimate_of.items() if estimate < 0.0)
    return VarianceComponents(MappingProxyType(clipped), boundary, "anova")


def reliability(components: VarianceComponents, n_tasks: int, n_runs: int = 1) -> float:
    """R(h) of the mean over `n_tasks` tasks and `n_runs` runs (Eq. 28.4); refused where all are 0."""
    values = np.array([[components.variances[term] for term in TERMS]])
    r = float(_reliability(values, n_tasks, n_runs)[0])
    if np.isnan(r):
        raise refuse("reliability is not measured: neither models nor runs differ (all components are 0)")
    return r


def reliability_draws(tensor: ScoreTensor, counts: npt.ArrayLike) -> FloatArray:
    """R(h) for one run of resampled tasks, counted (n_draws, n_tasks); NaN without variance."""
    require_levels(tensor, "the G-study", models=2, tasks=2, runs=2)
    if not tensor.complete:
        raise refuse(_incomplete(tensor, "no bootstrap of R"))
    components = np.maximum(components_of_counts(tensor, counts), 0.0)
    return _reliability(components, len(tensor.tasks), 1)


def reliability_bootstrap(tensor: ScoreTensor, seed: int, n_draws: int = N_DRAWS) -> NamedInterval:
    """Percentile interval of R(h) for one run of a complete tensor under resampling of tasks.

    It is too low: the mean of a resample has the noise of its tasks twice.
    """
    draws = reliability_draws(tensor, resampled_counts(seed, "task bootstrap", len(tensor.tasks), n_draws))
    return percentile_interval(draws, "R", TOO_LOW)


def agreement(matrix: npt.ArrayLike) -> tuple[float, NamedInterval]:
    """ICC(A,1), two-way random effects, absolute agreement, single column, with its 95% interval.

    matrix: (n_rows, n_columns); rows are what is measured (models), columns the repetitions (runs); at least
        2 of each, with residual variance.
    """
    x = np.asarray(matrix, dtype=np.float64)
    if x.ndim != 2 or min(x.shape) < 2 or not np.isfinite(x).all():
        raise refuse(f"ICC(A,1) needs a matrix of finite numbers, at least 2 × 2, not {x.shape}")
    k, n = x.shape
    rows, columns = x.mean(axis=1, keepdims=True), x.mean(axis=0, keepdims=True)
    residual = x - rows - columns + x.mean()
    msr, msc = float(n * rows.var(ddof=1)), float(k * columns.var(ddof=1))
    mse = float(np.sum(residual**2) / ((k - 1) * (n - 1)))
    if mse <= ALL_EQUAL:
        raise refuse("no interval of ICC(A,1): rows and columns add up without residual (MSE = 0)")
    icc = (msr - mse) / (msr + (n - 1) * mse + n * (msc - mse) / k)
    r = max(icc, 0.0)
    a = n * r / (k * (1.0 - r))
    b = 1.0 + a * (k - 1)
    v = (a * msc + b * mse) ** 2 / ((a * msc) ** 2 / (n - 1) + (b * mse) ** 2 / ((k - 1) * (n - 1)))
    f, g = float(fdtri(k - 1, v, 0.975)), float(fdtri(v, k - 1, 0.975))
    noise = n * msc + (k * n - k - n) * mse
    lower = k * (msr - f * mse) / (f * noise + k * msr)
    upper = k * (g * msr - mse) / (noise + k * g * msr)
    return icc, NamedInterval(lower, upper, "ICC(A,1), McGraw & Wong")


def reliability_interval(tensor: ScoreTensor) -> NamedInterval:
    """Interval of R(h) for one run: ICC(A,1) from the K × L matrix of run means, truncated at 0."""
    require_levels(tensor, "reliability", models=2, tasks=2, runs=2)
    if not tensor.complete:
        raise refuse(_incomplete(tensor, "no interval of R"))
    _, interval = agreement(tensor.scores.mean(axis=1))
    return interval._replace(lower=max(interval.lower, 0.0), upper=max(interval.upper, 0.0))


def mdes(components: VarianceComponents, n_models: int, n_tasks: int, n_runs: int) -> Mdes:
    """Smallest detectable difference between two models; none where all scores are alike."""
    if not any(components.variances.values()):
        raise refuse("no detectable difference: all scores are alike")
    mt, mr, tr, e = (
        components.variances[term] for term in ("model:task", "model:run", "task:run", "residual")
    )
    n = n_tasks * n_runs
    repeated = 2.0 * (mr / n_runs + e / n)
    df = (n_models - 1) * (n_runs - 1) * (1 if mr > 0.0 else n_tasks - 1)
    se_finite = math.sqrt(repeated)
    return Mdes(
        published=NORMAL_MULTIPLIER * math.sqrt(2.0 * (mt + mr + tr + e) / n),
        domain=NORMAL_MULTIPLIER * math.sqrt(repeated + 2.0 * mt / n_tasks),
        finite=float(stdtrit(df, 0.975) + stdtrit(df, 0.8)) * se_finite,
        se_finite=se_finite,
        df=df,
    )


def components_of_counts(tensor: ScoreTensor, counts: npt.ArrayLike) -> FloatArray:
    """Untruncated components, in the order of `TERMS`, of resampled tasks, shape (n_draws, 7).

    The sums of squares are differences of uncorrected ones, T_A = Σ over the levels of A of (number of cells)
    times (mean)². Those whose levels hold the task are sums over tasks, so that they are one product with
    `counts`; the others come from the K × L means of the draw. Scores are centred first, which keeps digits;
    what is left of a component that is 0 is none.
    """
    x = tensor.scores - tensor.scores.mean()
    k, n, n_runs = x.shape
    w = np.asarray(counts, dtype=np.float64)
    per_task = [
        k * n_runs * x.mean(axis=(0, 2)) ** 2,
        n_runs * np.sum(x.mean(axis=2) ** 2, axis=0),
        k * np.sum(x.mean(axis=0) ** 2, axis=1),
        np.sum(x**2, axis=(0, 2)),
    ]
    t, mt, tr, mtr = (w @ np.stack(per_task, axis=1)).T
    means = (w @ np.moveaxis(x, 1, 0).reshape(n, -1) / n).reshape(-1, k, n_runs)
    mr = n * np.sum(means**2, axis=(1, 2))
    m = n * n_runs * np.sum(means.mean(axis=2) ** 2, axis=1)
    r = n * k * np.sum(means.mean(axis=1) ** 2, axis=1)
    g = k * n * n_runs * means.mean(axis=(1, 2)) ** 2
    interactions = [mt - m - t + g, mr - m - r + g, tr - t - r + g]
    squares = [m - g, t - g, r - g, *interactions, mtr - mt - mr - tr + m + t + r - g]
    a, b, c = k - 1, n - 1, n_runs - 1
    of_squares = np.stack(squares, axis=1) / [a, b, c, a * b, a * c, b * c, a * b * c]
    ms_m, ms_t, ms_r, ms_mt, ms_mr, ms_tr, e = of_squares.T
    components = np.stack(
        [
            (ms_m - ms_mt - ms_mr + e) / (n * n_runs),
            (ms_t - ms_mt - ms_tr + e) / (k * n_runs),
            (ms_r - ms_mr - ms_tr + e) / (k * n),
            (ms_mt - e) / n_runs,
            (ms_mr - e) / n,
            (ms_tr - e) / k,
            e,
        ],
        axis=1,
    )
    return np.where(np.abs(components) <= ROUNDING * mtr[:, None] / x.size, 0.0, components)


def _reliability(components: FloatArray, n_tasks: int, n_runs: int) -> FloatArray:
    """S/(S + E/L′) of rows of components; NaN where both are 0."""
    m, _, r, mt, mr, tr, e = components.T
    signal = m + mt / n_tasks
    total = signal + (r + mr + (tr + e) / n_tasks) / n_runs
    return ratio(signal, total, above=ALL_EQUAL)


def _incomplete(tensor: ScoreTensor, what: str) -> str:
    n_missing = int(np.count_nonzero(np.isnan(tensor.scores)))
    return f"{what}: {n_missing} of {tensor.scores.size} cells have no score, and it needs them all"
