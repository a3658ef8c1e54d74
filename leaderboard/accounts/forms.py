"""The form of registration."""

from typing import Any

from allauth.account.forms import SignupForm
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest


class SignUp(SignupForm):
    """Takes as long for an address that has an account as for a new one, so that the time tells nothing."""

    def try_save(self, request: HttpRequest) -> Any:
        if self.account_already_exists:
            make_password(self.cleaned_data["password1"])  # a new account has its password hashed
        return super().try_save(request)
