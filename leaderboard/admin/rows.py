"""What all tables of the admin have in common: they show, filtered to what one operates, and offer
actions.
"""

from typing import Any, ClassVar

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.exceptions import DisallowedModelAdminLookup, DisallowedModelAdminToField
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.admin.views.main import ERROR_FLAG
from django.db import DataError, ProgrammingError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from unfold.admin import ModelAdmin

from leaderboard.actions.base import Action
from leaderboard.admin.actions import ActionView, action_url, model_key
from leaderboard.catalog.queries import operated_benchmarks

Benchmarks = QuerySet[Any]
PLAIN_KEYS = ("pk", "id")
# What a lookup of an address may end in: of a field that is closed, with a value that it does not take, or of
# an extension that the database lacks.
UNANSWERABLE = (
    DisallowedModelAdminLookup,
    DisallowedModelAdminToField,
    DataError,
    ProgrammingError,
    LookupError,
    OverflowError,
    ValueError,
)


class OfBenchmark(SimpleListFilter):
    """The benchmarks that the person operates, and no other's name."""

    title = parameter_name = "benchmark"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        slugs = operated_benchmarks(request.user).order_by("slug").values_list("slug", flat=True)  # type: ignore[arg-type]
        return [(slug, slug) for slug in slugs]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.value():
            return queryset
        return queryset.filter(**{f"{self.admin_path}__slug": self.value()})

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        self.admin_path = model_admin.benchmark
        super().__init__(request, params, model, model_admin)


class ReadOnlyAdmin(ModelAdmin):
    """Read-only rows. `benchmark` is the way from a row to its benchmark; empty: for staff alone.

    State changes by actions alone, each a page of its own.
    """

    benchmark: ClassVar[str] = "benchmark"
    row_actions: ClassVar[tuple[Action, ...]] = ()
    list_actions: ClassVar[tuple[Action, ...]] = ()
    actions = None
    list_per_page = 50
    show_full_result_count = False
    change_form_outer_before_template = "backoffice/actions.html"
    row_template: ClassVar[str] = ""  # shows what `row_context` gives, above the form of an action
    list_before_template = "backoffice/list_actions.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(self.benchmark) or request.user.is_staff

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        if request.user.is_staff:
            return rows
        if not self.benchmark:
            return rows.none()
        return self.of_benchmarks(rows, operated_benchmarks(request.user))  # type: ignore[arg-type]

    def of_benchmarks(self, rows: QuerySet[Any], operated: Benchmarks) -> QuerySet[Any]:
        return rows.filter(**{f"{self.benchmark}__in": operated})

    def get_urls(self) -> list[URLPattern]:
        prefix = model_key(self.model)
        of_row = [
            path(
                f"<path:object_id>/{action.name}/",
                self.admin_site.admin_view(ActionView.as_view(model_admin=self, action=action)),
                name=f"{prefix}_{action.name.replace('-', '_')}",
            )
            for action in self.row_actions
        ]
        of_list = [
            path(
                f"{action.name}/",
                self.admin_site.admin_view(ActionView.as_view(model_admin=self, action=action, of_list=True)),
                name=f"{prefix}_{action.name.replace('-', '_')}",
            )
            for action in self.list_actions
        ]
        return [*of_list, *of_row, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row = self.get_object(request, object_id)
        context = extra_context or {}
        if row:
            offered = [
                {"action": action, "url": action_url(row, action.name)}
                for action in self.row_actions
                if action.offered_to(request.user, row)  # type: ignore[arg-type]
            ]
            context = {"row_actions": offered, **self.row_context(row), **context}
        return super().change_view(request, object_id, form_url, context)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        offered = [
            {"action": action, "url": f"{action.name}/"}
            for action in self.list_actions
            if action.offered_to(request.user, None)  # type: ignore[arg-type]
        ]
        return super().changelist_view(request, {"list_actions": offered, **(extra_context or {})})

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """A list is looked through by what its rows show: a hidden field could be guessed sign by sign."""
        filters = (one for one in self.list_filter if isinstance(one, str))
        fields = flatten_fieldsets(self.get_fieldsets(request))
        shown = {one.partition("__")[0] for one in (*fields, *self.list_display, *filters, *PLAIN_KEYS)}
        return lookup.partition("__")[0] in shown and super().lookup_allowed(lookup, value, request)

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """A query that no list can answer leads to the whole list, as Django does it for others."""
        try:
            return super().get_changelist_instance(request)
        except UNANSWERABLE as error:
            if not set(request.GET) - {ERROR_FLAG}:
                raise  # no query is to blame
            raise IncorrectLookupParameters from error

    def row_context(self, row: Any) -> dict[str, Any]:
        """What else the page of a row shows."""
        return {}
