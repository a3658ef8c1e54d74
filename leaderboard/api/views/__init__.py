"""One file a subject: parse, one call, answer. Here: what all addresses share, and who asks for what."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from leaderboard.accounts.models import ApiToken, User
from leaderboard.api.bodies import BodySerializer
from leaderboard.api.parameters import DEFAULT_ROWS, MAX_ROWS, PAGE, Parameters, read_query
from leaderboard.api.parsers import require_length
from leaderboard.api.permissions import Anyone, may_operate, reaches, token_in
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import visible_benchmark
from leaderboard.errors import Missing

Row = TypeVar("Row", bound=Model)


def no_such_thing(message: str = "Not found on this benchmark. Check the id.") -> Missing:
    return Missing(message, code="no_such_thing")


def benchmark_for(request: Request, slug: str) -> Benchmark:
    """Return the benchmark as the token's owner sees it, or as a stranger where the token does not reach."""
    token = token_in(request)
    benchmark = visible_benchmark(slug, token.user if token else None)
    return benchmark if token is None or reaches(token, benchmark) else visible_benchmark(slug, None)


class BaseEndpoint(APIView):
    """An address. What it takes, may be asked and answers is declared; the schema is made from that.

    `permissions`: by method, where not anyone may call it. `takes`: the form of a body. `one`: that of the
    answer; `statuses`: of a POST.
    """

    permissions: ClassVar[Mapping[str, type[BasePermission]]] = {}
    parameters: ClassVar[Parameters] = {}
    one: ClassVar[type[BaseSerializer] | None] = None
    statuses: ClassVar[tuple[int, ...]] = (200,)
    takes: ClassVar[type[BodySerializer] | None] = None
    subject: ClassVar[str] = ""

    def get_permissions(self) -> Sequence[BasePermission]:
        return [self.permissions.get("GET" if self.is_read else "POST", Anyone)()]

    @property
    def is_read(self) -> bool:
        return self.request.method in ("GET", "HEAD")

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse in this order: the method, the caller, the query, the benchmark, the caller's role on it."""
        if request.method == "OPTIONS" or not hasattr(self, (request.method or "").lower()):
            raise MethodNotAllowed(request.method or "")
        super().initial(request, *args, **kwargs)
        self.query = read_query(request.query_params, self.parameters if self.is_read else {})
        if not self.is_read:
            require_length(request)
        if "slug" in kwargs:
            self.benchmark = benchmark_for(request, kwargs["slug"])
            self.check_object_permissions(request, self.benchmark)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Response:
        answer: Response = super().finalize_response(request, response, *args, **kwargs)
        if not answer.has_header("Cache-Control"):
            is_open = self.is_read and not getattr(request, "auth", None) and answer.status_code in (200, 304)
            answer["Cache-Control"] = "public, max-age=0, must-revalidate" if is_open else "private, no-store"
        return answer

    @property
    def token(self) -> ApiToken | None:
        return token_in(self.request)

    @property
    def user(self) -> User:
        """Whose token it is; a permission has seen to it that there is one."""
        assert self.token is not None
        return self.token.user

    @property
    def operates(self) -> bool:
        return may_operate(self.token, self.benchmark)

    def cleaned_data(self) -> dict[str, Any]:
        """The body, checked by the form that the address takes."""
        assert self.takes is not None
        return self.takes.read(self.request.data)

    def conditions(self, *names: str, **fields: str) -> dict[str, Any]:
        """Conditions on the fields of rows, by the parameters that were given."""
        of = {name: name for name in names} | fields
        return {field: self.query[name] for name, field in of.items() if self.query[name] is not None}

    def respond(self, row: Any, *, status: int = 200, **extras: Any) -> Response:
        """Answer a row by the form `one`, whose fields may name `extras` as its attributes `extra_…`."""
        assert self.one is not None
        for name, value in extras.items():
            setattr(row, f"extra_{name}", value)
        return Response(self.one(row, context={"view": self, "request": self.request}).data, status=status)

    def get_or_404(self, rows: "QuerySet[Row]", **kwargs: Any) -> Row:
        if row := rows.filter(**kwargs).first():
            return row
        raise no_such_thing()


class Pages(LimitOffsetPagination):
    default_limit, max_limit = DEFAULT_ROWS, MAX_ROWS


class Listing(BaseEndpoint):
    """Rows of one form, by pages."""

    parameters = PAGE
    row: ClassVar[type[BaseSerializer]]

    def rows(self) -> Any:
        """Return all rows in order, as far as asked for; a query or a list."""
        raise NotImplementedError

    def get(self, request: Request, **kwargs: Any) -> Response:
        pages, context = Pages(), {"view": self, "request": request}
        rows: Any = pages.paginate_queryset(self.rows(), request, view=self)
        return pages.get_paginated_response(self.row(rows, many=True, context=context).data)
