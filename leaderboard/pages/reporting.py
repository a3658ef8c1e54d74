"""Reporting an agent's entry to the operators: what is wrong with it, by whoever is signed in."""

from django import forms
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Agent
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.errors import Faulty, Refusal
from leaderboard.operations.disputes import MAX_LENGTH, report
from leaderboard.pages.account import personal
from leaderboard.submissions.queries import ever_counted


class Report(forms.Form):
    text = forms.CharField(
        label="What is wrong with its entry",
        max_length=MAX_LENGTH,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="Say how one can see it: which outcomes, which rule, which run.",
    )
    board = forms.IntegerField(
        label="Number of the board",
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="If it is about one.",
    )
    contact = forms.EmailField(
        label="Where one may ask back", required=False, help_text="Empty: the address of your account."
    )


@require_http_methods(["GET", "HEAD", "POST"])
@personal
def report_agent(request: HttpRequest, user: User, slug: str, pk: int) -> HttpResponse:
    """GET shows the form; POST stores the report, which changes nothing until an operator decides."""
    agent = _agent(user, slug, pk)
    form = Report(request.POST or None, initial={"board": request.GET.get("board", "")[:10]})
    context = {"agent": agent, "benchmark": agent.benchmark, "form": form}
    if request.method == "POST":
        if not form.is_valid():
            return render(request, "pages/report.html", context, status=422)
        try:
            stored = report(agent=agent, by=user, as_of=timezone.now(), **form.cleaned_data)
        except Faulty as faulty:
            for fault in faulty.faults:
                form.add_error(fault.field, f"This {fault.rule}.")
            return render(request, "pages/report.html", context, status=422)
        except Refusal as refusal:
            return render(request, "pages/report.html", context | {"refusal": refusal}, status=409)
        return render(request, "pages/report.html", context | {"stored": stored}, status=201)
    return render(request, "pages/report.html", context)


def _agent(user: User, slug: str, pk: int) -> Agent:
    """One of which something counted, on a benchmark that this person sees."""
    counted = Exists(ever_counted().filter(agent=OuterRef("pk")))
    agents = Agent.objects.filter(counted, benchmark__in=visible_benchmarks(user).values("pk"))
    agent = agents.select_related("benchmark").filter(benchmark__slug=slug, pk=pk).first()
    if agent is None:
        raise Http404("There is no such agent.")
    return agent
