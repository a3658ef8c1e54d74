"""Coverage of nominal 95% intervals of the grand mean: item × prompt, one row a cell, residual SD .5.

Each replicate is drawn row by row, and its interval is that of a study; the truth is 0. Coverage by
Satterthwaite's and Wald's intervals is printed, too; only that of the study has a bound.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm, t

from analytics.reml import theta_slopes
from analytics.reml.variance_components import satterthwaite_df
from analytics.tee import Declaration, total_error

N_REPLICATES = 2_000
CONFIGURATIONS = [(100, 0.9, 0.5), (1_000, 0.9, 0.5), (1_000, 0.3, 1.0)]
METHODS = ("by rule", "satterthwaite", "wald")


def covered(rng, columns, shape, sd_item, sd_prompt):
    """Which methods cover 0 in one replicate."""
    table = (
        sd_item * rng.standard_normal((shape[0], 1))
        + sd_prompt * rng.standard_normal((1, shape[1]))
        + 0.5 * rng.standard_normal(shape)
    )
    study = total_error(columns | {"score": table.ravel()}, Declaration("score", "item", "prompt"))
    interval, distance = study.interval(), abs(study.theta) / study.se
    df = satterthwaite_df(study.fit, theta_slopes(study.fit))
    return [
        interval.lower <= 0.0 <= interval.upper,
        distance <= t.ppf(0.975, df),
        distance <= norm.ppf(0.975),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("n_prompts", [2, 3, 5])
@pytest.mark.parametrize(("n_items", "sd_item", "sd_prompt"), CONFIGURATIONS)
def test_coverage_of_theta(n_items, sd_item, sd_prompt, n_prompts):
    shape = (n_items, n_prompts)
    columns = dict(zip(("item", "prompt"), (axis.ravel() for axis in np.indices(shape)), strict=True))
    rng = np.random.default_rng([75, n_items, round(10 * sd_item), n_prompts])
    replicates = [covered(rng, columns, shape, sd_item, sd_prompt) for _ in range(N_REPLICATES)]
    coverage = dict(zip(METHODS, np.mean(replicates, axis=0), strict=True))
    figures = ", ".join(f"{method} {share:.3f}" for method, share in coverage.items())
    print(f"\nN {n_items}, V {n_prompts}, SD of item {sd_item}, of prompt {sd_prompt}: {figures}")
    bound = 0.92 if n_prompts == 5 else 0.95 - 3 * math.sqrt(0.95 * 0.05 / N_REPLICATES)
    assert coverage["by rule"] >= bound
