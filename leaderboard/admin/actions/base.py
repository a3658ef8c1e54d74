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
from leaderboard.plots.marks import Chart

N_FAULTS = 50  # listed on a page; their number always stands there
CONFIRMED = "confirmed"


@dataclass(frozen=True)
class ActionRequest:
    """Who asks for what, of which row, why and when."""

    row: Any
    by: User
    cleaned_data: dict[str, Any]
    as_of: datetime

    @property
    def reason(self) -> str:
        return str(self.cleaned_data["reason"])

    @property
    def decision(self) -> dict[str, Any]:
        """What every service that decides something is told: by whom, why and when."""
        return {"by": self.by, "reason": self.reason, "as_of": self.as_of}


@dataclass(frozen=True)
class ActionResult:
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
class Action:
    """One thing to do: `words` says what it does, `perform` does it by a service.

    `preview` says beforehand what would change. `is_open` says for which rows it is offered; the service
    refuses by itself.
    """

    name: str
    label: str
    words: str
    perform: Callable[[ActionRequest], ActionResult]
    form: type[ReasonForm] = ReasonForm
    preview: Callable[[ActionRequest], Preview] | None = None
    is_open: Callable[[Any], bool] = lambda row: True
    staff_only: bool = False
    is_dangerous: bool = False
    row_template: str = ""  # shows the row above the form
    context: Callable[[Any], dict[str, Any]] = field(default=lambda row: {})

    @property
    def has_preview(self) -> bool:
        return self.preview is not None

    def offered_to(self, user: User, row: Any) -> bool:
        return (user.is_staff or not self.staff_only) and self.is_open(row)


class ActionView(View):
    """The page of an action, for a row or for the whole list (`of_list`)."""

    http_method_names = ("get", "post", "head", "options")
    model_admin: Any = None
    action: Any = None  # an Action: a class of views takes no more than it has
    of_list = False

    def dispatch(self, request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        user = request.user
        assert isinstance(user, User)
        if self.action.staff_only and not user.is_staff:
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
        if not self.action.is_open(self.row):
            messages.warning(request, f"{self.action.label}: not possible here as things stand.")
            return redirect(self.back)
        return self._page(request, self._form())

    def post(self, request: HttpRequest) -> HttpResponse:
        form = self._form(request)
        if not form.is_valid():
            return self._page(request, form)
        action_request = ActionRequest(self.row, self.user, form.cleaned_data, timezone.now())
        try:
            if self.action.preview and CONFIRMED not in request.POST:
                preview = self.action.preview(action_request)
                carried = self._carried(request, preview.carried)
                return self._page(
                    request, form, sentences=preview.sentences, chart=preview.chart, carried=carried
                )
            result = self.action.perform(action_request)
        except Refusal as refusal:
            form.add_error(None, list(sentences_of(refusal)))
            return self._page(request, form)
        if result.secret:
            return self._page(request, form, result=result)
        messages.success(request, result.text)
        return redirect(result.url or self.back)

    @property
    def back(self) -> str:
        if self.row is None:
            return reverse(f"admin:{model_key(self.model_admin.model)}_changelist")
        return change_url(self.row)

    def _form(self, request: HttpRequest | None = None) -> ReasonForm:
        data = {"data": request.POST, "files": request.FILES} if request else {}
        return self.action.form(row=self.row, by=self.user, **data)

    @staticmethod
    def _carried(request: HttpRequest, more: Mapping[str, str]) -> list[tuple[str, str]]:
        pairs = [(key, value) for key, values in request.POST.lists() for value in values]
        others = [pair for pair in pairs if pair[0] not in {"csrfmiddlewaretoken", *more}]
        return [*others, *more.items(), (CONFIRMED, "yes")]

    def _page(self, request: HttpRequest, form: ReasonForm, **more: Any) -> HttpResponse:
        refused = form.is_bound and (bool(form.errors))
        context = {
            **self.model_admin.admin_site.each_context(request),
            "title": self.action.label,
            "subtitle": str(self.row) if self.row else None,
            "action": self.action,
            "form": form,
            "row": self.row,
            "back": self.back,
            **self.action.context(self.row),
            **more,
        }
        status = 422 if refused else 200
        return TemplateResponse(request, "backoffice/action.html", context, status=status)


def sentences_of(refusal: Refusal) -> Iterable[str]:
    """The refusal, and each fault in a line."""
    yield from str(refusal).splitlines()
    if isinstance(refusal, Faulty):
        for fault in refusal.faults[:N_FAULTS]:
            yield fault_text(fault)
        if refusal.n_faults > N_FAULTS:
            yield f"({refusal.n_faults:,} faults in all)"


def fault_text(fault: Any) -> str:
    where = ", ".join(
        part for part in (f"row {fault.row}" if fault.row is not None else "", fault.field or "") if part
    )
    value = f" {fault.value!r}" if fault.value is not None else ""
    return f"{where}{value}: {fault.rule}" if where or value else str(fault.rule)


def model_key(model: type[models.Model]) -> str:
    return f"{model._meta.app_label}_{model._meta.model_name}"


def change_url(row: models.Model) -> str:
    return reverse(f"admin:{model_key(type(row))}_change", args=[row.pk])


def action_url(row: models.Model, name: str) -> str:
    return reverse(f"admin:{model_key(type(row))}_{name.replace('-', '_')}", args=[row.pk])
