"""Tests that are looked at again as agents come, at a level that shrinks with each look.

Look j = 1, 2, 3, … is taken when 10, 20, 40, … agents have come (the first one later where a test needs
more), at the level α_j = .01·2^−j. Whatever the dependence between looks, the levels add up::

    P(a look ever falls below c·α_j | nothing changed) ≤ c·Σ_j α_j ≤ .01·c

Between two looks the last one stands. A permutation test has 9,999 draws, more where its smallest p-value,
1/(1 + draws), would not reach the level. It ends after 1,000, 2,000, … of them once more than a share of
10·α_j of all draws are as large as what was observed: no level up to 5·α_j is reached then, whatever the
others would be, and p comes from at least 1,000.

Source: Bonferroni over looks; Pocock, *Group sequential methods*, Biometrika 1977, for the problem. Phipson &
Smyth, *Permutation p-values should never be zero*, 2010. Besag & Clifford, *Sequential Monte Carlo p-values*,
Biometrika 1991.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from analytics.arrays import FloatArray

FIRST_LOOK = 10
LEVEL = 0.01
N_PERMUTATIONS = 9_999
BATCH = 1_000
CLEARLY_ABOVE = 10.0


class Look(NamedTuple):
    """One look at a series: its number from 1 on, how many agents it takes, and α_j."""

    number: int
    size: int
    level: float

    @property
    def n_permutations(self) -> int:
        """Draws of a permutation test."""
        return max(N_PERMUTATIONS, math.ceil(2 / self.level))


def last_look(n: int, *, first: int = FIRST_LOOK) -> Look | None:
    """Return the last look that `n` agents allow; None before the first.

    n: agents that have come.
    first: agents of the first look, 10 to 19; the second is at 20.
    """
    if n < first:
        return None
    number = 1 + int(math.log2(max(n, FIRST_LOOK) / FIRST_LOOK))
    size = first if number == 1 else FIRST_LOOK * 2 ** (number - 1)
    return Look(number, size, LEVEL * 0.5**number)


def permutation_p(observed: float, draws: FloatArray) -> float:
    """(1 + #{draw ≥ observed}) / (1 + draws); a draw that is NaN counts as larger."""
    return (1 + _n_as_large(observed, draws)) / (1 + len(draws))


def permuted(look: Look, draw: Callable[[int], FloatArray], *observed: float) -> FloatArray:
    """Draw what permutations give, (n_statistics, n_draws), until no statistic can reach a level any more.

    draw: gives so many more draws of each statistic, (n_statistics, n).
    *observed: the statistics as they are.
    """
    n_all, statistics = look.n_permutations, draw(min(BATCH, look.n_permutations))
    most = CLEARLY_ABOVE * look.level * (1 + n_all)
    while (n := statistics.shape[1]) < n_all:
        if all(_n_as_large(*pair) > most for pair in zip(observed, statistics, strict=True)):
            break
        statistics = np.concatenate([statistics, draw(min(BATCH, n_all - n))], axis=1)
    return statistics


def _n_as_large(observed: float, draws: FloatArray) -> int:
    return len(draws) - int(np.count_nonzero(draws < observed - 1e-12))


def members(rng: np.random.Generator, n_draws: int, n_agents: int, n_chosen: int) -> FloatArray:
    """Draw sets of `n_chosen` agents without replacement: 1 for a member, (n_draws, n_agents)."""
    chosen = np.zeros((n_draws, n_agents))
    drawn = np.argpartition(rng.random(chosen.shape), n_chosen - 1, axis=1)[:, :n_chosen]
    np.put_along_axis(chosen, drawn, 1.0, axis=1)
    return chosen
