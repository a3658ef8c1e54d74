"""Two agents and how they differ, for a target that is named; computed on request, never stored.

On given tasks (subset, full) a difference has the variance that decides the ranks of the two, that of the
incumbent shift included; for the domain that of its spread over tasks, or over their groups. p-values are
adjusted over the pairs asked for (Benjamini and Hochberg), and answer a single question: ties and ranks come
from one critical value for all pairs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, NamedTuple, cast, get_args

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray, read_only
from analytics.differences import groups as grouped
from analytics.differences.estimates import Estimate, Target, benjamini_hochberg, compare, compare_given
from analytics.differences.finite_errors import Calibrated, Measured
from analytics.differences.neyman_draws import pair_variances
from analytics.differences.rows import ErrorTerm, agent_variance
from analytics.errors import CoreError
from analytics.record import Record
from analytics.text import named
from selection.errors import SelectionError
from selection.prior import PriorDecisions
from selection.rules import BY_CALIBRATION, Rules
from selection.schema.board import AtTarget
from selection.standings import terms, words
from selection.standings.answering import (
    Basis,
    basis_of,
    default_target,
    error_model_of,
    estimates_of,
    shift_of,
)
from selection.standings.full_scores import FullScoreEstimate, within
from selection.standings.placing import AgentOnTasks, is_chosen_for
from selection.standings.targets import ErrorModel, at_target, unclaimed

N_LAST = 16  # comparisons whose estimates a view keeps


@dataclass(frozen=True)
class Pair:
    """Two agents and how they differ.

    a, b: the one with the higher score first.
    estimate: of a − b; None where `reason` says why.
    unclaimed: outcomes are missing in a way that could turn the order: none is claimed.
    se_of_ties: √ of the variance that decides whether the two are tied: on given tasks that of `estimate`,
        for the domain that of `analytics.differences.ranks`.
    """

    a: str
    b: str
    estimate: Estimate | None
    p_adjusted: float | None
    unclaimed: bool
    reason: str
    se_of_ties: float | None = None

    def is_tied(self, critical: float) -> bool:
        """Whether neither is clearly better, by the critical value of a board; True without an error."""
        if self.estimate is None or self.se_of_ties is None or self.unclaimed:
            return True
        return abs(round(self.estimate.value, DECIMALS)) <= critical * self.se_of_ties


@dataclass(frozen=True)
class PairwiseComparison:
    """All pairs of some agents for one target.

    omega: ω̂ of these tasks; None where trials do not give it.
    agents: by descending score; without ranks and ties.
    left_out: agent → why it is not compared.
    outcomes: (n_tasks,); agent → mean outcomes by task, as the differences have them; NaN without a valid
        one.
    trial_noise: the noise of trials that intervals borrow; else empty.
    """

    target: Target
    n_tasks: int
    omega: float | None
    agents: Mapping[str, AtTarget]
    pairs: tuple[Pair, ...]
    left_out: Mapping[str, str]
    tasks: tuple[str, ...]
    outcomes: Mapping[str, FloatArray]
    trial_noise: str = ""


def pairs(
    record: Record,
    rules: Rules | None = None,
    prior: PriorDecisions | None = None,
    *,
    target: str | None = None,
    agents: Collection[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PairwiseComparison:
    """Compare all pairs of agents, or of some of them.

    target: {"subset", "full", "domain"}: by default that of the rules, else that of the board.
    agents: two names at least; all agents where not named. The subset does not depend on them.
    """
    wanted = positions(record, agents)
    return pairs_of(view_of(record, rules, prior, target=target), wanted, progress=progress)


@dataclass(frozen=True, eq=False)
class View:
    """A record as one target looks at it: what any comparison of its agents rests on; see `view_of`.

    shift: variance of the incumbent shift, score².
    estimates: estimated full scores by position of all agents, or at least of some.
    """

    basis: Basis
    rules: Rules
    prior: PriorDecisions
    target: Target
    error_model: ErrorModel
    shift: float
    estimates: Callable[[frozenset[int] | None], Mapping[int, FullScoreEstimate]]

    @property
    def tasks(self) -> IndexArray:
        """Positions of the target's tasks."""
        return self.basis.subset if self.target == "subset" else self.basis.tasks

    @property
    def on_tasks(self) -> Sequence[AgentOnTasks]:
        """Every agent on them."""
        return self.basis.on_subset if self.target == "subset" else self.basis.on_all

    def estimated(self, wanted: Collection[int]) -> Mapping[int, FullScoreEstimate]:
        """Return the estimated full scores of those of these agents that have one; none for other targets."""
        estimable = self._estimable.intersection(wanted if self.target == "full" else ())
        whole = estimable == self._estimable or self.rules.estimator in BY_CALIBRATION
        known = self.estimates(None if whole else estimable) if estimable else {}
        return {i: known[i] for i in estimable if i in known}

    @cached_property
    def _estimable(self) -> frozenset[int]:
        chosen = np.flatnonzero(is_chosen_for(self.basis.record))
        return frozenset([*self.basis.newcomers.tolist(), *self.basis.of_earlier, *chosen.tolist()])


class Side(NamedTuple):
    """An agent as it enters its pairs."""

    position: int
    at: AtTarget
    agent: Measured | Calibrated


def view_of(
    record: Record,
    rules: Rules | None = None,
    prior: PriorDecisions | None = None,
    *,
    target: str | None = None,
) -> View:
    """Look at a record for a target; `pairs_of` compares any of its agents.

    record, rules, prior, target: as in `pairs`.
    Raises SelectionError (target_unknown, no_subset).
    """
    rules, prior = rules or Rules(), prior or PriorDecisions()
    base = basis_of(record, rules, prior)

    @lru_cache(N_LAST)
    def estimates(of: frozenset[int] | None) -> Mapping[int, FullScoreEstimate]:
        return estimates_of(base, rules, prior, of)[0]

    wanted = target or rules.target or default_target(base, estimates(None), rules, prior)[0]
    if wanted not in get_args(Target):
        raise SelectionError(
            f"a target is {', '.join(get_args(Target))}, not {wanted!r}", code="target_unknown"
        )
    if wanted == "subset" and not base.subset.size:
        raise SelectionError(f"no ranking tasks: {base.chosen.reason}", code="no_subset")
    return View(
        basis=base,
        rules=rules,
        prior=prior,
        target=cast(Target, wanted),
        error_model=error_model_of(base.record, rules, prior),
        shift=shift_of(base, rules, prior.fits) if wanted == "subset" else 0.0,
        estimates=estimates,
    )


def pairs_of(
    view: View, wanted: Sequence[int], *, progress: Callable[[int, int], None] | None = None
) -> PairwiseComparison:
    """Compare all pairs of agents, named by their positions in the record; otherwise as `pairs`."""
    sides, left_out = _sides(view, wanted)
    if len(sides) < 2:
        raise SelectionError(
            f"{len(sides)} of {len(wanted)} agents can be compared; 2 are needed", code="too_few"
        )
    table = view.error_model.record.table
    return PairwiseComparison(
        target=view.target,
        n_tasks=view.tasks.size,
        omega=view.error_model.noise(view.tasks).omega,
        agents={agent.name: at for _, at, agent in sides},
        pairs=tuple(_pairs(view, sides, progress)),
        left_out=left_out,
        tasks=tuple(table.tasks[j] for j in view.tasks.tolist()),
        outcomes={agent.name: read_only(table.means[i, view.tasks]) for i, _, agent in sides},
        trial_noise="" if view.target == "domain" else view.error_model.borrowed,
    )


def positions(record: Record, agents: Collection[str] | None) -> list[int]:
    """Return where agents stand in a record, ascending; all of them where none is named.

    Raises SelectionError (agent_unknown).
    """
    names = record.table.agents
    if agents is None:
        return list(range(len(names)))
    place = {name: i for i, name in enumerate(names)}
    for name in agents:
        if name not in place:
            holding = [agent for agent in names if name.lower() in agent.lower()]
            near = ", ".join(map(named, holding[:3] or get_close_matches(name, names)))
            message = f"unknown agent {named(name)}{near and f'. Did you mean {near}?'}"
            raise SelectionError(message, code="agent_unknown")
    return sorted({place[name] for name in agents})


def _sides(view: View, wanted: Sequence[int]) -> tuple[list[Side], dict[str, str]]:
    """Agents with a score for the target, the best first; the others' reasons."""
    sides, left_out, error_model = list[Side](), dict[str, str](), view.error_model
    on_tasks, known = [view.on_tasks[i] for i in wanted], view.estimated(wanted)
    for i, one, row in zip(wanted, on_tasks, error_model.rows(wanted, view.tasks, on_tasks), strict=True):
        estimated = known.get(i)
        at = at_target(error_model, view.target, view.tasks, row, one, estimated)
        if (agent := error_model.agent(i, row, one, estimated)) is None:
            left_out[error_model.record.table.agents[i]] = at.reason
        else:
            sides.append(Side(i, at, agent))
    return sorted(sides, key=lambda side: (-round(side.at.score or 0.0, DECIMALS), side.agent.name)), left_out


def _pairs(view: View, sides: Sequence[Side], progress: Callable[[int, int], None] | None) -> list[Pair]:
    """All pairs, with Benjamini-Hochberg p-values over those that have one."""
    measured = [isinstance(side.agent, Measured) for side in sides]
    untold = unclaimed(view.error_model, view.tasks, [side.position for side in sides], measured)
    n_pairs = len(sides) * (len(sides) - 1) // 2
    rows: list[Pair] = []
    for (i, a), (j, b) in combinations(enumerate(sides), 2):
        names, is_unclaimed = (a.agent.name, b.agent.name), bool(untold[i, j])
        try:
            estimate, se = _compared(view, a, b)
            rows.append(Pair(*names, estimate, None, is_unclaimed, estimate.reason, se))
        except CoreError as refusal:
            rows.append(Pair(*names, None, None, is_unclaimed, str(refusal)))
        if progress is not None and len(rows) % 500 == 0:
            progress(len(rows), n_pairs)
    p_values = [one.estimate.p_value if one.estimate else None for one in rows]
    known = [p for p in p_values if p is not None]
    adjusted = iter(benjamini_hochberg(known).tolist()) if known else iter(())
    return [
        one if p is None else replace(one, p_adjusted=next(adjusted))
        for one, p in zip(rows, p_values, strict=True)
    ]


def _compared(view: View, a: Side, b: Side) -> tuple[Estimate, float | None]:
    """Compare two; and return the error by which a board of this target decides whether they are tied."""
    error_model, incumbents, added = view.error_model, view.basis.chosen.incumbents, None
    if view.target == "domain":  # of it no score is estimated
        measured = [side.agent for side in (a, b) if isinstance(side.agent, Measured)]
        rows = [replace(one.row, means=one.outcomes) for one in measured]
        groups = error_model.grouping.on(view.tasks)
        estimate = compare(*rows, facets=error_model.facets, groups=groups)
        v = [sum(term.variance for term in agent_variance(row, error_model.facets)) for row in rows]
        both = np.array([row.means for row in rows]), np.array(v)
        variances = pair_variances(*both) if groups is None else grouped.pair_variances(*both, groups)
        return estimate, float(np.sqrt(variances[0, 1]))
    if view.shift and incumbents[a.position] != incumbents[b.position]:
        added = ErrorTerm("incumbent shift", view.shift, np.count_nonzero(incumbents) - 1.0)
    estimate = compare_given(
        a.agent,
        b.agent,
        view.target,
        error_model.noise(view.tasks),
        view.tasks.size,
        facets=error_model.facets,
        added=added,
    )
    if error_model.borrowed and estimate.method == "variance function":
        estimate = replace(estimate, method=terms.BORROWED)
    return estimate, estimate.interval.se if estimate.interval else None


N_SHOWN = 10  # of the agents compared, the best; 45 pairs
PAIR_LEGEND = {
    "from, to": "95% interval of the line's own score or difference, not adjusted: about one in twenty "
    "misses the true value. Ties and ranks use wider ones that hold for all pairs at once; see `ranks`.",
    "SE": "Of the difference. On given tasks it decides ties and is never 0. An agent's own interval uses "
    "only its trials, so the two need not add up.",
}


def pairs_values(comparison: PairwiseComparison) -> dict[str, Any]:
    """Return agents and all pairs as plain values."""
    names = ("score", "se", "lower", "upper", "estimated", "method", "reason")
    return {
        "target": comparison.target,
        "n_tasks": comparison.n_tasks,
        "omega": comparison.omega,
        "trial_noise": comparison.trial_noise,
        "agents": {name: {key: getattr(at, key) for key in names} for name, at in comparison.agents.items()},
        "pairs": [
            {
                "a": pair.a,
                "b": pair.b,
                **_estimate_values(pair.estimate),
                "p_adjusted": pair.p_adjusted,
                "unclaimed": pair.unclaimed,
                "reason": pair.reason,
            }
            for pair in comparison.pairs
        ],
        "left_out": dict(comparison.left_out),
    }


def _estimate_values(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return dict.fromkeys(("difference", "se", "df", "lower", "upper", "p", "method", "n_tasks"))
    interval = estimate.interval
    return {
        "difference": estimate.value,
        "se": interval.se if interval else None,
        "df": interval.df if interval and np.isfinite(interval.df) else None,
        "lower": within(interval.lower, (-1.0, 1.0)) if interval else None,
        "upper": within(interval.upper, (-1.0, 1.0)) if interval else None,
        "p": estimate.p_value,
        "method": estimate.method,
        "n_tasks": estimate.n_tasks,
        "terms": {term.name: term.variance for term in estimate.terms},
        "cancels": list(estimate.cancels),
        "omitted": list(estimate.omitted),
    }


def pairs_shown(comparison: PairwiseComparison, *, whole: bool) -> dict[str, Any]:
    """Arrange pairs for a terminal; see `analytics.text`.

    whole: whether to show all agents and not the best ones alone; how many pairs that leaves out is said.
    """
    best = dict(list(comparison.agents.items())[: None if whole else N_SHOWN])
    pairs_shown = [pair for pair in comparison.pairs if pair.a in best and pair.b in best]
    n_more = len(comparison.pairs) - len(pairs_shown)
    estimates = [pair.estimate for pair in pairs_shown if pair.estimate is not None]
    omitted = sorted({name for estimate in estimates for name in estimate.omitted})
    never = [terms.UNMEASURED.get(name.removeprefix("agent:"), name) for name in omitted]  # agent:judge
    not_shown = (
        f"{words.counted(n_more, 'pair')} with agents below the best {N_SHOWN}, of "
        f"{len(comparison.agents):,}; --all prints them, --agents A B … those of some agents, --json has them"
    )
    methods = {one.method for one in estimates if one.interval is not None}
    methods |= {at.method for at in comparison.agents.values() if at.se is not None}
    known = sorted(methods & terms.METHODS.keys())
    legend = {terms.method_name(name): words.sentence(terms.METHODS[name]) for name in known}
    if any(one.interval is not None for one in estimates):
        legend |= PAIR_LEGEND
    n_tested = sum(pair.p_adjusted is not None for pair in comparison.pairs)
    if n_tested:
        legend["p, adjusted"] = (
            f"Adjusted over {words.counted(n_tested, 'pair')} by Benjamini and Hochberg: it answers single "
            "questions and decides no rank."
        )
    return {
        "scores on": terms.task_set(comparison.target, comparison.n_tasks),
        **({"trial noise": f"borrowed: {comparison.trial_noise}"} if comparison.trial_noise else {}),
        "never measured": "; ".join(never) or "nothing that is asked for",
        **({"not shown": not_shown} if n_more else {}),
        "agents": [
            {
                "agent": name,
                "score": at.score,
                "from": at.lower,
                "to": at.upper,
                "error by": terms.method_name(at.method) if at.se is not None else None,
                "note": at.reason,
            }
            for name, at in best.items()
        ],
        "pairs": [_pair_row(pair) for pair in pairs_shown],
        "not compared": dict(comparison.left_out),
        "\nHow to read it": legend,
    }


def _pair_row(pair: Pair) -> dict[str, Any]:
    estimate = _estimate_values(pair.estimate)
    note = "no order is claimed: outcomes are missing unevenly" if pair.unclaimed else pair.reason
    return {
        "a": pair.a,
        "b": pair.b,
        "a − b": estimate["difference"],
        "SE": estimate["se"],
        "from": estimate["lower"],
        "to": estimate["upper"],
        "p, adjusted": pair.p_adjusted,
        "error by": terms.method_name(estimate["method"]) if estimate["se"] is not None else None,
        "note": note,
    }
