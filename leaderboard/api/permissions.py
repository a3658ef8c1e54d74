"""Who calls, and who may call what: a token acts with the lesser of its scopes and its owner's role.

Bearer tokens alone: cookies never authorise the API.
"""

from typing import TYPE_CHECKING, Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from leaderboard.accounts.models import ApiToken, Scope, User
from leaderboard.accounts.services import note_use, token_of
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import NoSuchBenchmark, operates, submits
from leaderboard.errors import Refusal

if TYPE_CHECKING:  # rest_framework.views imports this module by the settings
    from rest_framework.views import APIView


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


class Denied(BasePermission):
    """The default: a view states who may call it."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return False


class Anyone(BasePermission):
    """What is public needs no token; what is not, the view answers with 404."""


class AnyToken(BasePermission):
    """Whoever has a token; what of it they may see, the view asks. Beyond its benchmarks there are none."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return token_in(request) is not None

    def has_object_permission(self, request: Request, view: "APIView", obj: Any) -> bool:
        token = token_in(request)
        if token is None or not reaches(token, obj):
            raise NoSuchBenchmark(f"There is no benchmark {obj.slug!r}.")
        return True


class MayOperate(AnyToken):
    message = "This needs an operator's token with the scope operate."

    def has_object_permission(self, request: Request, view: "APIView", obj: Any) -> bool:
        return may_operate(token_in(request), obj)


class MaySubmit(AnyToken):
    message = "This needs a token with the scope submit, of a submitter or operator of this benchmark."

    def has_object_permission(self, request: Request, view: "APIView", obj: Any) -> bool:
        token = token_in(request)
        if token is None or not reaches(token, obj) or Scope.SUBMIT not in token.scopes:
            return False
        return submits(token.user, obj)


def token_in(request: Request) -> ApiToken | None:
    return request.auth if isinstance(request.auth, ApiToken) else None


def reaches(token: ApiToken, benchmark: Benchmark) -> bool:
    return not token.benchmarks or benchmark.slug in token.benchmarks


def may_operate(token: ApiToken | None, benchmark: Benchmark) -> bool:
    return token is not None and reaches(token, benchmark) and operates(token, benchmark)
