"""Compared agents as plain values and for a terminal: which pairs are shown, and how to read them.

Nothing is computed here; what is shown is the answer of `selection.standings.pairs`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analytics.differences.estimates import Estimate
from selection.standings import terms, words
from selection.standings.pairs import Pair, PairwiseComparison

N_SHOWN = 10  # of the agents compared, the best; 45 pairs
PAIR_LEGEND = {
    "from, to": "95% interval of the line's own score or difference, not adjusted: of many, one in twenty "
    "misses. Ties and ranks rest on wider ones, right for all pairs at once; see `ranks`.",
    "SE": "Of the difference. On given tasks it is the error that decides ties, which is never 0; an agent's "
    "own interval rests on its trials alone, so that the two need not add up.",
}


def values(comparison: PairwiseComparison) -> dict[str, Any]:
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
        "lower": interval.lower if interval else None,
        "upper": interval.upper if interval else None,
        "p": estimate.p_value,
        "method": estimate.method,
        "n_tasks": estimate.n_tasks,
        "terms": {term.name: term.variance for term in estimate.terms},
        "cancels": list(estimate.cancels),
        "omitted": list(estimate.omitted),
    }


def shown(comparison: PairwiseComparison, *, whole: bool) -> dict[str, Any]:
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
        "\nHow to read it": _legend(comparison, estimates),
    }


def _legend(comparison: PairwiseComparison, estimates: Sequence[Estimate]) -> dict[str, str]:
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
    return legend


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
