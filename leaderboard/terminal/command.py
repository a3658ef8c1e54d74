"""What every command of the service begins with."""

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from leaderboard.catalog.queries import benchmark_of
from leaderboard.errors import Faulty, Refusal, of_database
from leaderboard.studies.answers import use_no_pandas
from leaderboard.terminal.arguments import required_reason

N_LINES = 50  # faults printed; their number is always told


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

    def run_from_argv(self, argv: list[str]) -> None:
        use_no_pandas()
        super().run_from_argv(argv)

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        with refusals_as_errors():
            if self.reason:
                options["reason"] = required_reason(options["reason"])
            return super().execute(*arguments, **options)


class BenchmarkCommand(ServiceCommand):
    """A command for one benchmark, which `handle` is given in the place of its slug."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")
        super().add_arguments(parser)

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        with refusals_as_errors():
            options["benchmark"] = benchmark_of(options["benchmark"])
        return super().execute(*arguments, **options)


class RenamedCommand(ServiceCommand):
    """A former name of a command: says the new one, whatever the arguments, and ends with exit code 2."""

    renamed_to = ""

    def run_from_argv(self, argv: list[str]) -> None:
        super().run_from_argv(argv[:2])

    def handle(self, *_: Any, **__: Any) -> None:
        raise CommandError(f"This command is called `{self.renamed_to}` now.", returncode=2)


@contextmanager
def refusals_as_errors() -> Iterator[None]:
    """Turn a refusal into the command's error, with a line for each fault."""
    try:
        yield
    except Faulty as faulty:
        raise CommandError("\n".join([str(faulty), *fault_lines(faulty)])) from faulty
    except Refusal as refusal:
        raise CommandError(str(refusal)) from refusal
    except DatabaseError as error:
        if not (why := of_database(error)):
            raise
        raise CommandError(why) from error


def fault_lines(faulty: Faulty) -> list[str]:
    lines = [f"  {fault}" for fault in faulty.faults[:N_LINES]]
    if faulty.n_faults > len(lines):
        lines.append(f"  … and {faulty.n_faults - len(lines):,} more ({faulty.n_faults:,} in all)")
    return lines
