"""Bearer tokens; cookies never authorise the API."""

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from leaderboard.accounts.models import ApiToken, User
from leaderboard.accounts.queries import token_of
from leaderboard.accounts.services import note_use
from leaderboard.errors import Refusal


class BearerToken(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        words = get_authorization_header(request).split()
        if not words:
            return None
        if len(words) != 2 or words[0].lower() != b"bearer":
            raise AuthenticationFailed("Authorization must read: Bearer bst_…", code="not_a_bearer_token")
        try:
            now = timezone.now()
            token = token_of(words[1].decode("latin-1"), as_of=now)
        except Refusal as refusal:
            raise AuthenticationFailed(str(refusal), code=refusal.code) from refusal
        note_use(token=token, as_of=now)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="bandstand"'
