"""Budget allocation: the cheapest design for a target SE, the smallest SE for a budget, and the frontier.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Appendix A (budget allocation), §3.3. Brennan,
*Generalizability Theory*, 2001, §1.2. The exact search is this project's own.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.tee.components import FACETS, Components
from analytics.tee.dstudy import Design, DStudyRefused, Projection, Reading, counted_terms, project

N_COMBINATIONS = 2_000_000
N_LEVELS = 10**12
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Costs:
    """What a design costs: one call, at least 0, and one more level of a facet, by letter."""

    call: float
    levels: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, cost in {"call": self.call, **self.levels}.items():
            if name != "call" and name not in FACETS:
                raise DStudyRefused(f"costs name {name}, which is none of {' '.join(FACETS)}")
            if not (math.isfinite(cost) and cost >= 0.0):
                raise DStudyRefused(f"the cost of {name} is at least 0, not {cost}")

    def of(self, design: Design) -> float:
        """Return c_call·N·V·M·H·R + Σ_f c_f·L_f; a facet the design does not name has one level."""
        n_calls = math.prod(count for letter, count in design.items() if letter != "C")
        return self.call * n_calls + math.fsum(
            cost * design.get(letter, 1) for letter, cost in self.levels.items()
        )


@dataclass(frozen=True, eq=False)
class Choices:
    """The designs that may be chosen, what they cost and what they are judged by.

    For every combination of the facets but one, `inner`, Var(θ̂) and the cost are lines in its levels x.

    bounds: fewest and most levels by letter, both included; None, for one facet at most, sets no upper end.
    """

    components: Components
    costs: Costs
    bounds: Mapping[str, tuple[int, int | None]]
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        for letter, (lo, hi) in self.bounds.items():
            if lo < 1 or (hi is not None and hi < lo):
                raise DStudyRefused(f"bounds of {letter}: from {lo} to {hi} holds no number of levels")
        unbounded = [letter for letter, (_, hi) in self.bounds.items() if hi is None]
        if len(unbounded) > 1:
            raise DStudyRefused(f"only one facet may be without an upper end, not {' and '.join(unbounded)}")
        for letter in unbounded:
            if self.costs.call == 0.0 and self.costs.levels.get(letter, 0.0) == 0.0:
                raise DStudyRefused(f"{FACETS[letter]} cost nothing and have no upper end")
        project(self.components, self.smallest, self.reading)
        self.largest()

    @property
    def smallest(self) -> dict[str, int]:
        """The smallest design."""
        return {letter: lo for letter, (lo, _) in self.bounds.items()}

    def largest(self) -> Projection:
        """Project the largest design, the most precise one; without an upper end at 10¹² levels."""
        most = {letter: hi or N_LEVELS for letter, (_, hi) in self.bounds.items()}
        return project(self.components, most, self.reading)

    @cached_property
    def inner(self) -> str:
        """The facet with the widest range (categories aside, whose number is bound to that of items)."""
        widths = {f: (hi or N_LEVELS) - lo for f, (lo, hi) in self.bounds.items() if f != "C"}
        return max(widths, key=lambda letter: (widths[letter], letter == "N"))

    @cached_property
    def outer(self) -> Mapping[str, npt.NDArray[np.int64]]:
        """Levels of the other facets, (n_combinations,) each."""
        letters = [letter for letter in self.bounds if letter != self.inner]
        ranges = [range(self.bounds[one][0], (self.bounds[one][1] or N_LEVELS) + 1) for one in letters]
        n_combinations = math.prod(len(counts) for counts in ranges)
        if n_combinations > N_COMBINATIONS:
            raise DStudyRefused(
                f"{n_combinations} combinations of {', '.join(letters)} are over {N_COMBINATIONS}"
            )
        counts = np.array(list(product(*ranges)), dtype=np.int64).reshape(n_combinations, len(letters))
        return dict(zip(letters, counts.T, strict=True))

    @cached_property
    def _levels(self) -> dict[str, FloatArray]:
        """Levels of all facets, one of `inner`."""
        outer = {letter: counts.astype(np.float64) for letter, counts in self.outer.items()}
        n = math.prod((hi or N_LEVELS) - lo + 1 for f, (lo, hi) in self.bounds.items() if f != self.inner)
        return outer | {self.inner: np.ones(n)}

    @cached_property
    def variance_line(self) -> tuple[FloatArray, FloatArray]:
        """A and b of Var(θ̂) = a/x + b."""
        slope, floor = (np.zeros_like(self._levels[self.inner]) for _ in range(2))
        for _, variance, facets in counted_terms(self.components, self.bounds, self.reading):
            divisor = np.prod([self._levels[letter] for letter in sorted(facets)], axis=0)
            target = slope if self.inner in facets else floor
            target += variance / divisor
        return slope, floor

    @cached_property
    def cost_line(self) -> tuple[FloatArray, FloatArray]:
        """P and q of a cost of p·x + q."""
        levels, one = self._levels, np.ones_like(self._levels[self.inner])
        costs = self.costs.levels
        base = sum((cost * levels.get(f, one) for f, cost in costs.items() if f != self.inner), 0.0 * one)
        n_calls = np.prod([count for letter, count in levels.items() if letter != "C"], axis=0)
        return self.costs.call * n_calls + costs.get(self.inner, 0.0), base

    @cached_property
    def inner_range(self) -> tuple[FloatArray, FloatArray]:
        """Fewest and most levels of `inner`."""
        (lo, hi), levels = self.bounds[self.inner], self._levels
        fewest = np.full_like(levels[self.inner], lo)
        most = np.full_like(levels[self.inner], np.inf if hi is None else hi)
        if self.reading.categories == "sampled" and "C" in levels:
            if self.inner == "N":
                fewest = np.maximum(fewest, levels["C"])
            elif "N" in levels:
                most[levels["C"] > levels["N"]] = 0.0
        return fewest, most


def cheapest(choices: Choices, target_se: float) -> Projection:
    """Return the cheapest design with an SE of at most `target_se`; ties by SE, then by fewer levels."""
    if not (math.isfinite(target_se) and target_se > 0.0):
        raise DStudyRefused(f"a target standard error is above 0, not {target_se}")
    (slope, floor), (fewest, most) = choices.variance_line, choices.inner_range
    room = target_se**2 * (1.0 + TOLERANCE) - floor
    with np.errstate(divide="ignore", over="ignore"):
        levels = np.where(room > 0.0, np.ceil(slope / room * (1.0 - TOLERANCE)), np.inf)
    levels = np.maximum(levels, fewest)
    levels = np.where((levels <= most) & (levels <= N_LEVELS), levels, np.inf)
    if not np.isfinite(levels).any():
        largest, bounds = choices.largest(), choices.bounds.items()
        parts = sorted(largest.shares.items(), key=lambda part: -part[1])[:3]
        remains = ", ".join(f"{name} {share:.0%}" for name, share in parts if share >= 0.005)
        limits = ", ".join(f"{letter} = {hi}" for letter, (_, hi) in bounds if hi is not None)
        free = [FACETS[letter] for letter, (_, hi) in bounds if hi is None]
        who = f"no number of {free[0]} brings" if free else "no design within the bounds brings"
        raise DStudyRefused(
            f"{who} the SE under {target_se:g}: at {limits} an SE of {largest.se:.4g} remains ({remains})"
        )
    return _best(choices, levels, (_cost, _variance))


def most_precise(choices: Choices, budget: float) -> Projection:
    """Return the design of the smallest SE within `budget`; ties by cost, then by fewer levels."""
    (price, base), (fewest, most) = choices.cost_line, choices.inner_range
    room = budget * (1.0 + TOLERANCE) - base
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = np.where(price > 0.0, np.floor(room / price * (1.0 + TOLERANCE)), most)
    levels = np.minimum(levels, most)
    levels = np.where((room >= 0.0) & (levels >= fewest), levels, np.inf)
    if not np.isfinite(levels).any():
        raise DStudyRefused(
            f"the smallest design within the bounds costs {choices.costs.of(choices.smallest):g}, "
            f"not {budget:g} or less"
        )
    return _best(choices, levels, (_variance, _cost))


def frontier(choices: Choices, budgets: Iterable[float]) -> tuple[Projection, ...]:
    """Return what each budget buys, cheapest first, only where the SE gets smaller; a small one nothing."""
    smallest = choices.costs.of(choices.smallest)
    affordable = sorted({budget for budget in budgets if budget >= smallest})
    if not affordable:
        raise DStudyRefused(f"the smallest design within the bounds costs {smallest:g}, more than any budget")
    points: list[Projection] = []
    for budget in affordable:
        point = most_precise(choices, budget)
        if not points or point.se < points[-1].se:
            points.append(point)
    return tuple(points)


def _cost(choices: Choices, levels: FloatArray) -> FloatArray:
    price, base = choices.cost_line
    return price * levels + base


def _variance(choices: Choices, levels: FloatArray) -> FloatArray:
    slope, floor = choices.variance_line
    return slope / levels + floor


def _best(
    choices: Choices, levels: FloatArray, measures: Iterable[Callable[[Choices, FloatArray], FloatArray]]
) -> Projection:
    """Project the best by the first measure, then the next; `levels` of the inner facet, infinite: none."""
    places = np.flatnonzero(np.isfinite(levels))
    for measure in measures:
        values = measure(choices, levels)[places]
        places = places[values <= values.min() * (1.0 + TOLERANCE)]
    designs = []
    for place in places.tolist():
        counts = {letter: int(n[place]) for letter, n in choices.outer.items()}
        counts[choices.inner] = int(levels[place])
        designs.append({letter: counts[letter] for letter in choices.bounds})
    design = min(designs, key=lambda design: tuple(design.values()))
    return project(choices.components, design, choices.reading)
