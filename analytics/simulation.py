"""A simulated benchmark: agents, tasks and trials drawn from a known response model.

It is the built-in demonstration, which so owes nothing to anyone's data, and the ground truth of simulation
studies: the truth behind the outcomes is returned with them. All names are invented. Scaffolds and
models are released in the course of a year; an agent appears between the later release of its two and half a
year after.

Source: Rasch, *Probabilistic Models for Some Intelligence and Attainment Tests*, 1960. Fischer, *Acta
Psychologica* 37 (1973) 359-374 (the linear logistic test model). De Boeck & Wilson, *Explanatory Item
Response Models*, 2004 (structure and random effects on the person's side).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from analytics.errors import CoreError

N_DAYS = 364

Generator = np.random.Generator


# share of the agents, release as a fraction of the year, turns a trial
SCAFFOLDS = {
    "Plain Loop": (0.34, 0.0, 1.0),
    "Pair Review": (0.22, 0.0, 2.2),
    "Tree Search": (0.16, 0.0, 4.5),
    "Plan and Patch": (0.14, 0.1, 1.4),
    "Sketchpad": (0.08, 0.35, 1.2),
    "Relay Team": (0.06, 0.6, 3.0),
}

# release as a fraction of the year, whether it is small, price in USD a turn
MODELS = {
    "Aster 1": (0.0, False, 0.09),
    "Aster 1 mini": (0.0, True, 0.012),
    "Borealis 1": (0.0, False, 0.07),
    "Cinder 70": (0.0, False, 0.025),
    "Borealis 1.5 mini": (0.15, True, 0.01),
    "Aster 2": (0.25, False, 0.11),
    "Damson 4": (0.3, False, 0.05),
    "Cinder 120": (0.45, False, 0.04),
    "Borealis 2": (0.5, False, 0.08),
    "Aster 2 mini": (0.55, True, 0.015),
    "Damson 5": (0.7, False, 0.06),
    "Aster 3": (0.75, False, 0.13),
}
SHARE, SCAFFOLD_RELEASED, TURNS = np.array(list(SCAFFOLDS.values())).T
MODEL_RELEASED, IS_SMALL, PRICE = np.array(list(MODELS.values()), dtype=np.float64).T

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


class _Roster(NamedTuple):
    """Agents in name order: scaffold and model as positions, time in years, a twin's original or −1."""

    names: tuple[str, ...]
    scaffold: IndexArray
    model: IndexArray
    time: FloatArray
    original: IndexArray


def _roster(rng: Generator, n_agents: int, n_twins: int) -> _Roster:
    """Draw the agents; twins come last in time, up to five weeks after their originals."""
    n = n_agents - n_twins
    ends = np.rint(n * np.cumsum(SHARE)).astype(np.intp)
    counts = np.diff(ends, prepend=0)
    models = [np.resize(rng.permutation(len(MODELS)), count) for count in counts]
    scaffold, model = np.repeat(np.arange(len(SCAFFOLDS)), counts), np.concatenate(models).astype(np.intp)
    # Uniform from the later release to half a year after it, at most 1
    released = np.maximum(SCAFFOLD_RELEASED[scaffold], MODEL_RELEASED[model])
    last = np.minimum(released + 0.5, 1.0)
    time = np.asarray(released + (last - released) * rng.random(len(scaffold)), dtype=np.float64)
    originals = rng.choice(len(scaffold), size=n_twins, replace=False).astype(np.intp)
    later = np.minimum(time[originals] + rng.uniform(7, 35, size=n_twins) / N_DAYS, 1.0)
    scaffold, model = np.append(scaffold, scaffold[originals]), np.append(model, model[originals])
    time = np.append(time, later)
    versions: Counter[tuple[int, int]] = Counter()
    names = [""] * n_agents  # later agents of the same pair with their version
    for i in np.argsort(time, kind="stable"):
        pair = int(scaffold[i]), int(model[i])
        versions[pair] += 1
        version = f" v{versions[pair]}" if versions[pair] > 1 else ""
        names[i] = f"{tuple(SCAFFOLDS)[pair[0]]} ({tuple(MODELS)[pair[1]]}){version}"
    by_name = np.array(sorted(range(n_agents), key=names.__getitem__), dtype=np.intp)
    place = np.argsort(by_name)
    original = np.append(np.full(n_agents - n_twins, -1, dtype=np.intp), place[originals])
    return _Roster(
        tuple(names[i] for i in by_name),
        scaffold[by_name],
        model[by_name],
        time[by_name],
        original[by_name],
    )


def task_names(rng: Generator, n_tasks: int) -> tuple[tuple[str, ...], IndexArray]:
    """Names in ascending order with the position of their category; numbers run inside a category."""
    width = max(2, len(str(-(-n_tasks // len(CATEGORIES)))))
    words = {}
    for category, nouns in CATEGORIES.items():
        pairs = [f"{adjective}-{noun}" for adjective, noun in product(ADJECTIVES, nouns)]
        words[category] = [pairs[i] for i in rng.permutation(len(pairs))]
    named = []
    for j in range(n_tasks):
        number, position = divmod(j, len(CATEGORIES))
        category = tuple(CATEGORIES)[position]
        word = words[category][number % len(words[category])]
        named.append((f"{category}/{number + 1:0{width}d}-{word}", position))
    named.sort()
    return tuple(name for name, _ in named), np.array([position for _, position in named], dtype=np.intp)


DEMONSTRATION_SEED = 20250106
FIRST_DAY = date(2025, 1, 6)

PassArray = npt.NDArray[np.int8]
Column = list[str] | list[int] | list[float]


@dataclass(frozen=True)
class ResponseModel:
    """Parameters of the response model (analytics/README.md, *The simulated benchmark*).

    The defaults are those of the demonstration: chosen so that agents range from about a quarter to three
    quarters of the tasks and grow over the year as boards do, and the mid-range band mostly holds between a
    third and a half of the tasks.
    """

    base_ability: float = -1.0
    growth: float = 2.2
    small_penalty: float = 0.7
    sd_model: float = 0.35
    sd_scaffold: float = 0.3
    sd_agent: float = 0.2
    sd_category: float = 0.4
    sd_task: float = 1.8
    sd_interaction: float = 0.6
    p_failure: float = 0.004
    share_lost: float = 0.08
    near_tie_gap: float = 0.03
    n_twins: int = 1
    n_near_ties: int = 2
    n_incomplete: int = 1


DEMONSTRATION = ResponseModel()


@dataclass(frozen=True, eq=False)
class SimulatedBenchmark:
    """Outcomes with the truth behind them; agents and tasks in ascending order of name.

    outcomes, valid, costs: (n_agents, n_tasks, n_trials); 1 passed, 0 failed or not valid; USD a trial.
    ability, difficulty, interaction, probabilities: θ (n_agents,), b (n_tasks,), γ and P (n_agents, n_tasks).
    twins: agents of equal true score: original and later version.
    near_ties: agents whose abilities differ by the model's gap, the weaker first.
    incomplete: agents that lost all trials on a share of the tasks.
    """

    agents: tuple[str, ...]
    scaffolds: tuple[str, ...]
    models: tuple[str, ...]
    dates: tuple[date, ...]
    tasks: tuple[str, ...]
    categories: tuple[str, ...]
    outcomes: PassArray
    valid: Mask
    costs: FloatArray
    ability: FloatArray
    difficulty: FloatArray
    interaction: FloatArray
    probabilities: FloatArray
    twins: tuple[tuple[str, str], ...]
    near_ties: tuple[tuple[str, str], ...]
    incomplete: tuple[str, ...]


def simulate(
    rng: Generator,
    *,
    n_agents: int = 36,
    n_tasks: int = 120,
    n_trials: int = 5,
    parameters: ResponseModel = DEMONSTRATION,
) -> SimulatedBenchmark:
    """Draw a benchmark by the state of `rng`: who, what, how able and how hard, and every trial."""
    _check_sizes({"n_agents": n_agents, "n_tasks": n_tasks, "n_trials": n_trials}, parameters)
    roster = _roster(rng, n_agents, parameters.n_twins)
    names, scaffold, model = roster.names, roster.scaffold, roster.model
    tasks, category = task_names(rng, n_tasks)
    ability = _abilities(rng, roster, parameters)
    twins, near_ties, incomplete = _cast(rng, roster.original, ability, parameters)
    # b = κ + η
    category_effect = parameters.sd_category * rng.standard_normal(len(CATEGORIES))
    difficulty = category_effect[category] + parameters.sd_task * rng.standard_normal(n_tasks)
    interaction = parameters.sd_interaction * rng.standard_normal((n_agents, n_tasks))
    for weaker, stronger in near_ties:
        ability[stronger] = ability[weaker] + parameters.near_tie_gap
    for first, copy in twins:
        ability[copy], interaction[copy] = ability[first], interaction[first]
    probabilities = expit(ability[:, None] - difficulty + interaction)
    shape = (n_agents, n_tasks, n_trials)
    passed = rng.random(shape) < probabilities[:, :, None]
    # lost with probability φ, and for incomplete agents on ⌈ω·m⌉ drawn tasks
    valid = rng.random(shape) >= parameters.p_failure
    n_lost = int(np.ceil(parameters.share_lost * n_tasks))
    for agent in incomplete:
        valid[agent, rng.choice(n_tasks, size=n_lost, replace=False)] = False
    costs = PRICE[model] * TURNS[scaffold]
    size, noise = np.exp(0.5 * rng.standard_normal(n_tasks)), np.exp(0.35 * rng.standard_normal(shape))
    costs = np.round(costs[:, None, None] * size[None, :, None] * noise, 4)
    return SimulatedBenchmark(
        agents=names,
        scaffolds=tuple(tuple(SCAFFOLDS)[s] for s in scaffold),
        models=tuple(tuple(MODELS)[m] for m in model),
        dates=tuple(FIRST_DAY + timedelta(days=int(N_DAYS * t)) for t in roster.time),
        tasks=tasks,
        categories=tuple(tuple(CATEGORIES)[c] for c in category),
        outcomes=read_only((passed & valid).astype(np.int8)),
        valid=read_only(valid),
        costs=read_only(costs),
        ability=read_only(ability),
        difficulty=read_only(difficulty),
        interaction=read_only(interaction),
        probabilities=read_only(probabilities),
        twins=tuple((names[a], names[b]) for a, b in twins),
        near_ties=tuple((names[a], names[b]) for a, b in near_ties),
        incomplete=tuple(names[a] for a in incomplete),
    )


def _check_sizes(sizes: Mapping[str, int], parameters: ResponseModel) -> None:
    for name, n in sizes.items():
        if n < 1:
            raise CoreError(f"{name} is {n}; at least 1 is needed", code="simulation")
    n_agents, n_cast = sizes["n_agents"], 2 * (parameters.n_twins + parameters.n_near_ties)
    n_cast += parameters.n_incomplete
    if n_agents < n_cast:
        raise CoreError(
            f"{n_agents} agents for twins, near ties and incomplete ones of {n_cast}", code="simulation"
        )
    for name in ("p_failure", "share_lost"):
        if not 0.0 <= getattr(parameters, name) <= 1.0:
            raise CoreError(f"{name} is {getattr(parameters, name)}, not from 0 to 1", code="simulation")


def demonstration(seed: int = DEMONSTRATION_SEED) -> SimulatedBenchmark:
    """Return the built-in benchmark: 36 agents, 120 tasks, 5 trials, from PCG64(`seed`)."""
    return simulate(np.random.Generator(np.random.PCG64(seed)))


def flat_rows(simulated: SimulatedBenchmark, benchmark: str = "demonstration") -> dict[str, Column]:
    """Return the benchmark in the flat file's columns, one entry for each trial, in order of name."""
    agent, task, trial = (axis.ravel() for axis in np.indices(simulated.outcomes.shape))
    return {
        "benchmark": [benchmark] * agent.size,
        "agent": _chosen(simulated.agents, agent),
        "scaffold": _chosen(simulated.scaffolds, agent),
        "model": _chosen(simulated.models, agent),
        "submitted_at": _chosen([day.isoformat() for day in simulated.dates], agent),
        "task": _chosen(simulated.tasks, task),
        "trial": [int(t) + 1 for t in trial],
        "outcome": [int(passed) for passed in simulated.outcomes.ravel()],
        "valid": [int(valid) for valid in simulated.valid.ravel()],
        "category": _chosen(simulated.categories, task),
        "cost_usd": [float(cost) for cost in simulated.costs.ravel()],
    }


def _chosen(values: Sequence[str], codes: IndexArray) -> list[str]:
    return [values[code] for code in codes]


def _cast(
    rng: Generator, original: IndexArray, ability: FloatArray, parameters: ResponseModel
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], list[int]]:
    twins = [(int(original[copy]), int(copy)) for copy in np.flatnonzero(original >= 0)]
    taken = {agent for pair in twins for agent in pair}
    free = [int(i) for i in rng.permutation(len(original)) if int(i) not in taken]
    near_ties = []
    for _ in range(parameters.n_near_ties):
        weaker = free.pop(0)
        stronger = min(free, key=lambda agent: (abs(ability[agent] - ability[weaker]), agent))
        free.remove(stronger)
        near_ties.append((weaker, stronger))
    return twins, near_ties, free[: parameters.n_incomplete]


def _abilities(rng: Generator, roster: _Roster, parameters: ResponseModel) -> FloatArray:
    """θ = β + μ − δ·small + ς + g·τ + ε."""
    model_effect = parameters.sd_model * rng.standard_normal(len(MODELS))
    model_effect -= parameters.small_penalty * IS_SMALL
    scaffold_effect = parameters.sd_scaffold * rng.standard_normal(len(SCAFFOLDS))
    noise = parameters.sd_agent * rng.standard_normal(len(roster.time))
    effects = model_effect[roster.model] + scaffold_effect[roster.scaffold]
    return np.asarray(parameters.base_ability + effects + parameters.growth * roster.time + noise)
