"""Outcomes of balanced designs whose effects need not be alike, independent or normal.

Model
-----
y = Σ_T √(σ_T²·multiplier_T)·z_T + √σ²·ε over the terms T of crossed items N, prompts V, judges M and
temperatures H with R replicates, items in C categories of equal size; z standard normal, ε standard normal or
Student's t scaled to variance 1. Multipliers, drawn with the effects, are what a fit does not know of.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, Table 8 and Appendices E.2, E.5.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from analytics.arrays import FloatArray
from analytics.resampling import generator
from perf.studies.coverage import Layout, Term, Truth, draw_mean_squares
from perf.studies.mean_squares import RESIDUAL, sums_of_squares

AT_ONCE = 4_000_000  # outcomes
NO_PANEL = (0.0,)

Effects = Mapping[Term, FloatArray]
Multipliers = Callable[[Generator, Effects], Effects]


def terms(text: str) -> tuple[Term, ...]:
    """Read ``"N V NV R"``."""
    return tuple(frozenset(letters) for letters in text.split())


ITEM, CATEGORY, PROMPT, ITEM_PROMPT, ITEM_JUDGE = terms("N C V NV NM")

#: Messing, Table 8, without the fixed panels.
TABLE_8: Mapping[Term, float] = MappingProxyType(
    {
        frozenset(letters): variance
        for letters, variance in {
            "N": 0.04,
            "C": 0.015,
            "V": 0.015,
            "NV": 0.008,
            "NH": 0.008,
            "NM": 0.02,
            "VH": 0.003,
            "VM": 0.003,
            "R": 0.03,
        }.items()
    }
)


def nothing(rng: Generator, effects: Effects) -> Effects:
    """Multiply nothing."""
    return {}


@dataclass(frozen=True)
class Setting:
    """What outcomes are drawn from.

    Parameters
    ----------
    name : str
    levels : mapping of str to int
        N V M H R and C.
    variances : mapping of frozenset of str to float
        Of each term, before anything multiplies them.
    multipliers : callable
        Of (rng, effects by term) → what multiplies the variances, broadcast over (n_draws, N, V, M, H).
    means : mapping of frozenset of str to float
        Means of the multipliers, where they are not 1.
    tails : float, optional
        Degrees of freedom of a residual with Student's distribution.
    """

    name: str
    levels: Mapping[str, int]
    variances: Mapping[Term, float] = field(default_factory=lambda: TABLE_8)
    multipliers: Multipliers = nothing
    means: Mapping[Term, float] = field(default_factory=dict)
    tails: float | None = None

    @cached_property
    def truth(self) -> Mapping[Term, float]:
        """Return the mean variances."""
        return {term: variance * self.means.get(term, 1.0) for term, variance in self.variances.items()}

    @cached_property
    def layout(self) -> Layout:
        """Return the design with the mean variances."""
        return Layout(Truth(self.truth, NO_PANEL), self.levels)


class Drawn(NamedTuple):
    """Sums of squares of each draw (n_draws, n_strata), and ȳ − μ (n_draws,)."""

    squares: FloatArray
    deviation: FloatArray


def drawn(setting: Setting, n_draws: int, seed: int) -> Drawn:
    """Draw outcomes and reduce them; a batch depends on (seed, setting, its place) alone."""
    n_at_once = max(1, AT_ONCE // setting.layout.n_outcomes)
    parts = []
    for start in range(0, n_draws, n_at_once):
        rng = generator(seed, setting.name, start)
        outcomes = draw_outcomes(rng, setting, min(n_at_once, n_draws - start))
        squares = sums_of_squares(setting.layout, outcomes)
        parts.append(Drawn(squares, outcomes.mean(axis=(1, 2, 3, 4, 5))))
    return Drawn(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def drawn_as_squares(setting: Setting, n_draws: int, seed: int) -> FloatArray:
    """Sums of squares of normal outcomes, drawn as such, (n_draws, n_strata)."""
    rng = generator(seed, setting.name, 0)
    return (draw_mean_squares(rng, setting.layout, n_draws) * setting.layout.df[:, None]).T


def draw_outcomes(rng: Generator, setting: Setting, n_draws: int) -> FloatArray:
    """Outcomes around μ, (n_draws, N, V, M, H, R)."""
    effects = {
        term: math.sqrt(variance) * _standard(rng, setting.levels, term, n_draws)
        for term, variance in setting.variances.items()
        if term != RESIDUAL
    }
    multipliers = setting.multipliers(rng, effects)
    cells = sum(effect * np.sqrt(multipliers.get(term, 1.0)) for term, effect in effects.items())
    size = (n_draws, *(setting.levels[letter] for letter in "NVMHR"))
    if setting.tails is None:
        outcomes = rng.standard_normal(size)
    else:
        outcomes = rng.standard_t(setting.tails, size) * math.sqrt(1.0 - 2.0 / setting.tails)
    outcomes *= math.sqrt(setting.variances[RESIDUAL])
    outcomes += np.asarray(cells)[..., None]
    return outcomes


def _standard(rng: Generator, levels: Mapping[str, int], term: Term, n_draws: int) -> FloatArray:
    if term == CATEGORY:
        values = rng.standard_normal((n_draws, levels["C"]))
        return np.repeat(values, levels["N"] // levels["C"], axis=1)[:, :, None, None, None]
    return rng.standard_normal((n_draws, *(levels[f] if f in term else 1 for f in "NVMH")))
