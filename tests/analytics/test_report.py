import math

import numpy as np
import pytest

from analytics.tee import Declaration, Reading, paragraph, total_error

FULL = Declaration("score", "item", "prompt", "judge")


def outcomes(n_prompts=2, n_judges=2):
    rng = np.random.default_rng(2)
    i, v, m, _ = (axis.ravel() for axis in np.indices((8, n_prompts, n_judges, 3)))
    y = rng.normal(0, 1, 8)[i] + rng.normal(0, 0.5, n_prompts)[v] + 0.4 * m + rng.normal(0, 0.6, i.size)
    return {"item": i, "prompt": v, "judge": m, "score": y}


@pytest.fixture(scope="module")
def study():
    return total_error(outcomes(), FULL)


def test_paragraph_has_the_figures(study):
    text = paragraph(study)
    interval = study.interval()
    assert text.startswith(
        f"The mean over 8 items, 2 prompts, 2 judges and 3 replicates (96 outcomes) is {study.theta:.4g}."
    )
    assert (
        f"setting aside the choice of judges, is {study.se:.4g}; the naive one is {study.naive_se:.4g}"
        in text
    )
    assert (
        f"The 95% confidence interval is {interval.lower:.4g} to {interval.upper:.4g} (conservative t, 1 deg"
        in text
    )
    # Of changes at the same cost, twice as many items halve all but the prompts' main effect.
    parts = study.projection.contributions
    halved = {
        name: sum(parts[term] for term in parts if mine <= set(term.split(":")) or term == "Residual") / 2
        for name, mine in (("items", {"item"}), ("prompts", {"prompt"}))
    }
    best = max(halved, key=halved.get)
    less = halved[best] / study.projection.variance
    assert f"twice as many {best} would help most: {less:.0%} less variance" in text
    assert "Not measured: temperature (one level)." in text
    assert f"Estimated as exactly 0: {', '.join(study.fit.boundary)}." in text


def test_paragraph_of_the_other_readings():
    finite = paragraph(total_error(outcomes(), FULL, Reading(estimand="finite", sensitivity="include")))
    assert "for exactly these items and counting the choice of judges" in finite
    assert "design-sensitivity interval" in finite
    assert "confidence interval" not in finite
    assert "twice as many items" not in finite


def test_paragraph_without_prompts_and_judges():
    columns = outcomes(1, 1)
    found = total_error(columns, Declaration("score", "item"))
    text = paragraph(found)
    assert "The mean over 8 items and 3 replicates (24 outcomes)" in text
    assert "Not measured: prompt (one level). Not measured: judge (one level)." in text
    assert "judge" not in paragraph(found, is_mean_of_judges=True)
    assert "choice" not in text
    assert f"is {found.se:.4g}; the naive one is" in text
    assert math.isclose(found.se, found.naive_se, rel_tol=1e-9)
