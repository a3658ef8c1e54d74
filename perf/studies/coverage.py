"""How often a nominal 95% interval covers: the coverage study of naive and richer standard errors.

Model
-----
Outcomes of N items under V prompts, M judges, H temperatures and R replicates follow the balanced crossed
model with normal random effects; judge and temperature are fixed panels of three levels, of which a design
with one level draws one at random. Each scenario estimates components by REML ≥ 0 and covers when::

    |ȳ − μ| ≤ z·√Var̂(ȳ),        Var̂(ȳ) = Σ_T σ̂_T² / Π_{f in T} L_f

over the terms T it fits. Nothing is simulated per outcome: in a balanced normal design ȳ and the mean squares
MS_s of the strata s (sets of facets with more than one level) are sufficient and independent, ::

    ȳ ~ N(μ + λ_m + τ_h, Σ_T σ_T²/Π_f L_f)        df_s·MS_s ~ λ_s·χ²(df_s, δ_s)
    λ_s = Σ_{T ⊇ s} σ_T²·n/Π_{f in T} L_f         δ_s = n·var(panel)/λ_s for s = judge or temperature

so that they are drawn as such. Strata that a scenario does not fit are pooled into its residual. REML
minimises Σ_s df_s (log λ_s + MS_s/λ_s) with λ = A·σ², σ² ≥ 0, A_sT = n/Π_{f in T} L_f where s ⊆ T, else 0
(`analytics.reml.strata.optimise_many`).

Symbols
-------
=============================  =======================  ===================================  =========
symbol                         code                     shape                                unit
=============================  =======================  ===================================  =========
σ_T²                           ``Truth.variances``      term → scalar                        outcome²
λ_m, τ_h                       ``Truth.panel``          (3,)                                 outcome
L_f; n                         ``levels``               letter → count; their product        levels
MS_s, df_s                     ``mean_squares``, ``df``  (n_strata, n_draws); (n_strata,)    outcome²
A                              ``nested * scales``      (n_strata, n_strata)                 1
Var̂(ȳ)                         ``variance``             (n_draws,)                           outcome²
=============================  =======================  ===================================  =========

Not done here
-------------
No outcome that is not normal, no unbalanced design. The category variance of the published model acts as a
part of the item's (its number of categories is not published; so read, scenario A gives the published
figures). One interval for each scenario; those for real data are in `analytics`.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, Appendix E.4, Tables 8 and 9, Figure 1. Searle, Casella
& McCulloch, *Variance Components*, 1992, ch. 4 (distribution of the mean squares).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import ndtri, stdtrit

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.reml.strata import optimise_many

Term = frozenset[str]

N_ITEMS = (20, 50, 100, 200, 500, 1_000, 2_000)
PANEL_FACETS = ("M", "H")


class CoverageRefused(CoreError):
    """A coverage study was asked for with sizes it cannot have, or its fit did not converge."""


@dataclass(frozen=True)
class Truth:
    """The model that outcomes are drawn from.

    Parameters
    ----------
    variances : mapping of frozenset of str to float
        σ_T² by the letters of its facets N V M H; {"R"} the residual.
    panel : tuple of float
        Effects of the three judges, and of the three temperatures; mean 0.
    """

    variances: Mapping[Term, float]
    panel: tuple[float, ...]


def _variances(**variances: float) -> Mapping[Term, float]:
    return MappingProxyType({frozenset(letters): variance for letters, variance in variances.items()})


#: Messing, Table 8; item .04 and category .015 as one.
PUBLISHED = Truth(
    _variances(N=0.055, V=0.015, NV=0.008, NH=0.008, NM=0.02, VH=0.003, VM=0.003, R=0.03), (-0.15, 0.0, 0.15)
)


@dataclass(frozen=True)
class Scenario:
    """What is sampled beside the items, and which terms are fitted.

    Parameters
    ----------
    name, summary : str
    levels : mapping of str to int
        V, M, H, R.
    fitted : tuple of frozenset of str
        Random terms beside the residual.
    exclude : bool
        Condition on the panels: judge and temperature strata are set aside.
    quantile : {"z", "t"}
        Normal, or t with V − 1 degrees of freedom.
    """

    name: str
    summary: str
    levels: Mapping[str, int]
    fitted: tuple[Term, ...]
    exclude: bool = False
    quantile: Literal["z", "t"] = "z"


def _scenario(name: str, summary: str, levels: tuple[int, int, int, int], fitted: str) -> Scenario:
    terms = tuple(frozenset(letters) for letters in fitted.split())
    return Scenario(name, summary, MappingProxyType(dict(zip("VMHR", levels, strict=True))), terms)


#: Messing, Table 9, and the interval that conditions on the panels.
SCENARIOS = (
    _scenario("A", "naive: s/√N", (1, 1, 1, 1), ""),
    _scenario("B", "+ prompt", (3, 1, 1, 5), "N V"),
    _scenario("C", "+ judge", (3, 3, 1, 5), "N V M"),
    _scenario("D", "+ temperature", (3, 3, 3, 5), "N V M H"),
    _scenario("E", "+ prompt:judge, prompt:temperature", (3, 3, 3, 5), "N V M H VM VH"),
    Scenario(
        "E*",
        "panels excluded, t(V − 1)",
        MappingProxyType({"V": 3, "M": 3, "H": 3, "R": 5}),
        (frozenset("N"), frozenset("V")),
        exclude=True,
        quantile="t",
    ),
)


class Coverage(NamedTuple):
    """Coverage of one scenario at one number of items; `coverage` and `mc_se` from 0 to 1."""

    scenario: str
    n_items: int
    coverage: float
    mc_se: float


def coverage(
    rng: Generator,
    scenario: Scenario,
    n_items: int,
    *,
    n_draws: int = 1_000,
    level: float = 0.95,
    truth: Truth = PUBLISHED,
) -> Coverage:
    """Simulate the coverage of the grand mean's interval.

    Parameters
    ----------
    rng : numpy.random.Generator
    scenario : Scenario
    n_items : int
        N, at least 2.
    n_draws : int
        Replicates, at least 1.
    level : float
        Nominal coverage.
    truth : Truth

    Raises
    ------
    CoverageRefused
    """
    if n_items < 2 or n_draws < 1 or not 0.0 < level < 1.0:
        raise CoverageRefused(
            f"{n_items} items, {n_draws} draws, level {level}: at least 2, 1, inside (0, 1)"
        )
    layout = Layout(truth, {"N": n_items, **scenario.levels})
    deviation = _draw_mean(rng, layout, n_draws)
    mean_squares = draw_mean_squares(rng, layout, n_draws)
    se = np.sqrt(estimated_variance(layout, scenario, mean_squares))
    covered = np.mean(np.abs(deviation) <= _quantile(scenario, level) * se)
    mc_se = math.sqrt(covered * (1.0 - covered) / n_draws)
    return Coverage(scenario.name, n_items, float(covered), mc_se)


def coverage_table(seed: int, *, n_draws: int = 1_000) -> tuple[Coverage, ...]:
    """Simulate every scenario at every number of items; draws depend on (seed, scenario, N) alone."""
    return tuple(
        coverage(np.random.default_rng([seed, place, n_items]), scenario, n_items, n_draws=n_draws)
        for place, scenario in enumerate(SCENARIOS)
        for n_items in N_ITEMS
    )


# ------------------------------------------------------------------------------------- mean and mean squares


@dataclass(frozen=True)
class Layout:
    """A balanced design: its strata, their degrees of freedom and expected mean squares.

    Items may lie in C categories of equal size: the stratum {"C"} is between their means, {"N"} within them.
    """

    truth: Truth
    levels: Mapping[str, int]
    crossed: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        crossed = tuple(letter for letter in "NVMH" if self.levels[letter] > 1)
        object.__setattr__(self, "crossed", crossed)

    @cached_property
    def n_outcomes(self) -> int:
        """Return n, the product of all levels."""
        return math.prod(self.levels[letter] for letter in "NVMHR")

    @cached_property
    def strata(self) -> tuple[Term, ...]:
        """Return the non-empty sets of crossed facets, and {"R"} for replicates where there are any."""
        crossed = (
            frozenset(subset)
            for k in range(len(self.crossed))
            for subset in combinations(self.crossed, k + 1)
        )
        rest = [letter for letter in "CR" if self.levels.get(letter, 1) > 1]
        return (*crossed, *map(frozenset, rest))

    @cached_property
    def df(self) -> FloatArray:
        """Return the degrees of freedom of the strata, shape (n_strata,)."""
        return np.array([self._df(stratum) for stratum in self.strata], dtype=np.float64)

    def per_level(self, term: Term) -> float:
        """Return n/Π_{f in T} L_f, the outcomes that share one level of the term; 1 for the residual."""
        return self.n_outcomes / self.divisor(term)

    def divisor(self, term: Term) -> int:
        """Return Π_{f in T} L_f; n for the residual."""
        return self.n_outcomes if "R" in term else math.prod(self.levels[f] for f in term)

    def expected(self, stratum: Term) -> float:
        """Return λ_s = Σ_{T ⊇ s} σ_T²·n/Π_{f in T} L_f; the residual is in every stratum."""
        return math.fsum(
            variance * self.per_level(term)
            for term, variance in self.truth.variances.items()
            if inside(stratum, term)
        )

    def _df(self, stratum: Term) -> int:
        n_categories = self.levels.get("C", 1)
        if "R" in stratum:
            return self.n_outcomes // self.levels["R"] * (self.levels["R"] - 1)
        if stratum == {"N"}:
            return self.levels["N"] - n_categories
        if stratum == {"C"}:
            return n_categories - 1
        return math.prod(self.levels[f] - 1 for f in stratum)


def inside(stratum: Term, term: Term) -> bool:
    """Whether a term's effects add to a stratum: the residual's always, an item's between categories, too."""
    return "R" in term or stratum <= term or (stratum == {"C"} and "N" in term)


def _draw_mean(rng: Generator, layout: Layout, n_draws: int) -> FloatArray:
    """ȳ − μ, shape (n_draws,)."""
    variance = math.fsum(variance / layout.divisor(term) for term, variance in layout.truth.variances.items())
    deviation = math.sqrt(variance) * rng.standard_normal(n_draws)
    for facet in PANEL_FACETS:
        if layout.levels[facet] == 1:
            deviation += rng.choice(layout.truth.panel, size=n_draws)
    return np.asarray(deviation)


def draw_mean_squares(rng: Generator, layout: Layout, n_draws: int) -> FloatArray:
    """MS_s = λ_s·χ²(df_s, δ_s)/df_s, shape (n_strata, n_draws)."""
    rows = [_chi_square(rng, layout, place, n_draws) for place in range(len(layout.strata))]
    return np.array(rows) / layout.df[:, None]


def _chi_square(rng: Generator, layout: Layout, place: int, n_draws: int) -> FloatArray:
    stratum, df = layout.strata[place], layout.df[place]
    expected = layout.expected(stratum)
    if stratum in (frozenset(facet) for facet in PANEL_FACETS):
        excess = layout.n_outcomes * float(np.var(layout.truth.panel)) / expected
        return np.asarray(expected * rng.noncentral_chisquare(df, excess, n_draws))
    return np.asarray(expected * rng.chisquare(df, n_draws))


# ------------------------------------------------------------------------------------------------ estimation


def estimated_variance(layout: Layout, scenario: Scenario, mean_squares: FloatArray) -> FloatArray:
    """Var̂(ȳ) of the scenario's fit, shape (n_draws,).

    Parameters
    ----------
    layout : Layout
    scenario : Scenario
    mean_squares : float array, shape (n_strata, n_draws)

    Raises
    ------
    CoverageRefused
        When a fit did not converge.
    """
    if scenario.exclude:
        kept = [place for place, stratum in enumerate(layout.strata) if stratum <= frozenset("NV")]
    else:
        kept = list(range(len(layout.strata)))
    strata, df, pooled = _pooled(layout, scenario, kept, mean_squares)
    terms = (*scenario.fitted, frozenset("R"))
    scales = np.array([layout.per_level(term) for term in terms])
    nested = np.array([[stratum <= term or "R" in term for term in terms] for stratum in strata])
    optima, _, converged = optimise_many(nested * scales, df, (df[:, None] * pooled).T)
    if not converged.all():
        raise CoverageRefused(f"{np.count_nonzero(~converged)} fits did not converge")
    return np.asarray(optima @ (scales / layout.n_outcomes))


def _pooled(
    layout: Layout, scenario: Scenario, kept: list[int], mean_squares: FloatArray
) -> tuple[list[Term], FloatArray, FloatArray]:
    """Strata of the fitted terms, and the kept others as one residual stratum."""
    own = [place for place in kept if layout.strata[place] in scenario.fitted]
    rest = [place for place in kept if place not in own]
    df_rest = layout.df[rest].sum()
    residual = layout.df[rest] @ mean_squares[rest] / df_rest
    strata = [*(layout.strata[place] for place in own), frozenset("R")]
    return strata, np.append(layout.df[own], df_rest), np.vstack([mean_squares[own], residual])


def _quantile(scenario: Scenario, level: float) -> float:
    upper = (1.0 + level) / 2.0
    return float(ndtri(upper) if scenario.quantile == "z" else stdtrit(scenario.levels["V"] - 1, upper))
