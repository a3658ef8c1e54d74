"""How many trials of each task a run of the subset should have: the saving, spent on repeats.

Model
-----
With m active tasks, k of them in S, and ȳ_a the mean of a complete agent over S::

    R = max(1, ⌊m/k⌋)
    SE(R)² = ω̂_S · mean_a ȳ_a(1 − ȳ_a) / (k·R)

ω̂_S is the variance of trials over the binomial one, from the agents with repeats on S
(`analytics.differences`); where they do not tell it, 1 stands for it, and the error is an upper bound. The
cost is R times the median cost of a run of S with one trial a task.

Symbols: ω̂ ``omega``, R ``n_trials``, SE ``se`` in score, cost in US dollars.

Not done here
-------------
Runs, prompts and judges that vary, and the calibration of the full score, are in no error told here.

Source
------
This project's own.
"""

import numpy as np

from analytics.arrays import IndexArray
from analytics.differences.trial_variances import trial_variance_ratio
from analytics.record import Record
from selection.cost import saving
from selection.standings.lines import Trials, TrialsLine
from selection.standings.targets import one_trial


def recommended(n_tasks: int, k: int) -> int:
    """R = max(1, ⌊m/k⌋)."""
    return max(1, n_tasks // k)


def trials(record: Record, tasks: IndexArray) -> Trials:
    """Tell what 1, 2 and R trials of each task would be worth, and cost.

    Parameters
    ----------
    record : Record
    tasks : int array, shape (k,)
        The subset, not empty.
    """
    table, complete = record.table, np.flatnonzero(record.complete)
    on_subset = np.ix_(complete, tasks)
    omega = trial_variance_ratio(
        table.means[on_subset],
        None if table.trial_variances is None else table.trial_variances[on_subset],
        None if table.n_trials is None else table.n_trials[on_subset],
        one_trial=one_trial(record)[complete],
    )
    rates = np.nanmean(table.means[on_subset], axis=1)
    binomial = float(np.mean(rates * (1.0 - rates)))
    cost, most = _cost(record, tasks), recommended(record.n_tasks, tasks.size)
    options = tuple(
        TrialsLine(
            n_trials=n,
            se=float(np.sqrt((1.0 if omega is None else omega) * binomial / (tasks.size * n))),
            cost_usd=None if cost is None else cost * n,
        )
        for n in sorted({1, 2, most})
    )
    return Trials(recommended=most, omega=omega, upper_bound=omega is None, options=options)


def _cost(record: Record, tasks: IndexArray) -> float | None:
    """Median cost of a run of S with one trial a task, in US dollars; None where nobody states it."""
    found = saving(record.costs, tasks).subset_run
    return found.median if found else None
