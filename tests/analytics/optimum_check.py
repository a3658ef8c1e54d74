"""Is a fit an optimum? First and second order conditions, and what L-BFGS-B finds from other starts."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from analytics.reml.strata import Strata
from analytics.reml.variance_components import VarianceFit

GRADIENT_TOLERANCE = 1e-3
RESTART_TOLERANCE = 1e-6


@dataclass(frozen=True)
class OptimumCheck:
    """First and second order conditions at φ̂, and what other starts find.

    Parameters
    ----------
    largest_free_slope : float
        Largest |φ_T ∂Q/∂φ_T| / √(φ_T² H_TT) off the boundary: the distance to the top in standard errors
        of log φ_T, one component at a time.
    smallest_boundary_slope : float or None
        Smallest ∂Q/∂φ_T·σ_ρ² on the boundary (at least 0 at an optimum); None without a boundary.
    smallest_curvature : float
        Smallest eigenvalue of the Hessian of Q in log φ over the components off the boundary, observed, by
        central differences of the gradient.
    best_restart : float
        Lowest Q from other starts minus Q(φ̂); below 0 when a restart found better.
    n_restarts : int
    """

    largest_free_slope: float
    smallest_boundary_slope: float | None
    smallest_curvature: float
    best_restart: float
    n_restarts: int

    @property
    def passed(self) -> bool:
        """Whether all four say that it is one."""
        return (
            self.largest_free_slope <= GRADIENT_TOLERANCE
            and (self.smallest_boundary_slope is None or self.smallest_boundary_slope >= -GRADIENT_TOLERANCE)
            and self.smallest_curvature > 0.0
            and self.best_restart >= -RESTART_TOLERANCE
        )


def value_and_gradient(fit: VarianceFit, at: np.ndarray) -> tuple[float, np.ndarray]:
    """Q(φ) and its gradient, of a balanced or an unbalanced fit."""
    if isinstance(fit.likelihood, Strata):
        return fit.likelihood.value_and_gradient(at)
    point = fit.likelihood.criterion.at(at)
    return point.value, point.gradient


def check_optimum(fit: VarianceFit, rng: np.random.Generator, n_restarts: int = 3) -> OptimumCheck:
    """Look at gradient and curvature at φ̂, and minimise Q again from other starts by L-BFGS-B.

    Parameters
    ----------
    fit : VarianceFit
    rng : numpy Generator
        Draws the starts: φ̂ + .05·Σφ̂ in every component, times exp of a standard normal each. The residual
        is kept above a hundredth of σ̂_ρ².
    n_restarts : int
        0 leaves `best_restart` at 0.
    """
    free, at = fit.free(), fit.parameters
    slopes = value_and_gradient(fit, at)[1]
    hessian = _log_hessian(fit, free)
    fixed = np.setdiff1d(np.arange(at.size), free)
    return OptimumCheck(
        largest_free_slope=float(np.max(np.abs(at * slopes)[free] / np.sqrt(np.abs(np.diag(hessian))))),
        smallest_boundary_slope=float(np.min(slopes[fixed]) * fit.residual) if fixed.size else None,
        smallest_curvature=float(np.linalg.eigvalsh(hessian)[0]),
        best_restart=min((_restart(fit, rng) for _ in range(n_restarts)), default=0.0),
        n_restarts=n_restarts,
    )


def _log_hessian(fit: VarianceFit, free: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """∂²Q/∂log φ² by central differences of φ ∂Q/∂φ, over the free components."""
    rows = []
    for position in free:
        sides = []
        for sign in (1.0, -1.0):
            moved = fit.parameters
            moved[position] *= np.exp(sign * step)
            sides.append((moved * value_and_gradient(fit, moved)[1])[free])
        rows.append((sides[0] - sides[1]) / (2.0 * step))
    hessian = np.array(rows)
    return np.asarray((hessian + hessian.T) / 2.0, dtype=np.float64)


def _restart(fit: VarianceFit, rng: np.random.Generator) -> float:
    """Lowest Q from one other start, minus Q(φ̂)."""
    total = float(fit.parameters.sum())
    start = (fit.parameters / total + 0.05) * np.exp(rng.standard_normal(fit.parameters.size))

    def shifted(share: np.ndarray) -> tuple[float, np.ndarray]:
        value, slopes = value_and_gradient(fit, share * total)
        return value - fit.criterion, slopes * total

    lowest = [(0.0, None)] * len(fit.terms) + [(0.01 * fit.residual / total, None)]
    result = minimize(
        shifted, start, jac=True, method="L-BFGS-B", bounds=lowest, options={"maxiter": 2000, "ftol": 1e-15}
    )
    return float(result.fun)
