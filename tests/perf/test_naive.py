import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from analytics.errors import CoreError
from analytics.tee import Declaration, Reading, project, total_error
from perf.studies.naive import naive_against_tee
from tests.analytics.factorial import factorial

DECLARED = Declaration("score", "item", "prompt", "judge", "temperature")
INCLUDE = Reading(sensitivity="include")


@pytest.mark.parametrize("reading", [Reading(), INCLUDE])
def test_naive_against_tee_by_hand(reading):
    columns = factorial()
    found = total_error(columns, DECLARED, reading)
    comparison = naive_against_tee(columns, found)
    se = project(found.components, {"N": 12, "V": 1, "M": 1, "H": 1, "R": 2}, reading).se
    ratios, naive, tee = [], [], []
    y = columns["score"].reshape(12, 5, 3, 2, 2).mean(axis=4)
    for v, m, h in itertools.product(range(5), range(3), range(2)):
        means = y[:, v, m, h]
        s = means.std(ddof=1) / math.sqrt(12)
        ratios.append(s / se)
        naive.append(abs(means.mean() - y.mean()) <= norm.ppf(0.975) * s)
        tee.append(abs(means.mean() - y.mean()) <= norm.ppf(0.975) * se)
    assert len(comparison.pipelines) == 30
    assert comparison.width_ratio == pytest.approx(np.mean(ratios))
    assert comparison.naive_coverage == pytest.approx(np.mean(naive))
    assert comparison.tee_coverage == pytest.approx(np.mean(tee))


def test_pipelines_without_spread_are_named():
    columns = factorial()
    flat = (columns["prompt"] == 1) & (columns["judge"] == 2) & (columns["temperature"] == 0)
    columns["score"] = np.where(flat, 3.0, columns["score"])
    comparison = naive_against_tee(columns, total_error(columns, DECLARED))
    assert len(comparison.pipelines) == 29
    assert comparison.left_out == (
        "prompt 1, judge 2, temperature 0: all 12 items have the mean outcome 3: no spread, no error",
    )


def test_a_level_is_checked():
    columns = factorial()
    with pytest.raises(CoreError, match="a level lies inside"):
        naive_against_tee(columns, total_error(columns, DECLARED), level=1.0)
