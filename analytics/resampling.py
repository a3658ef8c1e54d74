"""Random draws that depend only on (base seed, what is drawn, where), not on the order of calls.

A generator is seeded by the base seed, the name of what is drawn, read as one whole number (big-endian
UTF-8), and further whole numbers for the place, most often the number of the draw.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from analytics.errors import CoreError


def generator(seed: int, what: str, *place: int) -> np.random.Generator:
    """Return the generator of (`seed`, `what`, `place`), such as (7, ``"task bootstrap"``, fold, draw)."""
    if seed < 0:
        raise CoreError(f"a base seed of {seed}; it is 0 or above", code="seed")
    return np.random.default_rng((seed, _number(what), *place))


def fewer_draws(n_draws: int, n_agents: int) -> int:
    """Return n_draws up to 512 agents, and half as many for each doubling beyond, at least an eighth."""
    return int(n_draws >> min(max((n_agents - 1).bit_length() - 9, 0), 3))


def resampled_counts(seed: int, what: str, n: int, n_draws: int, *, first: int = 0) -> npt.NDArray[np.int64]:
    """How often each of n units is met in n draws with replacement, shape (n_draws, n); rows sum to n.

    Row b comes from the generator of (`seed`, `what`, `first` + b) alone.
    """
    if n_draws < 1:
        raise CoreError(f"{n_draws} bootstrap draws; at least 1 is needed", code="seed")
    counts = np.empty((n_draws, n), dtype=np.int64)
    for b, rng in enumerate(_generators(seed, what, first, n_draws)):
        counts[b] = np.bincount(rng.integers(n, size=n), minlength=n)
    return counts


def resampled_within(
    seed: int, what: str, strata: npt.NDArray[np.integer], n_draws: int, *, first: int = 0
) -> npt.NDArray[np.int64]:
    """How often each unit is met where each stratum, (n,), is drawn from anew, shape (n_draws, n)."""
    if n_draws < 1:
        raise CoreError(f"{n_draws} bootstrap draws; at least 1 is needed", code="seed")
    order = np.argsort(strata, kind="stable")
    _, place, of, size = np.unique(strata[order], return_index=True, return_inverse=True, return_counts=True)
    low = place[of]
    high = low + size[of]
    counts = np.empty((n_draws, len(order)), dtype=np.int64)
    for b, rng in enumerate(_generators(seed, what, first, n_draws)):
        counts[b, order] = np.bincount(rng.integers(low, high), minlength=len(order))
    return counts


def _generators(seed: int, what: str, first: int, n: int) -> Iterator[np.random.Generator]:
    """Yield the same streams as `generator(seed, what, place)` for n places from `first` on.

    The entropy is built once and only its last word changes.
    """
    if not 0 <= first <= first + n <= 1 << 32 or seed < 0:
        yield from (generator(seed, what, place) for place in range(first, first + n))
        return
    entropy = np.array([*_words(seed), *_words(_number(what)), 0], dtype=np.uint32)
    for place in range(first, first + n):
        entropy[-1] = place
        yield np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))


def _words(number: int) -> list[int]:
    """As SeedSequence reads a whole number: the lowest 32 bits first; one word for 0."""
    words = [number & 0xFFFFFFFF]
    while number := number >> 32:
        words.append(number & 0xFFFFFFFF)
    return words


def _number(what: str) -> int:
    return int.from_bytes(what.encode(), "big")
