"""What repeated trials tell: how consistent an agent is, what chance gains, what looks odd."""

from analytics.trials.consistency import Consistency, RepeatedTrials, consistency, repeated_trials
from analytics.trials.icc import (
    AccuracyRefused,
    IccRefused,
    TaskTrials,
    accuracy_interval,
    convergence,
    intraclass_correlation,
    task_trials,
)

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
