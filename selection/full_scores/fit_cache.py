"""Fits that are kept, so that a new agent that is not complete asks for none.

A fit follows from its name, its tasks and what its agents have: one that was made of the very
same is the same to the last bit.

Not done here: nothing is written to disk: a process that starts anew fits anew.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from analytics.arrays import IndexArray
from selection.folds import CompleteAgents
from selection.full_scores.fitted import FullScores, fit
from selection.ridge import RidgeFit

MAX_BYTES, MIN_BYTES = 256 << 20, 1 << 20

Made = TypeVar("Made")


class FitCache:
    """The latest fits, up to a number of bytes of what they were made of.

    most_bytes: what was used longest ago is dropped beyond that; what is larger by itself is not kept.
    """

    def __init__(self, most_bytes: int = MAX_BYTES) -> None:
        self._made = LRUCache[bytes, tuple[Any, int]](most_bytes, itemgetter(1))

    def made(self, description: object, *arrays: npt.NDArray[np.generic], make: Callable[[], Made]) -> Made:
        """Return what `make` does, made once for each such `told` and such arrays, which decide it."""
        key = _sha256(description, *arrays)
        n_bytes = sum(array.nbytes for array in arrays) + MIN_BYTES
        value: Made = self._made[key][0] if key in self._made else make()
        with suppress(ValueError):  # it is larger than all may be
            self._made[key] = (value, n_bytes)
        return value

    def fit(
        self, estimator: str, agents: CompleteAgents, tasks: IndexArray, known: RidgeFit | None = None
    ) -> FullScores:
        """Return what `selection.full_scores.fit` does.

        Raises SelectionError (name_unknown, no_fit, cells_missing).
        """
        description = (estimator, agents.names, agents.outcomes.shape, known and known.as_plain())
        arrays = (agents.outcomes, agents.scores, np.asarray(tasks, dtype=np.intp))
        return self.made(description, *arrays, make=lambda: fit(estimator, agents, tasks, known))


def _sha256(description: object, *arrays: npt.NDArray[np.generic]) -> bytes:
    digest = hashlib.sha256(repr(description).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()
