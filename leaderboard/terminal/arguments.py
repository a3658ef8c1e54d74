"""What several commands take."""

from collections.abc import Iterable
from pathlib import Path

from django.core.management.base import CommandError

USAGE = 2


def check_file(file: Path, expected: str) -> None:
    """Refuse a path without a file, with the exit code of a wrong argument."""
    if file.is_dir():
        raise CommandError(f"{file} is a folder; expected is {expected}.", returncode=USAGE)
    if not file.exists():
        raise CommandError(f"There is no file {file}; expected is {expected}.", returncode=USAGE)
    try:
        file.open("rb").close()
    except OSError as error:
        why = f"{file} cannot be read ({error.strerror}); expected is {expected}."
        raise CommandError(why, returncode=USAGE) from error


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
