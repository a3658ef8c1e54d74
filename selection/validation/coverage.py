"""Coverage: how often the interval of a calibrated score holds the score a full run showed.

Model
-----
In every outer fold all that an interval rests on comes from the fold's training agents: residuals of an inner
leave-one-agent-out with the selection repeated and, where a held-out agent has a scaffold the fold has not
seen, of an inner leave-one-scaffold-out; the fold's subset; its Ridge. A record counts where `intervals`
gives an interval, and is covered when lower ≤ y ≤ upper.

Symbols
-------
==========  ============  ======================  ===============
symbol      code          shape                   unit
==========  ============  ======================  ===============
covered     ``covered``   (n_records,)            1, 0; NaN: none
==========  ============  ======================  ===============

Not done here
-------------
A subset carried by hysteresis is not carried through the inner folds, and a history window is taken among the
fold's own training agents.

Source
------
STATISTICS §3, §4 of this project; Barber et al., *Annals of Statistics* 49 (2021) 486-507.
"""

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from analytics.drift.fidelity import DECIMALS
from selection import intervals
from selection.folds import CompleteAgents, Fold, Rule
from selection.held_out import Records, Subsets, nested_residuals


def covered(
    agents: CompleteAgents, subsets: Subsets, records: Records, strategy: str, rule: Rule, base_seed: int
) -> FloatArray:
    """Whether each record's interval holds its score, shape (n_records,); NaN where there is no interval.

    Parameters
    ----------
    agents : CompleteAgents
    subsets : Subsets
    records : Records
        Of `subsets`.
    strategy : str
        Repeated inside every fold.
    rule : Rule
    base_seed : int
    """
    answers = np.full(records.n, np.nan)
    for f, (fold, tasks) in enumerate(zip(subsets.folds, subsets.tasks, strict=True)):
        of_fold = np.flatnonzero(records.folds == f)
        rows = records.agents[of_fold]
        calibrator = _calibrator(agents, fold, tasks, rows, strategy, rule, base_seed)
        scaffolds = [agents.scaffolds[i] for i in rows]
        given = intervals.intervals(calibrator, agents.outcomes[np.ix_(rows, tasks)], scaffolds)
        answers[of_fold] = [_holds(ends, y) for ends, y in zip(given, agents.scores[rows], strict=True)]
    return answers


def _calibrator(
    agents: CompleteAgents,
    fold: Fold,
    tasks: IndexArray,
    rows: IndexArray,
    strategy: str,
    rule: Rule,
    base_seed: int,
) -> intervals.Calibrator:
    training = agents.take(fold.training)
    left_out = nested_residuals(training, "agent", strategy=strategy, rule=rule, base_seed=base_seed)
    by_scaffold = None
    if not {agents.scaffolds[i] for i in rows} <= set(training.scaffolds):
        unseen = nested_residuals(training, "scaffold", strategy=strategy, rule=rule, base_seed=base_seed)
        by_scaffold = unseen.scores - unseen.predictions
    return intervals.calibrate(
        training.outcomes[:, tasks],
        training.scores,
        left_out.scores - left_out.predictions,
        scaffolds=training.scaffolds,
        scaffold_residuals=by_scaffold,
    )


def _holds(ends: intervals.Interval | intervals.NoInterval, score: float) -> float:
    if isinstance(ends, intervals.NoInterval):
        return np.nan
    lower, y, upper = np.round([ends.lower, score, ends.upper], DECIMALS)
    return float(lower <= y <= upper)
