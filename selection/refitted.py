"""The closed forms of nested validation against scikit-learn, which refits in every fold.

The pipeline of `selection.estimators` is fitted to the training agents of each fold of ``loao`` and ``loso``,
of more than 100 to 100, evenly spread; the subset is the mid-range band, whatever the policy's strategy.
"""

from typing import Any

import numpy as np
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline

from analytics.record import Record
from selection.estimators import FullScore, MidRangeSelector
from selection.folds import CompleteAgents, Rule, fold_bands, in_fold, plan
from selection.held_out import choose, hold_out
from selection.rules import Rules
from selection.standings.choice import training
from selection.standings.placing import place_on_all, scores_of

MAX_FOLDS = 100
MAX_DIFFERENCE = 1e-8


def refitted(record: Record, rules: Rules) -> dict[str, Any] | None:
    """Return where the two differ most; None where no fold of either protocol has a subset.

    rules: the edges of the band are theirs.
    Returns: ``difference``, the two predictions ``closed_form`` and ``scikit_learn``, ``where`` they are of,
        and the number of ``folds`` that were refitted.
    """
    agents, rule = training(record, scores_of(place_on_all(record))), Rule(rules.lo, rules.hi)
    differences = [one for protocol in ("loao", "loso") for one in _of(protocol, agents, rule)]
    folds = len({one["where"] for one in differences})
    return max(differences, key=lambda one: one["difference"]) | {"folds": folds} if differences else None


def _of(protocol: str, agents: CompleteAgents, rule: Rule) -> list[dict[str, Any]]:
    subsets = choose(agents, fold_bands(agents, plan(protocol, agents), rule), "mid_range", rule, 0)
    if not subsets.folds:
        return []
    records = hold_out(agents, subsets)
    scored = np.unique(records.folds)
    spread = scored[np.linspace(0, scored.size - 1, min(scored.size, MAX_FOLDS)).astype(int)]
    rows = [np.flatnonzero(records.folds == f) for f in spread]
    fitted = cross_validate(
        Pipeline([("subset", MidRangeSelector(lo=rule.lo, hi=rule.hi)), ("score", FullScore())]),
        agents.outcomes,
        agents.scores,
        cv=[(subsets.folds[f].training, records.agents[own]) for f, own in zip(spread, rows, strict=True)],
        scoring="neg_mean_absolute_error",
        return_estimator=True,
        error_score="raise",
    )["estimator"]
    return [
        {
            "difference": abs(float(theirs - ours)),
            "closed_form": float(ours),
            "scikit_learn": float(theirs),
            "where": in_fold(protocol, subsets.folds[f]),
        }
        for f, own, one in zip(spread, rows, fitted, strict=True)
        for ours, theirs in zip(
            records.predictions[own], one.predict(agents.outcomes[records.agents[own]]), strict=True
        )
    ]
