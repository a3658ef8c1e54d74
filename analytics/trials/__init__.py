"""What repeated trials tell: how consistent an agent is, what chance gains, what looks odd.

================  =========================================================================================
module            holds
================  =========================================================================================
``icc``           the intraclass correlation of an agent's trials
``accuracy``      its mean outcome with an interval
``convergence``   how many trials the correlation takes
``consistency``   both for every agent of a file, on common tasks and conditions
``best_of``       what the best of K equal ones shows beyond their mean
``flags``         copies, cumulative trials, identical agents, gains only, unclaimed orders
================  =========================================================================================
"""

from analytics.trials.accuracy import AccuracyRefused, accuracy_interval
from analytics.trials.consistency import Consistency, RepeatedTrials, consistency, repeated_trials
from analytics.trials.convergence import convergence
from analytics.trials.icc import IccRefused, TaskTrials, intraclass_correlation, task_trials

__all__ = [
    "AccuracyRefused",
    "Consistency",
    "IccRefused",
    "RepeatedTrials",
    "TaskTrials",
    "accuracy_interval",
    "consistency",
    "convergence",
    "intraclass_correlation",
    "repeated_trials",
    "task_trials",
]
