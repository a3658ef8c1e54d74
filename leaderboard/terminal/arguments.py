"""What several commands take."""

from collections.abc import Iterable

from django.core.management.base import CommandError


def settings_in(texts: Iterable[str]) -> dict[str, str]:
    """Read FIELD=VALUE, each field once."""
    said: dict[str, str] = {}
    for text in texts:
        field, equals, value = text.partition("=")
        if not equals:
            raise CommandError(f"{text!r} is not FIELD=VALUE.")
        if field in said:
            raise CommandError(f"{field} is set twice.")
        said[field] = value
    return said


def stated_reason(text: str) -> str:
    if not text.strip():
        raise CommandError("--reason says why, in words.")
    return text.strip()
