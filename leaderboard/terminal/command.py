"""What every command of the service begins with, and what several take."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from leaderboard.actions.base import Action, ActionRequest, fault_lines
from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import benchmark_of
from leaderboard.errors import Faulty, Refusal, of_database
from leaderboard.studies.models import Study

USAGE = 2
MAX_PORT = 65_535


class ServiceCommand(BaseCommand):
    """A command whose refusals are its errors, without Django's system checks.

    These import every address of the site and take two thirds of the time of a short command. `manage.py
    check`, `migrate` and the tests make them.
    """

    requires_system_checks = ()
    reason = ""  # of a command that has to be told why: what to write there

    def add_arguments(self, parser: ArgumentParser) -> None:
        if self.reason:
            parser.add_argument("--reason", required=True, help=self.reason)

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        with refusals_as_errors():
            if self.reason:
                options["reason"] = required_reason(options["reason"])
            return super().execute(*arguments, **options)


class BenchmarkCommand(ServiceCommand):
    """A command for one benchmark, which `handle` is given in the place of its slug."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="the benchmark's name in addresses")
        super().add_arguments(parser)

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        with refusals_as_errors():
            options["benchmark"] = benchmark_of(options["benchmark"])
        return super().execute(*arguments, **options)


class ActionCommand(BenchmarkCommand):
    """A command that is an action: its words are the help, and the fields of its form arguments.

    `row` is the argument that names what it is done to, which `find` looks up on the benchmark. Under the
    option `undo_flag`, `undo_action` is done instead.
    """

    reason = "why; it is kept"
    action: Action
    row: str
    find: Callable[..., Any]
    undo_flag = "undo"
    undo_action: Action | None = None

    def __init_subclass__(cls) -> None:
        cls.help = cls.action.words

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(self.row)
        for name, field in self.action.form.declared_fields.items():
            parser.add_argument(name, help=str(field.help_text or field.label))
        if self.undo_action:
            parser.add_argument(f"--{self.undo_flag}", action="store_true", help=self.undo_action.words)
        if self.action.preview:
            parser.add_argument(
                "--dry-run", action="store_true", help="show what would change, store nothing"
            )

    def handle(self, *, benchmark: Benchmark, **options: Any) -> None:
        action = self.undo_action if self.undo_action and options[self.undo_flag] else self.action
        row = type(self).find(benchmark, options[self.row])
        request = ActionRequest(row, None, options, timezone.now())
        lines = [*action.preview(request).sentences] if action.preview else []
        if not (action.preview and options["dry_run"]):
            lines.append(action.perform(request).text)
            if action.moves_board:
                lines.append(f"Next: {PROGRAM} recompute {benchmark}")
        self.stdout.write("\n".join(lines))


class StudyCommand(BenchmarkCommand):
    """A command that makes a study, unless the present data have one."""

    noun: str  # what such a study is called

    def report(self, study: Study, *, is_new: bool, text: str, moves_board: bool = False) -> None:
        if not is_new:
            self.stdout.write(f"No change: the results are the same as at the last {self.noun}.\n")
        self.stdout.write(text)
        if is_new and moves_board:
            self.stdout.write(f"\nNext: {PROGRAM} recompute {study.benchmark} (to use this on the board)")


@contextmanager
def refusals_as_errors() -> Iterator[None]:
    """Turn a refusal into the command's error, with a line for each fault."""
    try:
        yield
    except Faulty as faulty:
        raise CommandError("\n  ".join([str(faulty), *fault_lines(faulty)])) from faulty
    except Refusal as refusal:
        raise CommandError(str(refusal)) from refusal
    except DatabaseError as error:
        if not (why := of_database(error)):
            raise
        raise CommandError(why) from error


# --------------------------------------------------------------------------------- what several commands take


@contextmanager
def reading(file: Path, expected: str, *, folders: bool = False) -> Iterator[None]:
    """Refuse a path without a file that can be read, with the exit code of a wrong argument."""
    if file.is_dir() and not folders:
        raise CommandError(f"{file} is a folder, not {expected}.", returncode=USAGE)
    if not file.exists():
        raise CommandError(f"File not found: {file}. Give {expected}.", returncode=USAGE)
    try:
        yield
    except OSError as error:
        why = f"Cannot read {file} ({error.strerror or error}). Give {expected}."
        raise CommandError(why, returncode=USAGE) from error


def file_path(text: str) -> Path:
    if not text:
        raise ArgumentTypeError("the path is empty: name a file")
    return Path(text)


def whole(least: int, most: int, noun: str = "number") -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise ArgumentTypeError(f"use a {noun} from {least} to {most}")
        return number

    return read


port = whole(1, MAX_PORT, "port")


def check_slug(slug: str) -> None:
    try:
        Benchmark._meta.get_field("slug").run_validators(slug or " ")
    except ValidationError:
        raise CommandError(
            f"Invalid name for an address: {slug!r}. Use up to 100 letters, digits, - and _."
        ) from None


def settings_in(texts: Iterable[str]) -> dict[str, str]:
    """Read FIELD=VALUE, each field once."""
    settings: dict[str, str] = {}
    for text in texts:
        field, equals, value = text.partition("=")
        if not equals:
            raise CommandError(f"Expected FIELD=VALUE, got {text!r}.")
        if field in settings:
            raise CommandError(f"{field} is set twice. Set it once.")
        settings[field] = value
    return settings


def required_reason(text: str) -> str:
    if not text.strip():
        raise CommandError("--reason is empty. Say why, in words.")
    return text.strip()
