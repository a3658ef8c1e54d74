"""Components of many balanced designs at once, from outcomes of any distribution.

Model
-----
The strata s of `perf.studies.coverage.Layout` are sets of crossed facets, {"C"} between the means of C
categories of items, and {"R"} within cells. With T_u = (n/Π_{f in u} L_f)·Σ m_u² over the marginal means m_u
of the levels of u::

    SS_s = Σ_{u ⊆ s} (−1)^{|s|−|u|} T_u          (items: less those between categories)
    E[SS_s/df_s] = λ_s = Σ_T c_T·1[T adds to s]·σ_T²

holds for any uncorrelated effects of finite variance, σ_T² the mean of their variances. A specification pools
strata with equal rows c_T·1[·], sets those of the fixed panels aside (judges, temperatures, both) and solves
mean squares = M·σ̂². With as many rows as terms that is unbiased, and linear: for a truth with terms outside
the specification E σ̂² is the same solution of the λ_s. `analytics.reml.strata.optimise_many` gives REML
under σ̂² ≥ 0 of the same mean squares.

Symbols
-------
========  ====================================  =========================  ========
symbol    code                                  shape                      unit
========  ====================================  =========================  ========
SS_s      ``sums_of_squares``                   (n_draws, n_strata)        outcome²
M         ``Specification.loadings``            (n_terms, n_terms)         outcomes
σ̂²        ``unbounded``, ``bounded``            (n_draws, n_terms)         outcome²
========  ====================================  =========================  ========

Source
------
Searle, Casella & McCulloch, *Variance Components*, 1992, ch. 4.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from analytics.arrays import FloatArray
from analytics.errors import CoreError
from analytics.reml.strata import optimise_many
from analytics.tee import Component, Components, Reading, project
from perf.studies.coverage import Layout, Term, inside

CROSSED = "NVMH"
PANELS = frozenset("MH")
RESIDUAL = frozenset("R")


class SpecificationRefused(CoreError):
    """A specification has more or fewer strata than terms, or a fit of it did not converge."""


def sums_of_squares(layout: Layout, outcomes: FloatArray) -> FloatArray:
    """Return SS_s of each draw, shape (n_draws, n_strata).

    Parameters
    ----------
    layout : Layout
    outcomes : float array, shape (n_draws, N, V, M, H, R)
        Items of a category beside each other.
    """
    outcomes = outcomes - outcomes.mean(axis=(1, 2, 3, 4, 5), keepdims=True)
    cells = outcomes.mean(axis=5)
    squares = {
        frozenset(subset): _squared(layout, cells, frozenset(subset))
        for k in range(len(layout.crossed) + 1)
        for subset in combinations(layout.crossed, k)
    }
    all_squares = np.einsum("di,di->d", *(outcomes.reshape(len(outcomes), -1),) * 2)
    found = {s: sum((-1) ** len(s - u) * squares[u] for u in squares if u <= s) for s in squares}
    found[RESIDUAL] = all_squares - squares[frozenset(layout.crossed)]
    if frozenset("C") in layout.strata:
        found[frozenset("C")] = _between_categories(layout, cells)
        found[frozenset("N")] = found[frozenset("N")] - found[frozenset("C")]
    return np.array([found[s] for s in layout.strata]).T


@dataclass(frozen=True)
class Specification:
    """What a fit of a layout's outcomes holds.

    Parameters
    ----------
    layout : Layout
    terms : tuple of frozenset of str
        Random terms; the residual last.
    """

    layout: Layout
    terms: tuple[Term, ...]

    @cached_property
    def rows(self) -> tuple[tuple[float, ...], ...]:
        """Return the different rows of loadings, the residual's last."""
        return tuple(sorted({self._row(s) for s in self._kept}, reverse=True))

    @cached_property
    def loadings(self) -> FloatArray:
        """Return M, shape (n_terms, n_terms)."""
        found = np.array(self.rows)
        if found.shape[0] != found.shape[1]:
            raise SpecificationRefused(f"{found.shape[0]} different strata and {found.shape[1]} terms")
        return found

    @cached_property
    def df(self) -> FloatArray:
        """Return the degrees of freedom of the pooled strata."""
        return self._pool(self.layout.df)

    def unbounded(self, squares: FloatArray) -> FloatArray:
        """σ̂² by equating mean squares to their expectations, shape (n_draws, n_terms)."""
        return np.asarray(
            np.linalg.solve(self.loadings, (self._pool(squares) / self.df).T).T, dtype=np.float64
        )

    def bounded(self, squares: FloatArray) -> FloatArray:
        """σ̂² by REML ≥ 0, shape (n_draws, n_terms).

        Raises
        ------
        SpecificationRefused
        """
        optima, _, converged = optimise_many(
            self.loadings, self.df, np.ascontiguousarray(self._pool(squares))
        )
        if not converged.all():
            raise SpecificationRefused(f"{np.count_nonzero(~converged)} fits did not converge")
        return optima

    @cached_property
    def expected(self) -> Mapping[Term, float]:
        """Return E σ̂² without bounds, under the layout's truth."""
        squares = [
            self.layout.expected(s) * df for s, df in zip(self.layout.strata, self.layout.df, strict=True)
        ]
        return dict(zip(self.terms, self.unbounded(np.array([squares]))[0].tolist(), strict=True))

    def choosing(self, term: Term) -> FloatArray:
        """Return the weights w of one component, (n_terms,)."""
        return np.array([float(each == term) for each in self.terms])

    def divided(self, reading: Reading, design: Mapping[str, int] | None = None) -> FloatArray:
        """Return what each component adds to Var(θ̂) of a design, by the D-study; (n_terms,)."""
        units = Components(tuple(Component("".join(sorted(term)), 1.0, term) for term in self.terms))
        levels = {letter: n for letter, n in (design or self.layout.levels).items() if letter in "NVMHRC"}
        parts = project(units, levels, reading).contributions
        return np.array([parts["".join(sorted(term))] for term in self.terms])

    @cached_property
    def _kept(self) -> tuple[Term, ...]:
        return tuple(s for s in self.layout.strata if not s <= PANELS)

    def _row(self, stratum: Term) -> tuple[float, ...]:
        return tuple(self.layout.per_level(t) if inside(stratum, t) else 0.0 for t in self.terms)

    def _pool(self, values: FloatArray) -> FloatArray:
        """Add up what has equal rows; along the last axis."""
        of_row = np.zeros((len(self.layout.strata), len(self.rows)))
        for stratum in self._kept:
            of_row[self.layout.strata.index(stratum), self.rows.index(self._row(stratum))] = 1.0
        return np.asarray(values @ of_row)


class Bias(NamedTuple):
    """Relative bias of REML ≥ 0, the same with noise taken away, each with its SE; exact, without bounds."""

    bias: float
    mc_se: float
    quiet: float
    quiet_se: float
    exact: float


def bias_of(specification: Specification, squares: FloatArray, weights: FloatArray, truth: float) -> Bias:
    """Relative bias of w'σ̂².

    The noise is that of unbounded estimates of the same draws, whose mean is known: what is left is what
    cutting off at 0 adds.
    """
    bounded = specification.bounded(squares) @ weights
    cut = bounded - specification.unbounded(squares) @ weights
    exact = float(np.array([*specification.expected.values()]) @ weights)
    return Bias(
        float(bounded.mean()) / truth - 1.0,
        standard_error(bounded) / truth,
        (exact + float(cut.mean())) / truth - 1.0,
        standard_error(cut) / truth,
        exact / truth - 1.0,
    )


def standard_error(values: FloatArray) -> float:
    """Monte Carlo standard error of a mean."""
    return float(values.std(ddof=1)) / math.sqrt(values.size)


# ---------------------------------------------------------------------------------------------- arithmetic


def _squared(layout: Layout, cells: FloatArray, kept: Term) -> FloatArray:
    """T_u, shape (n_draws,)."""
    away = tuple(axis for axis, letter in enumerate(CROSSED, start=1) if letter not in kept)
    means = cells.mean(axis=away).reshape(len(cells), -1)
    return np.asarray(layout.per_level(kept) * np.einsum("di,di->d", means, means))


def _between_categories(layout: Layout, cells: FloatArray) -> FloatArray:
    items = cells.mean(axis=(2, 3, 4)).reshape(len(cells), layout.levels["C"], -1)
    means = items.mean(axis=2) - items.mean(axis=(1, 2))[:, None]
    return np.asarray(layout.n_outcomes / layout.levels["C"] * np.einsum("dc,dc->d", means, means))
