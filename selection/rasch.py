"""Rasch model: one ability for each agent and one difficulty for each task, by penalised joint likelihood.

The theory is in ``selection/README.md``, “Abilities and difficulties”: outcomes X (n, m), NaN missing;
abilities θ (n,) and difficulties b (m,), Σb = 0, in logits; curvature W = P(1 − P).

Source: Rasch, *Probabilistic Models for Some Intelligence and Attainment Tests*, 1960. Penalty: Mislevy,
*Psychometrika* 51 (1986) 177-195 (normal priors). Step length: Bach, *Electronic Journal of Statistics* 4
(2010) 384-414, and Sun & Tran-Dinh, *Mathematical Programming* 178 (2019) 145-213, for ν = 2. Bi-CGSTAB: van
der Vorst, *SIAM Journal on Scientific and Statistical Computing* 13 (1992) 631-644.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from selection.bands import checked_outcomes
from selection.errors import SelectionError

PRIOR_VARIANCE = 9.0
LARGEST_DERIVATIVE = 1e-11
MAX_DENSE = 100
SOLVED = 1e-6  # of the right side: how far a step of Newton is solved
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


def fit(outcomes: FloatArray, start: tuple[FloatArray, FloatArray] | None = None) -> RaschFit:
    """Fit abilities and difficulties to mean outcomes.

    outcomes: (n, m); 0 to 1; NaN where missing. Every agent and every task has a valid cell.
    start: θ and b near the maximum, such as those of a fit to a few agents more; it does not show in the
        result.
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
    x = np.where(valid, outcomes, 0.0)
    task, group, size = alike(x, valid)
    passed, n_run, difficulties = summed(x, group, size.size), valid[:, task] * size, difficulties[task]
    for _ in range(MAX_ITERATIONS):
        slopes = _derivatives(passed, n_run, size, abilities, difficulties)
        for_abilities, for_difficulties, _ = slopes
        largest = float(max(np.abs(for_abilities).max(), np.abs(for_difficulties / size).max()))
        if largest < LARGEST_DERIVATIVE:
            difficulties = difficulties[group]
            mean_difficulty = np.mean(difficulties)
            return RaschFit(
                abilities=read_only(abilities - mean_difficulty),
                difficulties=read_only(difficulties - mean_difficulty),
                largest_derivative=largest,
            )
        up, harder = _newton_step(*slopes, np.ones(len(x)), size)
        length = _step_length(float(max(up.max() - harder.min(), harder.max() - up.min())))
        abilities, difficulties = abilities + length * up, difficulties + length * harder
    raise RaschUnfinished(f"a derivative of {largest:.1e} is left after {MAX_ITERATIONS} steps")


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


def alike(x: FloatArray, ran: Mask) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Group the tasks that the same agents ran with the same sum, which have one difficulty.

    x, ran: (n, m); 0 where not run.
    Returns: a task of each group, the group of each task, and the number of its tasks.
    """
    keys = x.sum(axis=0)
    if not ran.all():
        keys = np.hstack([np.packbits(ran, axis=0).T, keys[:, None].view(np.uint8)])
        keys = np.ascontiguousarray(keys).view(np.dtype((np.void, keys.shape[1])))[:, 0]
    _, task, group, size = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return task, group, size.astype(np.float64)


def summed(x: FloatArray, group: IndexArray, n_groups: int) -> FloatArray:
    """Sum the columns of each group, (n, n_groups)."""
    order = np.argsort(group, kind="stable")
    begins = np.searchsorted(group[order], np.arange(n_groups))
    return np.asarray(np.add.reduceat(x[:, order], begins, axis=1))


def _derivatives(
    passed: FloatArray, n_run: FloatArray, size: FloatArray, abilities: FloatArray, difficulties: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """∂ℓ/∂θ, ∂ℓ/∂b and W of groups of `size` tasks: what agents passed there of what they ran."""
    passing = passing_of(abilities, difficulties)
    expected = n_run * passing
    beyond = passed - expected
    for_abilities = beyond.sum(axis=1) - abilities / PRIOR_VARIANCE
    for_difficulties = -beyond.sum(axis=0) - size * difficulties / PRIOR_VARIANCE
    curvature = np.subtract(expected, np.multiply(expected, passing, out=passing), out=expected)
    return for_abilities, for_difficulties, curvature


def _newton_step(
    for_abilities: FloatArray,
    for_difficulties: FloatArray,
    curvature: FloatArray,
    n_abilities: FloatArray,
    n_difficulties: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Solve [[A, −W], [−Wᵀ, C]](up, harder) = (∂ℓ/∂θ, ∂ℓ/∂b) by (A − WC⁻¹Wᵀ)up = ∂ℓ/∂θ + WC⁻¹∂ℓ/∂b."""
    if curvature.shape[0] > curvature.shape[1]:
        harder, up = _newton_step(for_difficulties, for_abilities, curvature.T, n_difficulties, n_abilities)
        return up, harder
    of_abilities = curvature.sum(axis=1) + n_abilities / PRIOR_VARIANCE
    of_difficulties = curvature.sum(axis=0) + n_difficulties / PRIOR_VARIANCE

    def complement(up: FloatArray) -> FloatArray:
        by_difficulties = (up @ curvature / of_difficulties) @ curvature.T
        return np.asarray(of_abilities * up - by_difficulties, dtype=np.float64)

    up = solver(complement, of_abilities)(for_abilities + curvature @ (for_difficulties / of_difficulties))
    return up, (for_difficulties + up @ curvature) / of_difficulties


def solver(
    product: Callable[[FloatArray], FloatArray], diagonal: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return what solves K·u = r for a step of Newton: up to 1e-6 of r where K is large.

    product: of K with vectors, (..., n).
    diagonal: (n,); what K is near to.
    Raises SelectionError (model_unfinished): where a small K is singular.
    """
    n = diagonal.size
    if n <= MAX_DENSE:
        whole = product(np.eye(n)).T
        return lambda target: _eliminated(whole, target)
    from scipy.sparse.linalg import LinearOperator, bicgstab  # not for a program that fits nothing

    system = LinearOperator((n, n), matvec=product, dtype=np.float64)
    near = LinearOperator((n, n), matvec=lambda up: up / diagonal, dtype=np.float64)

    def solved(target: FloatArray) -> FloatArray:
        return np.asarray(bicgstab(system, target, rtol=SOLVED, atol=0.0, M=near)[0], dtype=np.float64)

    return solved


def _eliminated(whole: FloatArray, target: FloatArray) -> FloatArray:
    try:
        return np.asarray(np.linalg.solve(whole, target), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise SelectionError(
            "the outcomes tell no ability from another: all are alike", code="model_unfinished"
        ) from None


def passing_of(abilities: FloatArray, difficulties: FloatArray) -> FloatArray:
    """P of each agent on each task, (n, m), with an exponential for each of them and none for a pair."""
    odds = np.exp(abilities)[:, None]
    passing = odds + np.exp(difficulties)
    return np.asarray(np.divide(odds, passing, out=passing), dtype=np.float64)


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
