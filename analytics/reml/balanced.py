"""REML of a balanced design: a problem in a handful of numbers, closed form or under bounds.

Source: Searle, Casella & McCulloch, *Variance Components*, 1992, §6.6-6.7. Bertsekas, *SIAM J. Control* 20
(1982) 221-246 (projection).
"""

from dataclasses import dataclass

import numpy as np

from analytics.arrays import CodeArray, FloatArray, Mask

MAX_STEPS = 500
MAX_HALVINGS = 40
EXPECTED_FALL = 1e-18
SUFFICIENT_FALL = 1e-4
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Optima:
    """Optima of many vectors SS, (n_vectors, …); no steps where the closed form is the optimum."""

    parameters: FloatArray
    n_steps: CodeArray
    converged: Mask


def optimise_many(loadings: FloatArray, df: FloatArray, sum_squares: FloatArray) -> Optima:
    """Minimise Σ_s (df_s log λ_s + SS_s/λ_s), λ = Mφ, φ ≥ 0, for each of many SS.

    loadings: (n_strata, n_components); M, of full column rank.
    df: (n_strata,).
    sum_squares: (n_vectors, n_strata); above 0 in the residual's stratum, the last.
    """
    closed = _closed_form(loadings, df, sum_squares)
    square = loadings.shape[0] == loadings.shape[1]
    open_ends = np.flatnonzero((closed < 0.0).any(axis=1) | (not square))
    parameters, n_steps = closed, np.zeros(len(closed), dtype=np.int64)
    converged = np.ones(len(closed), dtype=np.bool_)
    if open_ends.size:
        start = np.maximum(closed[open_ends], 0.0)
        start[:, -1] = np.maximum(start[:, -1], 1e-3 * (sum_squares[open_ends, -1] / df[-1]))
        parameters[open_ends], n_steps[open_ends], converged[open_ends] = _scored(
            loadings, df, sum_squares[open_ends], start
        )
    return Optima(parameters, n_steps, converged)


def _closed_form(loadings: FloatArray, df: FloatArray, sum_squares: FloatArray) -> FloatArray:
    """φ with Mφ = SS/df, or nearest to it in the metric of df where there are more strata than components.

    A variance that is 0 but for rounding, c_T|σ_T²| ≤ 1e-13·SS_s/df_s in the smallest stratum with T, is 0:
    equal mean squares are common where outcomes are 0 and 1.
    """
    if loadings.shape[0] == loadings.shape[1]:
        solved = np.linalg.solve(loadings, (sum_squares / df).T).T
        smallest = np.min(np.where(loadings > 0.0, (sum_squares / df)[:, :, None], np.inf), axis=1)
        return np.where(np.abs(solved) * loadings.max(axis=0) <= ROUNDING * smallest, 0.0, solved)
    root = np.sqrt(df)
    return np.asarray((np.linalg.pinv(loadings * root[:, None]) @ (sum_squares / root).T).T, dtype=np.float64)


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
