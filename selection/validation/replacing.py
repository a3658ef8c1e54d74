"""Nested figures of the subset in use and of the ways to choose another, on the same held-out agents.

Model
-----
Every way tells which tasks it would have asked a held-out agent i to run, had i not been there::

    kept          S, where i did not help to choose it;
                  S₋ᵢ, chosen by the plain rule from the other incumbents, where it did
    plain         what the strategy chooses from the training agents
    hysteresis    what `selection.reselection.carry` makes of the kept subset from the training agents

In time, S stands where every incumbent comes before the date, else what would have been chosen on it; with
hysteresis the subset is carried from date to date, as in `selection.folds`. Folds in which a way has no
subset are left out for all ways. Figures, jackknife and the paired difference to `kept` are those of
`study` and `paired`; ρ₀ and p₀ rest on each way's subset of all complete agents.

Symbols
-------
========  ==============  =========================  ==========
symbol    code            shape                      unit
========  ==============  =========================  ==========
X, y      ``agents``      (n_agents, n_tasks)        0 to 1
S         ``in_use``      (k,) task indices          tasks
S₋ᵢ       ``without``     one for each incumbent     tasks
========  ==============  =========================  ==========

Not done here
-------------
Nothing is proposed. Incumbents whose outcomes were taken back since have no say in S₋ᵢ.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4, §5.1. What is kept is held against what is chosen by
this project's own rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.drift.fidelity import nulls
from selection.folds import CompleteAgents, Fold, FoldBands, Plan, Rule, fold_bands, nested_plan, plan
from selection.full_scores import ESTIMATORS
from selection.held_out import choose
from selection.reselection import carry
from selection.validation.nested import jackknife_groups
from selection.validation.paired import Difference, difference
from selection.validation.study import Figures, Measured, Null, Study, is_enough, measure

KEPT, PLAIN, HYSTERESIS = "kept", "plain", "hysteresis"
PROTOCOLS = ("loao", "temporal")
NO_TASKS: IndexArray = np.empty(0, dtype=np.intp)

Chosen = Sequence[IndexArray]  # by fold


@dataclass(frozen=True)
class Expected:
    """What one way shows under one protocol; where that is not available, `reason` says why.

    Attributes
    ----------
    reason : str
    n_folds, n_skipped : int
        All folds, and those in which some way has no subset.
    figures : Figures or None
    difference : Difference
        Of pairs_correct_full to that of the kept subset, on the same agents.
    """

    reason: str
    n_folds: int
    n_skipped: int
    figures: Figures | None = None
    difference: Difference = field(default_factory=Difference)


@dataclass(frozen=True, eq=False)
class Replaced:
    """A subset in use, and what decides another.

    Attributes
    ----------
    agents : CompleteAgents
    clear : bool array, shape (n_agents, n_agents)
        Pairs that differ by more than their error.
    in_use : int array, shape (k,)
    incumbents : bool array, shape (n_agents,)
        Agents that it was chosen from.
    rule : Rule
        Its hysteresis is that of the way of this name.
    strategy, estimator : str
    base_seed : int
    """

    agents: CompleteAgents
    clear: Mask
    in_use: IndexArray
    incumbents: Mask
    rule: Rule
    strategy: str
    estimator: str
    base_seed: int

    @property
    def plain(self) -> Rule:
        """The rule without hysteresis."""
        return replace(self.rule, hysteresis=0.0)


def expected(
    found: Replaced, subsets: Mapping[str, IndexArray], each: Callable[[], None] | None = None
) -> dict[str, dict[str, Expected]]:
    """Hold every way against the subset that is kept.

    Parameters
    ----------
    found : Replaced
    subsets : mapping of str to int array
        The subset of all complete agents by each way that has one, `kept` among them.
    each : callable, optional
        Called after each way under each protocol.

    Returns
    -------
    dict
        By way and protocol.
    """
    study, tell = _study(found), each or (lambda: None)
    known = _nulls(found, subsets)
    without = _without(found)
    told: dict[str, dict[str, Expected]] = {way: {} for way in subsets}
    for protocol in PROTOCOLS:
        folds = plan(protocol, found.agents, base_seed=found.base_seed)
        bands = fold_bands(found.agents, folds, found.plain)
        ways = {way: _chosen(found, way, bands, protocol, without) for way in subsets}
        used = [f for f in range(len(folds.folds)) if all(ways[way][f].size for way in ways)]
        reason = folds.reason or _too_few(len(used), len(folds.folds))
        measured = dict[str, Measured]()
        for way in ways:
            if not reason:
                measured[way] = _measured(study, protocol, _only(bands, ways[way], used), known[way])
            told[way][protocol] = _expected(measured, way, reason, len(folds.folds), len(used))
            tell()
    return told


# ---------------------------------------------------------------------------------------------------- ways


def _chosen(
    found: Replaced, way: str, bands: FoldBands, protocol: str, without: Mapping[int, IndexArray]
) -> Chosen:
    """Tell the subset of every fold; empty where the way has none."""
    by_rule = _by_rule(found, bands, protocol)
    if way == PLAIN:
        return by_rule
    if protocol == "temporal":
        return _carried_in_time(found, bands) if way == HYSTERESIS else _kept_in_time(found, bands, by_rule)
    kept = [without.get(int(fold.held_out[0]), found.in_use) for fold in bands.folds]
    return kept if way == KEPT else [_carried(found, kept[f], bands, f) for f in range(len(kept))]


def _by_rule(found: Replaced, bands: FoldBands, protocol: str) -> Chosen:
    subsets = choose(found.agents, bands, found.strategy, found.plain, found.base_seed, protocol, 0)
    known = {fold.name: tasks for fold, tasks in zip(subsets.folds, subsets.tasks, strict=True)}
    return [known.get(fold.name, NO_TASKS) for fold in bands.folds]


def _kept_in_time(found: Replaced, bands: FoldBands, by_rule: Chosen) -> Chosen:
    """S where all that it was chosen from came before, else what was chosen then."""
    incumbents = np.flatnonzero(found.incumbents)
    return [
        found.in_use if np.isin(incumbents, fold.training).all() else tasks
        for fold, tasks in zip(bands.folds, by_rule, strict=True)
    ]


def _carried_in_time(found: Replaced, bands: FoldBands) -> Chosen:
    return fold_bands(found.agents, Plan("temporal", bands.folds, ""), found.rule).tasks


def _carried(found: Replaced, previous: IndexArray, bands: FoldBands, f: int) -> IndexArray:
    edges: dict[str, Any] = {"lo": found.rule.lo, "hi": found.rule.hi, "widening": found.rule.widening}
    hysteresis, n = found.rule.hysteresis, bands.counted[f].size
    return carry(previous, bands.rates[f], n, hysteresis=hysteresis, **edges)


def _without(found: Replaced) -> dict[int, IndexArray]:
    """S₋ᵢ by position of the incumbent i; empty where the others choose none."""
    rows = np.flatnonzero(found.incumbents)
    agents = found.agents.take(rows)
    bands = fold_bands(agents, nested_plan(agents, "agent"), found.plain)
    subsets = choose(agents, bands, found.strategy, found.plain, found.base_seed, "nested", "agent")
    known = {
        int(rows[fold.held_out[0]]): tasks for fold, tasks in zip(subsets.folds, subsets.tasks, strict=True)
    }
    return dict.fromkeys(rows.tolist(), NO_TASKS) | known


# ------------------------------------------------------------------------------------------------- figures


def _study(found: Replaced) -> Study:
    return Study(
        agents=found.agents,
        clear=found.clear,
        groups=jackknife_groups(found.agents),
        bands={},
        nulls={},
        estimators=(found.estimator,),
        not_estimated={name: "not asked for" for name in ESTIMATORS if name != found.estimator},
        rule=found.plain,
        base_seed=found.base_seed,
        n_draws=1,
        with_errors=True,
        coverage_of="",
        no_coverage="not asked for",
    )


def _measured(study: Study, protocol: str, bands: FoldBands, null: Null) -> Measured:
    """Figures of subsets that are chosen already: `measure` takes those of the band as they stand."""
    of_way = replace(study, bands={protocol: bands}, nulls={"mid_range": null})
    return measure(of_way, protocol, "mid_range")[0]


def _expected(measured: Mapping[str, Measured], way: str, reason: str, n_folds: int, n_used: int) -> Expected:
    if reason:
        return Expected(reason, n_folds, n_folds - n_used)
    mine = measured[way]
    against = Difference() if way == KEPT else difference(mine.replicates, measured[KEPT].replicates)
    return Expected("", n_folds, n_folds - n_used, mine.figures, against)


def _nulls(found: Replaced, subsets: Mapping[str, IndexArray]) -> dict[str, Null]:
    members = np.zeros((len(subsets), found.agents.outcomes.shape[1]), dtype=np.bool_)
    for row, tasks in zip(members, subsets.values(), strict=True):
        row[tasks] = True
    both = nulls(found.agents.outcomes, members, found.base_seed)
    return {
        way: Null(rho, pairs, "" if None not in (rho, pairs) else "every permuted matrix has constant means")
        for way, rho, pairs in zip(subsets, both.rho, both.pairs, strict=True)
    }


def _only(bands: FoldBands, tasks: Chosen, used: Sequence[int]) -> FoldBands:
    folds: tuple[Fold, ...] = tuple(bands.folds[f] for f in used)
    rates: FloatArray = bands.rates[np.array(used, dtype=np.intp)]
    return FoldBands(folds, tuple(bands.counted[f] for f in used), rates, tuple(tasks[f] for f in used))


def _too_few(n_used: int, n_folds: int) -> str:
    if is_enough(n_used, n_folds):
        return ""
    return f"{n_used} of {n_folds} folds have a subset by every rule; at most a fifth may lack one"
