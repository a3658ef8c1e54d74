"""How accounts come about: by invitation, or for everybody where the settings say so."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.forms import SignupForm
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest

from leaderboard.visitors import address_of, household


class Adapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.OPEN_REGISTRATION)

    def get_client_ip(self, request: HttpRequest) -> str:
        """Tries are counted by it, those of one household together, and those whose address is not known."""
        address = address_of(request)
        return household(address) if address else "unknown"


class SignUp(SignupForm):
    """Takes as long for an address that has an account as for a new one, so that the time tells nothing."""

    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])  # a new account has its password hashed
        return super().try_save(request)
