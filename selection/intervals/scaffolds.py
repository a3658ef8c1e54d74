"""Residuals by scaffold: how much a scaffold that nobody has trained on adds to the error.

Model
-----
The residuals r of folds that hold a whole scaffold out, in G scaffolds of n_g agents, N in all, have one-way
components by the method of moments for unequal groups, the first truncated at 0::

    σ_e² = MSW,    σ_s² = max(0, (MSB − MSW)/n₀),    n₀ = (N − Σn_g²/N)/(G − 1)

With one agent in every scaffold (N = G) the two cannot be told apart, and σ_s² = MSB stands for both.

Symbols: r ``residuals`` (n_agents,), NaN: none; σ_s² ``between``, σ_e² ``within``, score².

Not done here: no component under 5 scaffolds.

Source: Searle, Casella & McCulloch, *Variance Components*, 1992, ch. 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import FloatArray

LEVEL = 0.95
MIN_SCAFFOLDS = 5
NOT_CALIBRATED = "new scaffold: not calibrated for it"


@dataclass(frozen=True)
class ScaffoldComponents:
    """One-way components of the leave-one-scaffold-out residuals, score².

    between, within: σ_s², truncated at 0, and σ_e².
    n_scaffolds: G.
    separated: False with one agent in every scaffold: `between` stands for both and `within` is 0.
    """

    between: float
    within: float
    n_scaffolds: int
    separated: bool

    @property
    def s_cal(self) -> float:
        """√(σ_s²(1 + 1/G) + σ_e²); score."""
        return float(np.sqrt(self.between * (1 + 1 / self.n_scaffolds) + self.within))

    @property
    def half_width(self) -> float:
        """t_{G−1}·√(σ_s²(1 + 1/G) + σ_e²); score."""
        return t(self.n_scaffolds - 1) * self.s_cal


def t(degrees: int) -> float:
    """97.5% quantile of Student's t."""
    return float(stdtrit(degrees, (1 + LEVEL) / 2))


def components(residuals: FloatArray, scaffolds: Sequence[str]) -> ScaffoldComponents:
    """One-way components by the method of moments, groups of unequal size, `between` truncated at 0.

    residuals: (n_agents,); NaN where there is none.
    scaffolds: of those that have one, in order; G ≥ 2.
    """
    residuals = residuals[~np.isnan(residuals)]
    group = np.unique(np.asarray(scaffolds), return_inverse=True)[1]
    sizes = np.bincount(group)
    n_groups, n = sizes.size, residuals.size
    means = np.bincount(group, weights=residuals) / sizes
    between_square = np.sum(sizes * (means - np.mean(residuals)) ** 2) / (n_groups - 1)
    if n == n_groups:
        return ScaffoldComponents(float(between_square), 0.0, n_groups, separated=False)
    within = np.sum((residuals - means[group]) ** 2) / (n - n_groups)
    per_group = (n - np.sum(sizes**2) / n) / (n_groups - 1)
    between = max(0.0, (between_square - within) / per_group)
    return ScaffoldComponents(float(between), float(within), n_groups, separated=True)
