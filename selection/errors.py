"""The refusals of `selection`: what the data cannot give, by name and with the numbers that show it."""

from analytics.errors import CoreError


class SelectionError(CoreError):
    """The data do not decide which tasks to keep, or what they show."""


def check_ranges(of: object, code: str, **ranges: tuple[bool, str]) -> None:
    """Refuse the first field whose value is out of its range: whether it holds, and the range in words."""
    for name, (holds, rule) in ranges.items():
        if not holds:
            message = f"{name} = {getattr(of, name)!r} is out of range: it has to be {rule}"
            raise SelectionError(message, code=code)
