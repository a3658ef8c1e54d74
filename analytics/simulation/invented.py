"""Invented scaffolds, models, agents and tasks: who plays in a simulated benchmark, and when.

Scaffolds and models are released in the course of a year; an agent appears between the later release of its
two and half a year after. All names are invented, and drawn from the generator that is passed in.

Source: this project's own.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np

from analytics.arrays import FloatArray, IndexArray

N_DAYS = 364

Generator = np.random.Generator


@dataclass(frozen=True)
class InventedScaffold:
    """An invented harness: share of the agents, release as a fraction of the year, turns a trial."""

    name: str
    share: float
    released: float
    turns: float


@dataclass(frozen=True)
class InventedModel:
    """An invented model: release as a fraction of the year, whether it is small, price in USD a turn."""

    name: str
    released: float
    small: bool
    price: float


SCAFFOLDS = (
    InventedScaffold("Plain Loop", 0.34, 0.0, 1.0),
    InventedScaffold("Pair Review", 0.22, 0.0, 2.2),
    InventedScaffold("Tree Search", 0.16, 0.0, 4.5),
    InventedScaffold("Plan and Patch", 0.14, 0.1, 1.4),
    InventedScaffold("Sketchpad", 0.08, 0.35, 1.2),
    InventedScaffold("Relay Team", 0.06, 0.6, 3.0),
)

MODELS = (
    InventedModel("Aster 1", 0.0, False, 0.09),
    InventedModel("Aster 1 mini", 0.0, True, 0.012),
    InventedModel("Borealis 1", 0.0, False, 0.07),
    InventedModel("Cinder 70", 0.0, False, 0.025),
    InventedModel("Borealis 1.5 mini", 0.15, True, 0.01),
    InventedModel("Aster 2", 0.25, False, 0.11),
    InventedModel("Damson 4", 0.3, False, 0.05),
    InventedModel("Cinder 120", 0.45, False, 0.04),
    InventedModel("Borealis 2", 0.5, False, 0.08),
    InventedModel("Aster 2 mini", 0.55, True, 0.015),
    InventedModel("Damson 5", 0.7, False, 0.06),
    InventedModel("Aster 3", 0.75, False, 0.13),
)

# The nouns of each category; a task's name is category/number-adjective-noun.
CATEGORIES = {
    "build": ("makefile", "linker-flag", "lockfile", "cross-build", "cache-key", "module-path"),
    "data": ("join", "time-series", "pivot", "duplicate-row", "unit-column", "missing-value"),
    "games": ("maze", "chess-endgame", "word-ladder", "tile-puzzle", "card-count", "nim-heap"),
    "geometry": ("convex-hull", "mesh", "projection", "tiling", "voronoi-cell", "great-circle"),
    "networks": ("proxy-rule", "retry-loop", "dns-zone", "packet-trace", "webhook", "socket-leak"),
    "parsing": ("quote", "date-format", "config-file", "log-line", "heredoc", "number-locale"),
    "schedules": ("shift-plan", "timetable", "cron-entry", "deadline", "room-booking", "leap-day"),
    "security": ("password-hash", "header", "token-scope", "sandbox", "certificate", "path-traversal"),
}
ADJECTIVES = ("broken", "nested", "silent", "circular", "stale", "hidden", "odd", "sparse", "greedy", "mixed")


@dataclass(frozen=True)
class Roster:
    """The agents in name order: scaffold and model as positions, time in years, a twin's original or −1."""

    names: tuple[str, ...]
    scaffold: IndexArray
    model: IndexArray
    time: FloatArray
    original: IndexArray


def roster_of(rng: Generator, n_agents: int, n_twins: int) -> Roster:
    """Draw the agents; twins come last in time, up to five weeks after their originals."""
    scaffold, model = _pairs(rng, n_agents - n_twins)
    # Uniform from the later release to half a year after it, at most 1
    released = np.maximum(
        np.array([entry.released for entry in SCAFFOLDS])[scaffold],
        np.array([entry.released for entry in MODELS])[model],
    )
    last = np.minimum(released + 0.5, 1.0)
    time = np.asarray(released + (last - released) * rng.random(len(scaffold)), dtype=np.float64)
    originals = rng.choice(len(scaffold), size=n_twins, replace=False).astype(np.intp)
    later = np.minimum(time[originals] + rng.uniform(7, 35, size=n_twins) / N_DAYS, 1.0)
    scaffold, model = np.append(scaffold, scaffold[originals]), np.append(model, model[originals])
    time = np.append(time, later)
    names = _agent_names(scaffold, model, time)
    by_name = np.array(sorted(range(n_agents), key=names.__getitem__), dtype=np.intp)
    place = np.argsort(by_name)
    original = np.append(np.full(n_agents - n_twins, -1, dtype=np.intp), place[originals])
    return Roster(
        names=tuple(names[i] for i in by_name),
        scaffold=scaffold[by_name],
        model=model[by_name],
        time=time[by_name],
        original=original[by_name],
    )


def _pairs(rng: Generator, n: int) -> tuple[IndexArray, IndexArray]:
    ends = np.rint(n * np.cumsum([scaffold.share for scaffold in SCAFFOLDS])).astype(np.intp)
    counts = np.diff(ends, prepend=0)
    models = [np.resize(rng.permutation(len(MODELS)), count) for count in counts]
    return np.repeat(np.arange(len(SCAFFOLDS)), counts), np.concatenate(models).astype(np.intp)


def _agent_names(scaffold: IndexArray, model: IndexArray, time: FloatArray) -> list[str]:
    """``InventedScaffold (Model)``, later agents of the same pair with their version."""
    versions: Counter[tuple[int, int]] = Counter()
    names = [""] * len(time)
    for i in np.argsort(time, kind="stable"):
        pair = int(scaffold[i]), int(model[i])
        versions[pair] += 1
        version = f" v{versions[pair]}" if versions[pair] > 1 else ""
        names[i] = f"{SCAFFOLDS[pair[0]].name} ({MODELS[pair[1]].name}){version}"
    return names


def task_names(rng: Generator, n_tasks: int) -> tuple[tuple[str, ...], IndexArray]:
    """Names in ascending order with the position of their category; numbers run inside a category."""
    width = max(2, len(str(-(-n_tasks // len(CATEGORIES)))))
    words = {category: _words(rng, nouns) for category, nouns in CATEGORIES.items()}
    named = []
    for j in range(n_tasks):
        number, position = divmod(j, len(CATEGORIES))
        category = tuple(CATEGORIES)[position]
        word = words[category][number % len(words[category])]
        named.append((f"{category}/{number + 1:0{width}d}-{word}", position))
    named.sort()
    return tuple(name for name, _ in named), np.array([position for _, position in named], dtype=np.intp)


def _words(rng: Generator, nouns: tuple[str, ...]) -> list[str]:
    words = [f"{adjective}-{noun}" for adjective, noun in product(ADJECTIVES, nouns)]
    return [words[i] for i in rng.permutation(len(words))]
