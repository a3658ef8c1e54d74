"""REML of a balanced design: the few sums of squares that are all it needs, and its optimum under bounds.

Source: Nelder, *Proc. Royal Society A* 283 (1965) 147-178 (strata of balanced designs). Searle, Casella &
McCulloch, *Variance Components*, 1992, §4 and §6.6-6.7. Bertsekas, *SIAM J. Control* 20 (1982) 221-246
(projection).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from analytics.arrays import CodeArray, FloatArray, Mask
from analytics.errors import CoreError

MAX_STEPS = 500
MAX_HALVINGS = 40
EXPECTED_FALL = 1e-18
SUFFICIENT_FALL = 1e-4
ROUNDING = 1e-13


def optimise_many(
    loadings: FloatArray, df: FloatArray, sum_squares: FloatArray
) -> tuple[FloatArray, CodeArray, Mask]:
    """Minimise Σ_s (df_s log λ_s + SS_s/λ_s), λ = Mφ, φ ≥ 0, for SS, (n_vectors, n_strata), residual last."""
    # φ with Mφ = SS/df, or nearest to it in the metric of df where there are more strata than components
    square = loadings.shape[0] == loadings.shape[1]
    if square:
        closed: FloatArray = np.asarray(np.linalg.solve(loadings, (sum_squares / df).T).T, dtype=np.float64)
        smallest = np.min(np.where(loadings > 0.0, (sum_squares / df)[:, :, None], np.inf), axis=1)
        # 0 but for rounding, c_T|σ_T²| ≤ 1e-13·SS_s/df_s in the smallest stratum with T, is 0
        closed = np.where(np.abs(closed) * loadings.max(axis=0) <= ROUNDING * smallest, 0.0, closed)
    else:
        root = np.sqrt(df)
        closed = np.asarray((np.linalg.pinv(loadings * root[:, None]) @ (sum_squares / root).T).T)
    open_ends = np.flatnonzero((closed < 0.0).any(axis=1) | (not square))
    parameters, n_steps = closed, np.zeros(len(closed), dtype=np.int64)
    converged = np.ones(len(closed), dtype=np.bool_)
    if open_ends.size:
        start = np.maximum(closed[open_ends], 0.0)
        start[:, -1] = np.maximum(start[:, -1], 1e-3 * (sum_squares[open_ends, -1] / df[-1]))
        parameters[open_ends], n_steps[open_ends], converged[open_ends] = _scored(
            loadings, df, sum_squares[open_ends], start
        )
    return parameters, n_steps, converged


def _scored(
    loadings: FloatArray, df: FloatArray, sum_squares: FloatArray, start: FloatArray
) -> tuple[FloatArray, CodeArray, Mask]:
    """Fisher scoring under the bounds, each vector until its expected fall of Q is below `EXPECTED_FALL`."""
    point, n_steps = start.copy(), np.zeros(len(start), dtype=np.int64)
    converged, moving = np.zeros(len(start), dtype=np.bool_), np.arange(len(start))
    for _ in range(MAX_STEPS):
        step, fall = _direction(loadings, df, sum_squares[moving], point[moving])
        ended = fall <= EXPECTED_FALL
        converged[moving[ended]] = True
        moving, step = moving[~ended], step[~ended]
        if not moving.size:
            break
        point[moving], lower = _lower(loadings, df, sum_squares[moving], point[moving], step)
        n_steps[moving] += 1
        moving = moving[lower]
    return point, n_steps, converged


def _direction(
    loadings: FloatArray, df: FloatArray, sum_squares: FloatArray, point: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """−(2I)⁻¹∂Q/∂φ over the components that may move, and the fall of Q it promises."""
    variances = point @ loadings.T
    slopes = ((df - sum_squares / variances) / variances) @ loadings
    still = (point <= 0.0) & (slopes >= 0.0)
    slopes = np.where(still, 0.0, slopes)
    hessian = np.einsum("bs,si,sj->bij", df / np.square(variances), loadings, loadings, optimize=True)
    hessian[still[:, :, None] | still[:, None, :]] = 0.0
    scale = np.sqrt(np.where(still, 1.0, np.einsum("bii->bi", hessian)))
    hessian /= scale[:, :, None] * scale[:, None, :]
    np.einsum("bii->bi", hessian)[:] = 1.0
    step = -np.linalg.solve(hessian, (slopes / scale)[:, :, None])[:, :, 0] / scale
    return step, -np.sum(step * slopes, axis=1)


def _lower(
    loadings: FloatArray, df: FloatArray, sum_squares: FloatArray, point: FloatArray, step: FloatArray
) -> tuple[FloatArray, Mask]:
    before = point @ loadings.T
    slopes = ((df - sum_squares / before) / before) @ loadings
    has_step, following, fraction = np.zeros(len(point), dtype=np.bool_), point.copy(), 1.0
    for _ in range(MAX_HALVINGS):
        tried = np.maximum(point + fraction * step, 0.0)
        tried[:, -1] = np.maximum(tried[:, -1], 0.1 * point[:, -1])
        rise = ((tried - point) @ loadings.T) / before
        fall = np.sum(sum_squares / before * rise / (1.0 + rise) - df * np.log1p(rise), axis=1)
        promised = np.sum(slopes * (point - tried), axis=1)
        new = ~has_step & (fall > 0.0) & (fall >= SUFFICIENT_FALL * promised)
        following[new] = tried[new]
        has_step |= new
        if has_step.all():
            break
        fraction /= 2.0
    return following, has_step


Subset: TypeAlias = frozenset[int]

MIN_NOISE = 1e-18


@dataclass(frozen=True, eq=False)
class Strata:
    """A balanced data set, reduced to what REML needs.

    sum_squares, df: (n_strata,); of the strata that are not fixed; the last has no term above it (λ = σ_ρ²).
    loadings: (n_strata, n_terms + 1); M.
    constant: (n − p) log 2π + log|X'X|.
    beta: (p,).
    fixed_loadings: (n_fixed, n_terms + 1).
    fixed_parts: (n_fixed, p, p).
    """

    sum_squares: FloatArray
    df: FloatArray
    loadings: FloatArray
    constant: float
    beta: FloatArray
    fixed_loadings: FloatArray
    fixed_parts: FloatArray

    def stratum_variances(self, parameters: FloatArray) -> FloatArray:
        """λ = Mφ, shape (n_strata,)."""
        return np.asarray(self.loadings @ parameters, dtype=np.float64)

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Q(φ) and M'(df/λ − SS/λ²)."""
        variances = self.stratum_variances(parameters)
        ratio = self.sum_squares / variances
        value = self.constant + float(self.df @ np.log(variances) + ratio.sum())
        slopes = self.loadings.T @ ((self.df - ratio) / variances)
        return value, np.asarray(slopes, dtype=np.float64)

    def information(self, parameters: FloatArray) -> FloatArray:
        """½ M' diag(df/λ²) M, the expected information."""
        weights = self.df / np.square(self.stratum_variances(parameters))
        return np.asarray(0.5 * (self.loadings.T * weights) @ self.loadings, dtype=np.float64)

    def beta_covariance(self, parameters: FloatArray) -> FloatArray:
        """Σ_{s fixed} λ_s B P_s B', shape (p, p)."""
        covariance = np.einsum("s,sij->ij", self.fixed_loadings @ parameters, self.fixed_parts)
        return np.asarray(covariance, dtype=np.float64)

    def covariance_slopes(self, parameters: FloatArray) -> FloatArray:
        """∂Cov(β̂)/∂φ, shape (n_terms + 1, p, p); the same everywhere, as Cov(β̂) is linear in φ."""
        slopes = np.einsum("st,sij->tij", self.fixed_loadings, self.fixed_parts)
        return np.asarray(slopes, dtype=np.float64)

    def refits(self, parameters: FloatArray, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """φ* of SS*_s ~ λ_s χ²(df_s), as of drawn outcomes, shape (n_draws, n_terms + 1)."""
        chi_squares = rng.chisquare(self.df, size=(n_draws, self.df.size))
        return optimise_many(self.loadings, self.df, self.stratum_variances(parameters) * chi_squares)[0]


def n_replicates(factors: Sequence[CodeArray], n_levels: Sequence[int]) -> int | None:
    """Rows of each combination of the factors; None where they differ or a combination is missing."""
    n_rows, n_cells = factors[0].size, int(np.prod([float(n) for n in n_levels]))
    if n_cells > n_rows or n_rows % n_cells:
        return None
    counts = np.bincount(np.ravel_multi_index(factors, n_levels), minlength=n_cells)
    return n_rows // n_cells if bool((counts == counts[0]).all()) else None


def strata_of(
    y: FloatArray,
    factors: Sequence[CodeArray],
    n_levels: Sequence[int],
    terms: Sequence[tuple[int, ...]],
    fixed_terms: Sequence[tuple[int, ...]],
    fixed_grid: FloatArray,
) -> Strata:
    """Reduce a balanced data set, `n_replicates` of which is not None, to its strata.

    terms: random terms; none lies inside a fixed one, so that each has a stratum of its own.
    fixed_terms: without the intercept; every term inside an interaction is there.
    fixed_grid: (Π n_levels of the fixed factors, p); X on their grid, ascending by factor, the last fastest.
    """
    mean = float(np.mean(y))
    cell_means, within = _cells(y - mean, factors, n_levels)
    effects = _effects(cell_means, len(n_levels))
    fixed = {frozenset[int](), *map(frozenset, fixed_terms)}
    n_in = [y.size / np.prod([n_levels[f] for f in term]) for term in terms]
    loads = {
        s: np.array([*(n if s <= set(term) else 0.0 for term, n in zip(terms, n_in, strict=True)), 1.0])
        for s in effects
    }
    loadings, df, sum_squares = _pooled(effects, fixed, loads, y.size, within)
    total = float(np.sum(np.square(y - mean)))
    if df[-1] == 0.0:
        raise CoreError(
            "every stratum has a term of its own: none is left for the residual", code="confounded"
        )
    if sum_squares[-1] <= MIN_NOISE * total:
        raise CoreError(
            f"the residual sum of squares is 0 on {df[-1]:g} degrees of freedom: "
            "rows that agree in every term never differ, and REML has no optimum",
            code="no_residual_noise",
        )
    beta, gram, parts = _fixed_effects(effects, fixed, n_levels, fixed_grid, y.size)
    beta[0] += mean
    log_det = float(np.linalg.slogdet(gram)[1])
    return Strata(
        sum_squares=sum_squares,
        df=df,
        loadings=loadings,
        constant=(y.size - beta.size) * float(np.log(2.0 * np.pi)) + log_det,
        beta=beta,
        fixed_loadings=np.array([loads[s] for s in parts]),
        fixed_parts=np.array(list(parts.values())),
    )


def _cells(y: FloatArray, factors: Sequence[CodeArray], n_levels: Sequence[int]) -> tuple[FloatArray, float]:
    """Means of the cells, shape n_levels, and the sum of squares within cells."""
    cell, n_cells = np.ravel_multi_index(factors, n_levels), int(np.prod(n_levels))
    sums = np.bincount(cell, weights=y, minlength=n_cells)
    means = np.asarray(sums * (n_cells / y.size), dtype=np.float64)
    within = float(np.sum(np.square(y - means[cell]))) if n_cells < y.size else 0.0
    return means.reshape(n_levels), within


def _effects(table: FloatArray, n_axes: int) -> dict[Subset, FloatArray]:
    """P_s of a table for every set s of its first axes; axes outside s have length 1."""
    parts = {frozenset[int](): table}
    for axis in range(n_axes):
        means = {s: part.mean(axis=axis, keepdims=True) for s, part in parts.items()}
        parts = means | {s | {axis}: parts[s] - means[s] for s in parts}
    return parts


def _pooled(
    effects: dict[Subset, FloatArray],
    fixed: set[Subset],
    loads: dict[Subset, FloatArray],
    n_rows: int,
    within: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """M, df and SS of the strata that are not fixed, those with equal rows of M added; the residual last."""
    n_levels = effects[max(effects, key=len)].shape
    residual = np.zeros(loads[frozenset()].size)
    residual[-1] = 1.0
    pooled = {tuple(residual): np.array([n_rows - np.prod(n_levels), within])}
    for s, part in effects.items():
        if s not in fixed:
            df = float(np.prod([n_levels[f] - 1 for f in s]))
            added = np.array([df, n_rows / part.size * np.sum(np.square(part))])
            pooled[tuple(loads[s])] = pooled.get(tuple(loads[s]), 0.0) + added
    rows = sorted(pooled, reverse=True)
    df_and_squares = np.array([pooled[row] for row in rows])
    return np.array(rows), df_and_squares[:, 0], df_and_squares[:, 1]


def _fixed_effects(
    effects: dict[Subset, FloatArray],
    fixed: set[Subset],
    n_levels: Sequence[int],
    grid: FloatArray,
    n_rows: int,
) -> tuple[FloatArray, FloatArray, dict[Subset, FloatArray]]:
    """β̂, X'X, and B P_s B' by fixed stratum, all from the grid of the fixed factors."""
    axes = sorted(frozenset().union(*fixed))
    shape = tuple(n_levels[f] if f in axes else 1 for f in range(len(n_levels)))
    n_alike = n_rows / len(grid)
    inverse = np.asarray(np.linalg.pinv(grid), dtype=np.float64)
    fitted = sum((effects[s] for s in fixed), np.zeros(shape))
    columns = _effects(inverse.T.reshape(*shape, -1), len(n_levels))
    parts = {}
    for s in fixed:
        part = np.broadcast_to(columns[s], (*shape, len(inverse))).reshape(len(grid), -1)
        parts[s] = part.T @ part / n_alike
    return inverse @ fitted.ravel(), n_alike * grid.T @ grid, parts
