"""What the page “Health” shows: what monitors say of the subset, through time, and what was asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from django.db.models import Count, Prefetch, Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.models import Alert, RerunAgent, RerunRequest, RerunStatus
from leaderboard.pages.access import for_all, visible
from leaderboard.plots.chart import Chart
from leaderboard.plots.levels import MonitorLevel, level_text, levels
from leaderboard.studies.answers import words
from leaderboard.studies.models import ESTIMATOR_VERSION, DriftCheck, TaskSubset

N_CHECKS, N_ALERTS = 40, 20
MONITORS = (
    "rank fidelity",
    "published order",
    "capability jump",
    "band erosion",
    "calibration",
    "calibration residuals",
    "saturation",
    "tuning to the subset",
    "scaffold novelty",
    "harness failures",
    "run-to-run noise",
    "cost per task",
)
"""As the core names them; it would bring numpy and scipy along."""
STATES = {
    "alert": "alert",
    "warn": "warning",
    "ok": "quiet",
    "insufficient": "too little seen",
}


@dataclass(frozen=True)
class MonitorHistory:
    """One monitor: what it says now, and its level in the checks of this subset so far."""

    result: Mapping[str, Any]
    looks: Sequence[MonitorLevel]

    @property
    def name(self) -> str:
        return str(self.result["name"])

    @property
    def state(self) -> str:
        return STATES[self.result["state"]]

    @property
    def reason(self) -> str:
        return words.sentence(self.result["reason"])

    @property
    def advice(self) -> str:
        return words.sentence(self.result["advice"])

    @property
    def chart(self) -> Chart | None:
        return monitor_chart(self.name, self.looks)


@dataclass(frozen=True)
class HealthPage:
    """`checks` are those of the subset that the latest one is about, the oldest first."""

    checks: list[DriftCheck]
    alerts: list[Alert]
    requests: list[RerunRequest]
    subsets: list[TaskSubset]

    @property
    def latest(self) -> DriftCheck | None:
        return self.checks[-1] if self.checks else None

    @cached_property
    def monitors(self) -> list[MonitorHistory]:
        """Those that say most first."""
        results = self.latest.result["monitors"] if self.latest else []
        order = list(STATES)
        return [
            MonitorHistory(one, looks_of(self.checks, one["name"]))
            for one in sorted(results, key=lambda one: order.index(one["state"]))
        ]

    @property
    def verdict(self) -> tuple[str, str]:
        """How many monitors alert or warn, its first words apart."""
        by = {state: sum(one.result["state"] == state for one in self.monitors) for state in STATES}
        if not self.monitors:
            reason = self.latest.result["reason"] if self.latest else ""
            return "No monitor has looked yet.", words.sentence(reason)
        few = f"{by['insufficient']:,} of {len(self.monitors):,} have seen too little to say more."
        few = few if by["insufficient"] else ""
        if by["alert"]:
            verb = "raises" if by["alert"] == 1 else "raise"
            return f"{words.counted(by['alert'], 'monitor')} {verb} an alert.", few
        if by["warn"]:
            verb = "warns" if by["warn"] == 1 else "warn"
            return f"No alert; {words.counted(by['warn'], 'monitor')} {verb}.", few
        return "No monitor raises an alert.", few

    @property
    def false_alerts(self) -> str:
        """How often these monitors would alert if nothing ever changed."""
        a_year = (self.latest.result if self.latest else {}).get("false_alerts_a_year")
        if a_year is None:
            return ""
        return (
            f"If nothing ever changed, at most {level_text(a_year)} false alerts a year are to be expected."
        )


def looks_of(checks: Sequence[DriftCheck], name: str) -> list[MonitorLevel]:
    """The level of one monitor in each check, those without any at either end left out."""
    looks = [
        MonitorLevel(timezone.localtime(check.created_at).date(), result["statistic"], result["threshold"])
        for check in checks
        for result in check.result["monitors"]
        if result["name"] == name
    ]
    known = [place for place, one in enumerate(looks) if one.value is not None]
    return looks[known[0] : known[-1] + 1] if known else []


def monitor_chart(name: str, looks: Sequence[MonitorLevel]) -> Chart | None:
    """Draw the level of a monitor; None where it never had one."""
    if not looks:
        return None
    address = f"health-{slugify(name)}"
    return Chart(
        name=address,
        title=name.capitalize(),
        lede="Its level at each check; dashed: where it alerts.",
        heads=("Day", "Level", "Alerts at"),
        rows=tuple((one.day.isoformat(), level_text(one.value), level_text(one.threshold)) for one in looks),
        svg=levels(name=address, title=f"{name.capitalize()} through time", looks=looks),
    )


def health_page(benchmark: Benchmark) -> HealthPage:
    """Read the latest checks, alerts, open requests and the versions of the subset."""
    agents = Prefetch("agents", RerunAgent.objects.select_related("agent").order_by("agent__name"))
    requests = benchmark.rerun_requests.filter(status=RerunStatus.OPEN).prefetch_related(agents)
    arrived = Count("agents", filter=Q(agents__arrived_at__isnull=False))
    return HealthPage(
        checks=checks_of(benchmark),
        alerts=list(benchmark.alerts.select_related("subset").order_by("-id")[:N_ALERTS]),
        requests=list(requests.annotate(n_asked=Count("agents"), n_arrived=arrived).order_by("id")),
        subsets=list(benchmark.subsets.annotate(size=Count("members")).order_by("-number")),
    )


def checks_of(benchmark: Benchmark) -> list[DriftCheck]:
    """The latest checks of the subset that the last one is about, the oldest first."""
    checks = DriftCheck.objects.filter(benchmark=benchmark, estimator_version=ESTIMATOR_VERSION)
    latest = list(checks.order_by("-data_version", "-id")[:N_CHECKS])
    return [one for one in reversed(latest) if one.subset_id == latest[0].subset_id]


def plot_monitor(name: str, benchmark: Benchmark, params: QueryDict) -> Chart | None:
    return monitor_chart(name, looks_of(checks_of(benchmark), name))


CHARTS: Mapping[str, Callable[[Benchmark, QueryDict], Chart | None]] = {
    f"health-{slugify(name)}": partial(plot_monitor, name) for name in MONITORS
}


@require_safe
@for_all
def health(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    shown = {"page": health_page(benchmark), "benchmark": benchmark, "here": "health"}
    return render(request, "pages/health.html", shown)
