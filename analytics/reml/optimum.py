"""The minimum of the criterion over components that are not negative.

A projected Newton method with the average information as curvature H, the row and column of each component
multiplied by the root of tr(Z_t'PZ_t)/|Z_t'Py|²: this makes it the expected information of a single component
in a balanced design, however far from the optimum, and is 1 at an optimum inside. Components at 0 whose
derivative is not negative rest there; the others take the step −H⁻¹g, cut off at 0 and at the sum of all
components above, halved until the criterion falls enough. In a balanced design the average information is the
exact curvature at the optimum, and the steps end quadratically. Where no such step lowers the criterion each
component is multiplied by the root of |Z_t'Py|²/tr(Z_t'PZ_t), which never raises it. A component leaves
the boundary again when its derivative turns negative: in σ² (unlike σ) the derivative at 0 is not 0.

The search ends when the expected fall of the criterion, half of g'H⁻¹g, is below 1e-20: then every component
is within about 1e-10 of its standard error of the optimum, and no digit shown depends on the start or the
processor. The last falls are below the criterion's rounding, by which a step may raise it.

Source: Bates, Mächler, Bolker & Walker, *Fitting Linear Mixed-Effects Models Using lme4*, 2015, §3 (zeros on
the boundary). Zhou, Hu, Qiao, Cho & Zhou, *MM Algorithms for Variance Components Models*, 2019 (the
multiplicative step).
"""

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.errors import CoreError
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
MAX_RESCALING = 100.0
CLOSE_TO_ZERO = 1e-6
MIN_RESIDUAL = 1e-8


def minimise(criterion: Criterion, *, start: npt.ArrayLike | None = None) -> tuple[Evaluation, bool, str]:
    """Minimise a criterion over components that are not negative; refused where the residual falls to 0.

    start: (n_terms + 1,), the residual, last, above 0. Default: the mean square within cells for the
    residual, the rest of the variance in equal shares for the terms.
    Returns: the point, its components exactly 0 on the boundary; whether the search converged; how it ended.
    """
    point = criterion.at(_checked_start(criterion, start))
    for _ in range(MAX_STEPS):
        gradient = point.gradient
        share = point.traces / np.maximum(point.squares, np.finfo(float).tiny)
        root = np.sqrt(np.clip(share, 1.0 / MAX_RESCALING, MAX_RESCALING))
        curvature = 2.0 * np.outer(root, root) * point.information
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
            return point, True, f"expected fall below {EXPECTED_FALL:g}"
        following = _lower(criterion, point, step)
        if following is None:
            return point, fall < ROUNDING_FALL, f"no lower point found; expected fall {fall:.1e}"
        point = following
        if point.residual <= MIN_RESIDUAL * np.sum(point.theta):
            raise CoreError(
                f"the residual tends to 0; at {point.residual:.1e} the criterion still falls",
                code="not_estimable",
            )
    return point, False, f"stopped after {MAX_STEPS} steps"


def _lower(criterion: Criterion, point: Evaluation, step: FloatArray) -> Evaluation | None:
    for halving in range(MAX_HALVINGS):
        furthest = point.theta + MAX_GROWTH * np.sum(point.theta)
        theta = np.clip(point.theta + step / 2.0**halving, 0.0, furthest)
        theta[-1] = max(theta[-1], MIN_SHRINKAGE * point.theta[-1])
        trial = _is_lower(criterion, point, theta)
        if trial is not None:
            return trial
    if np.min(point.traces) <= 0.0:
        return None
    theta = point.theta * np.sqrt(point.squares / point.traces)
    return _is_lower(criterion, point, theta)


def _is_lower(criterion: Criterion, point: Evaluation, theta: FloatArray) -> Evaluation | None:
    expected = float(point.gradient @ (theta - point.theta))
    try:
        trial = criterion.at(theta)
    except np.linalg.LinAlgError:
        return None
    allowed = point.value + ARMIJO * min(expected, 0.0) + ROUNDING * abs(point.value)
    return trial if trial.value <= allowed else None


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
