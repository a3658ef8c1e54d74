"""Estimators that are kept, so that a new agent that is not complete asks for no fit.

An estimator follows from its name, the subset and what complete agents have: one that was made of the very
same is the same to the last bit.

Not done here
-------------
Nothing is written to disk: a process that starts anew fits anew.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from analytics.arrays import IndexArray
from selection.folds import CompleteAgents
from selection.full_scores.fitted import FullScores, fit

MOST_BYTES = 256 << 20
MOST_NUMBERS = 64


class KeptFits:
    """The latest estimators, up to a number of bytes of outcomes.

    Parameters
    ----------
    most_bytes : int
        What was used longest ago is dropped beyond that; what is larger by itself is not kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._made: OrderedDict[bytes, FullScores] = OrderedDict()
        self._numbers: OrderedDict[bytes, float] = OrderedDict()

    def fit(self, estimator: str, agents: CompleteAgents, tasks: IndexArray) -> FullScores:
        """Return what `selection.full_scores.fit` does.

        Raises
        ------
        FullScoreRefused
        """
        told = (estimator, agents.names, agents.outcomes.shape)
        key = _sha256(told, agents.outcomes, agents.scores, np.asarray(tasks, dtype=np.intp))
        made = self._made.pop(key, None) or fit(estimator, agents, tasks)
        self._made[key] = made
        while sum(one.agents.outcomes.nbytes for one in self._made.values()) > self._most_bytes:
            self._made.popitem(last=False)
        return made

    def number(self, told: object, *arrays: npt.NDArray[np.generic], make: Callable[[], float]) -> float:
        """Return what `make` does, made once for each such `told` and such arrays, which decide it."""
        key = _sha256(told, *arrays)
        found = self._numbers.pop(key, None)
        self._numbers[key] = found = make() if found is None else found
        while len(self._numbers) > MOST_NUMBERS:
            self._numbers.popitem(last=False)
        return found


def _sha256(told: object, *arrays: npt.NDArray[np.generic]) -> bytes:
    made = hashlib.sha256(repr(told).encode())
    for array in arrays:
        made.update(np.ascontiguousarray(array).data)
    return made.digest()
