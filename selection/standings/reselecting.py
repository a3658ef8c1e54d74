"""What could take the place of the subset in use, what that would change, and what it would cost.

By the plain rule and with hysteresis (`selection.reselection`): tasks that enter and leave, nested figures on
the same held-out agents (`selection.validation.replacing`), the cost of a run, what each agent would have to
run, and the board on the new subset, its calibration fitted anew: the board that a recompute gives once the
proposal is approved, as long as nothing else is delivered.

Hysteresis is a rule of the band. Where the rules name another strategy the plain proposal is what that
chooses, and there is none with hysteresis. Where the rules give no hysteresis the second proposal has 0.05.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from analytics.arrays import IndexArray
from analytics.record import Record
from selection.bands import Band
from selection.errors import SelectionError
from selection.prior import PriorDecisions
from selection.reselection import HYSTERESIS, Proposal, propose, proposed
from selection.rules import ESTIMATORS, Rules
from selection.schema.board import Line, Standings
from selection.standings import answer, choice
from selection.standings.answering import Basis, basis_of
from selection.standings.savings import of_runs, plausible, saving
from selection.validation.figures import clear_pairs
from selection.validation.replacing import IN_USE, PLAIN, WITH_HYSTERESIS, SubsetInUse, expected

STAND = ("rank", "rank_lower", "rank_upper", "score")

Plain = dict[str, Any]
Progress = Callable[[int, int], None]
Fitting = Mapping[str, Proposal]  # by way


def proposals_of(
    record: Record,
    rules: Rules,
    prior: PriorDecisions,
    rates_then: Mapping[str, float | None],
    progress: Progress | None = None,
) -> Plain:
    """Propose by each rule what could be put in the place of the subset in use.

    prior: with the version in use last.
    rates_then: pass rates by task, when the version in use was chosen.
    Returns: ``strategy``, ``n_tasks``, ``n_complete``, ``chosen_from``, ``kept`` and ``variants``: plain
        values, agents and tasks by name. A variant without ``tasks`` says in ``reason`` why it has none.
    Raises SelectionError: nothing_to_replace.
    """
    base, band = basis_of(record, rules, prior), choice.band_of(record, rules)
    if base.chosen.line is None or base.chosen.line.number is None:
        raise SelectionError(base.chosen.reason, code="nothing_to_replace")
    carrying = replace(rules, hysteresis=rules.hysteresis or HYSTERESIS)
    proposals, refused = _ways(record, base, band, carrying)
    ways = {way: one for way, one in proposals.items() if one.k}
    subsets = {IN_USE: base.subset} | {way: one.tasks for way, one in ways.items()}
    n_all, done = 1 + len(ways) + 2 * len(subsets), count()

    def step() -> None:
        if progress is not None:
            progress(next(done), n_all)

    step()
    figures = expected(_replaced(record, base, carrying), subsets, step)
    before = answer(record, rules, prior)
    step()
    variants: Plain = {}
    for way, one in ways.items():
        reason = _reason(record, band, one, rules)
        after = answer(record, rules, _with_version(record, prior, one, band, reason, rules))
        step()
        variants[way] = {
            **_proposal(record, band, one, rates_then),
            "reason": reason,
            "figures": figures[way],
            "board": _board(before, after),
        }
    return {
        "strategy": rules.strategy,
        "n_tasks": record.n_tasks,
        "n_complete": band.n_complete,
        "chosen_from": [record.table.agents[i] for i in choice.counted_agents(record, rules)],
        "kept": {
            "k": base.chosen.tasks.size,
            "cost": _cost(record, base.chosen.tasks),
            "figures": figures[IN_USE],
        },
        "variants": variants
        | {way: {"reason": reason} for way, reason in refused.items() if way not in ways},
    }


def _ways(record: Record, base: Basis, band: Band, rules: Rules) -> tuple[Fitting, dict[str, str]]:
    previous = base.chosen.tasks
    if rules.strategy != "mid_range":
        tasks, refusal = (
            choice.chosen_tasks(choice.teachers(record), rules) if band.suited else (band.tasks, band.reason)
        )
        edges = (band.lo, band.hi), (rules.lo, rules.hi)
        one: Proposal = proposed(record.table, previous, tasks, *edges)
        why = f"hysteresis is a rule of the band; the strategy {rules.strategy} chooses by other marks"
        return {PLAIN: one}, {PLAIN: refusal, WITH_HYSTERESIS: why}
    plain, carried = propose(
        record.table,
        previous,
        band,
        hysteresis=rules.hysteresis,
        lo=rules.lo,
        hi=rules.hi,
        widening=rules.widening,
    )
    ways = {PLAIN: plain, WITH_HYSTERESIS: carried}
    return ways, dict.fromkeys(ways, band.reason)


def _replaced(record: Record, base: Basis, rules: Rules) -> SubsetInUse:
    agents = choice.training(record, base.scores)
    restricted = record.table.restrict(agents=record.complete)
    return SubsetInUse(
        agents=agents,
        clear=clear_pairs(agents.outcomes, agents.scores, restricted.trial_variances, restricted.n_trials),
        in_use=base.subset,
        incumbents=base.chosen.incumbents[record.complete],
        rule=choice.rule_of(rules),
        strategy=rules.strategy,
        estimator=rules.estimator or ESTIMATORS[0],
        base_seed=rules.seed,
    )


def _with_version(
    record: Record, prior: PriorDecisions, one: Proposal, band: Band, reason: str, rules: Rules
) -> PriorDecisions:
    """Give the proposal too, as the version after the one in use, and no calibration yet."""
    last = prior.subsets[-1]
    version = replace(
        last,
        number=last.number + 1,
        tasks=_names(record, one.tasks),
        chosen_from=tuple(record.table.agents[i] for i in choice.counted_agents(record, rules)),
        lo=one.lo,
        hi=one.hi,
        widened=one.widened,
        provisional=False,
        strategy=rules.strategy,
        reason=reason,
        n_complete=band.n_complete,
        n_tasks=record.n_tasks,
    )
    return replace(prior, subsets=(*prior.subsets, version), fitted=None)


def _reason(record: Record, band: Band, one: Proposal, rules: Rules) -> str:
    if not one.hysteresis:
        return choice.how_chosen(band, rules)
    edges = (one.lo - one.hysteresis, one.hi + one.hysteresis, one.lo, one.hi)
    low, high, lo, hi = (f"{100 * edge:.4g}%" for edge in edges)
    n_stay, n_enter = one.k - one.entering.size, one.entering.size
    return (
        f"{one.k} of {record.n_tasks} tasks by their pass rates over {band.n_complete} agents: "
        f"{n_stay} of the earlier ranking tasks, from {low} to {high}, and {n_enter} more, from {lo} to {hi}"
    )


def _proposal(record: Record, band: Band, one: Proposal, rates_then: Mapping[str, float | None]) -> Plain:
    def moved(tasks: IndexArray) -> list[Plain]:
        return [
            {
                "task": name,
                "then": rates_then.get(name),
                "now": None if np.isnan(rate := band.pass_rates[j]) else float(rate),
            }
            for j, name in zip(tasks, _names(record, tasks), strict=True)
        ]

    return {
        "hysteresis": one.hysteresis,
        "k": one.k,
        "lo": one.lo,
        "hi": one.hi,
        "widened": one.widened,
        "tasks": list(_names(record, one.tasks)),
        "pass_rates": band.pass_rates[one.tasks].tolist(),
        "entering": moved(one.entering),
        "leaving": moved(one.leaving),
        "deltas": [
            {"agent": agent, "tasks": list(_names(record, delta))}
            for agent, delta in zip(record.table.agents, one.deltas, strict=True)
            if delta.size
        ],
        "cost": _cost(record, one.tasks),
    }


def _cost(record: Record, tasks: IndexArray) -> Plain:
    return saving(of_runs(record), tasks, plausible(record)).as_plain()


def _board(before: Standings, after: Standings) -> Plain:
    def stand(line: Line, target: str) -> Plain:
        return {name: getattr(line.at[target], name) for name in STAND} | {"how": line.how}

    lines = {line.agent: line for line in after.agents}
    agents = [
        {
            "agent": line.agent,
            "before": stand(line, before.target),
            "after": stand(lines[line.agent], after.target),
        }
        for line in before.agents
    ]
    return {"target_before": before.target, "target_after": after.target, "agents": agents}


def _names(record: Record, tasks: IndexArray) -> tuple[str, ...]:
    return tuple(record.table.tasks[j] for j in tasks)
