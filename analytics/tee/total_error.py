"""Total evaluation error of a study: a fit of its variance components, and what follows for the grand mean.

`by_stratum` fits each level of a facet on its own, for residuals that differ between levels.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Eqs. 1, 3 and 7, Appendices C.5, C.7, C.8 and K.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.reml import (
    FittedInterval,
    VarianceFit,
    check_level,
    degrees_of_freedom,
    fit,
    small_facets,
    theta_slopes,
)
from analytics.tee.components import FIXED, RESIDUAL, Component, Components
from analytics.tee.design import CROSSED, LETTERS, PANELS, WORDS, Declaration, DesignLayout, in_words, layout
from analytics.tee.dstudy import Projection, Reading, VarianceRow, counted_terms, project, variance_table

Columns = Mapping[str, npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class TotalError:
    """A study's components, and the error of its grand mean θ̂ in one reading.

    components: in the words of the terms; sensitivities as ``judge (fixed)``, ``temperature (fixed)``.
    projection: at the design's own levels.
    slopes: ∂SE²/∂σ_T² of the components that count.
    naive_se: s/√N of the item means.
    notes: what limits these figures.
    """

    layout: DesignLayout
    fit: VarianceFit
    components: Components
    reading: Reading
    projection: Projection
    slopes: Mapping[str, float]
    theta: float
    se: float
    naive_se: float
    notes: tuple[str, ...]

    @property
    def few_levels(self) -> tuple[str, ...]:
        """Letters of the random facets with so few levels that the interval is `conservative` for them."""
        words = frozenset[str]().union(*small_facets(self.fit, _slopes(self)))
        return tuple(letter for letter in "NVMH" if WORDS[letter] in words)

    def interval(
        self, level: float = 0.95, within: tuple[float, float] = (-math.inf, math.inf)
    ) -> FittedInterval:
        """Return θ̂ ± t·SE; its reading has a name for it.

        Sensitivities are taken as known; random judges are a small facet whose variance has M − 1 degrees of
        freedom. The normal quantile is for where nothing random is left in the variance.

        within: what θ can be; the ends are clipped to it.
        """
        check_level(level)
        slopes = _slopes(self)
        df, method = degrees_of_freedom(self.fit, slopes, self.projection.degrees_of_freedom)
        if df is not None and method == "satterthwaite":
            df *= (self.se**2 / float(slopes @ self.fit.parameters)) ** 2
        share = (1.0 + level) / 2.0
        half = float(ndtri(share) if df is None else stdtrit(df, share)) * self.se
        lower, upper = max(self.theta - half, within[0]), min(self.theta + half, within[1])
        return FittedInterval(self.theta, self.se, lower, upper, level, method, df)

    def table(self) -> tuple[VarianceRow, ...]:
        """Return the decomposition per observation, of Var(θ̂), and tier."""
        return variance_table(self.components, self.projection)


def total_error(columns: Columns, declaration: Declaration, reading: Reading | None = None) -> TotalError:
    """Fit the declared design, to valid trials only, and project its own levels."""
    reading = reading or Reading()
    design = layout(columns, declaration)
    design.check_reading(reading)
    outcome = outcome_of(columns, declaration)
    fitted = fit_layout(columns, outcome, design)
    components = components_of(fitted, design)
    projection = project(components, design.design, reading)
    terms = counted_terms(components, design.design, reading)
    slopes = {name: 1.0 / math.prod(design.design[letter] for letter in by) for name, _, by in terms}
    theta = float(fitted.contrast @ fitted.beta)
    if reading.estimand == "finite":
        # Return the weight of each row where items weigh the same, and in them the observed cells
        item, cell = _cells(columns, declaration, "N"), _cells(columns, declaration, CROSSED)
        _, first = np.unique(cell, return_index=True)
        n_cells, n_rows = np.bincount(item[first]), np.bincount(cell)
        weights = np.asarray(1.0 / (n_cells.size * n_cells[item] * n_rows[cell]), dtype=np.float64)
        theta = math.fsum(weights * outcome)
        # Return Σ_l w_l² over the levels of each term that counts; over rows for the residual
        facets = {entry.name: entry.facets for entry in components.entries}
        by_level = {
            name: weights
            if facets[name] == {"R"}
            else np.bincount(_cells(columns, declaration, facets[name]), weights)
            for name in slopes
        }
        slopes = {name: math.fsum(one**2) for name, one in by_level.items()}
        shares = {name: slopes[name] * variance for name, variance, _ in terms}
        projection = replace(projection, contributions=MappingProxyType(shares))
    return TotalError(
        layout=design,
        fit=fitted,
        components=components,
        reading=reading,
        projection=projection,
        slopes=MappingProxyType(slopes),
        theta=theta,
        se=math.sqrt(float(fitted.contrast @ fitted.beta_covariance @ fitted.contrast))
        if _is_fitted(design, reading)
        else projection.se,
        naive_se=naive_standard_error(np.asarray(columns[declaration.item]), outcome),
        notes=_notes(design, reading, fitted, columns),
    )


def components_of(fitted: VarianceFit, design: DesignLayout) -> Components:
    """Return a fit's components for the D-study, with the sensitivities of its fixed panels."""
    random = (
        Component(name, variance, frozenset(LETTERS[word] for word in name.split(":")))
        for name, variance in fitted.components.items()
    )
    residual = Component(RESIDUAL, fitted.residual, frozenset("R"))
    panels = (
        Component(WORDS[letter] + FIXED, sensitivity(fitted, WORDS[letter]), frozenset(letter), fixed=True)
        for letter in PANELS
        if WORDS[letter] in design.fixed
    )
    return Components((*random, residual, *panels), pooled=design.pooled, n_judges=design.levels["M"])


def sensitivity(fitted: VarianceFit, word: str) -> float:
    """Return the population variance of the effects of a panel, the base level being 0."""
    effects = [effect for name, effect in fitted.fixed.items() if name.startswith(f"{word}[")]
    return float(np.var([0.0, *effects]))


def naive_standard_error(items: npt.NDArray[np.generic], outcome: FloatArray) -> float:
    """Naive SE s/√N of the item means (TEE, Appendix K), of two items at least that differ."""
    _, code = np.unique(items, return_inverse=True)
    means = np.bincount(code, weights=outcome) / np.bincount(code)
    if means.size < 2:
        raise CoreError("a naive standard error needs two items", code="design")
    if np.ptp(means) == 0.0:
        raise CoreError(
            f"all {means.size} items have the mean outcome {means[0]:g}: no spread, no error", code="design"
        )
    return float(np.std(means, ddof=1) / math.sqrt(means.size))


def outcome_of(columns: Columns, declaration: Declaration) -> FloatArray:
    """Return the declared outcome, shape (n_rows,), all of it finite."""
    outcome = np.asarray(columns[declaration.outcome], dtype=np.float64)
    if not np.isfinite(outcome).all():
        raise CoreError(
            f"row {int(np.argmin(np.isfinite(outcome)))}: the outcome is not a finite number", code="design"
        )
    return outcome


def fit_layout(columns: Columns, outcome: FloatArray, design: DesignLayout) -> VarianceFit:
    """Fit the terms of a layout by REML."""
    words = in_words(columns, design.declaration)
    return fit(words, outcome, random=" + ".join(design.random), fixed=" + ".join(design.fixed))


def _is_fitted(design: DesignLayout, reading: Reading) -> bool:
    categories_agree = reading.categories == "sampled" or "category" not in design.random
    return categories_agree and replace(reading, categories="fixed") == Reading()


def _slopes(study: TotalError) -> FloatArray:
    """∂Var(θ̂)/∂φ in the order of the fit, residual last: one over the divisor, 0 for terms left out."""
    if _is_fitted(study.layout, study.reading):
        return theta_slopes(study.fit)
    return np.array([study.slopes.get(name, 0.0) for name in study.fit.names])


def _cells(columns: Columns, declaration: Declaration, letters: Iterable[str]) -> npt.NDArray[np.int64]:
    declared = declaration.facets()
    code = np.zeros(np.asarray(columns[declaration.outcome]).size, np.int64)
    for letter in sorted(set(letters) & set(declared)):
        labels, mine = np.unique(np.asarray(columns[declared[letter]]), return_inverse=True)
        code = code * labels.size + mine
    return np.unique(code, return_inverse=True)[1].astype(np.int64)


def _notes(design: DesignLayout, reading: Reading, fitted: VarianceFit, columns: Columns) -> tuple[str, ...]:
    notes = [f"not measured: {what}" for what in design.not_measured]
    if fitted.boundary:
        notes.append(f"estimated as exactly 0: {', '.join(fitted.boundary)}")
    if reading.estimand == "finite":
        n_cells = math.prod(design.levels[letter] for letter in CROSSED)
        lacks = int(_cells(columns, design.declaration, CROSSED).max()) + 1 < n_cells
        if design.fixed and lacks:
            notes.append(
                f"cells are missing: the levels of {' and '.join(design.fixed)} do not weigh the same"
            )
    elif not (design.balanced or _is_fitted(design, reading)):
        notes.append("cells are missing or unequal: Var(θ̂) is that of the full design")
    if design.pooled and reading.estimand == "finite":
        notes.append("the pooled residual may hold item variance, too: an upper bound")
    return tuple(notes)


def by_stratum(
    columns: Columns, declaration: Declaration, facet: str = "temperature"
) -> tuple[dict[str, VarianceFit], tuple[str, ...]]:
    """Fit each level of a facet alone (TEE, C.7); return the fits by level, and why others were refused."""
    column = declaration.facets().get(LETTERS.get(facet, ""))
    if column is None or facet == "item":
        raise CoreError(f"no column is declared for strata by {facet}", code="design")
    fits: dict[str, VarianceFit] = {}
    left_out: list[str] = []
    for level in np.unique(np.asarray(columns[column])):
        rows = np.asarray(columns[column]) == level
        part = {name: np.asarray(values)[rows] for name, values in columns.items()}
        try:
            fits[str(level)] = fit_layout(part, outcome_of(part, declaration), layout(part, declaration))
        except CoreError as refusal:
            left_out.append(f"{facet} {level}: {refusal}")
    if not fits:
        raise CoreError(f"no level of {facet} can be fitted ({'; '.join(left_out[:3])})", code="design")
    return fits, tuple(left_out)


def with_residual(components: Components, residual: float) -> Components:
    """Return the components with σ̄² in the place of the residual (TEE, Eq. 3)."""
    entries = (
        replace(entry, variance=residual) if entry.facets == {"R"} else entry for entry in components.entries
    )
    return replace(components, entries=tuple(entries))
