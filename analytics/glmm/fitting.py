"""A logit model with crossed random effects: the one entry, `fit_logit`, and what it refuses.

Source: as in the package.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray
from analytics.errors import CoreError
from analytics.glmm.laplace import Counts
from analytics.glmm.layout import layout_of
from analytics.glmm.optimum import minimise
from analytics.programs import one_blas_thread
from analytics.reml.formula import Term
from analytics.reml.model import MixedModel, check_fixed, check_groupings, checked_outcome, designed
from analytics.reml.sparse.cells import cells_of

MAX_VARIANCE = 100.0


@dataclass(frozen=True, eq=False)
class LogitFit:
    """Variance components on the logit scale.

    model: without the terms that were dropped.
    variances: (n_terms,); σ̂_T², at least 0, exactly 0 on the boundary; squared logits.
    beta: (p,).
    deviance: glmer's, with nAGQ = 1, of the counts in each cell.
    dropped: random terms with a level for each row.
    message: how the search ended.
    """

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
    """Estimate variance components of outcomes 0 and 1 on the logit scale.

    columns: labels; only the columns that the terms name are looked at, and each is a factor.
    outcome: (n_rows,).
    random: random terms, such as ``item + prompt + item:prompt``.
    fixed: fixed terms beside the intercept.
    Raises CoreError, FitRefused.
    """
    y = _binary(outcome)
    model, dropped = _without_rows(designed(columns, y.size, random, fixed), y.size)
    _check_levels(model, y)
    _check_noise(model, y)
    check_groupings(model, [model.groups(term.factors) for term in model.random], y.size)
    check_fixed(model, model.rows(), [model.groups(term.factors) for term in model.random])
    with one_blas_thread():
        cells = cells_of(model.codes, model.n_levels, model.numbers(model.random), model.rows())
        successes = np.bincount(cells.of_row, y, cells.n_cells).astype(np.float64)
        optimum = minimise(Counts(layout_of(cells), successes))
    # Refuse a standard deviation of more than 10 logits
    if optimum.point.variances.max() > MAX_VARIANCE:
        name, sd = (
            model.random[int(optimum.point.variances.argmax())].name,
            optimum.point.variances.max() ** 0.5,
        )
        raise CoreError(
            f"{name}: a standard deviation of {sd:.0f} logits, as the terms tell nearly every outcome",
            code="not_estimable",
        )
    return LogitFit(
        model=model,
        variances=optimum.point.variances,
        beta=optimum.point.beta,
        deviance=optimum.point.value,
        dropped=dropped,
        converged=optimum.converged,
        message=optimum.message,
        n_rows=y.size,
        n_cells=cells.n_cells,
    )


def _binary(outcome: npt.ArrayLike) -> FloatArray:
    y = checked_outcome(outcome)
    other = np.flatnonzero((y != 0.0) & (y != 1.0))
    if other.size:
        raise CoreError(
            f"row {other[0] + 1}: an outcome of {y[other[0]]:g}; the logit scale is for outcomes 0 and 1",
            code="not_binary",
        )
    if not y.size or y.min() == y.max():
        raise CoreError(f"all {y.size} outcomes are alike: there is no logit", code="outcome_constant")
    return y


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


def _check_levels(model: MixedModel, y: FloatArray) -> None:
    for term in model.fixed:
        codes = model.groups(term.factors)
        share = np.bincount(codes, y) / np.bincount(codes)
        alone = np.flatnonzero((share == 0.0) | (share == 1.0))
        if alone.size:
            raise CoreError(_constant_level(model, term, codes, int(alone[0]), y), code="level_constant")


def _check_noise(model: MixedModel, y: FloatArray) -> None:
    for term in model.random:
        codes = model.groups(term.factors)
        share = np.bincount(codes, y) / np.bincount(codes)
        if np.all((share == 0.0) | (share == 1.0)):
            raise CoreError(
                f"{term.name}: outcomes of one level never differ, so that its variance has no bound",
                code="no_residual_noise",
            )


def _constant_level(model: MixedModel, term: Term, codes: CodeArray, level: int, y: FloatArray) -> str:
    rows = np.flatnonzero(codes == level)
    labels = (model.factors[name].levels[model.factors[name].codes[rows[0]]] for name in term.columns)
    return (
        f"fixed {term.name}[{':'.join(labels)}]: all {rows.size} outcomes are {y[rows[0]]:g}, so that its "
        "effect on the logit scale is infinite"
    )
