"""The refusals of `selection`: what the data cannot give, by name and with the numbers that show it."""

from analytics.errors import CoreError


class SelectionError(CoreError):
    """Which tasks to keep, or what they tell, cannot be said from these data."""


class ShapeMismatch(SelectionError):
    """Arrays that belong together differ in shape."""


class NoTasks(SelectionError):
    """There is no task to choose from or to calibrate on."""


class BandRefused(SelectionError):
    """A band needs edges 0 ≤ lo < hi ≤ 1."""


class OutcomeRefused(SelectionError):
    """A mean outcome is a number from 0 to 1, or missing."""


class WeightRefused(SelectionError):
    """A weight is 1 over an inclusion probability: finite and above 0."""


class WindowRefused(SelectionError):
    """A history window holds at least one agent."""


class TooFewAgents(SelectionError):
    """An intercept and a slope need at least two agents."""


class PenaltyRefused(SelectionError):
    """The Ridge penalty is finite and above 0."""


class ScoreMissing(SelectionError):
    """A training agent without a full score teaches nothing."""


class TaskUnobserved(SelectionError):
    """A task no training agent has run has no column mean to complete it with."""


class CellsMissing(SelectionError):
    """More than a tenth of an agent's subset is missing: its score is not predicted."""
