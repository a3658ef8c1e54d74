"""What several commands take."""

from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from leaderboard.catalog.models import Benchmark

USAGE = 2
MAX_PORT = 65_535
MAX_COUNT = 1_000


@contextmanager
def reading(file: Path, expected: str, *, folders: bool = False) -> Iterator[None]:
    """Refuse a path without a file that can be read, with the exit code of a wrong argument."""
    if file.is_dir() and not folders:
        raise CommandError(f"{file} is a folder; expected is {expected}.", returncode=USAGE)
    if not file.exists():
        raise CommandError(f"There is no file {file}; expected is {expected}.", returncode=USAGE)
    try:
        yield
    except OSError as error:
        why = f"{file} cannot be read ({error.strerror or error}); expected is {expected}."
        raise CommandError(why, returncode=USAGE) from error


def port(text: str) -> int:
    if not 1 <= (number := int(text)) <= MAX_PORT:
        raise ArgumentTypeError(f"a port is a number from 1 to {MAX_PORT}")
    return number


def count(text: str) -> int:
    if not 1 <= (number := int(text)) <= MAX_COUNT:
        raise ArgumentTypeError(f"a number from 1 to {MAX_COUNT} is needed")
    return number


def check_slug(slug: str) -> None:
    try:
        Benchmark._meta.get_field("slug").run_validators(slug or " ")
    except ValidationError:
        raise CommandError(
            f"{slug!r} cannot stand in an address: use at most 100 letters, digits, - and _."
        ) from None


def settings_in(texts: Iterable[str]) -> dict[str, str]:
    """Read FIELD=VALUE, each field once."""
    settings: dict[str, str] = {}
    for text in texts:
        field, equals, value = text.partition("=")
        if not equals:
            raise CommandError(f"{text!r} is not FIELD=VALUE.")
        if field in settings:
            raise CommandError(f"{field} is set twice.")
        settings[field] = value
    return settings


def required_reason(text: str) -> str:
    if not text.strip():
        raise CommandError("--reason says why, in words.")
    return text.strip()
