"""A logit model with crossed random effects: the one entry, `fit_logit`, and what it refuses.

The minimum of D is found by a projected Newton method in (v, β). Variances at 0 whose derivative is not
negative rest there, so that a component on the boundary is exactly 0; the others take the step −H⁻¹∂D, cut
off at 0 and halved until D falls enough. Far from the minimum H is the average information of the weighted
problem, near it the differences of the gradient, taken again whenever a step gains less than expected or
another variance comes to rest.

The search ends when the expected fall of D, half of ∂D'H⁻¹∂D, is below 1e-10.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from analytics.arrays import FloatArray, Mask
from analytics.errors import CoreError
from analytics.glmm.laplace import Counts, LaplaceFit, layout_of
from analytics.programs import one_blas_thread
from analytics.reml.formula import Term
from analytics.reml.layout import cells_of
from analytics.reml.model import MixedModel, check_fixed, check_groupings, checked_outcome, designed

EXPECTED_FALL = 1e-10
ROUNDING_FALL = 1e-6
NEAR = 0.5
GAIN = 0.1
MAX_STEPS = 200
MAX_HALVINGS = 12
ARMIJO = 1e-4
ROUNDING = 1e-12
START = 0.5
CLOSE_TO_ZERO = 1e-6
DIFFERENCE = 1e-5
MIN_CURVATURE = 1e-6


def minimise(counts: Counts) -> tuple[LaplaceFit, bool, str]:
    """Minimise D; return the point, whether the search converged, and how it ended."""
    point = counts.at(np.full(counts.layout.n_terms, START), start_beta(counts))
    curvature, expected = None, np.inf
    for _ in range(MAX_STEPS):
        resting = _resting(point)
        step, fall = _step(point, resting, curvature if curvature is not None else point.curvature)
        if fall < NEAR and (curvature is None or fall > GAIN * expected):
            curvature = differences(point, resting)
            step, fall = _step(point, resting, curvature)
        if fall < EXPECTED_FALL:
            return point, True, f"expected fall below {EXPECTED_FALL:g}"
        following = _lower(point, step)
        if following is None:
            return point, fall < ROUNDING_FALL, f"no lower point found; expected fall {fall:.1e}"
        expected = fall
        if fall >= NEAR or not np.array_equal(_resting(following), resting):
            curvature, expected = None, np.inf
        point = following
    return point, False, f"stopped after {MAX_STEPS} steps"


def start_beta(counts: Counts) -> FloatArray:
    """Return the fixed effects of a plain logistic regression, after a few Newton steps from the mean."""
    beta = np.zeros(counts.design.shape[1])
    share = float(np.sum(counts.successes) / np.sum(counts.trials))
    beta[0] = np.log(share / (1.0 - share))
    for _ in range(5):
        mean = expit(counts.design @ beta)
        weight = counts.trials * mean * (1.0 - mean)
        slope = counts.design.T @ (counts.successes - counts.trials * mean)
        beta = beta + np.clip(
            np.linalg.solve(counts.design.T @ (weight[:, None] * counts.design), slope), -2.0, 2.0
        )
    return np.asarray(beta, dtype=np.float64)


def differences(point: LaplaceFit, resting: Mask) -> FloatArray:
    """Second derivatives of D by forward differences of its gradient, but for variances that rest."""
    here, n = np.concatenate([point.variances, point.beta]), point.variances.size
    second = np.diag(np.ones(here.size))
    for i in np.flatnonzero(~resting).tolist():
        there = here.copy()
        there[i] += DIFFERENCE * max(abs(here[i]), 0.01)
        gradient = point.counts.at(there[:n], there[n:], point.residual).gradient
        second[:, i] = (gradient - point.gradient) / (there[i] - here[i])
    return (second + second.T) / 2.0


def _resting(point: LaplaceFit) -> Mask:
    """Variances at 0, or close to it and bound for it, whose derivative is not negative."""
    n = point.variances.size
    slope, bend = point.gradient[:n], np.diag(point.curvature)[:n]
    close = (point.variances <= CLOSE_TO_ZERO * (1.0 + np.sum(point.variances))) & (
        bend * point.variances <= slope
    )
    rests = close & (slope >= 0.0)
    return np.concatenate([rests, np.zeros(point.beta.size, dtype=np.bool_)])


def _step(point: LaplaceFit, resting: Mask, curvature: FloatArray) -> tuple[FloatArray, float]:
    """−H⁻¹∂D over what does not rest, H made positive, and the fall of D expected of it."""
    step, free = np.zeros(resting.size), ~resting
    step[: point.variances.size] = -point.variances
    gradient, part = point.gradient[free], curvature[np.ix_(free, free)]
    scale = np.sqrt(np.maximum(np.abs(np.diag(part)), 1e-300))
    values, vectors = np.linalg.eigh(part / np.outer(scale, scale))
    values = np.maximum(np.abs(values), MIN_CURVATURE)
    step[free] = -(vectors @ ((vectors.T @ (gradient / scale)) / values)) / scale
    return step, 0.5 * abs(float(point.gradient @ step))


def _lower(point: LaplaceFit, step: FloatArray) -> LaplaceFit | None:
    n = point.variances.size
    furthest = point.variances + 1.0 + np.sum(point.variances)
    for halving in range(MAX_HALVINGS):
        part = step / 2.0**halving
        variances = np.clip(point.variances + part[:n], 0.0, furthest)
        moved = np.append(variances - point.variances, part[n:])
        there = point.counts.at(variances, point.beta + part[n:], point.residual)
        expected = min(float(point.gradient @ moved), 0.0)
        if there.value <= point.value + ARMIJO * expected + ROUNDING * abs(point.value):
            return there
    return None


MAX_VARIANCE = 100.0


@dataclass(frozen=True, eq=False)
class LogitFit:
    """σ̂_T² on the logit scale, 0 on the boundary; without terms that have a level for each row."""

    model: MixedModel
    variances: FloatArray
    beta: FloatArray
    deviance: float
    dropped: tuple[str, ...]
    converged: bool
    message: str
    n_rows: int
    n_cells: int

    @property
    def random(self) -> str:
        """The terms that were fitted, as text."""
        return " + ".join(term.name for term in self.model.random)

    @property
    def components(self) -> dict[str, float]:
        """σ̂_T² by the term's name as typed."""
        names = (term.name for term in self.model.random)
        return dict(zip(names, self.variances.tolist(), strict=True))

    @property
    def fixed(self) -> dict[str, float]:
        """β̂ by name."""
        return dict(zip(self.model.fixed_names, self.beta.tolist(), strict=True))


def fit_logit(
    columns: Mapping[str, npt.ArrayLike], outcome: npt.ArrayLike, *, random: str, fixed: str = ""
) -> LogitFit:
    """Estimate variance components of outcomes 0 and 1 on the logit scale; arguments as of `reml.fit`."""
    y = checked_outcome(outcome)
    other = np.flatnonzero((y != 0.0) & (y != 1.0))
    if other.size:
        raise CoreError(
            f"row {other[0] + 1}: an outcome of {y[other[0]]:g}; the logit scale is for outcomes 0 and 1",
            code="not_binary",
        )
    if not y.size or y.min() == y.max():
        raise CoreError(f"all {y.size} outcomes are alike: there is no logit", code="outcome_constant")
    model, dropped = _without_rows(designed(columns, y.size, random, fixed), y.size)
    for term in (*model.fixed, *model.random):
        codes = model.groups(term.factors)
        share = np.bincount(codes, y) / np.bincount(codes)
        alone = (share == 0.0) | (share == 1.0)
        if term in model.fixed and alone.any():
            rows = np.flatnonzero(codes == alone.argmax())
            factors = [model.factors[name] for name in term.columns]
            labels = ":".join(factor.levels[factor.codes[rows[0]]] for factor in factors)
            raise CoreError(
                f"fixed {term.name}[{labels}]: all {rows.size} outcomes are {y[rows[0]]:g}, so that its "
                "effect on the logit scale is infinite",
                code="level_constant",
            )
        if alone.all():
            raise CoreError(
                f"{term.name}: outcomes of one level never differ, so that its variance has no bound",
                code="no_residual_noise",
            )
    check_groupings(model, [model.groups(term.factors) for term in model.random], y.size)
    check_fixed(model, model.rows(), [model.groups(term.factors) for term in model.random])
    with one_blas_thread():
        cells = cells_of(model.codes, model.n_levels, model.numbers(model.random), model.rows())
        successes = np.bincount(cells.of_row, y, cells.n_cells).astype(np.float64)
        point, converged, message = minimise(Counts(layout_of(cells), successes))
    # Refuse a standard deviation of more than 10 logits
    largest = point.variances.max()
    if largest > MAX_VARIANCE:
        name, sd = model.random[int(point.variances.argmax())].name, largest**0.5
        raise CoreError(
            f"{name}: a standard deviation of {sd:.0f} logits, as the terms tell nearly every outcome",
            code="not_estimable",
        )
    return LogitFit(
        model=model,
        variances=point.variances,
        beta=point.beta,
        deviance=point.value,
        dropped=dropped,
        converged=converged,
        message=message,
        n_rows=y.size,
        n_cells=cells.n_cells,
    )


def _without_rows(model: MixedModel, n_rows: int) -> tuple[MixedModel, tuple[str, ...]]:
    terms: list[Term] = []
    dropped: list[str] = []
    for term in model.random:
        if int(model.groups(term.factors).max()) + 1 == n_rows:
            dropped.append(term.name)
        else:
            terms.append(term)
    if not terms:
        raise CoreError(
            f"{', '.join(dropped)}: one row for each level, and no other random term", code="no_random_term"
        )
    return MixedModel(model.factors, tuple(terms), model.fixed, model.fixed_names), tuple(dropped)
