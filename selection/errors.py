"""The refusals of `selection`: what the data cannot give, by name and with the numbers that show it."""

from analytics.errors import CoreError


class SelectionError(CoreError):
    """Which tasks to keep, or what they tell, cannot be said from these data."""
