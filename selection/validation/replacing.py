"""Nested figures of the subset in use and of the ways to choose another, on the same held-out agents.

The theory is in ``selection/README.md``, “Reselection”.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4, §5.1. What is kept is held against what is
chosen by this project's own rule.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analytics.arrays import IndexArray, Mask
from analytics.drift.rank_correlation import nulls
from selection.folds import CompleteAgents, FoldBands, Plan, Rule, fold_bands, membership, nested_plan, plan
from selection.held_out import choose
from selection.reselection import carry
from selection.rules import ESTIMATORS
from selection.validation.nested import jackknife_groups
from selection.validation.paired import Replicates, difference
from selection.validation.study import NestedStudy, Null, is_enough, measure

IN_USE, PLAIN, WITH_HYSTERESIS = "kept", "plain", "hysteresis"
PROTOCOLS = ("loao", "temporal")
FIGURES = (
    *("pairs_correct_full", "pairs_correct", "pairs_clear_full", "skill", "kappa"),
    *("rho", "rho_null", "rho_rest", "r2", "n", "n_left_out"),
)
NO_TASKS: IndexArray = np.empty(0, dtype=np.intp)

Chosen = Sequence[IndexArray]  # by fold


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
) -> dict[str, dict[str, dict[str, Any]]]:
    """Hold every way against the subset that is kept.

    subsets: the subset of all complete agents by each way that has one, `kept` among them.
    each: called after each way under each protocol.
    Returns: by way and protocol: ``reason``, where there are no figures; ``n_folds`` and ``n_skipped``, those
        in which some way has no subset; the figures, ``se``, and their ``difference`` in pairs_correct_full
        to the kept subset.
    """
    study, tell = _study(replaced), each or (lambda: None)
    members = membership(list(subsets.values()), replaced.agents.outcomes.shape[1])
    rhos, shares = nulls(replaced.agents.outcomes, members, replaced.base_seed)
    known = {
        way: Null(rho, pairs, "" if None not in (rho, pairs) else "every permuted matrix has constant means")
        for way, rho, pairs in zip(subsets, rhos, shares, strict=True)
    }
    without = _without(replaced)
    figures: dict[str, dict[str, dict[str, Any]]] = {way: {} for way in subsets}
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
        replicates = dict[str, Replicates]()
        for way, tasks in ways.items():
            plain = figures[way][protocol] = {
                "reason": reason,
                "n_folds": n_folds,
                "n_skipped": n_folds - len(used),
            }
            if not reason:  # `measure` takes the tasks of a band as they stand
                of_way = FoldBands(
                    folds=tuple(bands.folds[f] for f in used),
                    counted=tuple(bands.counted[f] for f in used),
                    rates=bands.rates[np.array(used, dtype=np.intp)],
                    tasks=tuple(tasks[f] for f in used),
                )
                with_way = replace(study, bands={protocol: of_way}, nulls={"mid_range": known[way]})
                result = measure(with_way, protocol, "mid_range")
                mine, replicates[way] = result.figures, result.replicates
                value, se = None, None
                if way != IN_USE:
                    value, se, _ = difference(replicates[way], replicates[IN_USE])
                plain |= {name: getattr(mine, name) for name in FIGURES}
                plain["se"] = {name: mine.se[name] for name in FIGURES if name in mine.se}
                plain["difference"] = {"value": value, "se": se}
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
    if protocol == "temporal" and way == WITH_HYSTERESIS:
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
