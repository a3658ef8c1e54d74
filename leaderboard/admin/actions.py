"""What an operator can do to a row: a page that asks why and tells what would change, and one call.

Nothing happens on GET, which shows the form. Where there is something to tell beforehand, a first POST shows
it and a second one, confirmed, does it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.views import View
from unfold.widgets import (
    UnfoldAdminEmailInputWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldAdminURLInputWidget,
    UnfoldBooleanWidget,
)

from leaderboard.accounts.models import User
from leaderboard.actions.base import ActionRequest, LongText, ReasonForm, fault_lines
from leaderboard.errors import Faulty, Refusal
from leaderboard.plots.marks import Chart
from leaderboard.plots.ranks import Shift, shifts_chart
from leaderboard.studies.answers import AtTarget

if TYPE_CHECKING:  # every process imports this module, few compare
    from leaderboard.operations.reselections import Variant

WIDGETS = {
    LongText: UnfoldAdminTextareaWidget,
    forms.CharField: UnfoldAdminTextInputWidget,
    forms.EmailField: UnfoldAdminEmailInputWidget,
    forms.SlugField: UnfoldAdminTextInputWidget,
    forms.URLField: UnfoldAdminURLInputWidget,
    forms.ChoiceField: UnfoldAdminSelectWidget,
    forms.BooleanField: UnfoldBooleanWidget,
}
CONFIRMED = "confirmed"
RANKS = ("rank", "rank_lower", "rank_upper")
MAX_SHIFTS = 40  # agents of one drawing


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
                sent = [(key, value) for key, values in request.POST.lists() for value in values]
                carried = [pair for pair in sent if pair[0] not in {"csrfmiddlewaretoken", *preview.carried}]
                carried += [*preview.carried.items(), (CONFIRMED, "yes")]
                foreseen = preview.foreseen
                chart = moves_chart(foreseen.moves, foreseen.n_ranked) if foreseen else None
                return self._page(request, form, sentences=preview.sentences, chart=chart, carried=carried)
            result = self.action.perform(action_request)
        except Refusal as refusal:
            faults = fault_lines(refusal) if isinstance(refusal, Faulty) else []
            form.add_error(None, [*str(refusal).splitlines(), *faults])
            return self._page(request, form)
        if result.secret:
            return self._page(request, form, result=result)
        follows = " The board follows by itself." if self.action.moves_board else ""
        messages.success(request, f"{result.text}{follows}")
        return redirect(change_url(result.row) if result.row else self.back)

    @property
    def back(self) -> str:
        if self.row is None or self.row.pk is None:  # the whole list, or what is gone
            return reverse(f"admin:{model_key(self.model_admin.model)}_changelist")
        return change_url(self.row)

    def _form(self, request: HttpRequest | None = None) -> ReasonForm:
        data = {"data": request.POST, "files": request.FILES} if request else {}
        form: ReasonForm = self.action.form(row=self.row, by=self.user, **data)
        for name, field in form.fields.items():
            if made := WIDGETS.get(type(field)):
                field.widget = made(choices=field.choices) if hasattr(field, "choices") else made()
                field.widget.is_required = field.required
            field.widget.attrs |= {"aria-describedby": f"id_{name}_help"} if field.help_text else {}
            if isinstance(field, LongText):
                widget: Any = field.widget
                widget.attrs |= {**field.widget_attrs(widget), "rows": 2 if name == "reason" else 8}
        return form

    def _page(self, request: HttpRequest, form: ReasonForm, **more: Any) -> HttpResponse:
        context = {
            **self.model_admin.admin_site.each_context(request),
            "title": self.action.label,
            "subtitle": str(self.row) if self.row else None,
            "action": self.action,
            "form": form,
            "row": self.row,
            "back": self.back,
            "row_template": self.model_admin.row_template,
            **(self.model_admin.row_context(self.row) if self.row else {}),
            **more,
        }
        status = 422 if form.errors else 200
        return TemplateResponse(request, "backoffice/action.html", context, status=status)


def model_key(model: type[models.Model]) -> str:
    return f"{model._meta.app_label}_{model._meta.model_name}"


def change_url(row: models.Model) -> str:
    return reverse(f"admin:{model_key(type(row))}_change", args=[row.pk])


def action_url(row: models.Model, name: str) -> str:
    return reverse(f"admin:{model_key(type(row))}_{name.replace('-', '_')}", args=[row.pk])


# --------------------------------------------------------------------- ranks before and after what is done


def moves_chart(shifts: Sequence[Shift], n_ranked: int, *, name: str = "shifts") -> Chart | None:
    """The agents that would move; None where none does."""
    if not shifts:
        return None
    more = f", the first {MAX_SHIFTS} of {len(shifts):,} that move" if len(shifts) > MAX_SHIFTS else ""
    return shifts_chart(shifts=shifts[:MAX_SHIFTS], of=n_ranked, title=f"Ranks now and then{more}", name=name)


def stands_chart(variant: "Variant") -> Chart | None:
    """The same of a proposed subset."""
    shifts = [
        (
            one["agent"],
            *(AtTarget(**{name: one[when][name] for name in RANKS}) for when in ("before", "after")),
        )
        for one in variant.stands
        if one["moves"]
    ]
    n_ranked = sum(bool(one["after"]["rank"]) for one in variant.stands)
    return moves_chart(shifts, n_ranked, name=f"shifts-{variant.name}")
