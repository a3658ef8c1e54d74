"""The arrays that the core passes about, the one way to freeze them, and where two numbers count as equal."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from analytics import DECIMALS as DECIMALS

FloatArray = npt.NDArray[np.float64]
CountArray = npt.NDArray[np.int32]
CodeArray = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Value = TypeVar("Value", str, tuple[str, str, str])


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view of `array`, or its copy with rows in one piece, that refuses to be written to."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def columns(array: npt.NDArray[Any], at: IndexArray) -> npt.NDArray[Any]:
    """Return columns of a matrix with rows in one piece: itself where all are asked for, in their order."""
    is_whole = at.size == array.shape[1] and np.array_equal(at, np.arange(at.size))
    return array if is_whole else np.take(array, at, axis=1)


def ratio(a: npt.NDArray[Any], b: npt.NDArray[Any], above: float = 0.0) -> FloatArray:
    """Divide; NaN where the divisor is not above a bound."""
    quotient = np.full(a.shape, np.nan)
    np.divide(a, b, out=quotient, where=b > above)
    return quotient


def coded(values: Sequence[Value]) -> tuple[tuple[Value, ...], IndexArray]:
    """Return the distinct values in ascending order, and the place of each value among them."""
    names = tuple(sorted(set(values)))
    place = {name: code for code, name in enumerate(names)}
    return names, np.array([place[value] for value in values], dtype=np.intp)
