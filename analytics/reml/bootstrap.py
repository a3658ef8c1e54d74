"""The parametric bootstrap of a fit: intervals of the components, and bootstrap-t of θ̂.

Source: Efron & Tibshirani, *An Introduction to the Bootstrap*, 1993, §12.5 and §13.3. Bates et al.,
*J. Stat. Software* 67(1) (2015), §2.3 (`bootMer`).
"""

import numpy as np

from analytics.errors import CoreError
from analytics.reml.variance_components import (
    ComponentInterval,
    ComponentIntervals,
    Refits,
    VarianceFit,
    check_level,
)

MIN_DRAWS_T = 2_000
MIN_DRAWS = 200


def refits(fit: VarianceFit, rng: np.random.Generator, n_draws: int = MIN_DRAWS_T) -> Refits:
    """Draw from the fitted model and fit each of the draws, at least 200."""
    if n_draws < MIN_DRAWS:
        raise CoreError(
            f"{n_draws} draws; percentiles of a bootstrap need at least {MIN_DRAWS}", code="bootstrap"
        )
    return fit.likelihood.refits(fit.parameters, fit.beta, fit.contrast, n_draws, rng)


def component_intervals(fit: VarianceFit, draws: Refits, level: float = 0.95) -> ComponentIntervals:
    """Percentile intervals of all components, from draws of this fit."""
    check_level(level)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    lower, upper = np.quantile(draws.parameters, tails, axis=0)
    spread = np.std(draws.parameters, axis=0, ddof=1)
    intervals = {
        name: ComponentInterval(
            float(fit.parameters[position]),
            float(spread[position]),
            float(lower[position]),
            float(upper[position]),
            level,
            "bootstrap",
        )
        for position, name in enumerate(fit.names)
    }
    reason = "on the boundary: drawn from a model without it, so that the interval is too short"
    return ComponentIntervals(intervals, dict.fromkeys(fit.boundary, reason))


def t_quantiles(fit: VarianceFit, draws: Refits, level: float = 0.95) -> tuple[float, float]:
    """Lower and upper quantile of t* = (θ* − θ̂)/SE*, from at least 2,000 draws of this fit."""
    check_level(level)
    if draws.theta.size < MIN_DRAWS_T:
        raise CoreError(
            f"{draws.theta.size} draws; bootstrap-t needs at least {MIN_DRAWS_T}", code="bootstrap"
        )
    studentised = (draws.theta - fit.contrast @ fit.beta) / np.sqrt(draws.theta_variance)
    lower, upper = np.quantile(studentised, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(lower), float(upper)
