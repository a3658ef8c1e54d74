"""What the page “Health” shows: the monitors of the ranking tasks over time, and requested full runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Count, Prefetch, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.text import slugify

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.models import RerunAgent, RerunStatus
from leaderboard.pages.access import for_all, visible
from leaderboard.plots.best import Look, level_text, levels
from leaderboard.plots.marks import Chart
from leaderboard.studies.answers import at_most, words
from leaderboard.studies.models import ESTIMATOR_VERSION, DriftCheck

N_CHECKS, N_ALERTS = 40, 20
STATES = {"alert": "alert", "warn": "warning", "ok": "ok", "insufficient": "too little data"}


def health_page(benchmark: Benchmark) -> dict[str, Any]:
    """The latest checks, alerts, open requests and the versions of the subset; who says most comes first."""
    checks = checks_of(benchmark)
    result: dict[str, Any] = checks[-1].result if checks else {"monitors": [], "reason": ""}
    order, a_year = list(STATES), result.get("false_alerts_a_year")
    agents = Prefetch("agents", RerunAgent.objects.select_related("agent").order_by("agent__name"))
    requests = benchmark.rerun_requests.filter(status=RerunStatus.OPEN).prefetch_related(agents)
    arrived = Count("agents", filter=Q(agents__arrived_at__isnull=False))
    return {
        "latest": checks[-1] if checks else None,
        "verdict": _verdict(result),
        "a_year": None if a_year is None else at_most(a_year),
        "monitors": [
            {
                "name": one["name"],
                "code": one["state"],
                "state": STATES[one["state"]],
                "reason": words.sentence(one["reason"]),
                "advice": words.sentence(one["advice"]),
                "chart": monitor_chart(one["name"], looks_of(checks, one["name"])),
            }
            for one in sorted(result["monitors"], key=lambda one: order.index(one["state"]))
        ],
        "alerts": list(benchmark.alerts.select_related("subset").order_by("-id")[:N_ALERTS]),
        "requests": list(requests.annotate(n_asked=Count("agents"), n_arrived=arrived).order_by("id")),
        "subsets": list(benchmark.subsets.annotate(size=Count("members")).order_by("-number")),
    }


def _verdict(result: Mapping[str, Any]) -> tuple[str, str]:
    states = [one["state"] for one in result["monitors"]]
    if not states:
        return "No monitor has run yet.", words.sentence(result["reason"])
    n_alert, n_warn, n_few = (states.count(state) for state in ("alert", "warn", "insufficient"))
    few = f"{n_few:,} of {len(states):,} monitors have too little data." if n_few else ""
    if n_alert:
        verb = "raises" if n_alert == 1 else "raise"
        return f"{words.counted(n_alert, 'monitor')} {verb} an alert.", few
    if n_warn:
        return f"No alert; {words.counted(n_warn, 'monitor')} {'warns' if n_warn == 1 else 'warn'}.", few
    return "No monitor raises an alert.", few


def looks_of(checks: Sequence[DriftCheck], name: str) -> list[Look]:
    """The level of one monitor in each check, those without any at either end left out."""
    looks = [
        (timezone.localtime(check.created_at).date(), result["statistic"], result["threshold"])
        for check in checks
        for result in check.result["monitors"]
        if result["name"] == name
    ]
    known = [place for place, (_, value, _) in enumerate(looks) if value is not None]
    return looks[known[0] : known[-1] + 1] if known else []


def chart_address(name: str) -> str:
    return f"health-{slugify(name)}"


def chart_at(benchmark: Benchmark, address: str) -> Chart | None:
    """The chart of the monitor whose address this is; None where no check has asked such a monitor."""
    checks = checks_of(benchmark)
    names = (one["name"] for check in checks for one in check.result["monitors"])
    name = next((one for one in names if chart_address(one) == address), None)
    return monitor_chart(name, looks_of(checks, name)) if name else None


def monitor_chart(name: str, looks: Sequence[Look]) -> Chart | None:
    if not looks:
        return None
    address = chart_address(name)
    return Chart(
        name=address,
        title=name.capitalize(),
        lede="Level at each check. The dashed line is the alert threshold.",
        heads=("Day", "Level", "Alert threshold"),
        rows=tuple((day.isoformat(), level_text(value), level_text(at)) for day, value, at in looks),
        svg=levels(name=address, title=f"{name.capitalize()} over time", looks=looks),
    )


def checks_of(benchmark: Benchmark) -> list[DriftCheck]:
    """The latest checks of the subset that the last one is about, the oldest first."""
    checks = DriftCheck.objects.filter(benchmark=benchmark, estimator_version=ESTIMATOR_VERSION)
    latest = list(checks.order_by("-data_version", "-id")[:N_CHECKS])
    return [one for one in reversed(latest) if one.subset_id == latest[0].subset_id]


@for_all
def health(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    shown = {"page": health_page(benchmark), "benchmark": benchmark, "here": "health"}
    return render(request, "pages/health.html", shown)
