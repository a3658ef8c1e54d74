"""A simulated benchmark: agents, tasks and trials drawn from a known response model.

It is the built-in demonstration, which so owes nothing to anyone's data, and the ground truth of simulation
studies: the parameters that made the outcomes are returned with them.

Source: Rasch, *Probabilistic Models for Some Intelligence and Attainment Tests*, 1960. Fischer, *Acta
Psychologica* 37 (1973) 359-374 (the linear logistic test model). De Boeck & Wilson, *Explanatory Item
Response Models*, 2004 (structure and random effects on the person's side).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from analytics.errors import CoreError
from analytics.simulation.invented import (
    CATEGORIES,
    MODELS,
    N_DAYS,
    SCAFFOLDS,
    Generator,
    Roster,
    roster_of,
    task_names,
)

DEMONSTRATION_SEED = 20250106
FIRST_DAY = date(2025, 1, 6)

PassArray = npt.NDArray[np.int8]
Column = list[str] | list[int] | list[float]


@dataclass(frozen=True)
class ResponseModel:
    """Parameters of the response model; the module's docstring gives symbols and units.

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

    agents, scaffolds, models: length n_agents.
    dates: length n_agents.
    tasks, categories: length n_tasks.
    outcomes: (n_agents, n_tasks, n_trials); 1 passed, 0 failed; 0 where not valid.
    valid: (n_agents, n_tasks, n_trials); False where the harness failed.
    costs: (n_agents, n_tasks, n_trials); USD a trial.
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
    parameters: ResponseModel


def simulate(
    rng: Generator,
    *,
    n_agents: int = 36,
    n_tasks: int = 120,
    n_trials: int = 5,
    parameters: ResponseModel = DEMONSTRATION,
) -> SimulatedBenchmark:
    """Draw a benchmark: who, what, how able and how hard, and every trial.

    rng: its state decides everything below.
    n_agents, n_tasks, n_trials: at least 1; agents enough for the twins, near ties and incomplete ones asked
        for.
    Raises CoreError: with the size or parameter at fault.
    """
    for name, n in (("n_agents", n_agents), ("n_tasks", n_tasks), ("n_trials", n_trials)):
        if n < 1:
            raise CoreError(f"{name} is {n}; at least 1 is needed", code="simulation")
    n_cast = 2 * parameters.n_twins + 2 * parameters.n_near_ties + parameters.n_incomplete
    if n_agents < n_cast:
        raise CoreError(
            f"{n_agents} agents for twins, near ties and incomplete ones of {n_cast}", code="simulation"
        )
    for name in ("p_failure", "share_lost"):
        if not 0.0 <= getattr(parameters, name) <= 1.0:
            raise CoreError(f"{name} is {getattr(parameters, name)}, not from 0 to 1", code="simulation")
    roster = roster_of(rng, n_agents, parameters.n_twins)
    tasks, category = task_names(rng, n_tasks)
    ability = _abilities(rng, roster, parameters)
    cast = _cast(rng, roster, ability, parameters)
    difficulty = _difficulties(rng, category, parameters)
    interaction = parameters.sd_interaction * rng.standard_normal((n_agents, n_tasks))
    _impose_ties(ability, interaction, cast, parameters.near_tie_gap)
    probabilities = expit(ability[:, None] - difficulty + interaction)
    passed = rng.random((n_agents, n_tasks, n_trials)) < probabilities[:, :, None]
    valid = _validity(rng, (n_agents, n_tasks, n_trials), cast.incomplete, parameters)
    costs = _costs(rng, roster, (n_agents, n_tasks, n_trials))
    names = roster.names
    return SimulatedBenchmark(
        agents=names,
        scaffolds=tuple(SCAFFOLDS[s].name for s in roster.scaffold),
        models=tuple(MODELS[model].name for model in roster.model),
        dates=tuple(FIRST_DAY + timedelta(days=int(N_DAYS * time)) for time in roster.time),
        tasks=tasks,
        categories=tuple(tuple(CATEGORIES)[c] for c in category),
        outcomes=read_only((passed & valid).astype(np.int8)),
        valid=read_only(valid),
        costs=read_only(costs),
        ability=read_only(ability),
        difficulty=read_only(difficulty),
        interaction=read_only(interaction),
        probabilities=read_only(probabilities),
        twins=tuple((names[a], names[b]) for a, b in cast.twins),
        near_ties=tuple((names[a], names[b]) for a, b in cast.near_ties),
        incomplete=tuple(names[a] for a in cast.incomplete),
        parameters=parameters,
    )


def demonstration(seed: int = DEMONSTRATION_SEED) -> SimulatedBenchmark:
    """Return the built-in benchmark: 36 agents, 120 tasks, 5 trials, from PCG64(`seed`)."""
    return simulate(np.random.Generator(np.random.PCG64(seed)))


def flat_rows(simulated: SimulatedBenchmark, benchmark: str = "demonstration") -> dict[str, Column]:
    """Return the benchmark in the flat file's columns, one entry for each trial.

    benchmark: value of the `benchmark` column.
    Returns: benchmark, agent, scaffold, model, submitted_at (ISO date), task, trial (from 1), outcome (0 or
        1), valid (0 or 1), category, cost_usd; each of length n_agents·n_tasks·n_trials, in the order of the
        names; plain Python values.
    """
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


@dataclass(frozen=True)
class _Cast:
    """Who plays a part: positions of twins, near ties and incomplete agents, no agent in two parts."""

    twins: list[tuple[int, int]]
    near_ties: list[tuple[int, int]]
    incomplete: list[int]


def _cast(rng: Generator, roster: Roster, ability: FloatArray, parameters: ResponseModel) -> _Cast:
    copies = np.flatnonzero(roster.original >= 0)
    twins = [(int(roster.original[copy]), int(copy)) for copy in copies]
    taken = {agent for pair in twins for agent in pair}
    free = [int(i) for i in rng.permutation(len(roster.names)) if int(i) not in taken]
    near_ties = [_pop_near_tie(free, ability) for _ in range(parameters.n_near_ties)]
    return _Cast(twins, near_ties, free[: parameters.n_incomplete])


def _pop_near_tie(free: list[int], ability: FloatArray) -> tuple[int, int]:
    weaker = free.pop(0)
    stronger = min(free, key=lambda agent: (abs(ability[agent] - ability[weaker]), agent))
    free.remove(stronger)
    return weaker, stronger


def _abilities(rng: Generator, roster: Roster, parameters: ResponseModel) -> FloatArray:
    """θ = β + μ − δ·small + ς + g·τ + ε."""
    model_effect = parameters.sd_model * rng.standard_normal(len(MODELS))
    model_effect -= parameters.small_penalty * np.array([model.small for model in MODELS])
    scaffold_effect = parameters.sd_scaffold * rng.standard_normal(len(SCAFFOLDS))
    noise = parameters.sd_agent * rng.standard_normal(len(roster.names))
    effects = model_effect[roster.model] + scaffold_effect[roster.scaffold]
    return np.asarray(parameters.base_ability + effects + parameters.growth * roster.time + noise)


def _difficulties(rng: Generator, category: IndexArray, parameters: ResponseModel) -> FloatArray:
    """B = κ + η."""
    category_effect = parameters.sd_category * rng.standard_normal(len(CATEGORIES))
    task_effect = parameters.sd_task * rng.standard_normal(len(category))
    return np.asarray(category_effect[category] + task_effect, dtype=np.float64)


def _impose_ties(ability: FloatArray, interaction: FloatArray, cast: _Cast, gap: float) -> None:
    """Give twins one θ and one γ, near ties abilities that differ by `gap`; in place."""
    for weaker, stronger in cast.near_ties:
        ability[stronger] = ability[weaker] + gap
    for original, copy in cast.twins:
        ability[copy] = ability[original]
        interaction[copy] = interaction[original]


def _validity(
    rng: Generator, shape: tuple[int, int, int], incomplete: list[int], parameters: ResponseModel
) -> Mask:
    """Trials lost with probability φ, and for incomplete agents all trials on ⌈ω·m⌉ drawn tasks."""
    valid = rng.random(shape) >= parameters.p_failure
    n_lost = int(np.ceil(parameters.share_lost * shape[1]))
    for agent in incomplete:
        valid[agent, rng.choice(shape[1], size=n_lost, replace=False)] = False
    return np.asarray(valid, dtype=np.bool_)


def _costs(rng: Generator, roster: Roster, shape: tuple[int, int, int]) -> FloatArray:
    price = np.array([model.price for model in MODELS])[roster.model]
    turns = np.array([scaffold.turns for scaffold in SCAFFOLDS])[roster.scaffold]
    size = np.exp(0.5 * rng.standard_normal(shape[1]))
    noise = np.exp(0.35 * rng.standard_normal(shape))
    return np.asarray(np.round((price * turns)[:, None, None] * size[None, :, None] * noise, 4))
