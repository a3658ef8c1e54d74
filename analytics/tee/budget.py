"""Budget allocation: the cheapest design for a target SE, the smallest SE for a budget, and the frontier.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, Appendix A (budget allocation), §3.3. Brennan,
*Generalizability Theory*, 2001, §1.2. The exact search is this project's own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Choices:
    """The designs that may be chosen, what they cost and what they are judged by.

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
        project(self.components, {letter: lo for letter, (lo, _) in self.bounds.items()}, self.reading)
        _projection_of_most(self)


@dataclass(frozen=True)
class Allocation:
    """A design that was chosen, with its cost and its projection."""

    design: Design
    cost: float
    projection: Projection

    @property
    def se(self) -> float:
        """Standard error, in the unit of the outcome."""
        return self.projection.se


def cheapest(choices: Choices, target_se: float) -> Allocation:
    """Return the cheapest design with an SE of at most `target_se`; ties by SE, then by fewer levels."""
    if not (math.isfinite(target_se) and target_se > 0.0):
        raise DStudyRefused(f"a target standard error is above 0, not {target_se}")
    grid = _grid(choices)
    room = target_se**2 * (1.0 + TOLERANCE) - grid.floor
    with np.errstate(divide="ignore", over="ignore"):
        levels = np.where(room > 0.0, np.ceil(grid.slope / room * (1.0 - TOLERANCE)), np.inf)
    levels = np.maximum(levels, grid.fewest)
    levels = np.where((levels <= grid.most) & (levels <= N_LEVELS), levels, np.inf)
    if not np.isfinite(levels).any():
        most = _projection_of_most(choices)
        parts = sorted(most.shares.items(), key=lambda part: -part[1])[:3]
        remains = ", ".join(f"{name} {share:.0%}" for name, share in parts if share >= 0.005)
        bounds = choices.bounds.items()
        limits = ", ".join(f"{letter} = {hi}" for letter, (_, hi) in bounds if hi is not None)
        free = [FACETS[letter] for letter, (_, hi) in bounds if hi is None]
        who = f"no number of {free[0]} brings" if free else "no design within the bounds brings"
        raise DStudyRefused(
            f"{who} the SE under {target_se:g}: at {limits} an SE of {most.se:.4g} remains ({remains})"
        )
    return _best(choices, grid, levels, _cost, _variance)


def most_precise(choices: Choices, budget: float) -> Allocation:
    """Return the design of the smallest SE within `budget`; ties by cost, then by fewer levels."""
    return _most_precise(choices, _grid(choices), budget)


def frontier(choices: Choices, budgets: Sequence[float]) -> tuple[Allocation, ...]:
    """Return what each budget buys, cheapest first, only where the SE gets smaller; a small one nothing."""
    grid = _grid(choices)
    smallest = _smallest_cost(choices)
    affordable = sorted({budget for budget in budgets if budget >= smallest})
    if not affordable:
        raise DStudyRefused(f"the smallest design within the bounds costs {smallest:g}, more than any budget")
    points: list[Allocation] = []
    for budget in affordable:
        point = _most_precise(choices, grid, budget)
        if not points or point.se < points[-1].se:
            points.append(point)
    return tuple(points)


@dataclass(frozen=True, eq=False)
class Grid:
    """Every combination of the facets but one, `inner`: Var(θ̂) = slope/x + floor, cost = price·x + base."""

    inner: str
    outer: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    slope: FloatArray
    floor: FloatArray
    price: FloatArray
    base: FloatArray
    fewest: FloatArray
    most: FloatArray


Measure = Callable[[Grid, FloatArray], FloatArray]


def _grid(choices: Choices) -> Grid:
    # the facet with the widest range (categories aside, whose number is bound to that of items)
    widths = {letter: (hi or N_LEVELS) - lo for letter, (lo, hi) in choices.bounds.items() if letter != "C"}
    inner = max(widths, key=lambda letter: (widths[letter], letter == "N"))
    outer = tuple(letter for letter in choices.bounds if letter != inner)
    ranges = [range(choices.bounds[one][0], (choices.bounds[one][1] or N_LEVELS) + 1) for one in outer]
    n_combinations = math.prod(len(counts) for counts in ranges)
    if n_combinations > N_COMBINATIONS:
        raise DStudyRefused(f"{n_combinations} combinations of {', '.join(outer)} are over {N_COMBINATIONS}")
    counts = np.array(list(product(*ranges)), dtype=np.int64).reshape(n_combinations, len(outer))
    levels = {letter: counts[:, i].astype(np.float64) for i, letter in enumerate(outer)}
    levels[inner] = np.ones(len(counts))
    slope, floor = np.zeros_like(levels[inner]), np.zeros_like(levels[inner])
    for _, variance, facets in counted_terms(choices.components, choices.bounds, choices.reading):
        divisor = np.prod([levels[letter] for letter in sorted(facets)], axis=0)
        target = slope if inner in facets else floor
        target += variance / divisor
    costs, one = choices.costs, np.ones_like(slope)
    n_calls = np.prod([count for letter, count in levels.items() if letter != "C"], axis=0)
    base = sum((cost * levels.get(f, one) for f, cost in costs.levels.items() if f != inner), 0.0 * one)
    price = costs.call * n_calls + costs.levels.get(inner, 0.0)
    fewest, most = _inner_range(choices, levels, inner)
    return Grid(inner, outer, counts, slope, floor, price, base, fewest, most)


def _inner_range(
    choices: Choices, levels: Mapping[str, FloatArray], inner: str
) -> tuple[FloatArray, FloatArray]:
    lo, hi = choices.bounds[inner]
    fewest = np.full_like(levels[inner], lo)
    most = np.full_like(levels[inner], np.inf if hi is None else hi)
    if choices.reading.categories == "sampled" and "C" in levels:
        if inner == "N":
            fewest = np.maximum(fewest, levels["C"])
        elif "N" in levels:
            most[levels["C"] > levels["N"]] = 0.0
    return fewest, most


def _most_precise(choices: Choices, grid: Grid, budget: float) -> Allocation:
    room = budget * (1.0 + TOLERANCE) - grid.base
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = np.where(grid.price > 0.0, np.floor(room / grid.price * (1.0 + TOLERANCE)), grid.most)
    levels = np.minimum(levels, grid.most)
    levels = np.where((room >= 0.0) & (levels >= grid.fewest), levels, np.inf)
    if not np.isfinite(levels).any():
        smallest = _smallest_cost(choices)
        raise DStudyRefused(
            f"the smallest design within the bounds costs {smallest:g}, not {budget:g} or less"
        )
    return _best(choices, grid, levels, _variance, _cost)


def _cost(grid: Grid, levels: FloatArray) -> FloatArray:
    return grid.price * levels + grid.base


def _variance(grid: Grid, levels: FloatArray) -> FloatArray:
    return grid.slope / levels + grid.floor


def _best(choices: Choices, grid: Grid, levels: FloatArray, first: Measure, second: Measure) -> Allocation:
    places = np.flatnonzero(np.isfinite(levels))
    for measure in (first, second):
        values = measure(grid, levels)[places]
        places = places[values <= values.min() * (1.0 + TOLERANCE)]
    designs = []
    for place in places.tolist():
        counts = {letter: int(n) for letter, n in zip(grid.outer, grid.counts[place], strict=True)}
        counts[grid.inner] = int(levels[place])
        designs.append({letter: counts[letter] for letter in choices.bounds})
    design = min(designs, key=lambda design: tuple(design.values()))
    projection = project(choices.components, design, choices.reading)
    return Allocation(projection.design, choices.costs.of(design), projection)


def _smallest_cost(choices: Choices) -> float:
    return choices.costs.of({letter: lo for letter, (lo, _) in choices.bounds.items()})


def _projection_of_most(choices: Choices) -> Projection:
    """Project the largest design, the most precise one; without an upper end at 10¹² levels."""
    most = {letter: hi or N_LEVELS for letter, (_, hi) in choices.bounds.items()}
    return project(choices.components, most, choices.reading)
