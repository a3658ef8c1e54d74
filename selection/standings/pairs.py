"""Two agents and how they differ, for a target that is named; computed on request, never stored.

Model
-----
Two agents on the same tasks are compared by `analytics.differences.pairs.compare`, a pair with an estimated
agent by `compare_full` from the errors of both. On the subset a newcomer held against an agent that S was
chosen from counts the variance of the incumbent shift, as in the ranks. p-values are adjusted over the pairs
asked for (Benjamini and Hochberg).

Not done here
-------------
No tie and no rank: `Standings` has them, from one critical value for all pairs. A p-value answers a single
question.

Source
------
As in `analytics.differences.pairs`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import combinations
from typing import Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from analytics.arrays import IndexArray, Mask
from analytics.differences.pairs import (
    Estimate,
    FullScore,
    Row,
    Target,
    benjamini_hochberg,
    compare,
    compare_full,
)
from analytics.errors import CoreError
from analytics.record import Record
from analytics.trials.flags import unclaimed_orders
from selection.errors import SelectionError
from selection.given import Given
from selection.rules import Rules
from selection.standings.answering import Basis, basis, default_target, estimates_of, shift_of
from selection.standings.full_scores import Estimated
from selection.standings.lines import AtTarget
from selection.standings.placing import Placed
from selection.standings.targets import Bench, at_target, relative_error

N_DECIMALS = 9
Code = Literal["target_unknown", "no_subset", "agent_unknown", "too_few"]


class PairsRefused(SelectionError):
    """Agents that cannot be compared.

    Attributes
    ----------
    code : {"target_unknown", "no_subset", "agent_unknown", "too_few"}
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Pair:
    """Two agents and how they differ.

    Attributes
    ----------
    a, b : str
        The one with the higher score first.
    estimate : Estimate or None
        Of a − b; None where `reason` says why.
    p_adjusted : float or None
        Benjamini-Hochberg over all pairs with a p-value.
    unclaimed : bool
        Outcomes are missing in a way that could turn the order: none is claimed.
    reason : str
    """

    a: str
    b: str
    estimate: Estimate | None
    p_adjusted: float | None
    unclaimed: bool
    reason: str


@dataclass(frozen=True)
class Compared:
    """All pairs of some agents for one target.

    Attributes
    ----------
    target : {"subset", "full", "domain"}
    n_tasks : int
    omega : float or None
        ω̂; None where trials do not tell it.
    agents : mapping of str to AtTarget
        By descending score; without ranks and ties.
    pairs : tuple of Pair
    left_out : mapping of str to str
        Agent → why it is not compared.
    """

    target: Target
    n_tasks: int
    omega: float | None
    agents: Mapping[str, AtTarget]
    pairs: tuple[Pair, ...]
    left_out: Mapping[str, str]


def pairs(
    record: Record,
    rules: Rules | None = None,
    given: Given | None = None,
    *,
    target: str | None = None,
    agents: Collection[str] | None = None,
    groups: npt.ArrayLike | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Compared:
    """Compare all pairs of agents, or of some of them.

    Parameters
    ----------
    record, rules, given
        As in `selection.standings.answer`.
    target : {"subset", "full", "domain"}, optional
        By default that of the rules, else that of the board.
    agents : collection of str, optional
        Two names at least; all agents where not given. The subset does not depend on them.
    groups : int or str array, shape (n_tasks,), optional
        Task groups, for the target domain.
    progress : callable, optional
        Called with (pairs done, all pairs).

    Raises
    ------
    PairsRefused
    SelectionError
    """
    wanted = _positions(record, agents)
    view = _view(
        basis(record, rules or Rules(), given or Given()), target, rules or Rules(), given or Given()
    )
    sides, left_out = _sides(view, wanted)
    if len(sides) < 2:
        raise PairsRefused("too_few", f"{len(sides)} of {len(wanted)} agents can be compared; 2 are needed")
    return Compared(
        target=view.target,
        n_tasks=view.tasks.size,
        omega=view.bench.omega,
        agents={side.name: side.at for side in sides},
        pairs=tuple(_adjusted(_pairs(view, sides, _on(groups, view.tasks), progress))),
        left_out=left_out,
    )


# ----------------------------------------------------------------------------------------------- what is seen


@dataclass(frozen=True, eq=False)
class _View:
    """A record as one target looks at it."""

    bench: Bench
    target: Target
    tasks: IndexArray
    placed: Sequence[Placed]
    estimated: Mapping[int, Estimated]
    incumbents: Mask
    shift: float


@dataclass(frozen=True, eq=False)
class _Side:
    """One agent as it enters its pairs."""

    i: int
    name: str
    at: AtTarget
    row: Row | None
    full: FullScore | None


def _view(found: Basis, target: str | None, rules: Rules, given: Given) -> _View:
    estimated = estimates_of(found, rules, given)[0] if (target or rules.target) in (None, "full") else {}
    wanted = target or rules.target or default_target(found, estimated, rules, given)[0]
    if wanted not in get_args(Target):
        raise PairsRefused("target_unknown", f"a target is {', '.join(get_args(Target))}, not {wanted!r}")
    if wanted == "subset" and not found.subset.size:
        raise PairsRefused("no_subset", f"no subset: {found.chosen.reason}")
    on_subset = wanted == "subset"
    return _View(
        bench=Bench.of(found.record, given.variances.facets, rules.seed),
        target=cast(Target, wanted),
        tasks=found.subset if on_subset else found.tasks,
        placed=found.on_subset if on_subset else found.on_all,
        estimated=estimated if wanted == "full" else {},
        incumbents=found.chosen.incumbents,
        shift=shift_of(found, rules) if on_subset else 0.0,
    )


def _positions(record: Record, agents: Collection[str] | None) -> list[int]:
    names = record.table.agents
    if agents is None:
        return list(range(len(names)))
    place = {name: i for i, name in enumerate(names)}
    for name in agents:
        if name not in place:
            near = ", ".join(map(repr, _near(name, names)))
            told = f"no agent {name!r} among {len(names)}{near and f'; near are {near}'}"
            raise PairsRefused("agent_unknown", told)
    return sorted({place[name] for name in agents})


def _near(name: str, agents: Sequence[str]) -> list[str]:
    """Find a few agents whose names hold the one typed, or are written much like it."""
    holding = [agent for agent in agents if name.lower() in agent.lower()]
    return holding[:3] or get_close_matches(name, agents)


def _on(groups: npt.ArrayLike | None, tasks: IndexArray) -> npt.NDArray[np.generic] | None:
    return None if groups is None else np.asarray(groups)[tasks]


def _sides(view: _View, wanted: Sequence[int]) -> tuple[list[_Side], dict[str, str]]:
    """Agents with a score for the target, the best first; the others' reasons."""
    sides, left_out = [], {}
    for i in wanted:
        side = _side(view, i)
        if side.row is None and side.full is None:
            left_out[side.name] = side.at.reason
        else:
            sides.append(side)
    return sorted(sides, key=lambda side: (-round(side.at.score or 0.0, N_DECIMALS), side.name)), left_out


def _side(view: _View, i: int) -> _Side:
    placed, estimated = view.placed[i], view.estimated.get(i)
    name = view.bench.record.table.agents[i]
    at = at_target(view.bench, view.target, view.tasks, i, placed, estimated)
    if estimated is not None:
        return _Side(i, name, at, None, _full(estimated))
    if placed.outcomes is None or placed.score is None:
        return _Side(i, name, at, None, None)
    row = replace(view.bench.row(i, view.tasks, placed), means=placed.outcomes)
    error = relative_error(view.bench, view.tasks, i, placed) if view.estimated else (0.0, 1.0)
    return _Side(i, name, at, row, FullScore(placed.score, *error, measured=True))


def _full(told: Estimated) -> FullScore | None:
    if told.score is None or told.se2 is None or told.df is None:
        return None
    return FullScore(told.score, told.se2, told.df, measured=False)


# ------------------------------------------------------------------------------------------------- the pairs


def _pairs(
    view: _View,
    sides: Sequence[_Side],
    groups: npt.NDArray[np.generic] | None,
    progress: Callable[[int, int], None] | None,
) -> list[Pair]:
    unclaimed = _unclaimed(view, sides)
    n_pairs = len(sides) * (len(sides) - 1) // 2
    found: list[Pair] = []
    for (i, a), (j, b) in combinations(enumerate(sides), 2):
        found.append(_pair(view, a, b, groups, unclaimed=bool(unclaimed[i, j])))
        if progress is not None and len(found) % 500 == 0:
            progress(len(found), n_pairs)
    return found


def _unclaimed(view: _View, sides: Sequence[_Side]) -> Mask:
    """Pairs whose order missing outcomes could turn; never one with an estimated agent."""
    rows = np.array([side.i for side in sides], dtype=np.intp)
    means = view.bench.record.table.means[np.ix_(rows, view.tasks)]
    measured = np.array([side.row is not None for side in sides])
    return np.asarray(unclaimed_orders(means) & measured[:, None] & measured, dtype=np.bool_)


def _pair(
    view: _View, a: _Side, b: _Side, groups: npt.NDArray[np.generic] | None, *, unclaimed: bool
) -> Pair:
    try:
        estimate = _estimate(view, a, b, groups)
    except CoreError as refusal:
        return Pair(a.name, b.name, None, None, unclaimed, str(refusal))
    return Pair(a.name, b.name, estimate, None, unclaimed, estimate.reason)


def _estimate(view: _View, a: _Side, b: _Side, groups: npt.NDArray[np.generic] | None) -> Estimate:
    if a.row is not None and b.row is not None:
        rows = _against(view, a, a.row, b), _against(view, b, b.row, a)
        bench, selected = view.bench, view.target == "subset"
        return compare(
            *rows, view.target, selected=selected, omega=bench.omega, facets=bench.facets, groups=groups
        )
    if a.full is None or b.full is None:
        raise PairsRefused("too_few", "the error of a full score is not known")
    return compare_full(a.full, b.full, view.tasks.size)


def _against(view: _View, own: _Side, row: Row, other: _Side) -> Row:
    """Add the incumbent shift to an agent that did not help to choose S, against one that did."""
    if not view.shift or view.incumbents[own.i] or not view.incumbents[other.i]:
        return row
    degrees = min(row.df_link, np.count_nonzero(view.incumbents) - 1.0)
    return replace(row, v_link=row.v_link + view.shift, df_link=degrees)


def _adjusted(found: Sequence[Pair]) -> list[Pair]:
    """Add Benjamini-Hochberg p-values over the pairs that have one."""
    p_values = [one.estimate.p_value if one.estimate else None for one in found]
    known = [p for p in p_values if p is not None]
    adjusted = iter(benjamini_hochberg(known).tolist()) if known else iter(())
    return [
        one if p is None else replace(one, p_adjusted=next(adjusted))
        for one, p in zip(found, p_values, strict=True)
    ]
