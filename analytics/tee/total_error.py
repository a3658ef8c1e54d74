"""Total evaluation error of a study: a fit of its variance components, and what follows for the grand mean.

Model
-----
The random terms and fixed effects that follow from the declared design (`analytics.tee.design`) are fitted by
REML (`analytics.reml.fitting`); the D-study (`analytics.tee.dstudy`) turns the components into Var(θ̂) of the
grand mean θ̂, every level of judge and temperature weighing the same. The sensitivity of a panel of M judges
is the population variance of its fitted effects::

    σ_λ² = Σ_m (λ̂_m − mean λ̂)²/M

Under ``domain`` and ``exclude`` SE² is c'Cov(β̂)c of the fit, right for missing cells, too, and equal to the
D-study's Var(θ̂) where the design is balanced. Other readings, fixed categories among them (a fit has random
ones), are projected at the design's levels. Beside it stands the naive s/√N of the item means.

Degrees of freedom follow `analytics.reml.fixed_effects`: the smallest (levels − 1) of small random facets,
else Satterthwaite's ν; sensitivities σ_λ²/M count as known, so that ν grows by (SE²/random part)².

*Naive against TEE* (TEE, Appendix K): for each pipeline a researcher might have picked alone (a prompt, a
judge, a temperature), the intervals ȳ ± z·s/√N and ȳ ± z·√Var(V = 1, M = 1, H = 1), the ratio of their
widths, and how many of either cover the grand mean of the full factorial.

Symbols
-------
====================  ==============================  ================================  =========
symbol                code                            shape                             unit
====================  ==============================  ================================  =========
θ̂                     ``theta``                       scalar                            outcome
SE                    ``se``                          scalar                            outcome
s/√N                  ``naive_se``                    scalar                            outcome
σ_λ², σ_τ²            ``Component`` with ``fixed``    scalar                            outcome²
σ̄²                    ``Strata.mean_residual``        scalar                            outcome²
====================  ==============================  ================================  =========

Not done here
-------------
The sensitivities are those of estimated effects, so that noise in λ̂ makes them a little large. A fit is not
searched for the right model: the terms are the declared ones. No logit check of binary outcomes.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, Eqs. 1, 3 and 7, Appendices C.5, C.7, C.8 and K.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.reml.fitting import fit
from analytics.reml.fixed_effects import satterthwaite_df, small_facets
from analytics.reml.variance_components import VarianceFit, check_level
from analytics.tee.design import PANELS, WORDS, Declaration, DesignRefused, Layout, in_words, layout
from analytics.tee.dstudy import (
    FIXED,
    RESIDUAL,
    Component,
    Components,
    Intervention,
    Projection,
    Reading,
    VarianceRow,
    counted_terms,
    interventions,
    project,
    variance_table,
)

Columns = Mapping[str, npt.ArrayLike]

LETTERS = {word: letter for letter, word in WORDS.items()}


@dataclass(frozen=True)
class ThetaInterval:
    """An interval of the grand mean.

    Attributes
    ----------
    name : {"confidence interval", "design-sensitivity interval"}
    estimate, standard_error, lower, upper : float
        In the unit of the outcome.
    df : float or None
        Of the t quantile; None for the normal one, where nothing random is left in the variance.
    level : float
    method : {"conservative", "satterthwaite", "normal"}
    """

    name: str
    estimate: float
    standard_error: float
    lower: float
    upper: float
    df: float | None
    level: float
    method: str


@dataclass(frozen=True, eq=False)
class TotalError:
    """A study's components, and the error of its grand mean in one reading.

    Attributes
    ----------
    layout : Layout
    fit : VarianceFit
    components : Components
        In the words of the terms; sensitivities as ``judge (fixed)``, ``temperature (fixed)``.
    reading : Reading
    projection : Projection
        At the design's own levels.
    theta : float
        θ̂.
    se : float
        Of θ̂ in the reading.
    naive_se : float
        s/√N of the item means.
    notes : tuple of str
        What limits these figures.
    """

    layout: Layout
    fit: VarianceFit
    components: Components
    reading: Reading
    projection: Projection
    theta: float
    se: float
    naive_se: float
    notes: tuple[str, ...]

    @property
    def se_ratio(self) -> float:
        """SE over naive SE."""
        return self.se / self.naive_se

    def interval(self, level: float = 0.95) -> ThetaInterval:
        """Return θ̂ ± t·SE, named after the reading.

        Parameters
        ----------
        level : float

        Raises
        ------
        LevelRefused
        """
        check_level(level)
        df, method = _degrees_of_freedom(self)
        upper = (1.0 + level) / 2.0
        half = float(ndtri(upper) if df is None else stdtrit(df, upper)) * self.se
        name = self.reading.interval_name
        return ThetaInterval(
            name, self.theta, self.se, self.theta - half, self.theta + half, df, level, method
        )

    def table(self) -> tuple[VarianceRow, ...]:
        """Return the decomposition per observation, of Var(θ̂), and tier."""
        return variance_table(self.components, self.projection)

    def interventions(self) -> tuple[Intervention, ...]:
        """Return the one-step changes of the design as it stands."""
        return interventions(self.components, self.layout.design, self.reading)


def total_error(columns: Columns, declaration: Declaration, reading: Reading | None = None) -> TotalError:
    """Fit the declared design and project its own levels.

    Parameters
    ----------
    columns : mapping of str to array, shape (n_rows,)
        Valid trials only.
    declaration : Declaration
    reading : Reading, optional
        ``Reading()``: domain, exclude.

    Raises
    ------
    DesignRefused, DStudyRefused, and the refusals of `analytics.reml.fitting`
    """
    reading = reading or Reading()
    found = layout(columns, declaration)
    found.check_reading(reading)
    outcome = _outcome(columns, declaration)
    fitted = _fit(columns, outcome, found)
    components = components_of(fitted, found)
    projection = project(components, found.design, reading)
    return TotalError(
        layout=found,
        fit=fitted,
        components=components,
        reading=reading,
        projection=projection,
        theta=float(fitted.contrast @ fitted.beta),
        se=_standard_error(fitted, found, projection),
        naive_se=naive_standard_error(np.asarray(columns[declaration.item]), outcome),
        notes=_notes(found, reading, fitted),
    )


def components_of(fitted: VarianceFit, found: Layout) -> Components:
    """Return a fit's components for the D-study, with the sensitivities of its fixed panels.

    Parameters
    ----------
    fitted : VarianceFit
        Of the terms of `found`.
    found : Layout
    """
    random = (
        Component(name, variance, frozenset(LETTERS[word] for word in name.split(":")))
        for name, variance in fitted.components.items()
    )
    residual = Component(RESIDUAL, fitted.residual, frozenset("R"))
    panels = (
        Component(WORDS[letter] + FIXED, sensitivity(fitted, WORDS[letter]), frozenset(letter), fixed=True)
        for letter in PANELS
        if WORDS[letter] in found.fixed
    )
    return Components((*random, residual, *panels), pooled=found.pooled, n_judges=found.levels["M"])


def sensitivity(fitted: VarianceFit, word: str) -> float:
    """Return the population variance of a panel's effects: the base level 0, the others by contrast.

    Parameters
    ----------
    fitted : VarianceFit
    word : str
        "judge" or "temperature", a fixed effect of the fit.
    """
    effects = [effect for name, effect in fitted.fixed.items() if name.startswith(f"{word}[")]
    return float(np.var([0.0, *effects]))


def naive_standard_error(items: npt.NDArray[np.generic], outcome: FloatArray) -> float:
    """Naive standard error s/√N of the item means (TEE, Appendix K).

    Parameters
    ----------
    items : array, shape (n_rows,)
    outcome : float array, shape (n_rows,)

    Raises
    ------
    DesignRefused
        Under two items, or where all item means are equal: there is no naive error to compare with.
    """
    _, code = np.unique(items, return_inverse=True)
    means = np.bincount(code, weights=outcome) / np.bincount(code)
    if means.size < 2:
        raise DesignRefused("a naive standard error needs two items")
    if np.ptp(means) == 0.0:
        raise DesignRefused(f"all {means.size} items have the mean outcome {means[0]:g}: no spread, no error")
    return float(np.std(means, ddof=1) / math.sqrt(means.size))


# ------------------------------------------------------------------------------------ naive against TEE


@dataclass(frozen=True)
class Pipeline:
    """One single-configuration pipeline: its levels, mean, both standard errors, and what they cover."""

    levels: Mapping[str, object]
    mean: float
    naive_se: float
    tee_se: float
    naive_covers: bool
    tee_covers: bool


@dataclass(frozen=True)
class NaiveAgainstTEE:
    """Every single-configuration pipeline of a study against its grand mean.

    Attributes
    ----------
    pipelines : tuple of Pipeline
    left_out : tuple of str
        Pipelines without an error of their own, and why.
    target : float
        Grand mean of the full factorial.
    """

    pipelines: tuple[Pipeline, ...]
    left_out: tuple[str, ...]
    target: float

    @property
    def width_ratio(self) -> float:
        """Naive width over TEE width, mean over pipelines."""
        return float(np.mean([pipeline.naive_se / pipeline.tee_se for pipeline in self.pipelines]))

    @property
    def naive_coverage(self) -> float:
        """Share of naive intervals that cover the target."""
        return float(np.mean([pipeline.naive_covers for pipeline in self.pipelines]))

    @property
    def tee_coverage(self) -> float:
        """Share of TEE intervals that cover the target."""
        return float(np.mean([pipeline.tee_covers for pipeline in self.pipelines]))


def naive_against_tee(columns: Columns, study: TotalError, level: float = 0.95) -> NaiveAgainstTEE:
    """Compare the naive and the TEE interval of each single-configuration pipeline.

    Parameters
    ----------
    columns : mapping of str to array, shape (n_rows,)
        Those the study was made from.
    study : TotalError
        Its reading is that of the TEE standard error: the published comparison has ``exclude``; with
        ``include`` the choice of judge and temperature counts, as the target asks.
    level : float
        Nominal coverage; normal quantile.

    Raises
    ------
    DesignRefused
        When no pipeline has an error of its own, or `level` is not inside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise DesignRefused(f"a level lies inside (0, 1), not at {level}")
    alone = study.layout.design | {"V": 1, "M": 1, "H": 1}
    tee_se = project(study.components, alone, study.reading).se
    z = float(ndtri((1.0 + level) / 2.0))
    pipelines: list[Pipeline] = []
    left_out: list[str] = []
    for levels, items, outcome in _pipelines(columns, study.layout.declaration):
        try:
            naive_se = naive_standard_error(items, outcome)
        except DesignRefused as refusal:
            left_out.append(f"{_named(levels)}: {refusal}")
            continue
        pipelines.append(_pipeline(levels, _item_mean(items, outcome), naive_se, tee_se, study.theta, z))
    if not pipelines:
        raise DesignRefused(f"no pipeline has an error of its own ({'; '.join(left_out[:3])})")
    return NaiveAgainstTEE(tuple(pipelines), tuple(left_out), study.theta)


# ------------------------------------------------------------------------------- heteroscedastic residuals


@dataclass(frozen=True)
class Strata:
    """Components of a separate fit in each level of one facet.

    Attributes
    ----------
    facet : str
    residuals : mapping of str to float
        Level → σ̂_ρ².
    components : mapping of str to mapping of str to float
        Level → term → σ̂_T².
    left_out : tuple of str
        Levels whose fit was refused, and why.
    """

    facet: str
    residuals: Mapping[str, float]
    components: Mapping[str, Mapping[str, float]]
    left_out: tuple[str, ...]

    @property
    def mean_residual(self) -> float:
        """σ̄², the mean over levels, each weighing the same."""
        return math.fsum(self.residuals.values()) / len(self.residuals)


def by_stratum(columns: Columns, declaration: Declaration, facet: str = "temperature") -> Strata:
    """Fit each level of a facet on its own, for residuals that differ between levels (TEE, C.7).

    Parameters
    ----------
    columns : mapping of str to array, shape (n_rows,)
    declaration : Declaration
    facet : {"temperature", "judge", "prompt", "category"}

    Raises
    ------
    DesignRefused
        When the facet is not declared, or no level can be fitted.
    """
    column = declaration.facets().get(LETTERS.get(facet, ""))
    if column is None or facet == "item":
        raise DesignRefused(f"no column is declared for strata by {facet}")
    fits: dict[str, VarianceFit] = {}
    left_out: list[str] = []
    for level in np.unique(np.asarray(columns[column])):
        rows = np.asarray(columns[column]) == level
        part = {name: np.asarray(values)[rows] for name, values in columns.items()}
        try:
            fits[str(level)] = _fit(part, _outcome(part, declaration), layout(part, declaration))
        except CoreError as refusal:
            left_out.append(f"{facet} {level}: {refusal}")
    if not fits:
        raise DesignRefused(f"no level of {facet} can be fitted ({'; '.join(left_out[:3])})")
    return Strata(
        facet=facet,
        residuals={level: fitted.residual for level, fitted in fits.items()},
        components={level: fitted.components for level, fitted in fits.items()},
        left_out=tuple(left_out),
    )


def with_residual(components: Components, residual: float) -> Components:
    """Return the components with σ̄² in the place of the residual (TEE, Eq. 3)."""
    entries = (
        replace(entry, variance=residual) if entry.facets == {"R"} else entry for entry in components.entries
    )
    return replace(components, entries=tuple(entries))


# ------------------------------------------------------------------------------------------------ adapters


def _outcome(columns: Columns, declaration: Declaration) -> FloatArray:
    outcome = np.asarray(columns[declaration.outcome], dtype=np.float64)
    if not np.isfinite(outcome).all():
        raise DesignRefused(f"row {int(np.argmin(np.isfinite(outcome)))}: the outcome is not a finite number")
    return outcome


def _fit(columns: Columns, outcome: FloatArray, found: Layout) -> VarianceFit:
    words = in_words(columns, found.declaration)
    return fit(words, outcome, random=" + ".join(found.random), fixed=" + ".join(found.fixed))


def _is_fitted(found: Layout, reading: Reading) -> bool:
    """Whether the reading is the fit's own: its categories, where there are any, are random effects."""
    categories_agree = reading.categories == "sampled" or "category" not in found.random
    return categories_agree and replace(reading, categories="fixed") == Reading()


def _standard_error(fitted: VarianceFit, found: Layout, projection: Projection) -> float:
    if _is_fitted(found, projection.reading):
        return math.sqrt(float(fitted.contrast @ fitted.beta_covariance @ fitted.contrast))
    return projection.se


def _slopes(study: TotalError) -> FloatArray:
    """∂Var(θ̂)/∂φ in the order of the fit, residual last: one over the divisor, 0 for terms left out."""
    if _is_fitted(study.layout, study.reading):
        by_component = study.fit.likelihood.covariance_slopes(study.fit.parameters)
        contrast = study.fit.contrast
        return np.asarray(np.einsum("i,tij,j->t", contrast, by_component, contrast))
    design = study.layout.design
    terms = counted_terms(study.components, design, study.reading)
    divisors = {term.name: math.prod(design[letter] for letter in term.facets) for term in terms}
    return np.array([1.0 / divisors[name] if name in divisors else 0.0 for name in study.fit.names])


def _degrees_of_freedom(study: TotalError) -> tuple[float | None, str]:
    """Degrees of freedom by the rule of `analytics.reml.fixed_effects`, sensitivities taken as known.

    Random judges are a small facet whose variance has M − 1 degrees of freedom.
    """
    slopes = _slopes(study)
    random = float(slopes @ study.fit.parameters)
    few = [facet.n_levels - 1 for facet in small_facets(study.fit, slopes)]
    if study.projection.degrees_of_freedom is not None:
        few.append(study.projection.degrees_of_freedom)
    if few:
        return float(min(few)), "conservative"
    if random == 0.0:
        return None, "normal"
    return satterthwaite_df(study.fit, slopes) * (study.se**2 / random) ** 2, "satterthwaite"


def _notes(found: Layout, reading: Reading, fitted: VarianceFit) -> tuple[str, ...]:
    notes = [f"not measured: {what}" for what in found.not_measured]
    if fitted.boundary:
        notes.append(f"estimated as exactly 0: {', '.join(fitted.boundary)}")
    if not (found.balanced or _is_fitted(found, reading)):
        notes.append("cells are missing or unequal: Var(θ̂) is that of the full design")
    if found.pooled and reading.estimand == "finite":
        notes.append("the pooled residual may hold item variance, too: an upper bound")
    return tuple(notes)


def _pipelines(
    columns: Columns, declaration: Declaration
) -> Iterator[tuple[dict[str, object], npt.NDArray[np.generic], FloatArray]]:
    """Levels, items and outcomes of every combination of prompt, judge and temperature that occurs."""
    facets = {WORDS[f]: column for f, column in declaration.facets().items() if f in ("V", "M", "H")}
    labels = {word: np.asarray(columns[column]) for word, column in facets.items()}
    items, outcome = np.asarray(columns[declaration.item]), _outcome(columns, declaration)
    for combination in product(*(np.unique(values) for values in labels.values())):
        levels = dict(zip(labels, combination, strict=True))
        rows = np.ones(outcome.shape, dtype=np.bool_)
        for word, level in levels.items():
            rows &= labels[word] == level
        if rows.any():
            yield levels, items[rows], outcome[rows]


def _item_mean(items: npt.NDArray[np.generic], outcome: FloatArray) -> float:
    _, code = np.unique(items, return_inverse=True)
    return float(np.mean(np.bincount(code, weights=outcome) / np.bincount(code)))


def _pipeline(
    levels: Mapping[str, object], mean: float, naive_se: float, tee_se: float, target: float, z: float
) -> Pipeline:
    distance = abs(mean - target)
    return Pipeline(levels, mean, naive_se, tee_se, distance <= z * naive_se, distance <= z * tee_se)


def _named(levels: Mapping[str, object]) -> str:
    return ", ".join(f"{word} {level}" for word, level in levels.items()) or "the only pipeline"
