"""What the audit keeps of a request beside the rows that it changes."""

from collections.abc import Callable

import pghistory
from django.http import HttpRequest, HttpResponse

from leaderboard.requests import request_id

SIGNED_IN = ("/admin/", "/account", "/invitation/")


class Audited:
    """Binds person, address and a request id to what changes where people are signed in.

    Elsewhere no session is read: a public page depends on nobody, and the interface knows its own tokens.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method != "POST" or not request.path.startswith(SIGNED_IN):
            return self._get_response(request)
        # Of an address with a secret only its beginning is kept
        path = "/invitation/" if request.path.startswith("/invitation/") else request.path
        user = request.user.pk if request.user.is_authenticated else None
        with pghistory.context(user=user, path=path, request_id=request_id(request)):
            return self._get_response(request)
