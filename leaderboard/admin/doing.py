"""What an operator can do to a row: a page that asks why and tells what would change, and one call.

Nothing happens on GET, which shows the form. Where there is something to tell beforehand, a first POST shows
it and a second one, confirmed, does it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.views import View

from leaderboard.accounts.models import User
from leaderboard.admin.forms import ReasonForm
from leaderboard.errors import Faulty, Refusal
from leaderboard.plots.chart import Chart

N_FAULTS = 50  # told on a page; their number is always told
CONFIRMED = "confirmed"


@dataclass(frozen=True)
class Asked:
    """Who asks for what, of which row, why and when."""

    row: Any
    by: User
    said: dict[str, Any]
    as_of: datetime

    @property
    def reason(self) -> str:
        return str(self.said["reason"])


@dataclass(frozen=True)
class Told:
    """What was done. A `secret` is shown once, on the page that answers; `url` is where to go next."""

    text: str
    secret: str = ""
    url: str = ""


class Preview(NamedTuple):
    """What would change, a sentence each; what is carried to the confirmation; and the ranks, drawn."""

    sentences: list[str]
    carried: Mapping[str, str] = MappingProxyType({})
    chart: Chart | None = None


@dataclass(frozen=True)
class Doing:
    """One thing to do: `words` says what it does, `perform` does it by a service.

    `preview` says beforehand what would change. `is_open` says for which rows it is offered; the service
    refuses by itself.
    """

    name: str
    label: str
    words: str
    perform: Callable[[Asked], Told]
    form: type[ReasonForm] = ReasonForm
    preview: Callable[[Asked], Preview] | None = None
    is_open: Callable[[Any], bool] = lambda row: True
    staff_only: bool = False
    is_dangerous: bool = False
    beside: str = ""  # a template that shows the row beside the form
    context: Callable[[Any], dict[str, Any]] = field(default=lambda row: {})

    @property
    def has_preview(self) -> bool:
        return self.preview is not None

    def offered_to(self, user: User, row: Any) -> bool:
        return (user.is_staff or not self.staff_only) and self.is_open(row)


class DoingView(View):
    """The page of a doing, for a row or for the whole list (`of_list`)."""

    http_method_names = ("get", "post", "head", "options")
    model_admin: Any = None
    doing: Any = None  # a Doing: a class of views takes no more than it has
    of_list = False

    def dispatch(self, request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        user = request.user
        assert isinstance(user, User)
        if self.doing.staff_only and not user.is_staff:
            raise PermissionDenied
        self.user, self.row = user, None
        if not self.of_list:
            self.row = self.model_admin.get_object(request, named["object_id"])
            if self.row is None:
                raise Http404
        elif not self.model_admin.has_view_permission(request):
            raise PermissionDenied
        answer = super().dispatch(request)
        assert isinstance(answer, HttpResponse)
        return answer

    def get(self, request: HttpRequest) -> HttpResponse:
        if not self.doing.is_open(self.row):
            messages.warning(request, f"{self.doing.label}: not possible here as things stand.")
            return redirect(self.back)
        return self._page(request, self._form())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = self._form(request)
        if not form.is_valid():
            return self._page(request, form)
        asked = Asked(self.row, self.user, form.cleaned_data, timezone.now())
        try:
            if self.doing.preview and CONFIRMED not in request.POST:
                told = self.doing.preview(asked)
                carried = self._carried(request, told.carried)
                return self._page(request, form, sentences=told.sentences, chart=told.chart, carried=carried)
            done = self.doing.perform(asked)
        except Refusal as refusal:
            form.add_error(None, list(sentences_of(refusal)))
            return self._page(request, form)
        if done.secret:
            return self._page(request, form, told=done)
        messages.success(request, done.text)
        return redirect(done.url or self.back)

    @property
    def back(self) -> str:
        if self.row is None:
            return reverse(f"admin:{named(self.model_admin.model)}_changelist")
        return change_url(self.row)

    def _form(self, request: HttpRequest | None = None) -> ReasonForm:
        data = {"data": request.POST, "files": request.FILES} if request else {}
        return self.doing.form(row=self.row, by=self.user, **data)

    @staticmethod
    def _carried(request: HttpRequest, more: Mapping[str, str]) -> list[tuple[str, str]]:
        said = [(key, value) for key, values in request.POST.lists() for value in values]
        kept = [pair for pair in said if pair[0] not in {"csrfmiddlewaretoken", *more}]
        return [*kept, *more.items(), (CONFIRMED, "yes")]

    def _page(self, request: HttpRequest, form: ReasonForm, **more: Any) -> HttpResponse:
        refused = form.is_bound and (bool(form.errors))
        context = {
            **self.model_admin.admin_site.each_context(request),
            "title": self.doing.label,
            "subtitle": str(self.row) if self.row else None,
            "doing": self.doing,
            "form": form,
            "row": self.row,
            "back": self.back,
            **self.doing.context(self.row),
            **more,
        }
        status = 422 if refused else 200
        return TemplateResponse(request, "backoffice/doing.html", context, status=status)


def sentences_of(refusal: Refusal) -> Iterable[str]:
    """The refusal, and each fault in a line."""
    yield from str(refusal).splitlines()
    if isinstance(refusal, Faulty):
        for fault in refusal.faults[:N_FAULTS]:
            yield fault_told(fault)
        if refusal.n_faults > N_FAULTS:
            yield f"({refusal.n_faults:,} faults in all)"


def fault_told(fault: Any) -> str:
    where = ", ".join(
        part for part in (f"row {fault.row}" if fault.row is not None else "", fault.field or "") if part
    )
    value = f" {fault.value!r}" if fault.value is not None else ""
    return f"{where}{value}: {fault.rule}" if where or value else str(fault.rule)


def named(model: type[models.Model]) -> str:
    return f"{model._meta.app_label}_{model._meta.model_name}"


def change_url(row: models.Model) -> str:
    return reverse(f"admin:{named(type(row))}_change", args=[row.pk])


def doing_url(row: models.Model, name: str) -> str:
    return reverse(f"admin:{named(type(row))}_{name.replace('-', '_')}", args=[row.pk])
