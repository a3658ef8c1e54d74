"""What every command of the service begins with."""

from django.core.management.base import BaseCommand

from leaderboard.studies.answers import use_no_pandas


class ServiceCommand(BaseCommand):
    """A command without Django's system checks, which import every address of the site.

    They take two thirds of the time of a short command. `manage.py check`, `migrate` and the tests make them.
    """

    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        use_no_pandas()
        super().run_from_argv(argv)
