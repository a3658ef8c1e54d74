"""Strategies: nine rules that pick k tasks from what the training agents did.

The theory is in ``selection/README.md``, “Strategies”. Each is called as
``STRATEGIES[name](training, k, rng)`` and returns k task indices, ascending. Only those in `SEEDED` use
``rng``, and only ``mid_range`` minds which k it is (``training.band_tasks.size``).

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.3. ``information``, ``spread`` and ``forecast`` are
this project's own.

Forward search: tasks taken one at a time, each the one that predicts agents left out best.

==========  ==============================  ==================================  =============
symbol      code                            shape                               unit
==========  ==============================  ==================================  =============
X           ``centred``                     (m, n): tasks in rows, 0 missing    0 to 1
y           ``scores``                      (n,), centred                       0 to 1
Zᵀ          ``columns``                     (m, n)                              1/agents
r, d        ``residuals``, ``diagonal``     (n,)                                1/agents
w⁰          ``weights``                     (n,)                                agents²
ΣZ²w⁰       ``norms``                       (m,)                                1
1 + g       ``growth``                      (m,)                                1
Zᵀy         ``along_scores``                (m,)                                1
==========  ==============================  ==================================  =============

Source: Hager, *SIAM Review* 31 (1989) 221-239 (rank-one updates). The bound is this project's own.
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
from selection.ridge import ALPHA

PRUNED_CELLS = 16_384  # on fewer, pruning takes longer than it saves
N_KEPT = 8  # steps that use the same w⁰


def forward(centred: FloatArray, scores: FloatArray, k: int) -> IndexArray:
    """Tasks in the order in which leave-one-out R² takes them, (k,); of equal ones, to 1e-9, the first.

    centred: (m, n); outcomes less the mean of the task, tasks in rows; 0 in missing cells.
    scores: (n,); less their mean; not all 0.
    """
    search, order = _Search(centred, scores), np.empty(k, dtype=np.intp)
    for step in range(k):
        best = search.best()
        order[step] = search.tasks[best]
        search.take(best)
    return order


class _Search:
    """Where the search stands. Rows up to `n_free` are the tasks not yet taken, in no order."""

    def __init__(self, centred: FloatArray, scores: FloatArray) -> None:
        n_tasks, n = centred.shape
        self.n_free, self.tasks = n_tasks, np.arange(n_tasks)
        self.centred, self.columns = centred, centred / ALPHA
        self.growth = 1.0 + np.vecdot(centred, centred) / ALPHA
        self.along_scores, self.total = self.columns @ scores, float(scores @ scores)
        self.residuals, self.diagonal = scores / ALPHA, np.full(n, (1.0 - 1.0 / n) / ALPHA)
        self.n_bounded, self.powers, self.norms = 0, np.empty(centred.shape), np.empty(n_tasks)

    def best(self) -> int:
        """Row of the task with the largest R², the first task of those that share it."""
        if self.n_free * self.residuals.size <= PRUNED_CELLS:
            return self._first_best(self._squares(slice(self.n_free)), self.tasks[: self.n_free])
        rows = self._possible()
        if rows.size == 1:
            return int(rows[0])
        return int(rows[self._first_best(self._squares(rows), self.tasks[rows])])

    def _first_best(self, squares: FloatArray, tasks: IndexArray) -> int:
        """Position of the largest R²; of equal ones, of the first task."""
        r2 = (1.0 - squares / self.total).round(DECIMALS)
        best = int(r2.argmax())
        equal = (r2 == r2[best]).nonzero()[0]
        return best if equal.size == 1 else int(equal[tasks[equal].argmin()])

    def take(self, row: int) -> None:
        """Add a task; the last free row moves into its place."""
        column, growth, along = self.columns[row].copy(), self.growth[row], self.along_scores[row]
        outcomes = self.centred[self.tasks[row]]
        self.n_free -= 1
        for rows in (self.tasks, self.columns, self.growth, self.along_scores, self.norms):
            rows[row] = rows[self.n_free]
        self.shared, self.step = self.columns[: self.n_free] @ outcomes, column / growth
        self.residuals -= along * self.step
        self.diagonal -= column * self.step
        self.along_scores[: self.n_free] -= self.shared * (along / growth)
        self.growth[: self.n_free] -= self.shared * self.shared / growth
        if self.n_free:
            from scipy.linalg import blas  # not for a program that takes the middle

            blas.dger(-1.0, self.step, self.shared, a=self.columns[: self.n_free].T, overwrite_a=1)

    def _squares(self, rows: IndexArray | slice | int) -> FloatArray:
        columns, growth = self.columns[rows], self.growth[rows]
        errors = self.residuals - columns * (self.along_scores[rows] / growth)[..., None]
        errors /= self.diagonal - columns * columns / growth[..., None]
        return np.asarray(np.vecdot(errors, errors), dtype=np.float64)

    def _possible(self) -> IndexArray:
        """Rows that may be the best, by the least that their Σe² can be."""
        # First bound of all candidates
        columns, norms = self.columns[: self.n_free], self.norms[: self.n_free]
        weights, slope = self.diagonal**-2, self.along_scores[: self.n_free] / self.growth[: self.n_free]
        weighted = self.residuals * weights
        if self.n_bounded % N_KEPT == 0:
            self.weights, products = weights, columns @ weighted
            np.matmul(np.multiply(columns, columns, out=self.powers[: self.n_free]), weights, out=norms)
        else:
            step = self.weights * self.step
            products, crossed = np.array([weighted, step]) @ columns.T
            norms -= self.shared * (2.0 * crossed + self.shared * (step @ self.step))
        self.n_bounded += 1
        growing = float((weights / self.weights).min())
        bounds = np.asarray(self.residuals @ weighted + slope * (slope * growing * norms - 2.0 * products))
        most = self._squares(int(bounds.argmin())) + self.total * 10.0**-DECIMALS
        rows = np.flatnonzero(bounds <= most)
        columns, growth = self.columns[rows], self.growth[rows]
        weighted, powers = self.residuals * self.diagonal**-3, columns * columns
        squares = powers @ (weighted * self.residuals)
        cubes = np.multiply(powers, columns, out=powers) @ weighted
        added = 2.0 / growth * (squares - 2.0 * self.along_scores[rows] / growth * cubes)
        return np.asarray(rows[bounds[rows] + added <= most], dtype=np.intp)


N_GROUPS = N_LATEST = 10
SPREAD_LO, SPREAD_HI = 0.02, 0.98


@dataclass(frozen=True, eq=False)
class Training:
    """What a strategy may look at: the training agents of one fold, or all complete agents.

    What costs a copy or a fit is made when it is asked for, once.

    all_outcomes, all_scores: (n_agents, m), (n_agents,); of all complete agents, those left out too;
        strategies use `outcomes` and `scores`.
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
        dates: in name order, so that position breaks ties as the name does.
        weights: (n,); 1/π_i, in the pass rates alone.
        Raises SelectionError (shape, score_missing).
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

    """
    _check_size("random", k, training.rated)
    return np.sort(_seeded("random", rng).permutation(training.rated)[:k])


def easiest(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks with the highest pass rates."""
    _check_size("easiest", k, training.rated)
    return np.sort(_ordered(-training.pass_rates, training.rated)[:k])


def hardest(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks with the lowest pass rates."""
    _check_size("hardest", k, training.rated)
    return np.sort(_ordered(training.pass_rates, training.rated)[:k])


def stratified(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks drawn from ten groups in order of (p, index), as evenly as k and the groups allow.

    Draws, in this order: the groups that take one of the remainder; each group's tasks.

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
    """Tasks with the largest Fisher information summed over the training agents' abilities."""
    _check_size("information", k, training.rated)
    return _most_informative(training, training.fitted.abilities, k)


def spread(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks at positions round(linspace(0, M − 1, k)) of the M tasks with 0.02 < p < 0.98, by (p, index)."""
    rates = np.round(training.pass_rates, DECIMALS)
    inside = np.flatnonzero((rates > SPREAD_LO) & (rates < SPREAD_HI))
    _check_size("spread", k, inside)
    positions = np.round(np.linspace(0, inside.size - 1, k)).astype(np.intp)
    return np.sort(_ordered(training.pass_rates, inside)[positions])


def forecast(training: Training, k: int, rng: np.random.Generator | None = None) -> IndexArray:
    """Tasks with the largest Fisher information summed over the latest ten training agents by (date, name).

    All agents count in the fit; with fewer than ten, all count in the sum.

    Raises SelectionError (dates_missing).
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


def _check_size(name: str, k: int, tasks: IndexArray) -> None:
    if not 1 <= k <= tasks.size:
        raise SelectionError(
            f"{name}: {k} tasks asked for, {tasks.size} to choose from", code="too_few_tasks"
        )


def _seeded(name: str, rng: np.random.Generator | None) -> np.random.Generator:
    if rng is None:
        raise SelectionError(f"{name} is a draw and needs a seeded generator", code="generator_missing")
    return rng
