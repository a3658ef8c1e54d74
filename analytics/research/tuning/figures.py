"""The figures of a configuration's cells: R, D, C, F and cost; how sure F is; and an interval of ΔR.

R, D and C are those of `analytics.harness` (Eqs. 28.3 to 28.7), R for one run of these tasks. F = α·R +
β·min(D, 3)/3 + γ·C. Where R or D cannot be computed there is no F, but a reason.

Standard error of F: the runs are left out one by one, F of the other L − 1 is computed, and with F_l and
their mean F̄ it is √((L − 1)/L · Σ (F_l − F̄)²), the jackknife. It needs three runs.

ΔR by parametric bootstrap
--------------------------
Tasks are given, models too: what differs when a harness is run again are its runs. From the K × L matrix of a
configuration's run means, with MSR, MSC and MSE of its rows (models), columns (runs) and residual::

    σ_e² = MSE        σ_r² = max(0, (MSC − MSE)/K)        σ_m² = max(0, (MSR − MSE)/L)
    y*_il = m*_i + r*_l + e*_il,    r* ~ N(0, σ_r²), e* ~ N(0, σ_e²)

Where a score is missing, a run's mean is the model's mean over tasks of its mean over runs, plus the mean by
which the run's scores lie above those of their tasks; with every score there that is the plain mean.

m* are the K model means, shrunk about their mean to the variance σ_m², so that y* has on average the mean
squares that were seen. R* is that of y*, and the interval of R*(second) − R*(first) is of percentiles .025
and .975. Where R is near 1 or runs are few it covers less than 95%: docs/evidence/tuning.txt.

A bootstrap over tasks leaves out the runs, which is where R comes from.

Source: *Toward Meta-Harness Optimization*, §28.5, 28.10.3. Efron & Tibshirani, *An Introduction to the
Bootstrap*, 1993, ch. 6, 11.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.arrays import FloatArray, ratio
from analytics.differences.estimates import NamedInterval
from analytics.errors import CoreError
from analytics.harness import (
    ScoreTensor,
    coverage,
    discriminability,
    fitness,
    reliability,
    variance_components,
)
from analytics.harness.quality import two_sided_p
from analytics.harness.tensor import percentile_interval
from analytics.resampling import generator
from analytics.research.tuning.cells import RunCells, RunRequest

N_DRAWS = 2000
ALL_EQUAL = 1e-18


@dataclass(frozen=True)
class HarnessFigures:
    """What a configuration's runs came to; None with `why`; F_se by the jackknife over runs."""

    R: float | None
    D: float | None
    C: float
    F: float | None
    F_se: float | None
    cost_usd: float
    n_runs: int
    why: str = ""

    def shown(self) -> dict[str, Any]:
        """Return the figures of a report."""
        return {name: getattr(self, name) for name in ("R", "D", "C", "F", "F_se", "cost_usd", "n_runs")}


def figures(cells: RunCells, request: RunRequest) -> HarnessFigures:
    """Compute the figures of some runs."""
    tensor = cells.tensor(request)
    r = d = f = error = None
    c, why = 0.0, cells.failure
    if not tensor.valid.any():
        why = why or "no cell is valid"
    else:
        c = coverage(tensor)
        try:
            r, d = parts(tensor)
            f, error = fitness(r, d, c), standard_error(tensor)
        except CoreError as refusal:
            why = why or str(refusal)
    return HarnessFigures(r, d, c, f, error, cells.cost_usd, len(request.runs), why)


def parts(tensor: ScoreTensor) -> tuple[float, float]:
    """Return R for one run, and D."""
    return reliability(variance_components(tensor), len(tensor.tasks)), discriminability(tensor)


def standard_error(tensor: ScoreTensor) -> float | None:
    """Return the jackknife standard error of F over runs; None under three or where an F cannot be said."""
    n_runs = len(tensor.runs)
    if n_runs < 3:
        return None
    left_out = []
    for run in range(n_runs):
        keep = [place for place in range(n_runs) if place != run]
        runs = tuple(tensor.runs[place] for place in keep)
        rest = ScoreTensor(
            tensor.models, tensor.tasks, runs, tensor.scores[:, :, keep], tensor.valid[:, :, keep]
        )
        try:
            left_out.append(fitness(*parts(rest), coverage(rest)))
        except CoreError:
            return None
    f = np.array(left_out)
    return float(np.sqrt((n_runs - 1) / n_runs * np.sum((f - f.mean()) ** 2)))


def reliability_difference(
    first: ScoreTensor, second: ScoreTensor, seed: int, n_draws: int = N_DRAWS
) -> tuple[float, NamedInterval, float]:
    """Compare R of two configurations that ran the same models and tasks, each L times.

    Returns: ΔR, second minus first; its 95% interval; twice the smaller tail beyond 0.
    """
    if first.models != second.models or first.tasks != second.tasks:
        raise CoreError("no ΔR: models or tasks differ", code="figures")
    means = [run_means(one) for one in (first, second)]
    seen = [float(_icc(matrix[None])[0]) for matrix in means]
    drawn = [
        _icc(_redrawn(matrix, generator(seed, f"runs anew, {name}"), n_draws))
        for name, matrix in zip(("first", "second"), means, strict=True)
    ]
    if not np.isfinite([*seen, *drawn[0], *drawn[1]]).all():
        raise CoreError("no ΔR: without any spread of scores R is 0/0", code="figures")
    draws = drawn[1] - drawn[0]
    return seen[1] - seen[0], percentile_interval(draws, "ΔR", "runs redrawn"), two_sided_p(draws)


def run_means(tensor: ScoreTensor) -> FloatArray:
    """Return the mean of each model in each run, shape (K, L), tasks alike; see above for missing scores."""
    there = ~np.isnan(tensor.scores)
    if len(tensor.runs) < 2:
        raise CoreError("no ΔR: one run tells no reliability", code="figures")
    if not there.any(axis=1).all():
        raise CoreError("no ΔR: a model has no score in a run", code="figures")
    filled = np.where(there, tensor.scores, 0.0)
    n_runs = there.sum(axis=2)
    cell = filled.sum(axis=2) / np.maximum(n_runs, 1)
    above = np.where(there, tensor.scores - cell[:, :, None], 0.0).sum(axis=1) / there.sum(axis=1)
    models = cell.sum(axis=1, keepdims=True) / (n_runs > 0).sum(axis=1, keepdims=True)
    return np.asarray(models + above, dtype=np.float64)


def _squares(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """MSR, MSC and MSE of matrices, shape (n, K, L)."""
    k, n_runs = x.shape[1:]
    rows, columns = x.mean(axis=2, keepdims=True), x.mean(axis=1, keepdims=True)
    residual = x - rows - columns + x.mean(axis=(1, 2), keepdims=True)
    msr = n_runs * rows[:, :, 0].var(axis=1, ddof=1)
    msc = k * columns[:, 0].var(axis=1, ddof=1)
    return msr, msc, np.sum(residual**2, axis=(1, 2)) / ((k - 1) * (n_runs - 1))


def _icc(x: FloatArray) -> FloatArray:
    """R of matrices of run means, components truncated at 0; NaN where all are."""
    k, n_runs = x.shape[1:]
    msr, msc, mse = _squares(x)
    signal = np.maximum(0.0, (msr - mse) / n_runs)
    total = signal + np.maximum(0.0, (msc - mse) / k) + mse
    return ratio(signal, total, above=ALL_EQUAL)


def _redrawn(x: FloatArray, draw: np.random.Generator, n_draws: int) -> FloatArray:
    """Matrices of run means as they would come again, shape (n_draws, K, L)."""
    k, n_runs = x.shape
    msr, msc, mse = (float(one[0]) for one in _squares(x[None]))
    means = x.mean(axis=1)
    spread = means.var(ddof=1)
    shrunk = np.sqrt(max(0.0, (msr - mse) / n_runs) / spread) if spread > ALL_EQUAL else 0.0
    models = means.mean() + shrunk * (means - means.mean())
    runs = draw.normal(0.0, np.sqrt(max(0.0, (msc - mse) / k)), (n_draws, 1, n_runs))
    rest = draw.normal(0.0, np.sqrt(mse), (n_draws, k, n_runs))
    return np.asarray(models[None, :, None] + runs + rest, dtype=np.float64)
