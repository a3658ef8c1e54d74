"""Rank correlation: how well the order of agents on a subset agrees with their order on all tasks.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4 (ρ of subset mean and full score). Kendall, *Rank
Correlation Methods*, 1970, ch. 3 (midranks, τ_b). Efron & Tibshirani, *An Introduction to the Bootstrap*,
1993, ch. 11 (jackknife). ρ₀ and the skill are this project's own.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask, ratio
from analytics.errors import CoreError
from analytics.resampling import generator

N_DRAWS = 500
CHUNK_CELLS = 4_000_000
BLOCK_CELLS = 1_000_000
N_BITS = 64  # of a word

Bits = npt.NDArray[np.uint64]
refuse = partial(CoreError, code="sample_malformed")


def midranks(x: npt.ArrayLike) -> FloatArray:
    """Ranks from 1 along the last axis, equal values (after rounding to 1e-9) sharing the mean of theirs."""
    values = np.asarray(x, dtype=np.float64)
    if not np.isfinite(values).all():
        raise refuse("a value that is missing or infinite has no rank")
    return _midranks(values)


def spearman(a: npt.ArrayLike, b: npt.ArrayLike) -> float | None:
    """Spearman's ρ of two samples, (n,), by midranks; None where one is constant or n is below 2."""
    first, second = _checked_pair(a, b)
    rho = _row_spearman(_centred_ranks(first), _centred_ranks(second))
    return None if np.isnan(rho) else float(rho)


def spearman_interval(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[float, float] | None:
    """95% interval of Spearman's ρ of two samples, by z = artanh ρ with each pair left out.

    None where ρ, or one without a pair, is 1 or undefined. Centred ranks are row sums of signs of
    differences; without pair i its column falls away. All sums are whole numbers, and exact.
    """
    means, scores = _checked_pair(a, b)
    rho = spearman(means, scores)
    if rho is None:
        return None
    first, second = (_order_signs(np.round(x, DECIMALS)).astype(np.float64) for x in (means, scores))
    product = _without_each(first, second)
    scale = np.sqrt(_without_each(first, first) * _without_each(second, second))
    rhos = ratio(product, scale)
    with np.errstate(divide="ignore"):
        z = np.arctanh(rhos)
    if abs(rho) == 1.0 or not np.isfinite(z).all():
        return None
    error = np.sqrt((z.size - 1) / z.size * np.sum((z - z.mean()) ** 2))
    half = stdtrit(z.size - 1, 0.975) * error
    return float(np.tanh(np.arctanh(rho) - half)), float(np.tanh(np.arctanh(rho) + half))


def kendall(a: npt.ArrayLike, b: npt.ArrayLike) -> float | None:
    """Kendall's τ_b of two samples, (n,), (C − D)/√(n₁·n₂); None where one is constant or n below 2."""
    first, second = (_order_signs(np.round(x, DECIMALS)) for x in _checked_pair(a, b))
    concordance = np.sum(first * second, dtype=np.int64)
    n_1, n_2 = (int(np.count_nonzero(signs)) for signs in (first, second))
    return float(concordance / np.sqrt(n_1 * n_2)) if n_1 and n_2 else None


def rho_null(
    outcomes: FloatArray, subsets: Mask, seed: int, n_draws: int = N_DRAWS
) -> tuple[float | None, ...]:
    """ρ₀ of each subset: mean Spearman of subset mean with full mean where agents do not differ.

    outcomes, subsets: (n_agents, n_tasks) of complete agents, NaN: missing; (n_subsets, n_tasks).
    seed: draw d, shared by all subsets, is made by a generator of (seed, "rho_null", d) alone.
    Returns: length n_subsets; None where in no draw both means vary.
    """
    return _means(_draws(outcomes, subsets, seed, n_draws, _null_rhos))


def nulls(
    outcomes: FloatArray, subsets: Mask, seed: int, n_draws: int = N_DRAWS
) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    """ρ₀ and p₀ of each subset, on the same permuted matrices; arguments as in `rho_null`."""
    both = _draws(
        outcomes,
        subsets,
        seed,
        n_draws,
        lambda sums, counts: np.concatenate([_null_rhos(sums, counts), _null_pairs(sums, counts)]),
    )
    return _means(both[: len(subsets)]), _means(both[len(subsets) :])


def skill(rho: float | None, rho_null: float | None) -> float | None:
    """(ρ − ρ₀)/(1 − ρ₀); None where either is None or ρ₀ is 1 (the subset is the whole suite)."""
    if rho is None or rho_null is None or rho_null >= 1.0:
        return None
    return (rho - rho_null) / (1.0 - rho_null)


def _midranks(values: FloatArray) -> FloatArray:
    """Mean of the first and the last place of each run of equal values, along the last axis."""
    order, first, last = _runs(values)
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=-1)
    return ranks


def _runs(values: FloatArray) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Who has each place, from 0, and first and last place of the run of equal values about it."""
    rounded = np.round(values, DECIMALS)
    order = np.argsort(rounded, axis=-1)
    ascending = np.take_along_axis(rounded, order, axis=-1)
    place = np.arange(rounded.shape[-1])
    new = np.ones(rounded.shape, dtype=np.bool_)
    new[..., 1:] = ascending[..., 1:] != ascending[..., :-1]
    first = np.maximum.accumulate(np.where(new, place, 0), axis=-1)
    ends = np.ones(rounded.shape, dtype=np.bool_)
    ends[..., :-1] = new[..., 1:]
    last = np.where(ends, place, place.size)
    last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    return order, first, last


def _centred_ranks(values: FloatArray) -> FloatArray:
    """2·midrank − (n + 1): whole numbers that sum to 0, so that sums of their products are exact."""
    return np.asarray(2 * _midranks(values) - (values.shape[-1] + 1), dtype=np.float64)


def _row_spearman(a: FloatArray, b: FloatArray) -> FloatArray:
    """Σab/√(Σa²·Σb²) along the last axis; NaN where a row is constant."""
    product = np.sum(a * b, axis=-1)
    scale = np.sqrt(np.sum(a**2, axis=-1) * np.sum(b**2, axis=-1))
    return ratio(product, scale)


def _order_signs(values: FloatArray) -> npt.NDArray[np.int8]:
    return np.sign(values[:, None] - values[None, :]).astype(np.int8)


def _permuted_columns(outcomes: FloatArray, seed: int, n_draws: int) -> Iterator[FloatArray]:
    """Chunks of draws, shape (n_chunk, n_tasks, n_agents): tasks in rows, 0 where missing."""
    by_task = np.ascontiguousarray(outcomes.T)
    missing = np.isnan(by_task)
    filled, places = np.where(missing, 0.0, by_task), np.argsort(missing, axis=1, kind="stable")
    n_chunk = max(1, CHUNK_CELLS // by_task.size)
    for first in range(0, n_draws, n_chunk):
        chunk = np.empty((min(n_chunk, n_draws - first), *filled.shape))
        for draw, permuted in enumerate(chunk, start=first):
            # each row's valid values, in random order, at its valid places
            keys = generator(seed, "rho_null", draw).random(filled.shape)
            keys[missing] = 2.0
            shuffled = np.take_along_axis(filled, np.argsort(keys, axis=1), axis=1)
            if missing.any():
                np.put_along_axis(permuted, places, shuffled, axis=1)
            else:
                permuted[:] = shuffled
        yield chunk


def _draws(
    outcomes: FloatArray,
    subsets: Mask,
    seed: int,
    n_draws: int,
    figures: Callable[[FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    """Figures of every permuted matrix, (n_figures, n_draws), from its sums and counts of cells."""
    outcomes, subsets = np.asarray(outcomes, dtype=np.float64), np.asarray(subsets)
    if outcomes.ndim != 2 or 0 in outcomes.shape:
        raise refuse(f"outcomes of shape {outcomes.shape} are not agents by tasks")
    if subsets.dtype != np.bool_ or subsets.ndim != 2 or subsets.shape[1] != outcomes.shape[1]:
        raise refuse(f"subsets: {subsets.dtype} {subsets.shape}, not bool (n_subsets, {outcomes.shape[1]})")
    if not subsets.any(axis=1).all():
        raise refuse(f"subset {int(np.argmin(subsets.any(axis=1)))} has no task")
    if np.isnan(outcomes).all(axis=1).any():
        row = int(np.argmax(np.isnan(outcomes).all(axis=1)))
        raise refuse(f"agent {row} has no valid cell: no full mean")
    membership = np.vstack([np.ones((1, outcomes.shape[1])), subsets])
    counts = membership @ ~np.isnan(outcomes.T)
    chunks = _permuted_columns(outcomes, seed, n_draws)
    return np.concatenate([figures(membership @ chunk, counts) for chunk in chunks], axis=1)


def _means(draws: FloatArray) -> tuple[float | None, ...]:
    defined = [values[~np.isnan(values)] for values in draws]
    return tuple(float(values.mean()) if values.size else None for values in defined)


def _null_pairs(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Share of pairs that every subset orders as the whole (row 0) does, shape (n_subsets, n_chunk)."""
    has_cell = counts[1:] > 0
    pairs = np.empty((len(has_cell), len(sums)))
    n_block = max(1, BLOCK_CELLS // has_cell.shape[1] ** 2)
    for draw, of_draw in enumerate(sums):
        order, *y = _lower_and_higher(of_draw[:1] / counts[0])
        y_of = np.concatenate(y)[:, order[0].argsort()]
        means = np.where(has_cell, of_draw[1:] / np.maximum(counts[1:], 1), 0.0)
        for first in range(0, len(has_cell), n_block):
            block = slice(first, first + n_block)
            pairs[block, draw] = _shares_in_order(y_of, means[block], has_cell[block])
    return pairs


def _shares_in_order(y: Bits, means: FloatArray, has_cell: Mask) -> FloatArray:
    """Mean over agents of (n_i + Σ_j agreeing − opposite)/(2·n_i), n_i those with another score."""
    order, lower, higher = _lower_and_higher(means)
    y_lower, y_higher = y.take(order, axis=1)
    among = _bits(has_cell)[:, None]
    agreeing = _n_bits((y_lower & lower | y_higher & higher) & among)
    opposite = _n_bits((y_lower & higher | y_higher & lower) & among)
    concordance = np.empty(order.shape, dtype=np.intp)
    np.put_along_axis(concordance, order, agreeing - opposite, axis=1)
    n_other = np.where(has_cell, _n_bits((y[0] | y[1]) & among), 0)
    comparable = n_other > 0
    each = np.where(comparable, 0.5 + concordance / (2.0 * np.maximum(n_other, 1)), 0.0)
    n_comparable = np.count_nonzero(comparable, axis=1)
    return np.where(n_comparable > 0, each.sum(axis=1) / np.maximum(n_comparable, 1), np.nan)


def _lower_and_higher(values: FloatArray) -> tuple[IndexArray, Bits, Bits]:
    """Who has each place of a row, and who is lower and who higher than that one, (n_rows, n, n_words)."""
    (n_rows, n), (order, first, last) = values.shape, _runs(values)
    of_each, starts = _bits(np.eye(n, dtype=np.bool_)), (n + 1) * np.arange(n_rows)[:, None]
    before = np.zeros((n_rows, n + 1, of_each.shape[1]), dtype=np.uint64)
    np.bitwise_or.accumulate(of_each.take(order, axis=0), axis=1, out=before[:, 1:])
    before_each = before.reshape(-1, of_each.shape[1])
    not_after = before_each.take(starts + last + 1, axis=0)
    return order, before_each.take(starts + first, axis=0), before[:, -1:] & ~not_after


def _bits(mask: Mask) -> Bits:
    padded = np.zeros((*mask.shape[:-1], -(-mask.shape[-1] // N_BITS) * N_BITS), dtype=np.bool_)
    padded[..., : mask.shape[-1]] = mask
    return np.packbits(padded, axis=-1).view(np.uint64)


def _n_bits(bits: Bits) -> IndexArray:
    return np.asarray(np.einsum("...w->...", np.bitwise_count(bits), dtype=np.intp))


def _null_rhos(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """ρ of every subset with the whole (row 0), shape (n_subsets, n_chunk), from sums and counts of cells."""
    full_means = sums[:, 0] / counts[0]
    full_ranks = _centred_ranks(full_means)
    rhos = np.empty((len(counts) - 1, len(sums)))
    for s, n_cells in enumerate(counts[1:]):
        has_cell = n_cells > 0
        ranks = _centred_ranks(sums[:, s + 1, has_cell] / n_cells[has_cell])
        rhos[s] = _row_spearman(
            ranks, full_ranks if has_cell.all() else _centred_ranks(full_means[:, has_cell])
        )
    return rhos


def _without_each(first: FloatArray, second: FloatArray) -> FloatArray:
    """Σ_{j≠i} (a_j − first_ji)·(b_j − second_ji) for each i, with a, b the row sums of the signs."""
    a, b = first.sum(axis=1), second.sum(axis=1)
    crossed = np.sum(first * second, axis=0)
    return np.asarray(a @ b - a @ second - b @ first + crossed - a * b, dtype=np.float64)


def _checked_pair(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise refuse(f"samples of shapes {first.shape} and {second.shape} are not pairs of values")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise refuse("a value that is missing or infinite has no rank")
    return first, second
