"""Nested figures of the subset in use and of the ways to choose another, on the same held-out agents.

Every way tells which tasks it would have asked a held-out agent i to run, had i not been there::

    kept          S, where i did not help to choose it;
                  S₋ᵢ, chosen by the plain rule from the other incumbents, where it did
    plain         what the strategy chooses from the training agents
    hysteresis    what `selection.reselection.carry` makes of the kept subset from the training agents

In time, S stands where every incumbent comes before the date, else what would have been chosen on it; with
hysteresis the subset is carried from date to date, as in `selection.folds`. Folds in which a way has no
subset are left out for all ways. ρ₀ and p₀ rest on each way's subset of all complete agents.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4, §5.1. What is kept is held against what is
chosen by this project's own rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analytics.arrays import IndexArray, Mask
from analytics.drift.fidelity import nulls
from selection.folds import CompleteAgents, FoldBands, Plan, Rule, fold_bands, membership, nested_plan, plan
from selection.held_out import choose
from selection.reselection import carry
from selection.rules import ESTIMATORS
from selection.validation.nested import jackknife_groups
from selection.validation.paired import PairedDifference, difference
from selection.validation.study import (
    MeasuredFigures,
    NestedStudy,
    Null,
    ValidationFigures,
    is_enough,
    measure,
)

IN_USE, PLAIN, HYSTERESIS = "kept", "plain", "hysteresis"
PROTOCOLS = ("loao", "temporal")
NO_TASKS: IndexArray = np.empty(0, dtype=np.intp)

Chosen = Sequence[IndexArray]  # by fold


@dataclass(frozen=True)
class ReplacementFigures:
    """What one way shows under one protocol; where that is not available, `reason` says why.

    n_folds, n_skipped: all folds, and those in which some way has no subset.
    difference: of pairs_correct_full to that of the kept subset, on the same agents.
    """

    reason: str
    n_folds: int
    n_skipped: int
    figures: ValidationFigures | None = None
    difference: PairedDifference = field(default_factory=PairedDifference)


@dataclass(frozen=True, eq=False)
class SubsetInUse:
    """A subset in use, and what decides another.

    clear: (n_agents, n_agents); pairs that differ by more than their error.
    incumbents: (n_agents,); agents that it was chosen from.
    rule: its hysteresis is that of the way of this name.
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
    replaced: SubsetInUse, subsets: Mapping[str, IndexArray], each: Callable[[], None] | None = None
) -> dict[str, dict[str, ReplacementFigures]]:
    """Hold every way against the subset that is kept.

    subsets: the subset of all complete agents by each way that has one, `kept` among them.
    each: called after each way under each protocol.
    Returns: by way and protocol.
    """
    study, tell = _study(replaced), each or (lambda: None)
    members = membership(list(subsets.values()), replaced.agents.outcomes.shape[1])
    both = nulls(replaced.agents.outcomes, members, replaced.base_seed)
    known = {
        way: Null(rho, pairs, "" if None not in (rho, pairs) else "every permuted matrix has constant means")
        for way, rho, pairs in zip(subsets, both.rho, both.pairs, strict=True)
    }
    without = _without(replaced)
    figures: dict[str, dict[str, ReplacementFigures]] = {way: {} for way in subsets}
    for protocol in PROTOCOLS:
        folds = plan(protocol, replaced.agents, base_seed=replaced.base_seed)
        bands = fold_bands(replaced.agents, folds, replaced.plain)
        ways = {way: _chosen(replaced, way, bands, protocol, without) for way in subsets}
        used = [f for f in range(len(folds.folds)) if all(ways[way][f].size for way in ways)]
        reason, n_folds = folds.reason, len(folds.folds)
        if not reason and not is_enough(len(used), n_folds):
            reason = (
                f"{len(used)} of {n_folds} folds have a subset by every rule; at most a fifth may lack one"
            )
        measured = dict[str, MeasuredFigures]()
        for way, tasks in ways.items():
            if reason:
                figures[way][protocol] = ReplacementFigures(reason, n_folds, n_folds - len(used))
            else:  # `measure` takes the tasks of a band as they stand
                of_way = FoldBands(
                    folds=tuple(bands.folds[f] for f in used),
                    counted=tuple(bands.counted[f] for f in used),
                    rates=bands.rates[np.array(used, dtype=np.intp)],
                    tasks=tuple(tasks[f] for f in used),
                )
                with_way = replace(study, bands={protocol: of_way}, nulls={"mid_range": known[way]})
                mine = measured[way] = measure(with_way, protocol, "mid_range")[0]
                against = PairedDifference()
                if way != IN_USE:
                    against = difference(mine.replicates, measured[IN_USE].replicates)
                figures[way][protocol] = ReplacementFigures(
                    "", n_folds, n_folds - len(used), mine.figures, against
                )
            tell()
    return figures


def _chosen(
    replaced: SubsetInUse, way: str, bands: FoldBands, protocol: str, without: Mapping[int, IndexArray]
) -> Chosen:
    subsets = choose(
        replaced.agents, bands, replaced.strategy, replaced.plain, replaced.base_seed, protocol, 0
    )
    known = {fold.name: tasks for fold, tasks in zip(subsets.folds, subsets.tasks, strict=True)}
    by_rule = [known.get(fold.name, NO_TASKS) for fold in bands.folds]
    rule, incumbents = replaced.rule, np.flatnonzero(replaced.incumbents)
    if way == PLAIN:
        return by_rule
    if protocol == "temporal" and way == HYSTERESIS:
        return fold_bands(replaced.agents, Plan("temporal", bands.folds, ""), rule).tasks
    if protocol == "temporal":
        return [
            replaced.in_use if np.isin(incumbents, fold.training).all() else tasks
            for fold, tasks in zip(bands.folds, by_rule, strict=True)
        ]
    in_use = [without.get(int(fold.held_out[0]), replaced.in_use) for fold in bands.folds]
    if way == IN_USE:
        return in_use
    return [
        carry(
            previous,
            rates,
            rows.size,
            hysteresis=rule.hysteresis,
            lo=rule.lo,
            hi=rule.hi,
            widening=rule.widening,
        )
        for previous, rates, rows in zip(in_use, bands.rates, bands.counted, strict=True)
    ]


def _without(replaced: SubsetInUse) -> dict[int, IndexArray]:
    """S₋ᵢ by position of the incumbent i; empty where the others choose none."""
    rows = np.flatnonzero(replaced.incumbents)
    agents = replaced.agents.take(rows)
    bands = fold_bands(agents, nested_plan(agents, "agent"), replaced.plain)
    subsets = choose(agents, bands, replaced.strategy, replaced.plain, replaced.base_seed, "nested", "agent")
    known = {
        int(rows[fold.held_out[0]]): tasks for fold, tasks in zip(subsets.folds, subsets.tasks, strict=True)
    }
    return dict.fromkeys(rows.tolist(), NO_TASKS) | known


def _study(replaced: SubsetInUse) -> NestedStudy:
    return NestedStudy(
        agents=replaced.agents,
        clear=replaced.clear,
        groups=jackknife_groups(replaced.agents),
        bands={},
        nulls={},
        estimators=(replaced.estimator,),
        not_estimated={name: "not asked for" for name in ESTIMATORS if name != replaced.estimator},
        rule=replaced.plain,
        base_seed=replaced.base_seed,
        n_draws=1,
        with_errors=True,
        coverage_of="",
        no_coverage="not asked for",
    )
