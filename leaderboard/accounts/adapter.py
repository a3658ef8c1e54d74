"""How accounts come about: by invitation, or for everybody where the settings say so."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest

from leaderboard.visitors import address_of, household


class Adapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.OPEN_REGISTRATION)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Tries are counted by it, those of one household together, and those whose address is not known."""
        address = address_of(request)
        return household(address) if address else "unknown"
