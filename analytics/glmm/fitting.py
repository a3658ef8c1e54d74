"""A logit model with crossed random effects: the one entry, `fit_logit`, and what it refuses.

Source: as in the package.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
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

    model: without the terms that were dropped, those with a level for each row.
    variances: (n_terms,); σ̂_T², at least 0, exactly 0 on the boundary; squared logits.
    deviance: glmer's, with nAGQ = 1, of the counts in each cell.
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
