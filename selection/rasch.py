"""Rasch model: one ability for each agent and one difficulty for each task, by penalised joint likelihood.

The theory is in ``selection/README.md``, “Abilities and difficulties”: outcomes X (n, m), NaN missing;
abilities θ (n,) and difficulties b (m,), Σb = 0, in logits; curvature W = P(1 − P).

Source: Rasch, *Probabilistic Models for Some Intelligence and Attainment Tests*, 1960. Penalty: Mislevy,
*Psychometrika* 51 (1986) 177-195 (normal priors). Step length: Bach, *Electronic Journal of Statistics* 4
(2010) 384-414, and Sun & Tran-Dinh, *Mathematical Programming* 178 (2019) 145-213, for ν = 2. Conjugate
gradients: Golub & Van Loan, *Matrix Computations*, 4th ed. 2013, §11.5.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from analytics.arrays import FloatArray, Mask, read_only
from selection.bands import checked_outcomes
from selection.errors import SelectionError

PRIOR_VARIANCE = 9.0
LARGEST_DERIVATIVE = 1e-11
NEAR_ENOUGH = 1e-6
MAX_ITERATIONS = 100


class RaschUnfinished(SelectionError):
    """Rounding kept a derivative above 1e-11."""


@dataclass(frozen=True, eq=False)
class RaschFit:
    """Abilities and difficulties, and how the fit ended.

    abilities: (n,); θ, logits above the mean difficulty.
    difficulties: (m,); b, logits, Σb = 0.
    largest_derivative: of ℓ, in absolute value, at the end; below 1e-11.
    """

    abilities: FloatArray
    difficulties: FloatArray
    largest_derivative: float


def fit(
    outcomes: FloatArray, start: tuple[FloatArray, FloatArray] | None = None, near: FloatArray | None = None
) -> RaschFit:
    """Fit abilities and difficulties to mean outcomes.

    outcomes: (n, m); 0 to 1; NaN where missing. Every agent and every task has a valid cell.
    start: θ and b near the maximum, such as those of a fit to a few agents more; it does not show in the
        result.
    near: (s, s), s the smaller of n and m; `inverse_complement` of such a fit, for the agents or tasks that
        are left.
    Raises RaschUnfinished: with the derivative reached.
    """
    outcomes, valid = _checked(outcomes)
    if start is None:
        abilities, difficulties = _smoothed_logits(outcomes, 1), -_smoothed_logits(outcomes, 0)
    else:
        abilities, difficulties = (_checked_logits(logits) for logits in start)
        if (abilities.size, difficulties.size) != outcomes.shape:
            sizes = f"{abilities.size} abilities and {difficulties.size} difficulties"
            raise SelectionError(f"{sizes} to start from, for outcomes {outcomes.shape}", code="shape")
    for _ in range(MAX_ITERATIONS):
        for_abilities, for_difficulties, curvature = _derivatives(outcomes, valid, abilities, difficulties)
        largest = float(max(np.abs(for_abilities).max(), np.abs(for_difficulties).max()))
        if largest < LARGEST_DERIVATIVE:
            mean_difficulty = np.mean(difficulties)
            return RaschFit(
                abilities=read_only(abilities - mean_difficulty),
                difficulties=read_only(difficulties - mean_difficulty),
                largest_derivative=largest,
            )
        up, harder = _newton_step(curvature, for_abilities, for_difficulties, near)
        length = _step_length(float(max(up.max() - harder.min(), harder.max() - up.min())))
        abilities, difficulties = abilities + length * up, difficulties + length * harder
    raise RaschUnfinished(f"a derivative of {largest:.1e} is left after {MAX_ITERATIONS} steps")


def inverse_complement(outcomes: FloatArray, fitted: RaschFit) -> FloatArray:
    """Inverse of the Schur complement that a fit ends with, shape (s, s), s the smaller of n and m.

    outcomes: (n, m).
    """
    outcomes, valid = _checked(outcomes)
    _, _, curvature = _derivatives(outcomes, valid, fitted.abilities, fitted.difficulties)
    side = curvature.T if curvature.shape[0] > curvature.shape[1] else curvature
    from scipy.linalg import inv  # not for a web worker, which takes an ability from here

    inverse = inv(_complement(side, *_diagonals(side)), assume_a="pos")
    return np.asarray(inverse, dtype=np.float64)


def ability(outcomes: FloatArray, difficulties: FloatArray) -> float:
    """θ̂ of one agent given the tasks' difficulties, logits: the maximum of ℓ in θ alone, b fixed.

    outcomes: (m,); 0 to 1; NaN where missing; at least one valid.
    difficulties: (m,); b as `fit` gives them: the penalty θ²/18 counts from the mean difficulty.
    Raises SelectionError (shape), RaschUnfinished.
    """
    outcomes, difficulties = np.asarray(outcomes, dtype=np.float64), _checked_logits(difficulties)
    if outcomes.shape != difficulties.shape:
        raise SelectionError(f"outcomes {outcomes.shape} for difficulties {difficulties.shape}", code="shape")
    rows, valid = _checked_rows(outcomes[None, :])
    outcomes, difficulties = rows[valid], difficulties[valid[0]]
    level = 0.0
    for _ in range(MAX_ITERATIONS):
        passing = expit(level - difficulties)
        derivative = float(np.sum(outcomes - passing)) - level / PRIOR_VARIANCE
        if abs(derivative) < LARGEST_DERIVATIVE:
            return level
        step = derivative / (float(np.sum(passing * (1.0 - passing))) + 1.0 / PRIOR_VARIANCE)
        level += _step_length(abs(step)) * step
    raise RaschUnfinished(f"a derivative of {derivative:.1e} is left after {MAX_ITERATIONS} steps")


def information(abilities: FloatArray, difficulties: FloatArray) -> FloatArray:
    """Fisher information of each task about the abilities it is summed over, Σ_i P_ij(1 − P_ij), (m,)."""
    abilities, difficulties = _checked_logits(abilities), _checked_logits(difficulties)
    distance = abilities[:, None] - difficulties
    return np.asarray(np.sum(expit(distance) * expit(-distance), axis=0), dtype=np.float64)


def _smoothed_logits(outcomes: FloatArray, axis: int) -> FloatArray:
    """Start at log((s + 1)/(n − s + 1)) of n valid cells with the sum s: nearer to the maximum than 0."""
    n, passed = np.count_nonzero(~np.isnan(outcomes), axis=axis), np.nansum(outcomes, axis=axis)
    return np.asarray(np.log((passed + 1.0) / (n - passed + 1.0)), dtype=np.float64)


def _derivatives(
    outcomes: FloatArray, valid: Mask, abilities: FloatArray, difficulties: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """∂ℓ/∂θ, ∂ℓ/∂b and W."""
    logits = abilities[:, None] - difficulties
    np.exp(np.negative(logits, out=logits), out=logits)
    passing = np.asarray(np.divide(1.0, np.add(logits, 1.0, out=logits), out=logits), dtype=np.float64)
    beyond, is_whole = outcomes - passing, valid.all()
    if not is_whole:
        beyond[~valid] = 0.0
    for_abilities = beyond.sum(axis=1) - abilities / PRIOR_VARIANCE
    for_difficulties = -beyond.sum(axis=0) - difficulties / PRIOR_VARIANCE
    curvature = np.subtract(passing, np.multiply(passing, passing, out=beyond), out=passing)
    if not is_whole:
        curvature[~valid] = 0.0
    return for_abilities, for_difficulties, curvature


def _newton_step(
    curvature: FloatArray, for_abilities: FloatArray, for_difficulties: FloatArray, near: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Solve [[A, −W], [−Wᵀ, C]](up, harder) = (∂ℓ/∂θ, ∂ℓ/∂b) by (A − WC⁻¹Wᵀ)up = ∂ℓ/∂θ + WC⁻¹∂ℓ/∂b."""
    if curvature.shape[0] > curvature.shape[1]:
        harder, up = _newton_step(curvature.T, for_difficulties, for_abilities, near)
        return up, harder
    of_abilities, of_difficulties = _diagonals(curvature)
    right_side = for_abilities + curvature @ (for_difficulties / of_difficulties)
    if near is None:
        complement = _complement(curvature, of_abilities, of_difficulties)
        up = np.asarray(np.linalg.solve(complement, right_side), dtype=np.float64)
    else:
        up = _conjugate_gradients(
            lambda v: of_abilities * v - curvature @ ((curvature.T @ v) / of_difficulties), right_side, near
        )
    return up, (for_difficulties + curvature.T @ up) / of_difficulties


def _diagonals(curvature: FloatArray) -> tuple[FloatArray, FloatArray]:
    penalty = 1.0 / PRIOR_VARIANCE
    return np.sum(curvature, axis=1) + penalty, np.sum(curvature, axis=0) + penalty


def _complement(curvature: FloatArray, of_abilities: FloatArray, of_difficulties: FloatArray) -> FloatArray:
    shared = curvature / np.sqrt(of_difficulties)
    return np.asarray(np.diag(of_abilities) - shared @ shared.T, dtype=np.float64)


def _conjugate_gradients(
    product: Callable[[FloatArray], FloatArray], right_side: FloatArray, near: FloatArray
) -> FloatArray:
    """Solve K·u = r for a K whose inverse is about `near`, until what is left is below 1e-6 of r."""
    solution, residual = np.zeros_like(right_side), right_side
    direction = step = near @ residual
    size, enough = float(residual @ step), NEAR_ENOUGH * float(np.linalg.norm(right_side))
    for _ in range(MAX_ITERATIONS):
        if np.linalg.norm(residual) <= enough:
            break
        image = product(direction)
        length = size / float(direction @ image)
        solution, residual = solution + length * direction, residual - length * image
        step, before = near @ residual, size
        size = float(residual @ step)
        direction = step + (size / before) * direction
    return solution


def _step_length(beta: float) -> float:
    """log(1 + β)/β: along the step ℓ's second derivative grows at most by e^β, so that ℓ rises up to here."""
    return float(np.log1p(beta)) / beta if beta > 0.0 else 1.0


def _checked(outcomes: FloatArray) -> tuple[FloatArray, Mask]:
    outcomes, valid = _checked_rows(outcomes)
    if not valid.any(axis=0).all():
        raise SelectionError(
            f"task {int(np.argmin(valid.any(axis=0)))}: no agent has a valid cell", code="task_unobserved"
        )
    return outcomes, valid


def _checked_rows(outcomes: FloatArray) -> tuple[FloatArray, Mask]:
    outcomes = checked_outcomes(outcomes, "no task to fit a difficulty to")
    valid = np.asarray(~np.isnan(outcomes), dtype=np.bool_)
    if not outcomes.shape[0]:
        raise SelectionError("there is no agent", code="agent_unobserved")
    if not valid.any(axis=1).all():
        raise SelectionError(
            f"agent {int(np.argmin(valid.any(axis=1)))} has no valid cell", code="agent_unobserved"
        )
    return outcomes, valid


def _checked_logits(logits: FloatArray) -> FloatArray:
    logits = np.asarray(logits, dtype=np.float64)
    if logits.ndim != 1:
        raise SelectionError(
            f"logits have shape {logits.shape}, not one for each agent or task", code="shape"
        )
    if not np.isfinite(logits).all():
        i = int(np.argmin(np.isfinite(logits)))
        raise SelectionError(
            f"entry {i} is {logits[i]}; a difficulty or an ability is finite", code="not_finite"
        )
    return logits
