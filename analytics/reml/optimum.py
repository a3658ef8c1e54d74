"""The minimum of the criterion over components that are not negative.

A projected Newton method with the average information as curvature: components at 0 whose derivative is
not negative rest there; the others take the step −H⁻¹g, cut off at 0 and at the sum of all components
above, halved until the criterion falls enough. In a balanced design the average information is the exact
curvature at the optimum, and the steps end quadratically. Where no such step lowers the criterion each
component is multiplied by the root of |Z_t'Py|²/tr(Z_t'PZ_t), which never raises it. A component leaves
the boundary again when its derivative turns negative: in σ² (unlike σ) the derivative at 0 is not 0.

The search ends when the expected fall of the criterion, half of g'H⁻¹g, is below 1e-20: then every component
is within about 1e-10 of its standard error of the optimum, and no digit shown depends on the start or the
processor. The last falls are below the criterion's rounding, by which a step may raise it.

Source: Bates, Mächler, Bolker & Walker, *Fitting Linear Mixed-Effects Models Using lme4*, 2015, §3 (zeros on
the boundary). Zhou, Hu, Qiao, Cho & Zhou, *MM Algorithms for Variance Components Models*, 2019 (the
multiplicative step).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.programs import one_blas_thread
from analytics.reml.criterion import Criterion, Evaluation

EXPECTED_FALL = 1e-20
ROUNDING_FALL = 1e-7
MAX_STEPS = 200
MAX_HALVINGS = 5
ARMIJO = 1e-4
ROUNDING = 1e-12
RIDGE = 1e-12
MIN_SHRINKAGE = 0.1
MAX_GROWTH = 1.0
CLOSE_TO_ZERO = 1e-6
MIN_RESIDUAL = 1e-8


@dataclass(frozen=True, eq=False)
class Optimum:
    """Where the search ended.

    variances: (n_terms,); σ_t² ≥ 0, exactly 0 on the boundary.
    criterion: −2 log restricted likelihood, with lme4's constants.
    beta, beta_covariance: (p,) and (p, p); (X'V⁻¹X)⁻¹ at the estimated components.
    gradient, information: of the criterion, (n_terms + 1,), and the average information, (n_terms + 1)².
    n_evaluations: factorisations.
    method: `patterns` or `blocked`.
    """

    variances: FloatArray
    residual: float
    criterion: float
    beta: FloatArray
    beta_covariance: FloatArray
    gradient: FloatArray
    information: FloatArray
    n_evaluations: int
    converged: bool
    message: str
    method: str


def minimise(criterion: Criterion, *, start: npt.ArrayLike | None = None) -> Optimum:
    """Minimise a criterion over components that are not negative; refused where the residual falls to 0.

    start: (n_terms + 1,), the residual, last, above 0. Default: the mean square within cells for the
    residual, the rest of the variance in equal shares for the terms.
    """
    theta = _checked_start(criterion, start)
    with one_blas_thread():
        point, n_evaluations = criterion.at(theta), 1
        for _ in range(MAX_STEPS):
            gradient, curvature = point.gradient, 2.0 * point.information
            # at 0, or close to it and bound for it, with a derivative that is not negative
            bound = np.diag(curvature) * point.theta <= gradient
            free = ~((point.theta <= CLOSE_TO_ZERO * np.sum(point.theta)) & bound & (gradient >= 0.0))
            curvature = curvature[np.ix_(free, free)]
            diagonal = np.diag(curvature)
            scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
            scaled = curvature / np.outer(scale, scale) + RIDGE * np.eye(scale.size)
            step = -point.theta
            step[free] = -np.linalg.solve(scaled, gradient[free] / scale) / scale
            fall = 0.5 * abs(float(point.gradient @ step))
            if fall < EXPECTED_FALL:
                return _optimum(
                    criterion, point, n_evaluations, True, f"expected fall below {EXPECTED_FALL:g}"
                )
            following, n_tried = _lower(criterion, point, step)
            n_evaluations += n_tried
            if following is None:
                message = f"no lower point found; expected fall {fall:.1e}"
                return _optimum(criterion, point, n_evaluations, fall < ROUNDING_FALL, message)
            point = following
            if point.residual <= MIN_RESIDUAL * np.sum(point.theta):
                raise CoreError(
                    f"the residual tends to 0; at {point.residual:.1e} the criterion still falls",
                    code="not_estimable",
                )
        return _optimum(criterion, point, n_evaluations, False, f"stopped after {MAX_STEPS} steps")


def _lower(criterion: Criterion, point: Evaluation, step: FloatArray) -> tuple[Evaluation | None, int]:
    for halving in range(MAX_HALVINGS):
        furthest = point.theta + MAX_GROWTH * np.sum(point.theta)
        theta = np.clip(point.theta + step / 2.0**halving, 0.0, furthest)
        theta[-1] = max(theta[-1], MIN_SHRINKAGE * point.theta[-1])
        trial = _is_lower(criterion, point, theta)
        if trial is not None:
            return trial, halving + 1
    if np.min(point.traces) <= 0.0:
        return None, MAX_HALVINGS
    theta = point.theta * np.sqrt(point.squares / point.traces)
    return _is_lower(criterion, point, theta), MAX_HALVINGS + 1


def _is_lower(criterion: Criterion, point: Evaluation, theta: FloatArray) -> Evaluation | None:
    expected = float(point.gradient @ (theta - point.theta))
    try:
        trial = criterion.at(theta)
    except np.linalg.LinAlgError:
        return None
    allowed = point.value + ARMIJO * min(expected, 0.0) + ROUNDING * abs(point.value)
    return trial if trial.value <= allowed else None


def _optimum(
    criterion: Criterion, point: Evaluation, n_evaluations: int, converged: bool, message: str
) -> Optimum:
    return Optimum(
        variances=point.theta[:-1],
        residual=point.residual,
        criterion=point.value,
        beta=point.beta,
        beta_covariance=point.beta_covariance,
        gradient=point.gradient,
        information=point.information,
        n_evaluations=n_evaluations,
        converged=converged,
        message=message,
        method=criterion.method,
    )


def _checked_start(criterion: Criterion, start: npt.ArrayLike | None) -> FloatArray:
    if start is None:
        cells = criterion.layout.cells
        n_terms, n_within = criterion.n_terms, criterion.n_rows - cells.n_cells
        total = (float(cells.n_rows_in @ np.square(criterion.means)) + criterion.within) / criterion.n_rows
        residual = criterion.within / n_within if n_within else total / (n_terms + 1)
        residual = min(max(residual, 0.05 * total), total)
        return np.append(np.full(n_terms, max(total - residual, 0.1 * total) / n_terms), residual)
    theta = np.array(start, dtype=np.float64)
    if theta.shape != (criterion.n_terms + 1,) or not np.isfinite(theta).all():
        raise CoreError(
            f"a start of shape {theta.shape} for {criterion.n_terms} terms and the residual", code="argument"
        )
    if theta.min() < 0.0 or theta[-1] == 0.0:
        raise CoreError(
            f"a start at {theta.tolist()}: variances are not negative, the residual above 0", code="argument"
        )
    return theta
