"""Ridge without each training agent in turn, all at once.

Model
-----
With C the matrix of S centred on its column means, e the residuals of the fit to all n agents and
h_i = 1/n + c_iᵀ(CᵀC + αI)⁻¹c_i their leverages::

    β₋ᵢ = β − (CᵀC + αI)⁻¹c_i·e_i/(1 − h_i),    (CᵀC + αI)⁻¹Cᵀ = Cᵀ(CCᵀ + αI)⁻¹        one n × n system
    x̄₋ᵢ = x̄ − c_i/(n − 1),    b₀₋ᵢ = ȳ − e_i/(n(1 − h_i)) − x̄·β₋ᵢ

Where a training cell is missing, what completes it changes with the agents left, and the n refits are made.

Symbols: X ``outcomes`` (n, k), y ``scores`` (n,), β₋ᵢ ``coefficients`` (n, k), x̄₋ᵢ ``column_means`` (n, k).

Not done here: α is that of `selection.ridge`.

Source: Cawley & Talbot, *Neural Networks* 17 (2004) 1467-1475.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from analytics.arrays import FloatArray, read_only
from selection import ridge


@dataclass(frozen=True, eq=False)
class RefitsWithout:
    """The n Ridge fits that each leave one training agent out.

    intercepts: (n_agents,).
    coefficients, column_means: (n_agents, k).
    """

    intercepts: FloatArray
    coefficients: FloatArray
    column_means: FloatArray

    def predictions(self, outcomes: FloatArray) -> FloatArray:
        """μ₋ᵢ(x) for every x and every i, shape (q, n_agents); a missing cell takes x̄₋ᵢ.

        outcomes: (q, k); NaN where missing.
        """
        missing = np.isnan(outcomes)
        observed = np.where(missing, 0.0, outcomes) @ self.coefficients.T
        completed = missing @ (self.column_means * self.coefficients).T
        return np.asarray(self.intercepts + observed + completed, dtype=np.float64)


def refits_without(outcomes: FloatArray, scores: FloatArray) -> RefitsWithout:
    """Fit the Ridge without each agent in turn: all at once where no cell is missing, one by one elsewhere.

    outcomes: (n_agents, k); NaN where missing; n_agents ≥ 3.
    scores: (n_agents,).
    Raises As `selection.ridge.fit`..
    """
    if np.isnan(outcomes).any() or len(scores) < 3:
        return _one_by_one(outcomes, scores)
    n = scores.size
    fitted = ridge.fit(outcomes, scores)
    centred = outcomes - fitted.column_means
    inverse = scipy.linalg.inv(centred @ centred.T + ridge.ALPHA * np.eye(n), assume_a="pos")
    directions = inverse @ centred
    leverages = 1.0 / n + np.sum(directions * centred, axis=1)
    steps = (scores - ridge.predict(fitted, outcomes)) / (1.0 - leverages)
    coefficients = fitted.coefficients - directions * steps[:, None]
    return RefitsWithout(
        intercepts=read_only(np.mean(scores) - steps / n - coefficients @ fitted.column_means),
        coefficients=read_only(coefficients),
        column_means=read_only(fitted.column_means - centred / (n - 1)),
    )


def _one_by_one(outcomes: FloatArray, scores: FloatArray) -> RefitsWithout:
    others_of = [np.arange(scores.size) != i for i in range(scores.size)]
    for others in others_of:
        ridge.checked_training(outcomes[others], scores[others], ridge.ALPHA)
    fits = [ridge.fit(outcomes[others], scores[others]) for others in others_of]
    return RefitsWithout(
        intercepts=read_only(np.array([fitted.intercept for fitted in fits])),
        coefficients=read_only(np.array([fitted.coefficients for fitted in fits])),
        column_means=read_only(np.array([fitted.column_means for fitted in fits])),
    )
