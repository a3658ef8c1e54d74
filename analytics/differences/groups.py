"""Errors of a mean over tasks that come in groups: drawn groups (clusters), or given groups (strata).

Source: Bell & McCaffrey, *Survey Methodology* 28 (2002) 169-181 (CR2). Pustejovsky & Tipton, *J. Business &
Economic Statistics* 36 (2018) 672-683 (its general form). Cameron & Miller, *J. Human Resources* 50 (2015)
317-372 (few and uneven clusters). Cochran, *Sampling Techniques*, 3rd ed. 1977, §5.4 (strata and their
degrees of freedom). Field & Welsh, *JRSS B* 69 (2007) 369-390 (resampling of clusters).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from analytics.arrays import CodeArray, FloatArray, read_only
from analytics.differences.neyman_draws import agent_noise
from analytics.differences.rows import ErrorTerm, satterthwaite
from analytics.errors import CoreError
from analytics.resampling import resampled_counts, resampled_within

Role = Literal["cluster", "stratum"]
METHODS: Mapping[Role, str] = MappingProxyType({"cluster": "clusters", "stratum": "strata"})
MIN_CLUSTERS = 10
N_CELLS = 1 << 21  # of the largest array in a chunk of draws


@dataclass(frozen=True, eq=False)
class Groups:
    """What groups are, and the group of each task, (n_tasks,), 0 to G − 1, none empty."""

    role: Role
    code: CodeArray

    @classmethod
    def of(cls, labels: npt.ArrayLike, role: Role) -> "Groups":
        """Group tasks by equal labels, (n_tasks,)."""
        code = np.unique(np.asarray(labels), return_inverse=True)[1]
        return cls(role, read_only(code.astype(np.int64)))

    @classmethod
    def clusters(cls, names: Sequence[str | None]) -> "Groups":
        """Group tasks by name, as drawn together; one without a name is a group of its own."""
        return cls.of([f"in {name}" if name else f"alone {j}" for j, name in enumerate(names)], "cluster")

    @property
    def is_enough(self) -> bool:
        """Whether groups that nobody declared count: there are enough, and fewer than tasks."""
        return MIN_CLUSTERS <= self.sizes.size < self.code.size

    def on(self, tasks: npt.NDArray[np.generic]) -> "Groups":
        """Keep some of the tasks, by position or by a mask."""
        return Groups.of(self.code[tasks], self.role)

    @cached_property
    def sizes(self) -> FloatArray:
        """n_g, (n_groups,)."""
        return np.bincount(self.code).astype(np.float64)

    @cached_property
    def df(self) -> float:
        """Bell & McCaffrey's of clusters, N − H of strata."""
        if self.role == "stratum":
            return self.code.size - self.sizes.size
        shares = self.sizes / self.code.size
        squares = shares**2
        others = squares / (1 - shares)
        return 1 / float(squares.sum() + others.sum() ** 2 - np.sum(others**2))

    @property
    def fault(self) -> str:
        """Say why there is no error; empty where there is one."""
        n, n_alone = self.sizes.size, int(np.count_nonzero(self.sizes == 1))
        if self.role == "cluster" and n < MIN_CLUSTERS:
            return f"errors by groups of tasks need at least {MIN_CLUSTERS} groups, not {n}"
        if self.role == "stratum" and n_alone:
            return f"{n_alone} of {n} strata have a single task, which shows no spread"
        return ""

    def weights(self, seed: int, n_draws: int, *, first: int = 0) -> FloatArray:
        """How often each cluster, or each task, is drawn in the draws from `first` on, (n_draws, n_units)."""
        if self.role == "cluster":
            counts = resampled_counts(seed, "rank_weights", self.sizes.size, n_draws, first=first)
        else:
            counts = resampled_within(seed, "rank_weights", self.code, n_draws, first=first)
        return counts.astype(np.float64)


def mean_variance(values: FloatArray, groups: Groups) -> ErrorTerm:
    """V of the mean of values on N tasks, (n_tasks,), none missing."""
    _check(values.shape, groups)
    n, sizes = values.size, groups.sizes
    if groups.role == "cluster":
        sums = np.bincount(groups.code, weights=values - values.mean())
        return ErrorTerm(METHODS["cluster"], float(np.sum(sums**2 / (1 - sizes / n))) / n**2, groups.df)
    means = np.bincount(groups.code, weights=values) / sizes
    squares = np.bincount(groups.code, weights=(values - means[groups.code]) ** 2)
    parts = [
        ErrorTerm("strata", size / (size - 1) * square / n**2, size - 1)
        for size, square in zip(sizes.tolist(), squares.tolist(), strict=True)
    ]
    df = satterthwaite(parts)
    variance = math.fsum(part.variance for part in parts)
    return ErrorTerm(METHODS["stratum"], variance, df if df < math.inf else groups.df)


def pair_variances(outcomes: FloatArray, v: FloatArray, groups: Groups) -> FloatArray:
    """se²_ab of all pairs, shape (n_agents, n_agents); arguments as in `neyman_draws.pair_variances`."""
    _check(outcomes.shape[1:], groups)
    spread = _spread(outcomes, groups, np.ones((1, _n_units(groups))))
    return np.asarray(_variances(spread)[0] + v[:, None] + v, dtype=np.float64)


def ahead(
    outcomes: FloatArray, names: Sequence[str], v: FloatArray, groups: Groups, *, seed: int, n_draws: int
) -> FloatArray:
    """Return how far the best of the others is ahead: max over b of T_ba*², (n_draws, n_agents), ≥ 0."""
    _check(outcomes.shape[1:], groups)
    noise, means, beyond = agent_noise(names, v, seed, n_draws), outcomes.mean(axis=1), v[:, None] + v
    n_agents = len(names)
    n_chunk = max(N_CELLS // (n_agents * max(n_agents, _n_units(groups))), 1)
    largest = np.zeros((n_draws, n_agents))
    for first in range(0, n_draws, n_chunk):
        drawn = slice(first, min(first + n_chunk, n_draws))
        spread = _spread(outcomes, groups, groups.weights(seed, drawn.stop - first, first=first))
        u = spread[1] - means + noise[drawn]
        lead, variances = u[:, None, :] - u[:, :, None], _variances(spread)  # of the second over the first
        variances += beyond
        np.maximum(lead, 0.0, out=lead)
        lead *= lead
        lead /= variances
        largest[drawn] = lead.max(axis=2)
    return largest


Spread = tuple[FloatArray, FloatArray, FloatArray]
"""N*, means and parts of agents in some draws: N*(N* − 1)·V_ab = |parts_a − parts_b|²."""


def _n_units(groups: Groups) -> int:
    return groups.sizes.size if groups.role == "cluster" else groups.code.size


def _spread(outcomes: FloatArray, groups: Groups, weights: FloatArray) -> Spread:
    sizes, member = groups.sizes, np.eye(groups.sizes.size)[groups.code]
    if groups.role == "stratum":
        n_tasks, weighted = outcomes.shape[1], weights[:, None] * outcomes
        centres = (weighted @ member / sizes)[:, :, groups.code]
        factors = weights * (((n_tasks - 1) / n_tasks) * sizes / (sizes - 1))[groups.code]
        means, n = weighted.sum(axis=2) / n_tasks, np.full(len(weights), float(n_tasks))
        return n, means, np.sqrt(factors)[:, None] * (outcomes - centres)
    sums = outcomes @ member
    n = weights @ sizes
    means = weights @ sums.T / n[:, None]
    # Of a cluster that is not drawn N* − n_g can be 0.
    left = np.where(weights > 0, n[:, None] - sizes, 1.0)
    factors = weights * (n[:, None] - 1) / left
    return n, means, np.sqrt(factors)[:, None] * (sums - means[:, :, None] * sizes)


def _variances(spread: Spread) -> FloatArray:
    """se²_ab without v, (n_draws, n_agents, n_agents)."""
    n, means, parts = spread
    n = n[:, None, None]
    products = parts @ parts.transpose(0, 2, 1)
    squares = np.diagonal(products, axis1=1, axis2=2).copy()
    products *= -2
    products += squares[:, :, None]
    products += squares[:, None]
    np.maximum(products, 0.0, out=products)
    gaps = means[:, :, None] - means[:, None]
    gaps *= gaps
    gaps *= 2 * n / (n + 2)
    products += gaps
    products += 1.0
    products /= (n + 2) ** 2
    return np.asarray(products, dtype=np.float64)


def _check(shape: tuple[int, ...], groups: Groups) -> None:
    if shape != groups.code.shape:
        raise CoreError(f"groups of {groups.code.size} tasks for values of shape {shape}", code="groups")
    if groups.fault:
        raise CoreError(groups.fault, code="groups")
