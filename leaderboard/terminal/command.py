"""What every command of the service begins with."""

from django.core.management.base import BaseCommand


class ServiceCommand(BaseCommand):
    """A command without Django's system checks, which import every address of the site.

    They take two thirds of the time of a short command. `manage.py check`, `migrate` and the tests make them.
    """

    requires_system_checks = ()
