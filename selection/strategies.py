"""Strategies: nine rules that pick k tasks from what the training agents did.

The theory is in ``selection/README.md``, “Strategies”. Each is called as
``STRATEGIES[name](training, k, rng)`` and returns k task indices, ascending. Only those in `SEEDED` use
``rng``, and only ``mid_range`` minds which k it is (``training.band_tasks.size``).

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.3. ``information``, ``spread`` and ``forecast`` are
this project's own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from types import MappingProxyType

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray
from selection import bands, rasch
from selection.errors import SelectionError
from selection.greedy import forward

N_GROUPS = 10
N_LATEST = 10
SPREAD_LO, SPREAD_HI = 0.02, 0.98


@dataclass(frozen=True, eq=False)
class Training:
    """What a strategy may look at: the training agents of one fold, or all complete agents.

    Made by `of` from a matrix, or in a fold from the whole matrix, the positions of its training agents and
    pass rates at hand; what costs a copy or a fit is made when it is asked for, once.

    all_outcomes: (n_agents, m); mean outcomes of all complete agents, those left out too; strategies use
        `outcomes`.
    all_scores: (n_agents,); their full scores.
    rows: (n,); positions of the training agents, ascending.
    pass_rates: (m,); over the training agents; NaN where none has a valid cell.
    fit_of: Rasch fit of agents by their positions, where fits are kept for others who ask.
    """

    all_outcomes: FloatArray
    all_scores: FloatArray
    rows: IndexArray
    pass_rates: FloatArray
    all_dates: Sequence[date | None] | None = None
    lo: float = bands.LO
    hi: float = bands.HI
    fit_of: Callable[[IndexArray], rasch.RaschFit] | None = None
    widening: bool = True

    @classmethod
    def of(
        cls,
        outcomes: FloatArray,
        scores: FloatArray,
        dates: Sequence[date | None] | None = None,
        weights: FloatArray | None = None,
        *,
        lo: float = bands.LO,
        hi: float = bands.HI,
    ) -> "Training":
        """Take all agents of a matrix as training agents.

        outcomes: (n, m); mean outcomes of complete agents on the active tasks; NaN where missing.
        scores: (n,); their full scores.
        dates: length n; in name order, so that position breaks ties as the name does.
        weights: (n,); 1/π_i, in the pass rates alone.
        Raises SelectionError (shape, no_tasks, outcome_range, weight_range, score_missing).
        """
        outcomes, scores = np.asarray(outcomes, dtype=np.float64), np.asarray(scores, dtype=np.float64)
        rates = bands.pass_rates(outcomes, weights)
        n = outcomes.shape[0]
        if scores.shape != (n,):
            raise SelectionError(f"scores {scores.shape} for {n} agents", code="shape")
        if not np.isfinite(scores).all():
            raise SelectionError(
                f"agent {int(np.argmin(np.isfinite(scores)))} has no full score", code="score_missing"
            )
        if dates is not None and len(dates) != n:
            raise SelectionError(f"{len(dates)} dates for {n} agents", code="shape")
        return cls(outcomes, scores, np.arange(outcomes.shape[0]), rates, dates, lo, hi)

    @property
    def n(self) -> int:
        """Number of training agents."""
        return int(self.rows.size)

    @property
    def dates(self) -> list[date | None]:
        """Dates of the training agents, length n."""
        return [None if self.all_dates is None else self.all_dates[i] for i in self.rows]

    @cached_property
    def outcomes(self) -> FloatArray:
        """X of the training agents, shape (n, m)."""
        return self.all_outcomes[self.rows]

    @cached_property
    def scores(self) -> FloatArray:
        """Return y of the training agents, shape (n,)."""
        return self.all_scores[self.rows]

    @cached_property
    def rated(self) -> IndexArray:
        """Tasks with a pass rate, ascending."""
        return np.flatnonzero(~np.isnan(self.pass_rates))

    @cached_property
    def band_tasks(self) -> IndexArray:
        """Tasks of the mid-range band, ascending; empty where the fold has no subset."""
        return bands.tasks_in_band(self.pass_rates, self.n, lo=self.lo, hi=self.hi, widening=self.widening)

    @cached_property
    def fitted(self) -> rasch.RaschFit:
        """Rasch abilities of the training agents and difficulties of the tasks in `rated`."""
        if self.fit_of is not None:
            return self.fit_of(self.rows)
        return rasch.fit(self.outcomes[:, self.rated])


Strategy = Callable[[Training, int, np.random.Generator | None], IndexArray]


# ---------------------------------------------------------------------------------------------- strategies


def mid_range(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks of the band; k is their number, ``training.band_tasks.size``.

    Raises SelectionError: too_few_tasks: without a subset: unsuited, or under 5 agents. band_differs: when k
        is another number.
    """
    tasks = training.band_tasks
    if not tasks.size:
        raise SelectionError(
            f"no subset: too few of {training.pass_rates.size} tasks lie in the widest band",
            code="too_few_tasks",
        )
    if tasks.size != k:
        raise SelectionError(f"the band holds {tasks.size} tasks, not {k}", code="band_differs")
    return tasks


def greedy(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks added one at a time, each maximising R² = 1 − Σe_i²/Σ(y_i − ȳ)², e_i = (By)_i/B_ii.

    Goes on to k tasks also where one more lowers R².

    Raises SelectionError: too_few_tasks, scores_equal too_few_agents: under 3 training agents.
    """
    _check_size("greedy", k, training.rated)
    outcomes, scores = training.outcomes[:, training.rated].T, training.scores
    if scores.size < 3:
        raise SelectionError(
            f"greedy: leaving one agent out needs at least 3; there are {scores.size}", code="too_few_agents"
        )
    if np.ptp(np.round(scores, DECIMALS)) == 0.0:
        raise SelectionError(
            f"greedy: all {scores.size} training agents score {scores[0]:.9g}", code="scores_equal"
        )
    deviations = outcomes - np.nanmean(outcomes, axis=1, keepdims=True)
    centred = np.ascontiguousarray(np.where(np.isnan(deviations), 0.0, deviations))
    order = forward(centred, scores - np.mean(scores), k)
    return np.sort(training.rated[order])


def random(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Take the first k of a random order of the rated tasks: a draw without replacement, whatever k is.

    Folds that rate the same tasks and are given the same generator have nested subsets.

    Raises SelectionError (too_few_tasks, generator_missing).
    """
    _check_size("random", k, training.rated)
    return np.sort(_seeded("random", rng).permutation(training.rated)[:k])


def easiest(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks with the highest pass rates.

    Raises SelectionError (too_few_tasks).
    """
    _check_size("easiest", k, training.rated)
    return np.sort(_ordered(-training.pass_rates, training.rated)[:k])


def hardest(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks with the lowest pass rates.

    Raises SelectionError (too_few_tasks).
    """
    _check_size("hardest", k, training.rated)
    return np.sort(_ordered(training.pass_rates, training.rated)[:k])


def stratified(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks drawn from ten groups in order of (p, index), as evenly as k and the groups allow.

    Draws, in this order: the groups that take one of the remainder; each group's tasks.

    Raises SelectionError (too_few_tasks, generator_missing).
    """
    _check_size("stratified", k, training.rated)
    rng = _seeded("stratified", rng)
    groups = np.array_split(_ordered(training.pass_rates, training.rated), N_GROUPS)
    quotas = np.full(N_GROUPS, k // N_GROUPS)
    quotas[rng.choice(N_GROUPS, k % N_GROUPS, replace=False)] += 1
    taken = _filled(quotas, np.array([group.size for group in groups]))
    return np.sort(
        np.concatenate([rng.choice(g, n, replace=False) for g, n in zip(groups, taken, strict=True)])
    )


def information(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks with the largest Fisher information summed over the training agents' abilities.

    Raises SelectionError (too_few_tasks, agent_unobserved).
    Raises RaschUnfinished.
    """
    _check_size("information", k, training.rated)
    return _most_informative(training, training.fitted.abilities, k)


def spread(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks at positions round(linspace(0, M − 1, k)) of the M tasks with 0.02 < p < 0.98, by (p, index).

    Raises SelectionError: too_few_tasks: also when M < k.
    """
    rates = np.round(training.pass_rates, DECIMALS)
    inside = np.flatnonzero((rates > SPREAD_LO) & (rates < SPREAD_HI))
    _check_size("spread", k, inside)
    positions = np.round(np.linspace(0, inside.size - 1, k)).astype(np.intp)
    return np.sort(_ordered(training.pass_rates, inside)[positions])


def forecast(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks with the largest Fisher information summed over the latest ten training agents by (date, name).

    All agents count in the fit; with fewer than ten, all count in the sum.

    Raises SelectionError (too_few_tasks, dates_missing, agent_unobserved).
    Raises RaschUnfinished.
    """
    _check_size("forecast", k, training.rated)
    n_undated = sum(day is None for day in training.dates)
    if n_undated:
        raise SelectionError(
            f"forecast: {n_undated} of {training.n} training agents have no date", code="dates_missing"
        )
    latest = bands.latest_agents(training.dates, N_LATEST)
    return _most_informative(training, training.fitted.abilities[latest], k)


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "mid_range": mid_range,
        "greedy": greedy,
        "random": random,
        "easiest": easiest,
        "hardest": hardest,
        "stratified": stratified,
        "information": information,
        "spread": spread,
        "forecast": forecast,
    }
)
SEEDED = frozenset({"random", "stratified"})
FITTED = frozenset({"information", "forecast"})


# ---------------------------------------------------------------------------------------------- arithmetic


def _ordered(keys: FloatArray, tasks: IndexArray) -> IndexArray:
    return tasks[np.argsort(np.round(keys[tasks], DECIMALS), kind="stable")]


def _most_informative(training: Training, abilities: FloatArray, k: int) -> IndexArray:
    informative = rasch.information(abilities, training.fitted.difficulties)
    first = _ordered(-informative, np.arange(training.rated.size))[:k]
    return np.sort(training.rated[first])


def _filled(quotas: IndexArray, sizes: IndexArray) -> IndexArray:
    """Tasks to draw from each group: its quota and what the groups before it could not give."""
    taken, rest = np.zeros_like(quotas), 0
    for wanted in (quotas, np.zeros_like(quotas)):
        for g in range(sizes.size):
            gives = min(int(wanted[g]) + rest, int(sizes[g] - taken[g]))
            rest += int(wanted[g]) - gives
            taken[g] += gives
    return taken


# -------------------------------------------------------------------------------------------------- checks


def _check_size(name: str, k: int, tasks: IndexArray) -> None:
    if not 1 <= k <= tasks.size:
        raise SelectionError(
            f"{name}: {k} tasks asked for, {tasks.size} to choose from", code="too_few_tasks"
        )


def _seeded(name: str, rng: np.random.Generator | None) -> np.random.Generator:
    if rng is None:
        raise SelectionError(f"{name} is a draw and needs a seeded generator", code="generator_missing")
    return rng
