"""The restricted likelihood of an unbalanced design, as `analytics.reml.sparse` evaluates it.

Model
-----
That of `analytics.reml.variance_components`. `analytics.reml.sparse` gives Q, ∂Q/∂φ, the average information
and Cov(β̂) = (X'V⁻¹X)⁻¹ at any φ. What is added here:

* ∂Cov(β̂)/∂φ by differences: central, φ_T e^{±δ}, off the boundary, forward, φ_T = δ·Σφ, on it;
* the parametric bootstrap: y* = Xβ̂ + Σ_T σ̂_T Z_T z_T + σ̂_ρ z with z standard normal, fitted again from φ̂ on
  the same design, whose layout is worked out once.

Source
------
Gilmour, Thompson & Cullis, *Biometrics* 51 (1995) 1440-1450 (average information).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analytics.arrays import CodeArray, FloatArray
from analytics.reml import sparse
from analytics.reml.variance_components import Refits

STEP = 1e-4


@dataclass(frozen=True, eq=False)
class UnbalancedLikelihood:
    """The likelihood of one data set of an unbalanced design.

    Parameters
    ----------
    criterion : sparse.Criterion
    groups : sequence of int arrays, shape (n_rows,) each
        Level of each random term.
    design : float array, shape (n_rows, p)
        X.
    """

    criterion: sparse.Criterion
    groups: Sequence[CodeArray]
    design: FloatArray

    def value_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Q(φ) and ∂Q/∂φ."""
        return self.criterion.value_and_gradient(parameters)

    def information(self, parameters: FloatArray) -> FloatArray:
        """Average information, shape (n_terms + 1, n_terms + 1)."""
        return self.criterion.at(parameters).information

    def covariance_slopes(self, parameters: FloatArray) -> FloatArray:
        """∂Cov(β̂)/∂φ by differences, shape (n_terms + 1, p, p)."""
        return np.array([self._slope(parameters, t) for t in range(parameters.size)])

    def _slope(self, parameters: FloatArray, t: int) -> FloatArray:
        lower, upper = parameters.copy(), parameters.copy()
        lower[t] *= np.exp(-STEP)
        upper[t] *= np.exp(STEP)
        if parameters[t] == 0.0:
            upper[t] = STEP * parameters.sum()
        rise = self.criterion.at(upper).beta_covariance - self.criterion.at(lower).beta_covariance
        return np.asarray(rise / (upper[t] - lower[t]), dtype=np.float64)

    def refits(
        self,
        parameters: FloatArray,
        beta: FloatArray,
        contrast: FloatArray,
        n_draws: int,
        rng: np.random.Generator,
    ) -> Refits:
        """Draw outcomes from N(Xβ, V(φ)) and fit each again."""
        optima = [
            sparse.minimise(self.criterion.with_outcome(self._drawn(parameters, beta, rng)), start=parameters)
            for _ in range(n_draws)
        ]
        return Refits(
            parameters=np.array([np.append(found.variances, found.residual) for found in optima]),
            theta=np.array([contrast @ found.beta for found in optima]),
            theta_variance=np.array([contrast @ found.beta_covariance @ contrast for found in optima]),
        )

    def _drawn(self, parameters: FloatArray, beta: FloatArray, rng: np.random.Generator) -> FloatArray:
        y = self.design @ beta + np.sqrt(parameters[-1]) * rng.standard_normal(len(self.design))
        for codes, variance in zip(self.groups, parameters[:-1], strict=True):
            y += np.sqrt(variance) * rng.standard_normal(int(codes.max()) + 1)[codes]
        return np.asarray(y, dtype=np.float64)
