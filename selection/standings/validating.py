"""The validation of a record by its rules: the truths are the full scores that its board shows.

A mean over what an agent has would count the hardest tasks as if they were like the others.
"""

from collections.abc import Mapping
from typing import Any

from analytics.record import Record
from selection.rules import Rules
from selection.staged.study import AssignmentRule, WalkResult, others, replayed
from selection.staged.text import is_below_mostly
from selection.standings.choice import rule_of
from selection.standings.placing import place_on_all, scores_of
from selection.validation import as_json, validate


def validation_of(
    record: Record,
    rules: Rules,
    *,
    rule: AssignmentRule | None = None,
    walks: Mapping[str, WalkResult] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Validate the complete agents of a record.

    rule: by which tasks are assigned; None: full runs.
    walks: agents that were asked batch by batch, by name.
    **options: of `selection.validation.validate`.
    Returns: as `selection.validation.as_json`, with ``agents_in_file`` and ``n_missing_failed``, and with a
        ``replay`` of the rule; where its verdict is below mostly, with ``others``: replays of what could take
        its place.
    """
    validation = validate(
        record.table.restrict(agents=record.complete),
        base_seed=rules.seed,
        band_rule=rule_of(rules),
        policy_strategy=rules.strategy,
        estimator=rules.estimator,
        scores=scores_of(place_on_all(record))[record.complete],
        **options,
    )
    counted = {"agents_in_file": record.n_agents, "n_missing_failed": record.n_missing_failed}
    payload = as_json(validation) | counted
    if rule is None:
        return payload
    payload["replay"] = replayed(record, rule, walks, base_seed=rules.seed)
    if is_below_mostly(payload["replay"]["verdict"]):
        payload["others"] = [replayed(record, one, walks, base_seed=rules.seed) for one in others(rule)]
    return payload
