"""Best-of-K gaming: what a team gains by submitting K times and showing the best.

Model
-----
A submission's mean score is θ + s + x: θ its true score, s noise that all submissions share (the tasks they
are all judged on), x noise drawn anew for each of them, x ~ N(0, σ²). The best of K equally good submissions
shows θ + s plus, in expectation::

    gain = E[max(Z_1 … Z_K)]·σ            Z_k independent standard normals
    σ²   = Σ_T σ_T² / Π_{f in T} L_f      terms T that hold a facet which varies between submissions

with L_f the levels of facet f that one submission averages over (D-study divisors). The residual holds every
facet of the design, and is drawn anew each time. Which other facets vary is the board's rule: where each
submission brings its own runs, prompts or judges they do; a prompt that the operator fixes for everyone is
part of s.

The expectation, for any K, by integration of both tails at once (Gauss-Legendre)::

    E[max] = ∫_0^∞ (1 − Φ(x)^K − Φ(−x)^K) dx

Symbols
-------
===========  ==========================  ==========================  ==============
symbol       code                        shape                       unit
===========  ==========================  ==========================  ==============
K            ``n_submissions``           scalar, at least 1          submissions
E[max]       ``expected_maximum(K)``     scalar                      σ
σ_T²         ``components``              term → variance             outcome²
L_f          ``levels``                  facet → count               levels
σ            ``Selectable.sd``           scalar                      0 to 1
gain         ``gain``                    scalar                      0 to 1
===========  ==========================  ==========================  ==============

Limits: K = 1 gains nothing. E[max] grows like √(2 log K): 27 submissions gain 2.0σ, a million 4.9σ; averaging
noise away helps where limiting K does not. Submissions that truly differ gain more, and rightly so; a team
that tunes to a known prompt or judge gains more than this, and this does not bound it.

Not done here
-------------
Scores are taken as normal and unbounded: near 0 or 1, or with few tasks, the gain is overstated. Components
count as known.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, §4.4 (gain, K = 27) and Eq. 8 (divisors). Singh et al.,
*The Leaderboard Illusion*, 2025 (27 variants). David & Nagaraja, *Order Statistics*, 2003, §3.1.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
from scipy.special import log_ndtr, ndtri

from analytics.arrays import FloatArray
from analytics.errors import CoreError

RESIDUAL = "residual"
FIXED = " (fixed)"
N_NODES = 400


class GamingRefused(CoreError):
    """The gain of a best-of-K submitter cannot be said from these components or this design."""


@dataclass(frozen=True)
class Selectable:
    """The noise that a submitter can select on, under one design.

    Attributes
    ----------
    levels : mapping of str to int
        The design: facet → levels that one submission averages over.
    contributions : mapping of str to float
        σ_T²/divisor of every term drawn anew with each submission, outcome².
    shared : tuple of str
        Terms that all submissions share: no selection on them.
    """

    levels: Mapping[str, int]
    contributions: Mapping[str, float]
    shared: tuple[str, ...]

    @property
    def variance(self) -> float:
        """σ², outcome²."""
        return math.fsum(self.contributions.values())

    @property
    def sd(self) -> float:
        """σ, in the unit of the score."""
        return math.sqrt(self.variance)


@dataclass(frozen=True)
class Gain:
    """What best of K gives one team.

    Attributes
    ----------
    team : str
    n_submissions : int
        K.
    gain : float
        Expected inflation of the best score, in the unit of the score (0 to 1).
    """

    team: str
    n_submissions: int
    gain: float

    @property
    def points(self) -> float:
        """The gain in score points, of which the scale has 100."""
        return 100.0 * self.gain


@dataclass(frozen=True)
class DesignGain:
    """One line of the table of designs.

    Attributes
    ----------
    levels : mapping of str to int
    sd : float
        σ of the selectable noise.
    gain : float
        For the K of the table.
    relative : float
        Gain over that of the table's first design.
    """

    levels: Mapping[str, int]
    sd: float
    gain: float
    relative: float

    @property
    def points(self) -> float:
        """The gain in score points, of which the scale has 100."""
        return 100.0 * self.gain


@cache
def expected_maximum(n_submissions: int) -> float:
    """E[max(Z_1 … Z_K)] of K independent standard normals.

    Parameters
    ----------
    n_submissions : int
        K, at least 1.

    Returns
    -------
    float
        0 for K = 1, 1/√π for 2, 3/(2√π) for 3, 1.539 for 10, 1.998 for 27.

    Raises
    ------
    GamingRefused
        When K is not a whole number from 1 on.

    Notes
    -----
    1 − Φ(x)^K = −expm1(K·log Φ(x)) keeps its digits where Φ(x)^K is near 1. The integral ends where K times
    the upper tail is 1e-17.
    """
    _check_n_submissions("best of K", n_submissions)
    nodes, weights = _unit_quadrature()
    end = -float(ndtri(1e-17 / n_submissions))
    x = end * nodes
    integrand = -np.expm1(n_submissions * log_ndtr(x)) - np.exp(n_submissions * log_ndtr(-x))
    return float(end * (weights @ integrand)) if n_submissions > 1 else 0.0


def selectable(
    components: Mapping[str, float], levels: Mapping[str, int], varies: Collection[str]
) -> Selectable:
    """Tell the noise drawn anew with every submission from the noise all submissions share.

    Parameters
    ----------
    components : mapping of str to float
        Term → variance, as a fit names them: facets joined by ``:``, ``residual`` for the replicates; a
        sensitivity is marked by `` (fixed)``.
    levels : mapping of str to int
        Facet → levels that one submission averages over, at least 1. Every facet of a selectable term, and
        every facet that divides the residual.
    varies : collection of str
        Facets that differ from submission to submission, such as ``{"run", "prompt", "judge"}``.

    Raises
    ------
    GamingRefused
        A negative variance, a count below 1, a facet without a count, a facet that no component has, or no
        selectable component at all.
    """
    _check_levels(levels)
    known = {facet for term in components for facet in _facets(term, levels)} | set(levels)
    for facet in varies:
        if facet not in known:
            raise GamingRefused(f"{facet!r} varies between submissions, but no component or count knows it")
    drawn = {
        term: variance / _divisor(term, levels)
        for term, variance in _checked_components(components).items()
        if term.lower() == RESIDUAL or _facets(term, levels) & set(varies)
    }
    if not drawn:
        raise GamingRefused(f"no component holds a facet of {sorted(varies)} or is the residual")
    shared = tuple(term for term in components if term not in drawn)
    return Selectable(MappingProxyType(dict(levels)), MappingProxyType(drawn), shared)


def gains(noise: Selectable, n_submissions: Mapping[str, int]) -> tuple[Gain, ...]:
    """Give the expected gain of each team with its own number of submissions, in name order.

    Parameters
    ----------
    noise : Selectable
    n_submissions : mapping of str to int
        Team → K.

    Raises
    ------
    GamingRefused
        When a K is not a whole number from 1 on.
    """
    for team, k in n_submissions.items():
        _check_n_submissions(team, k)
    return tuple(
        Gain(team, n_submissions[team], expected_maximum(n_submissions[team]) * noise.sd)
        for team in sorted(n_submissions)
    )


def gains_by_design(
    components: Mapping[str, float],
    designs: Sequence[Mapping[str, int]],
    varies: Collection[str],
    n_submissions: int,
) -> tuple[DesignGain, ...]:
    """How the gain of best of K shrinks with prompts, judges, trials and tasks.

    Parameters
    ----------
    components, varies
        As in `selectable`.
    designs : sequence of mapping of str to int, length at least 1
        The first is what the others are compared with.
    n_submissions : int
        K, at least 2 where there is to be a gain.

    Raises
    ------
    GamingRefused
        As `selectable`; or when the first design leaves nothing to gain.
    """
    factor = expected_maximum(n_submissions)
    noises = [selectable(components, levels, varies) for levels in designs]
    if not noises or noises[0].sd * factor == 0.0:
        raise GamingRefused(f"nothing to shrink: best of {n_submissions} gains 0 under the first design")
    return tuple(
        DesignGain(noise.levels, noise.sd, factor * noise.sd, noise.sd / noises[0].sd) for noise in noises
    )


@cache
def _unit_quadrature() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    return (nodes + 1.0) / 2.0, weights / 2.0


def _facets(term: str, levels: Mapping[str, int]) -> frozenset[str]:
    """Facets of a term; the residual holds all of the design."""
    if term.lower() == RESIDUAL:
        return frozenset(levels)
    return frozenset(term.removesuffix(FIXED).split(":"))


def _divisor(term: str, levels: Mapping[str, int]) -> int:
    missing = sorted(_facets(term, levels) - set(levels))
    if missing:
        raise GamingRefused(
            f"component {term}: the design does not give the number of levels of {missing[0]}"
        )
    return math.prod(levels[facet] for facet in _facets(term, levels))


def _check_n_submissions(team: str, n_submissions: int) -> None:
    if isinstance(n_submissions, bool) or not isinstance(n_submissions, int) or n_submissions < 1:
        raise GamingRefused(f"{team}: {n_submissions!r} submissions; a whole number from 1 on is needed")


def _check_levels(levels: Mapping[str, int]) -> None:
    for facet, count in levels.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise GamingRefused(
                f"the design has {count!r} levels of {facet}; a whole number from 1 on is needed"
            )


def _checked_components(components: Mapping[str, float]) -> Mapping[str, float]:
    for term, variance in components.items():
        if not (math.isfinite(variance) and variance >= 0.0):
            raise GamingRefused(f"component {term}: a variance is at least 0, not {variance}")
    return components
