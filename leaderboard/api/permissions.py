"""Who may call what: a token acts with the lesser of its scopes and its owner's role, at each request."""

from typing import TYPE_CHECKING, Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from leaderboard.accounts.models import ApiToken, Scope
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import operates, submits

if TYPE_CHECKING:  # rest_framework.views imports this module by the settings
    from rest_framework.views import APIView


class Denied(BasePermission):
    """The default: a view states who may call it."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return False


class Anyone(BasePermission):
    """What is public needs no token; what is not, the view answers with 404."""


class AnyToken(BasePermission):
    """Whoever has a token; what of it they may see, the view asks."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return token_in(request) is not None


class MayOperate(BasePermission):
    message = "This needs a token with the scope operate, of an operator of this benchmark."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return token_in(request) is not None

    def has_object_permission(self, request: Request, view: "APIView", obj: Any) -> bool:
        return may_operate(token_in(request), obj)


class MaySubmit(BasePermission):
    message = "Submitting needs a token with the scope submit, of a submitter or operator of this benchmark."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return token_in(request) is not None

    def has_object_permission(self, request: Request, view: "APIView", obj: Any) -> bool:
        return may_submit(token_in(request), obj)


def token_in(request: Request) -> ApiToken | None:
    return request.auth if isinstance(request.auth, ApiToken) else None


def reaches(token: ApiToken, benchmark: Benchmark) -> bool:
    return not token.benchmarks or benchmark.slug in token.benchmarks


def may_operate(token: ApiToken | None, benchmark: Benchmark) -> bool:
    return token is not None and reaches(token, benchmark) and operates(token, benchmark)


def may_submit(token: ApiToken | None, benchmark: Benchmark) -> bool:
    return (
        token is not None
        and reaches(token, benchmark)
        and Scope.SUBMIT in token.scopes
        and submits(token.user, benchmark)
    )
