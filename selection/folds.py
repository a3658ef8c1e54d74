"""Folds: which agents are held out together, and the subset their training agents choose.

Everything a fold decides (pass rates, subset, k, Ridge) is a function of the training agents' rows alone.

The theory is in ``selection/README.md``, “Nested validation”.

The pass rates of a fold are those of all agents less the rows that do not count in it. With hysteresis the
temporal protocol carries the subset from date to date by `reselection.carry`, as a benchmark would.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4. `lomo` and the carried temporal path are this
project's own.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import groupby
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from analytics.outcome_table import OutcomeTable
from analytics.text import NOT_STATED
from selection import rasch
from selection.bands import HI, LO, N_AGENTS_PROVISIONAL, latest_agents, tasks_in_bands
from selection.leave_out import SharedGram, shared_gram
from selection.reselection import carry
from selection.staged.model import StagedModel, in_order
from selection.staged.model import fit as fit_model

Made = TypeVar("Made")
N_SEEDS = 100
N_AGENTS_WITHIN_SCAFFOLD = 10
N_AGENTS_BEFORE = 10
N_AGENTS_LEFT = 5
MAX_FIT_NUMBERS = 8_000_000  # of abilities and difficulties; the fit not asked for the longest goes first


@dataclass(frozen=True, eq=False)
class CompleteAgents:
    """The complete agents of a benchmark, in name order.

    outcomes: (n_agents, n_tasks); mean outcomes on the active tasks, 0 to 1; NaN where missing.
    scores: (n_agents,); full scores y, 0 to 1.
    vouched: (n_agents,); verified or of a trusted account; None: all.
    fits, completions: by the positions of the agents, as asked for of late.
    among: those these were taken from and their positions there, where fits are shared: folds of folds that
        train on the same agents have one fit. It begins at the fit to all, which shows in last bits alone.
    """

    names: tuple[str, ...]
    outcomes: FloatArray
    scores: FloatArray
    dates: tuple[date | None, ...]
    scaffolds: tuple[str, ...]
    models: tuple[str, ...]
    vouched: Mask | None = None
    fits: dict[bytes, rasch.RaschFit] = field(default_factory=dict)
    completions: dict[bytes, StagedModel] = field(default_factory=dict)
    among: "tuple[CompleteAgents, IndexArray] | None" = None

    @classmethod
    def of(
        cls,
        table: OutcomeTable,
        rows: IndexArray,
        outcomes: FloatArray,
        scores: FloatArray,
        vouched: Mask | None = None,
    ) -> "CompleteAgents":
        """Take agents of a table, with these outcomes and full scores."""
        return cls(
            names=tuple(table.agents[i] for i in rows),
            outcomes=read_only(outcomes),
            scores=read_only(scores),
            dates=tuple(table.dates[i] for i in rows),
            scaffolds=tuple(table.scaffolds[i] for i in rows),
            models=tuple(table.models[i] for i in rows),
            vouched=vouched,
        )

    @property
    def n(self) -> int:
        """Number of complete agents."""
        return len(self.names)

    def is_vouched(self, i: int) -> bool:
        """Whether an agent is verified or of a trusted account."""
        return self.vouched is None or bool(self.vouched[i])

    @cached_property
    def gram(self) -> SharedGram:
        """What predicts agents left out on any subset, made once."""
        return shared_gram(self.outcomes, self.scores)

    @cached_property
    def rasch_fit(self) -> rasch.RaschFit | None:
        """Rasch fit to all tasks with a valid cell, made once; None where rounding keeps it from ending."""
        try:
            return rasch.fit(self.outcomes[:, ~np.isnan(self.outcomes).all(axis=0)])
        except rasch.RaschUnfinished:
            return None

    def fit_of(self, rows: IndexArray) -> rasch.RaschFit:
        """Rasch fit of these agents to the tasks with a valid cell, made once, from the fit to all."""
        if self.among is not None:
            everybody, positions = self.among
            return everybody.fit_of(positions[rows])

        def fit() -> rasch.RaschFit:
            outcomes, near, start = self.outcomes[rows], self.rasch_fit, None
            rated = np.asarray(~np.isnan(outcomes).all(axis=0), dtype=np.bool_)
            if near is not None:
                difficulties = np.full(self.outcomes.shape[1], np.nan)
                difficulties[~np.isnan(self.outcomes).all(axis=0)] = near.difficulties
                start = near.abilities[rows], difficulties[rated]
            return rasch.fit(outcomes[:, rated], start)

        return self._once(self.fits, rows, fit)

    def _once(self, made: dict[bytes, Made], rows: IndexArray, make: Callable[[], Made]) -> Made:
        known = made.pop(rows.tobytes(), None)
        made[rows.tobytes()] = known = make() if known is None else known
        if len(made) * sum(self.outcomes.shape) > MAX_FIT_NUMBERS:
            del made[next(iter(made))]
        return known

    @cached_property
    def places(self) -> IndexArray | None:
        """Place of each agent in the order of (date, name); None where a date is missing.

        Where fits are shared, among those these were taken from: the fits are in that order.
        """
        if self.among is not None:
            everybody, positions = self.among
            return None if everybody.places is None else everybody.places[positions]
        if None in self.dates:
            return None
        return np.argsort(in_order(self.dates, self.names)[0])

    @cached_property
    def model_of_all(self) -> StagedModel:
        """Fit of the model to all of them, in the order of `in_time`."""
        rows = self.in_time(np.arange(self.n))
        return fit_model(self.outcomes[rows], self.first_of(rows))

    def in_time(self, rows: IndexArray) -> IndexArray:
        """Return these agents in the order in which they came."""
        return rows if self.places is None else rows[np.argsort(self.places[rows])]

    def model_of(self, rows: IndexArray) -> StagedModel:
        """Fit the model to these agents, in the order of `in_time`, made once, from the fit to all."""
        if self.among is not None:
            everybody, positions = self.among
            return everybody.model_of(positions[rows])

        def fit() -> StagedModel:
            ordered, near = self.in_time(rows), self.model_of_all
            place = np.argsort(self.in_time(np.arange(self.n)))
            start = replace(near, abilities=near.abilities[place[ordered]])
            return fit_model(self.outcomes[ordered], self.first_of(ordered), start=start)

        return self._once(self.completions, rows, fit)

    def means_after(self, fitted: StagedModel, rows: IndexArray, others: IndexArray) -> FloatArray:
        """μ of other agents by a fit to these, as they came after some of them, shape (n_others,)."""
        if self.places is None:
            return np.full(others.size, fitted.mean_after(0))
        n_before = np.searchsorted(np.sort(self.places[rows]), self.places[others])
        return np.array([fitted.mean_after(n) for n in n_before.tolist()])

    def first_of(self, ordered: IndexArray) -> IndexArray:
        """How many came before each of these agents, in the order of `in_time`, as the model takes it."""
        return np.arange(ordered.size) if self.places is not None else np.zeros(ordered.size, dtype=np.intp)

    def take(self, rows: IndexArray, *, sharing: bool = False) -> "CompleteAgents":
        """Return the agents at these positions, ascending; on request with the fits of these ones."""
        everybody, positions = (self, rows) if self.among is None else (self.among[0], self.among[1][rows])
        return CompleteAgents(
            names=tuple(self.names[i] for i in rows),
            outcomes=self.outcomes[rows],
            scores=self.scores[rows],
            dates=tuple(self.dates[i] for i in rows),
            scaffolds=tuple(self.scaffolds[i] for i in rows),
            models=tuple(self.models[i] for i in rows),
            vouched=None if self.vouched is None else self.vouched[rows],
            among=(everybody, positions) if sharing or self.among is not None else None,
        )


@dataclass(frozen=True, eq=False)
class Fold:
    """Agents held out together, and the agents their subset and calibration are learned from.

    name: stable among the folds of a protocol: an agent, a scaffold, a model, a date, a seed.
    held_out, training: positions among the complete agents, ascending and disjoint.
    pool: folds of one pool are pooled into one figure; the scaffold under `within_scaffold`, "" elsewhere.
    """

    name: str
    held_out: IndexArray
    training: IndexArray
    pool: str = ""


@dataclass(frozen=True, eq=False)
class Plan:
    """The folds of a protocol; without any it says why."""

    protocol: str
    folds: tuple[Fold, ...]
    reason: str


@dataclass(frozen=True)
class Rule:
    """How a band is chosen: first edges, latest agents that count, how far out a task stays, widening."""

    lo: float = LO
    hi: float = HI
    history_window: int | None = None
    hysteresis: float = 0.0
    widening: bool = True


@dataclass(frozen=True, eq=False)
class FoldBands:
    """The band of every fold.

    counted: length n_folds; training agents that the pass rates rest on.
    rates: (n_folds, n_tasks).
    tasks: length n_folds; the mid-range subset, ascending; empty where the fold has none and is skipped.
    """

    folds: tuple[Fold, ...]
    counted: tuple[IndexArray, ...]
    rates: FloatArray
    tasks: tuple[IndexArray, ...]


def complete_agents(table: OutcomeTable, scores: FloatArray | None = None) -> CompleteAgents:
    """Agents with valid cells for at least 95% of the tasks, and what validation reads of them.

    scores: (n_agents,); full scores, gaps completed; the mean over the valid tasks where NaN or not given.
    """
    complete = table.complete()
    restricted, rows = table.restrict(agents=complete), np.flatnonzero(complete)
    known = np.full(rows.size, np.nan) if scores is None else np.asarray(scores)[complete]
    known = np.where(np.isnan(known), restricted.scores(), known)
    return CompleteAgents.of(table, rows, restricted.means, known)


def generator(base_seed: int, *what: str | int) -> np.random.Generator:
    """Return a generator that depends only on the base seed and on the names of what is drawn."""
    text = "\x1f".join(str(part) for part in (base_seed, *what))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def plan(protocol: str, agents: CompleteAgents, *, n_seeds: int = N_SEEDS, base_seed: int = 0) -> Plan:
    """List the folds of a protocol; without folds, `reason` is a sentence with the numbers that show why."""
    if agents.n <= N_AGENTS_PROVISIONAL:
        complete = f"{agents.n} complete {'agent' if agents.n == 1 else 'agents'}"
        needed = f"with one held out at least {N_AGENTS_PROVISIONAL} must remain to choose a subset"
        return Plan(protocol, (), f"{complete}; {needed}")
    folds = PROTOCOLS[protocol](agents, n_seeds, base_seed)
    if isinstance(folds, str):
        return Plan(protocol, (), folds)
    if len(folds) == 1:
        return Plan(
            protocol, (), f"one fold alone, {in_fold(protocol, folds[0])}: nothing to compare it with"
        )
    return Plan(protocol, folds, "")


def nested_plan(agents: CompleteAgents, by: Literal["agent", "scaffold", "date"]) -> Plan:
    """Folds inside a training matrix: each agent or scaffold, where at least 5 agents remain; or in time."""
    if by == "date":
        return plan("temporal", agents)
    if by == "agent":
        folds = _one_by_one(agents, np.arange(agents.n))
    else:
        folds = _group_by_group(agents, _members(agents.scaffolds))
    return Plan(f"nested by {by}", tuple(f for f in folds if f.training.size >= N_AGENTS_LEFT), "")


def _within_scaffold(agents: CompleteAgents, n_seeds: int, base_seed: int) -> tuple[Fold, ...] | str:
    members = {name: rows for name, rows in _members(agents.scaffolds).items() if name != NOT_STATED}
    if not members:
        return "no scaffold is stated"
    large = {name: rows for name, rows in members.items() if rows.size >= N_AGENTS_WITHIN_SCAFFOLD}
    if not large:
        largest = max(members, key=lambda name: members[name].size)
        return (
            f"no scaffold has {N_AGENTS_WITHIN_SCAFFOLD} complete agents; the largest, {largest!r}, "
            f"has {members[largest].size}"
        )
    return tuple(fold for name, rows in large.items() for fold in _one_by_one(agents, rows, name))


def _random_80_20(agents: CompleteAgents, n_seeds: int, base_seed: int) -> tuple[Fold, ...]:
    n_held_out = max(2, round(agents.n / 5))
    orders = (generator(base_seed, "split", seed).permutation(agents.n) for seed in range(n_seeds))
    return tuple(
        _fold(str(seed), order[:n_held_out], order[n_held_out:]) for seed, order in enumerate(orders)
    )


def _temporal(agents: CompleteAgents, n_seeds: int, base_seed: int) -> tuple[Fold, ...] | str:
    n_undated = sum(day is None for day in agents.dates)
    if n_undated:
        return f"{n_undated} of {agents.n} complete agents {'has' if n_undated == 1 else 'have'} no date"
    by_date = sorted(range(agents.n), key=lambda i: (agents.dates[i] or date.min, i))
    days = [(day, list(rows)) for day, rows in groupby(by_date, key=lambda i: agents.dates[i])]
    folds, earlier = [], list[int]()
    for day, rows in days:
        if len(earlier) >= N_AGENTS_BEFORE:
            folds.append(_fold(str(day), rows, earlier))
        earlier = earlier + rows
    n_before = sum(len(rows) for _, rows in days[:-1])
    return tuple(folds) or (
        f"at least {N_AGENTS_BEFORE} complete agents must come before a date; the last of {len(days)} dates "
        f"has {n_before} before it"
    )


PROTOCOLS: dict[str, Callable[[CompleteAgents, int, int], tuple[Fold, ...] | str]] = {
    "loao": lambda agents, n_seeds, base_seed: _one_by_one(agents, np.arange(agents.n)),
    "within_scaffold": _within_scaffold,
    "random_80_20": _random_80_20,
    "loso": lambda agents, n_seeds, base_seed: (
        _two_pairs("scaffold", _members(agents.scaffolds))
        or nested_plan(agents, "scaffold").folds
        or f"no scaffold leaves {N_AGENTS_LEFT} agents to train on"
    ),
    "lomo": lambda agents, n_seeds, base_seed: (
        _two_pairs("model", _members(agents.models)) or _group_by_group(agents, _members(agents.models))
    ),
    "temporal": _temporal,
}
IN_FOLD = {
    "loao": "without agent {!r}",
    "within_scaffold": "without agent {!r}",
    "random_80_20": "in the split of seed {}",
    "loso": "without scaffold {!r}",
    "lomo": "without model {!r}",
    "temporal": "before {}",
}


def in_fold(protocol: str, fold: Fold) -> str:
    """Return what the training agents of a fold are, in words: without agent 'a', in the split of seed 3."""
    return IN_FOLD[protocol].format(fold.name)


def _fold(name: str, held_out: npt.ArrayLike, training: npt.ArrayLike, pool: str = "") -> Fold:
    out, rest = (read_only(np.sort(np.asarray(rows, dtype=np.intp))) for rows in (held_out, training))
    return Fold(name, out, rest, pool)


def _one_by_one(agents: CompleteAgents, rows: IndexArray, pool: str = "") -> tuple[Fold, ...]:
    return tuple(_fold(agents.names[i], [i], rows[rows != i], pool) for i in rows.tolist())


def _group_by_group(agents: CompleteAgents, members: dict[str, IndexArray]) -> tuple[Fold, ...]:
    everyone = np.arange(agents.n)
    return tuple(_fold(name, rows, np.setdiff1d(everyone, rows)) for name, rows in members.items())


def _members(labels: Sequence[str]) -> dict[str, IndexArray]:
    names = np.array(labels, dtype=object)
    return {name: np.flatnonzero(names == name) for name in sorted(set(labels))}


def _two_pairs(noun: str, members: dict[str, IndexArray]) -> str:
    """Why agents cannot be held out by group; "" when two groups have two agents."""
    n_pairs = sum(rows.size >= 2 for rows in members.values())
    if n_pairs >= 2:
        return ""
    return f"two {noun}s with at least 2 complete agents are needed; {n_pairs} of {len(members)} have them"


def fold_pass_rates(outcomes: FloatArray, counted: Sequence[IndexArray]) -> FloatArray:
    """Pass rates of many sets of agents at once, by taking the other agents out of the column sums.

    outcomes: (n_agents, n_tasks); NaN where missing.
    counted: length n_folds; positions of the agents that count in each fold, ascending.
    Returns: (n_folds, n_tasks); NaN where no counted agent has a valid cell.
    """
    valid = ~np.isnan(outcomes)
    rates = _sums(np.where(valid, outcomes, 0.0), counted)
    if valid.all():
        rates /= np.array([rows.size for rows in counted])[:, None]
        return rates
    n_valid = _sums(valid.astype(np.float64), counted)
    rates /= np.where(n_valid > 0, n_valid, np.nan)
    return rates


def fold_bands(agents: CompleteAgents, plan: Plan, rule: Rule) -> FoldBands:
    """Pass rates and subset of every fold of a protocol, each from its training agents alone."""
    counted = tuple(fold.training for fold in plan.folds)
    if rule.history_window is not None:
        latest = [latest_agents([agents.dates[i] for i in rows], rule.history_window) for rows in counted]
        counted = tuple(rows[of] for rows, of in zip(counted, latest, strict=True))
    rates = fold_pass_rates(agents.outcomes, counted)
    edges: dict[str, Any] = {"lo": rule.lo, "hi": rule.hi, "widening": rule.widening}
    if plan.protocol == "temporal" and rule.hysteresis > 0.0:
        tasks, current = list[IndexArray](), np.empty(0, dtype=np.intp)
        for row, rows in zip(rates, counted, strict=True):
            tasks.append(carry(current, row, rows.size, hysteresis=rule.hysteresis, **edges))
            current = tasks[-1] if tasks[-1].size else current  # a fold without one leaves it as it was
    else:
        tasks = tasks_in_bands(rates, [rows.size for rows in counted], **edges)
    return FoldBands(plan.folds, counted, read_only(rates), tuple(read_only(chosen) for chosen in tasks))


def membership(sets: Sequence[IndexArray], n: int) -> Mask:
    """Return which of n positions each set holds, shape (n_sets, n)."""
    members = np.zeros((len(sets), n), dtype=np.bool_)
    for row, positions in zip(members, sets, strict=True):
        row[positions] = True
    return members


def subset_sums(values: FloatArray, members: Mask) -> FloatArray:
    """Σ_{j in S} values[:, j] of every fold, (n_agents, n_folds): what all share, and what differs."""
    shared = members.all(axis=0)
    differ = members.any(axis=0) & ~shared
    selected = members[:, differ].T.astype(np.float64)
    return np.asarray(values[:, shared].sum(axis=1)[:, None] + values[:, differ] @ selected, dtype=np.float64)


def _sums(values: FloatArray, counted: Sequence[IndexArray]) -> FloatArray:
    """Column sums over the counted rows of each fold, from whichever rows are fewer."""
    n, total = len(values), values.sum(axis=0)
    sums = np.empty((len(counted), values.shape[1]))
    but_one = np.array([rows.size == n - 1 for rows in counted], dtype=np.bool_)
    left_out = [n * (n - 1) // 2 - int(rows.sum()) for rows in counted if rows.size == n - 1]
    sums[but_one] = total - values[left_out]
    for f in np.flatnonzero(~but_one).tolist():
        rows = counted[f]
        if 2 * rows.size <= n:
            sums[f] = values[rows].sum(axis=0)
        else:
            out = np.ones(n, dtype=np.bool_)
            out[rows] = False
            sums[f] = total - values[out].sum(axis=0)
    return sums
