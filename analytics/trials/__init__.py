"""What repeated trials tell: how consistent an agent is, what chance gains, what looks odd.

================  =========================================================================================
module            holds
================  =========================================================================================
``icc``           the intraclass correlation of an agent's trials
``accuracy``      its mean outcome with an interval
``convergence``   how many trials the correlation takes
``consistency``   both for every agent of a file, on common tasks and conditions
``gaming``        what the best of K submissions gains by chance
``submissions``   who submitted how often, and the noise between submissions, from a file
``flags``         copies, cumulative trials, identical agents, gains only, unclaimed orders
================  =========================================================================================

``submissions`` fits by REML and is imported by its own name, so that the others load without it.
"""

from analytics.trials.accuracy import AccuracyRefused, accuracy_interval
from analytics.trials.consistency import Consistency, RepeatedTrials, consistency, repeated_trials
from analytics.trials.convergence import convergence
from analytics.trials.gaming import (
    RESIDUAL,
    DesignGain,
    GamingRefused,
    Selectable,
    expected_maximum,
    gains,
    gains_by_design,
    selectable,
)
from analytics.trials.icc import IccRefused, TaskTrials, intraclass_correlation, task_trials

__all__ = [
    "RESIDUAL",
    "AccuracyRefused",
    "Consistency",
    "DesignGain",
    "GamingRefused",
    "IccRefused",
    "RepeatedTrials",
    "Selectable",
    "TaskTrials",
    "accuracy_interval",
    "consistency",
    "convergence",
    "expected_maximum",
    "gains",
    "gains_by_design",
    "intraclass_correlation",
    "repeated_trials",
    "selectable",
    "task_trials",
]
