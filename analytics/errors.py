"""The refusals of the core: every one names the number or the place that caused it."""


class CoreError(ValueError):
    """What the data cannot give is refused by name."""
