"""Accuracy of one agent: its mean outcome over tasks like these, with an interval.

Source: *Intraclass correlation for agentic evaluation* (GAIA, FRAMES), Tables 2 and 3. The logit by the delta
method: Agresti, *Categorical Data Analysis*, 2013, §3.1.
"""

import math
from typing import Literal

from scipy.special import expit, logit, stdtrit

from analytics.errors import CoreError
from analytics.trials.icc import EQUAL, TaskTrials, TrialInterval, counted

N_EXPECTED = 5.0


class AccuracyRefused(CoreError):
    """No interval of a mean outcome: `too_few_tasks`, or `means_equal`."""


def accuracy_interval(trials: TaskTrials) -> TrialInterval:
    """95% interval of the mean outcome over tasks like these: t, or logit-t near an end.

    Raises AccuracyRefused: with fewer than two tasks, or where all task means are equal.
    """
    a = trials.n_tasks
    if a < 2:
        raise AccuracyRefused(
            f"no interval of a mean over {counted(a, 'task')}; at least 2 are needed", code="too_few_tasks"
        )
    se = float(trials.means.std(ddof=1)) / math.sqrt(a)
    if se <= EQUAL:
        raise AccuracyRefused(
            f"no interval of a mean: all {a} tasks have the mean outcome {trials.mean:.4g}, which tells "
            "nothing of how tasks differ",
            code="means_equal",
        )
    return mean_interval(trials.mean, se, a)


def mean_interval(
    mean: float, se: float, n_tasks: int, method: Literal["t", "logit-t"] | None = None
) -> TrialInterval:
    """95% interval of a mean over tasks from its standard error.

    mean, se: A, strictly between 0 and 1 for the logit; SE.
    n_tasks: a, at least 2.
    method: {"t", "logit-t"}: by rule when not given: logit-t where a·min(A, 1 − A) < 5.
    """
    n_expected = n_tasks * min(mean, 1.0 - mean)
    rule: Literal["t", "logit-t"] = "logit-t" if n_expected < N_EXPECTED - EQUAL else "t"
    reach = float(stdtrit(n_tasks - 1, 0.975)) * se
    if (method or rule) == "t":
        return TrialInterval(mean - reach, mean + reach, "t")
    centre, reach = float(logit(mean)), reach / (mean * (1.0 - mean))
    return TrialInterval(float(expit(centre - reach)), float(expit(centre + reach)), "logit-t")
