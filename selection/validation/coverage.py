"""Coverage: how often the interval of a calibrated score holds the score a full run showed.

In every outer fold all that an interval rests on comes from the fold's training agents: residuals of an
inner temporal protocol with the selection repeated; where these are fewer than 19, of an inner
leave-one-agent-out; where a held-out agent has a scaffold the fold has not seen, of an inner
leave-one-scaffold-out too. With `completion` c and ν come from the fold's training agents cut down to its
subset. A record counts where there is an interval, and is covered when lower ≤ y ≤ upper.
"""

from typing import Literal

import numpy as np

from analytics.arrays import DECIMALS, FloatArray
from selection import full_scores, intervals
from selection.folds import CompleteAgents, Rule
from selection.held_out import HeldOutRecords, Subsets, nested_residuals
from selection.intervals import MIN_FOR_QUANTILE
from selection.staged.model import estimates
from selection.staged.teaching import of_full_runs


def covered(
    agents: CompleteAgents,
    subsets: Subsets,
    records: HeldOutRecords,
    strategy: str,
    rule: Rule,
    base_seed: int,
    estimator: str = "ridge",
) -> FloatArray:
    """Whether each record's interval holds its score, shape (n_records,); NaN where there is no interval."""
    if estimator == "completion":
        return _by_model(agents, subsets, records)
    answers = np.full(records.n, np.nan)

    def left_out(training: CompleteAgents, by: Literal["agent", "scaffold", "date"]) -> FloatArray:
        residuals = nested_residuals(
            training, by, strategy=strategy, estimator=estimator, rule=rule, base_seed=base_seed
        )
        return np.asarray(residuals.scores - residuals.predictions)

    for f, (fold, tasks) in enumerate(zip(subsets.folds, subsets.tasks, strict=True)):
        of_fold = np.flatnonzero(records.folds == f)
        rows = records.agents[of_fold]
        scaffolds = [agents.scaffolds[i] for i in rows]
        training = full_scores.fit(estimator, agents.take(fold.training, sharing=True), tasks)
        in_time = left_out(training.agents, "date")
        enough = np.count_nonzero(~np.isnan(in_time)) >= MIN_FOR_QUANTILE
        is_new = not set(scaffolds) <= set(training.agents.scaffolds)
        calibrator = intervals.calibrate(
            training,
            np.full(training.agents.n, np.nan) if enough else left_out(training.agents, "agent"),
            in_time=in_time,
            scaffolds=training.agents.scaffolds,
            scaffold_residuals=left_out(training.agents, "scaffold") if is_new else None,
        )
        ends_of = intervals.intervals(calibrator, agents.outcomes[np.ix_(rows, tasks)], scaffolds)
        for row, ends, y in zip(of_fold, ends_of, agents.scores[rows], strict=True):
            if not isinstance(ends, intervals.NoInterval):
                lower, score, upper = np.round([ends.lower, y, ends.upper], DECIMALS)
                answers[row] = float(lower <= score <= upper)
    return answers


def _by_model(agents: CompleteAgents, subsets: Subsets, records: HeldOutRecords) -> FloatArray:
    answers = np.empty(records.n)
    for f, (fold, tasks) in enumerate(zip(subsets.folds, subsets.tasks, strict=True)):
        of_fold = np.flatnonzero(records.folds == f)
        rows = records.agents[of_fold]
        taught = of_full_runs(agents, fold.training)
        seen = np.full((rows.size, agents.outcomes.shape[1]), np.nan)
        seen[:, tasks] = agents.outcomes[np.ix_(rows, tasks)]
        result = estimates(taught.model, seen, agents.means_after(taught.model, fold.training, rows))
        scales = [taught.scale_for(agents.scaffolds[i], tasks)[0] for i in rows]
        half = np.array([scale.quantile * scale.c for scale in scales]) * result.se
        apart = np.abs(agents.scores[rows] - result.scores)
        answers[of_fold] = np.round(apart, DECIMALS) <= np.round(half, DECIMALS)
    return answers
