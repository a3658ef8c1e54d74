"""Estimators that are kept, so that a new agent that is not complete asks for no fit.

An estimator follows from its name, the subset and what complete agents have: one that was made of the very
same is the same to the last bit.

Not done here
-------------
Nothing is written to disk: a process that starts anew fits anew.
"""

import hashlib
from collections import OrderedDict

import numpy as np

from analytics.arrays import IndexArray
from selection.folds import CompleteAgents
from selection.full_scores.fitted import FullScores, fit

MOST_BYTES = 256 << 20


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

    def fit(self, estimator: str, agents: CompleteAgents, tasks: IndexArray) -> FullScores:
        """Return what `selection.full_scores.fit` does.

        Raises
        ------
        FullScoreRefused
        """
        told = hashlib.sha256(repr((estimator, agents.names, agents.outcomes.shape)).encode())
        for array in (agents.outcomes, agents.scores, np.asarray(tasks, dtype=np.intp)):
            told.update(np.ascontiguousarray(array).data)
        key = told.digest()
        made = self._made.pop(key, None) or fit(estimator, agents, tasks)
        self._made[key] = made
        while sum(one.agents.outcomes.nbytes for one in self._made.values()) > self._most_bytes:
            self._made.popitem(last=False)
        return made
