"""Draws that are kept, so that after one new agent only its pairs are drawn.

What `analytics.differences.neyman_draws.ahead` finds of a set of agents stays true while they and their
outcomes stay; with more agents it is the maximum of what was found and what the new pairs add::

    max over all b of T*_ba²  =  max( max over old b of T*_ba²,  max over new b of T*_ba² )

T* is equal to the last bit however many agents are computed at once (`neyman_draws`), and no floor is above
what decides, so that a board is the same whether anything was kept or not. Where an agent has gone, its
outcomes changed, or the upper point fell below the floor, all is drawn anew.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from operator import attrgetter

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache, cachedmethod

from analytics.arrays import FloatArray, Mask, read_only
from analytics.differences.error_draws import own_draws
from analytics.differences.finite_errors import AgentError
from analytics.differences.neyman_draws import Maxima, Weights, ahead, pair_variances, task_weights

MAX_BYTES = 256 << 20
Place = tuple[int, int, int]  # k, seed, n_draws


class KeptWeights:
    """The weights of all draws, two bytes each: they depend on no agent, so that all boards share them.

    most_bytes: what was used longest ago is dropped beyond that; what is larger by itself is drawn each time.
    """

    def __init__(self, most_bytes: int) -> None:
        self._drawn = LRUCache[Place, npt.NDArray[np.uint16]](most_bytes, attrgetter("nbytes"))

    def of(self, place: Place) -> Weights:
        """Return what `analytics.differences.neyman_draws.task_weights` does there."""
        k, seed, n_draws = place
        if 2 * k * n_draws > self._drawn.maxsize:
            return task_weights
        if place not in self._drawn:
            self._drawn[place] = task_weights(k, seed, n_draws).astype(np.uint16)
        weights_there = self._drawn[place]

        def weights(k: int, seed: int, n_draws: int, *, first: int = 0) -> FloatArray:
            return weights_there[first : first + n_draws].astype(np.float64)

        return weights


WEIGHTS = KeptWeights(MAX_BYTES // 4)


class KeptDraws:
    """The latest draws, up to a number of bytes.

    most_bytes: what was used longest ago is dropped beyond that; what is larger by itself is not kept.
    """

    def __init__(self, most_bytes: int = MAX_BYTES) -> None:
        self._most_bytes = most_bytes
        # by name the SHA-256 of all that decides what was found, and that
        self._draws: OrderedDict[tuple[Place, int], tuple[dict[str, bytes], Maxima]] = OrderedDict()
        self._n = 0
        self._variances = LRUCache[bytes, FloatArray](most_bytes // 2, attrgetter("nbytes"))
        self._own = LRUCache[Hashable, FloatArray](most_bytes // 2, attrgetter("nbytes"))

    def ahead(
        self,
        outcomes: FloatArray,
        names: Sequence[str],
        v: FloatArray,
        unknown_noise: Mask,
        *,
        seed: int,
        n_draws: int,
    ) -> Maxima:
        """Return what `analytics.differences.neyman_draws.ahead` does, read-only; the floor may differ."""
        place = (outcomes.shape[1], seed, n_draws)
        rows = {
            name: _sha256(row, v_a, noise)
            for name, row, v_a, noise in zip(names, outcomes, v, unknown_noise, strict=True)
        }
        inside = [
            key for key, (of, _) in self._draws.items() if key[0] == place and of.items() <= rows.items()
        ]
        key = max(inside, key=lambda key: len(self._draws[key][0]), default=None)
        if key is not None and len(self._draws[key][0]) == len(rows):
            self._draws.move_to_end(key)
            return self._draws[key][1]
        known = new = None
        if key is not None:
            rows_before, before = self._draws.pop(key)
            column = {name: i for i, name in enumerate(rows_before)}
            new = np.array([name not in column for name in names])
            known = Maxima(np.zeros((n_draws, len(names))), before.floor)
            known.squares[:, ~new] = before.squares[:, [column[name] for name in names if name in column]]
        found = ahead(
            outcomes,
            names,
            v,
            unknown_noise,
            seed=seed,
            n_draws=n_draws,
            weights=WEIGHTS.of(place),
            known=known,
            new=new,
        )
        # in place of what was found of the same agents, or some of them, by earlier outcomes
        for key in [
            key for key, (of, _) in self._draws.items() if key[0] == place and of.keys() <= rows.keys()
        ]:
            del self._draws[key]
        self._n += 1
        found = Maxima(read_only(found.squares), found.floor)
        self._draws[place, self._n] = rows, found
        while sum(one.squares.nbytes for _, one in self._draws.values()) > self._most_bytes:
            self._draws.popitem(last=False)
        return found

    @cachedmethod(attrgetter("_variances"), lambda _, x, v: _sha256(np.array(x.shape), x, v))
    def pair_variances(self, outcomes: FloatArray, v: FloatArray) -> FloatArray:
        """Return what `analytics.differences.neyman_draws.pair_variances` does, read-only; kept as it is."""
        return read_only(pair_variances(outcomes, v))

    @cachedmethod(attrgetter("_own"))
    def own(self, name: str, error: AgentError, *, seed: int, n_draws: int) -> FloatArray:
        """Return what `analytics.differences.error_draws.own_draws` does, read-only."""
        return read_only(own_draws(name, error, seed=seed, n_draws=n_draws))


def _sha256(*parts: npt.NDArray[np.generic] | np.generic) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.digest()
