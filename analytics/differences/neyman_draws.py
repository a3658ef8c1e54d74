"""Differences judged by their spread over tasks, the tasks resampled.

Few pairs decide in few draws: those whose T² is above what the draws before let expect of the 95% point. In
a draw, Σ(x_a − x_b)² is a sum of k independent values from 0 to 1; a lower bound of it tells of most pairs,
without their product, that T² is less (it fails with a chance of e⁻²⁴ a pair and draw). 40 of 40 boards are
those of all pairs to the last bit: docs/evidence/decisions.txt.

Source: Agresti & Min, *Statistics in Medicine* 24 (2005) 729-740 (pseudo-observations). Efron & Tibshirani,
*An Introduction to the Bootstrap*, 1993, ch. 12. Imbens & Rubin, *Causal Inference*, 2015, §6.5. Okamoto,
*Annals of the Institute of Statistical Mathematics* 10 (1958) 29-35; Hoeffding, *Journal of the American
Statistical Association* 58 (1963) 13-30 (lower tail of the spread).
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.errors import CoreError
from analytics.resampling import fewer_draws, generator, resampled_counts

PairVariances = Callable[[FloatArray, FloatArray], FloatArray]


def on_grid(outcomes: FloatArray) -> FloatArray:
    """Round to multiples of 2^−b so that Σ_j w_j·x_aj·x_bj ≤ k is a sum of at most 53 bits."""
    scale = 2.0 ** ((53 - (outcomes.shape[1] - 1).bit_length()) // 2)
    return np.asarray(np.rint(outcomes * scale) / scale, dtype=np.float64)


def narrowed(x: FloatArray) -> npt.NDArray[np.floating]:
    """Return x in single precision where Σw·x_a·x_b is exact in it: multiples of 2^−b, 2b + ⌈log₂ k⌉ ≤ 24."""
    scale = 2.0 ** max((24 - (x.shape[1] - 1).bit_length()) // 2, 0)
    return x.astype(np.float32) if (np.rint(x * scale) == x * scale).all() else x


def task_weights(k: int, seed: int, n_draws: int, *, first: int = 0) -> FloatArray:
    """How often each of k tasks is drawn in the draws from `first` on, shape (n_draws, k)."""
    return resampled_counts(seed, "rank_weights", k, n_draws, first=first).astype(np.float64)


def agent_noise(agents: Sequence[str], v: FloatArray, seed: int, n_draws: int) -> FloatArray:
    """g*_a ~ N(0, v_a), shape (n_draws, n_agents), each agent by a generator of (seed, its name)."""
    noise = np.zeros((n_draws, len(agents)))
    for i in np.flatnonzero(v).tolist():
        rng = generator(seed, "rank_noise", *agents[i].encode("utf-8", "surrogatepass"))
        noise[:, i] = np.sqrt(v[i]) * rng.standard_normal(n_draws)
    return noise


def pair_variances(outcomes: FloatArray, v: FloatArray) -> FloatArray:
    """se²_ab of all pairs, shape (n_agents, n_agents)."""
    k = outcomes.shape[1]
    totals, squares = outcomes.sum(axis=1), (outcomes**2).sum(axis=1)
    spread = np.maximum(squares[:, None] + squares - 2 * (outcomes @ outcomes.T), 0.0)
    gaps = totals[:, None] - totals
    return np.asarray((spread + 1.0 - gaps**2 / (k + 2)) / (k + 2) ** 2 + v[:, None] + v, dtype=np.float64)


N_DRAWS = 10_000
MIN_TASKS = 5
FEW_AGENTS, FEW_AGENTS_CHUNK, CHUNK = 64, 1024, 256  # more draws of few agents, where calls cost most
FEW_PAIRS = 16  # by a product of matrices they cost more than one by one
FIRST_CHUNK = 16
TAIL = 24.0  # a bound of the spread fails with a chance of at most e^-24 in a draw of a pair
MARGIN = 1e-3  # of single precision, in what is compared with the bound
LARGEST_STEP, ROUNDED = (1 << 14) - 1, 3  # u in 16 bits; how many steps a difference of two may be off
MAX_CELLS = 1 << 21  # gathered at once
MAX_PAIRS = 1 << 18  # found before they are computed
Single = npt.NDArray[np.float32]
Bits = npt.NDArray[np.uint64]
Ahead = Callable[..., "Maxima"]
Weights = Callable[..., FloatArray]


class Maxima(NamedTuple):
    """How far the best of the others is ahead of each agent in each draw, T_a² = max over b of T*_ba².

    squares: (n_draws, n_agents); T_a² where that is at least `floor`, else 0; of an agent of known noise
        where it is at least t²_{k−1,.95}.
    floor: at most the upper 5% point of T_a² over the draws of all agents of unknown noise, or t²_{k−1,.95}.
    """

    squares: FloatArray
    floor: float


def draws_for(n_agents: int) -> int:
    """Return B: 10,000, or `fewer_draws` for many agents.

    The level holds for any B, as c is an order statistic of B + 1; with 1,250 it scatters by 0.6 points about
    95%, with 10,000 by 0.2.
    """
    return fewer_draws(N_DRAWS, n_agents)


def upper_place(n_draws: int) -> int:
    """Return the place, from 1, of the upper 5% point among so many draws."""
    return -(-95 * (n_draws + 1) // 100)


def ahead(
    outcomes: FloatArray,
    names: Sequence[str],
    v: FloatArray,
    unknown_noise: Mask,
    *,
    seed: int,
    n_draws: int,
    weights: Weights = task_weights,
    known: Maxima | None = None,
    new: Mask | None = None,
) -> Maxima:
    """Find the maxima over all pairs, one at least of unknown noise.

    unknown_noise: (n_agents,); agents without trial variances, of which each pair gone through has one.
    weights: `task_weights`, or one that remembers them.
    known, new: what was found for the agents that are not new, 0 for those that are; (n_agents,).
    """
    k = outcomes.shape[1]
    if k < MIN_TASKS:
        raise CoreError(
            f"agents without repeated trials need at least {MIN_TASKS} tasks; there are {k}",
            code="few_tasks",
        )
    each = np.ones(len(names), dtype=np.bool_) if known is None or new is None else new
    order = np.lexsort((np.count_nonzero(outcomes, axis=1), ~unknown_noise, ~each))
    pairs = _Pairs(on_grid(outcomes[order]), v[order], unknown_noise[order], int(each.sum()))
    noise = agent_noise([names[i] for i in order], v[order], seed, n_draws)
    squares = np.zeros((n_draws, len(order))) if known is None else known.squares.copy()
    least = float(stdtrit(k - 1, 0.95)) ** 2

    def find(drawn: slice, floor: float) -> None:
        w = weights(k, seed, drawn.stop - drawn.start, first=drawn.start)
        draw = _Draw(pairs, w, noise[drawn], floor)
        for a, (in_all, limit) in enumerate(pairs.rows(floor, least)):
            draw.all_of(a, in_all)
            draw.reaching(a, limit)
        draw.finish()
        squares[drawn, order] = np.maximum(squares[drawn, order], draw.largest.T)

    # a guess below what is usual for the first draws, then a little below the upper point of those so far
    guess = float(ndtri(1 - 0.05 / math.sqrt(len(names)))) ** 2
    floor, floors = max(guess, least) if known is None else known.floor, list[float]()
    parts = _parts(n_draws, FEW_AGENTS_CHUNK if len(order) <= FEW_AGENTS else CHUNK)
    for drawn in parts:
        find(drawn, floor)
        floors.append(floor)
        if known is None and (drawn.stop & (drawn.stop - 1)) == 0:
            above = 0.05 * (1 + 4 / math.sqrt(drawn.stop))
            reached = float(np.quantile(squares[: drawn.stop, unknown_noise], 1 - above))
            floor = max(floor, reached) if reached else least
    reached = max(pooled_upper_point(squares[:, unknown_noise]), least)
    if reached < max(floors) and known is not None:
        return ahead(outcomes, names, v, unknown_noise, seed=seed, n_draws=n_draws, weights=weights)
    for drawn, floor in zip(parts, floors, strict=True):
        if floor > reached:
            find(drawn, reached)
    floor = min(max(floors), reached)
    squares[squares < np.where(unknown_noise, floor, least)] = 0.0
    return Maxima(squares, floor)


def pooled_upper_point(squares: FloatArray) -> float:
    """Return the upper 5% point of all T_a² together, 0 where fewer than 5% of them are above 0."""
    found = squares[squares > 0.0]  # few, and only they need an order
    place = upper_place(squares.size) - (squares.size - found.size)
    return float(np.partition(found, place - 1)[place - 1]) if place > 0 else 0.0


def _parts(n_draws: int, n_chunk: int) -> list[slice]:
    """Divide the draws; the first parts, that go through more pairs, are smaller."""
    ends = [0]
    while ends[-1] < n_draws:
        ends.append(min(max(FIRST_CHUNK, ends[-1] + min(ends[-1], n_chunk)), n_draws))
    return [slice(*ends) for ends in pairwise(ends)]


class _Pairs:
    """The first n_rows agents with those after them, and what depends on no draw."""

    def __init__(self, x: FloatArray, v: FloatArray, unknown: Mask, n_rows: int) -> None:
        self.unknown, self.n_rows, self.k = unknown, n_rows, x.shape[1]
        self.cells, self.sums = narrowed(x), x.sum(axis=1)
        self.squared = self.cells * self.cells
        self.is_binary = np.array_equal(self.squared, self.cells)
        self.bits = _packed(x > 0) if self.is_binary else None
        self.beyond = v * (self.k + 2) ** 2
        self._squares, self._products = np.einsum("ij,ij->i", x, x), self.cells[:n_rows] @ self.cells.T
        self._limits = 0.0, 0.0
        self._rows: list[tuple[IndexArray | slice, Single]] = []

    def rows(self, floor: float, least: float) -> list[tuple[IndexArray | slice, Single]]:
        """Divide the pairs of each row: all draws of the first; of all that follow, those that reach a limit.

        Their limits, of (u_a − u_b)² + floor·(t_a − t_b)²/2, are least where one agent's noise is known; a
        pair that is not gone through so has an infinite one.
        """
        if self._limits != (floor, least):
            self._limits = floor, least
            self._rows = [self._row(a, floor, least) for a in range(self.n_rows)]
        return self._rows

    def _row(self, a: int, floor: float, least: float) -> tuple[IndexArray | slice, Single]:
        others = slice(a + 1, None)
        judged = self.unknown[others] | self.unknown[a]
        apart = self._squares[others] + self._squares[a] - 2 * self._products[a, others].astype(np.float64)
        spread = _least_spread(np.maximum(apart, 0.0), self.k)
        limit = np.where(self.unknown[a] & self.unknown[others], floor, least)
        # one draw in fifty or more reaches the limit (5.5 = 2.35²)
        dense = judged & (limit * spread <= 5.5 * apart)
        if np.count_nonzero(judged) <= FEW_AGENTS:
            dense = judged
        elif np.count_nonzero(dense) < FEW_PAIRS:
            dense[:] = False
        limit *= (spread + 1 + self.beyond[others] + self.beyond[a]) * (1 - MARGIN)
        limit[dense | ~judged] = np.inf
        in_all = others if dense.all() else a + 1 + np.flatnonzero(dense)  # a slice is seen without a copy
        return in_all, limit.astype(np.float32)


def _least_spread(apart: FloatArray, k: int) -> FloatArray:
    """Return what Σw(x_a − x_b)² is at least in a draw, but for a chance of at most e^-TAIL.

    apart: Σ(x_a − x_b)² = k·m. The bound is k·m − √(2·TAIL·k·m(1 − m)) (Okamoto), Hoeffding's from m = ½ on.
    """
    mean = np.minimum(apart / k, 0.5)
    return np.asarray(np.maximum(apart - np.sqrt(2 * TAIL * k * mean * (1 - mean)), 0.0), dtype=np.float64)


class _Draw:
    """Some draws, and the maxima found in them so far, (n_agents, n_draws)."""

    def __init__(self, pairs: _Pairs, weights: FloatArray, noise: FloatArray, floor: float) -> None:
        cells, k = pairs.cells, weights.shape[1]
        self._pairs = pairs
        self._w = np.ascontiguousarray(weights.T, dtype=cells.dtype)
        self._twice = -2 * self._w
        sums = (cells @ self._w).astype(np.float64)
        squares = sums if pairs.is_binary else (pairs.squared @ self._w).astype(np.float64)
        self._t = sums * np.sqrt(2.0 / (k + 2))
        self._u = ((sums - pairs.sums[:, None]) / k + noise.T) * (k + 2)
        self._q = squares + 0.5 + pairs.beyond[:, None] - self._t**2 / 2
        self._gaps = self._u.astype(np.float32)
        self._scale = LARGEST_STEP / max(float(np.abs(self._gaps).max()), 1e-30)
        self._steps = np.rint(self._gaps * np.float32(self._scale)).astype(np.int16)
        self._shifts = (self._t * np.sqrt(floor / 2)).astype(np.float32)
        self._most, self._fewest = self._shifts.max(axis=1), self._shifts.min(axis=1)
        self._planes = [
            _packed(weights.astype(np.int64) >> b & 1) for b in range(int(weights.max()).bit_length())
        ]
        self.largest = np.zeros(self._u.shape)
        self._found: list[Sequence[IndexArray]] = []  # a, b and draw
        self._n_found = 0

    def all_of(self, a: int, others: IndexArray | slice) -> None:
        """Go through the pairs of one agent with others in all draws."""
        cells = self._pairs.cells[others]
        if len(cells):
            seen = np.flatnonzero(self._pairs.cells[a])
            twice = (cells[:, seen] * self._pairs.cells[a, seen]) @ self._twice[seen]
            signed = self._signed(a, others, slice(None), twice)
            self.largest[others] = np.maximum(self.largest[others], signed)
            np.maximum(self.largest[a], 0.0 - signed.min(axis=0), out=self.largest[a])

    def reaching(self, a: int, limit: Single) -> None:
        """Go through the pairs of one agent with all that follow in the draws that reach a limit."""
        if np.isinf(limit).all():
            return
        others = slice(a + 1, None)
        shift = np.maximum(self._most[a] - self._fewest[others], self._most[others] - self._fewest[a])
        least = np.sqrt(np.maximum(limit - shift * shift, 0.0)) * self._scale - ROUNDED
        steps = self._steps[others] - self._steps[a]
        near = np.abs(steps, out=steps) >= np.minimum(least, 2 * LARGEST_STEP + 1).astype(np.int16)[:, None]
        place, drawn = np.divmod(np.flatnonzero(near), near.shape[1])
        b = a + 1 + place
        gaps = self._gaps[b, drawn] - self._gaps[a, drawn]
        exact = gaps**2 + (self._shifts[b, drawn] - self._shifts[a, drawn]) ** 2 >= limit[place]
        found = np.full(np.count_nonzero(exact), a), b[exact], drawn[exact]
        self._found.append(found)
        self._n_found += len(found[1])
        if self._n_found >= MAX_PAIRS:
            self.finish()

    def finish(self) -> None:
        """Compute the pairs that reached their limits."""
        if not self._found:
            return
        a, b, drawn = map(np.concatenate, zip(*self._found, strict=True))
        step = max(MAX_CELLS // self._pairs.k, 1)
        for first in range(0, a.size, step):
            part = slice(first, first + step)
            products = -2 * self._products(a[part], b[part], drawn[part])
            signed = self._signed(a[part], b[part], drawn[part], products)
            np.maximum.at(self.largest, (b[part], drawn[part]), signed)
            np.maximum.at(self.largest, (a[part], drawn[part]), -signed)
        self._found, self._n_found = [], 0

    def _signed(
        self,
        a: int | IndexArray,
        b: IndexArray | slice,
        drawn: IndexArray | slice,
        twice: npt.NDArray[np.floating],
    ) -> FloatArray:
        """T*² of a over b, negative where it is behind; twice: −2Σw·x_a·x_b."""
        q, t, u = self._q, self._t, self._u
        spread, gaps = q[b, drawn] + q[a, drawn], t[b, drawn] * t[a, drawn]
        spread += gaps
        spread += twice
        np.subtract(u[a, drawn], u[b, drawn], out=gaps)
        gaps *= np.abs(gaps)
        gaps /= spread
        return np.asarray(gaps, dtype=np.float64)

    def _products(self, a: IndexArray, b: IndexArray, drawn: IndexArray) -> FloatArray:
        """Σw·x_a·x_b in one draw each, of passes by their bits and those of the weights."""
        bits, cells = self._pairs.bits, self._pairs.cells
        if bits is None:
            products = np.einsum("ij,ij->i", cells[b] * cells[a], self._w.T[drawn])
            return np.asarray(products, dtype=np.float64)
        sums, both = np.zeros(a.size), bits.take(a, axis=0) & bits.take(b, axis=0)
        for bit, plane in enumerate(self._planes):
            counts = np.bitwise_count(both & plane.take(drawn, axis=0))
            sums += np.einsum("ij->i", counts, dtype=np.float32) * 2.0**bit
        return sums


def _packed(true: npt.NDArray[np.generic]) -> Bits:
    """Rows of 0 and 1 as bits, 64 a word."""
    padded = np.zeros((len(true), -(-true.shape[1] // 64) * 64), dtype=np.bool_)
    padded[:, : true.shape[1]] = true
    return np.packbits(padded, axis=1).view(np.uint64)
