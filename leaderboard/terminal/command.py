"""What every command of the service begins with."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from leaderboard.studies.answers import use_no_pandas


class ServiceCommand(BaseCommand):
    """A command without Django's system checks, which import every address of the site.

    They take two thirds of the time of a short command. `manage.py check`, `migrate` and the tests make them.
    """

    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        use_no_pandas()
        super().run_from_argv(argv)


class RenamedCommand(ServiceCommand):
    """A former name of a command: says the new one, whatever the arguments, and ends with exit code 2."""

    renamed_to = ""

    def run_from_argv(self, argv: list[str]) -> None:
        super().run_from_argv(argv[:2])

    def handle(self, *_: Any, **__: Any) -> None:
        raise CommandError(f"This command is called `{self.renamed_to}` now.", returncode=2)
