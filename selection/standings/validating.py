"""The validation of a record by its rules: the truths are the full scores that its board shows.

An agent with a few gaps has its score with the gaps completed, on the board and here
(`selection.standings.placing`); a mean over what it has would count the hardest tasks as if they were like
the others. The completed gaps rest on all complete agents, in every fold.
"""

from typing import Any

import numpy as np

from analytics.arrays import FloatArray
from analytics.record import Record
from selection.linking import reference
from selection.rules import Rules
from selection.standings.placing import place, rated_tasks
from selection.validation import as_json, validate


def validation_of(record: Record, rules: Rules, **options: Any) -> dict[str, Any]:
    """Validate the complete agents of a record.

    Parameters
    ----------
    record : Record
    rules : Rules
    **options
        Of `selection.validation.validate`: protocols, strategies, seeds, jobs, progress, ….

    Returns
    -------
    dict
        As `selection.validation.as_json`, with ``agents_in_file``.
    """
    found = validate(
        record.table.restrict(agents=record.complete),
        base_seed=rules.seed,
        lo=rules.lo,
        hi=rules.hi,
        history_window=rules.history_window,
        hysteresis=rules.hysteresis,
        widening=rules.widening,
        policy_strategy=rules.strategy,
        estimator=rules.estimator,
        graded_share=record.graded_share,
        scores=_scores(record)[record.complete],
        **options,
    )
    return as_json(found) | {"agents_in_file": record.n_agents}


def _scores(record: Record) -> FloatArray:
    """Full scores of a board, shape (n_agents,); NaN for an agent that is not placed on all tasks."""
    placed = place(record, rated_tasks(record), reference(record.table.means[record.complete]))
    return np.array([np.nan if one.score is None else one.score for one in placed], dtype=np.float64)
