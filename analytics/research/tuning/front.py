"""Configurations that no other beats in every figure, and how much they dominate.

A point holds figures of which more is better, such as (R, D, C, −cost). A point is beaten by one that is at
least as good in each figure and better in one. Of equal points the first is kept.

The hypervolume is the volume between a reference and the points: the share of outcomes that some point of the
front is at least as good as. It is summed over slices of the last figure, O(n^(d−1)·log n): for the fronts of
some dozens of trials.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.errors import CoreError


def front(points: npt.ArrayLike) -> list[int]:
    """Return the rows that no row beats, of equal ones the first; in ascending order.

    points: (n_points, n_figures); more is better.
    """
    x = _matrix(points)
    at_least = (x[:, None] >= x[None]).all(axis=2)  # row i is at least as good as row j
    beats = at_least & ~at_least.T
    equal = at_least & at_least.T
    earlier = np.tril(equal, -1).any(axis=1)
    return np.flatnonzero(~beats.any(axis=0) & ~earlier).tolist()


def hypervolume(points: npt.ArrayLike, reference: Sequence[float]) -> float:
    """Return the volume that points dominate above a reference, in the product of the figures' units.

    points: (n_points, n_figures); what is not above the reference in every figure adds nothing.
    reference: length n_figures.
    """
    x = _matrix(points)
    low = np.asarray(reference, dtype=np.float64)
    if low.shape != x.shape[1:] or not np.isfinite(low).all():
        raise CoreError(f"a reference of {x.shape[1]} finite numbers is needed", code="front")
    x = x[(x > low).all(axis=1)] - low
    return _volume(x[front(x)] if len(x) else x)


def _volume(x: FloatArray) -> float:
    """Of points above the origin: slices of the last figure, from the highest down."""
    if not len(x):
        return 0.0
    if x.shape[1] == 1:
        return float(x.max())
    x = x[np.argsort(-x[:, -1], kind="stable")]
    below = np.append(x[1:, -1], 0.0)
    total = 0.0
    for n, height in enumerate((x[:, -1] - below).tolist(), start=1):
        if height > 0.0:
            slice_ = x[:n, :-1]
            total += height * _volume(slice_[front(slice_)])
    return total


def _matrix(points: npt.ArrayLike) -> FloatArray:
    x = np.asarray(points, dtype=np.float64)
    if x.ndim != 2 or not x.shape[1] or not np.isfinite(x).all():
        raise CoreError(f"points are a matrix of finite numbers, not of shape {x.shape}", code="front")
    return x
