from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.drifting import close_alert, update_alerts
from leaderboard.operations.models import Alert, RerunRequest
from leaderboard.operations.reruns import close_request, draw_validation_runs, open_drift_request
from leaderboard.terminal.command import BenchmarkCommand, required_reason

N_SHOWN = 10


class Command(BenchmarkCommand):
    help = "Show, open or close alerts and rerun requests. A rerun request asks agents for full runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        done = parser.add_mutually_exclusive_group()
        done.add_argument("--look", action="store_true", help="check for new runs and new alerts")
        done.add_argument("--open", metavar="REASON", help="ask for full runs; new agents then run all tasks")
        done.add_argument("--draw", action="store_true", help="draw two agents for full validation runs")
        done.add_argument("--close", nargs=2, metavar=("ID", "REASON"), help="close an open request")
        done.add_argument("--close-alert", nargs=2, metavar=("ID", "REASON"), help="close an open alert")

    def handle(self, *, benchmark: Benchmark, **options: Any) -> None:
        if done := _done(benchmark, options, timezone.now()):
            self.stdout.write(f"{done.rstrip('.')}.\n")
        alerts = benchmark.alerts.filter(closed_at=None).select_related("subset", "request").order_by("id")
        for alert in alerts:
            waits = f"; request {alert.request.pk} is {alert.request.status}" if alert.request else ""
            since = f"ranking tasks, version {alert.subset.number}, since {alert.opened_at:%Y-%m-%d}"
            self.stdout.write(f"{alert.level} {alert.pk}: {alert.monitor} {since}{waits}")
            self.stdout.write(f"  {alert.evidence['reason']}")
        if not alerts:
            self.stdout.write("No open alerts.")
        requests = benchmark.rerun_requests.order_by("-id")[:N_SHOWN]
        for one in requests:
            until = f"{one.kind} request {one.pk}, {one.status}, until {one.deadline:%Y-%m-%d}"
            self.stdout.write(f"{until}: {one.reason}")
            for of in one.agents.select_related("agent").order_by("agent__name"):
                came = (
                    f"arrived {of.arrived_at:%Y-%m-%d}" if of.arrived_at else f"{of.n_lacking} tasks to run"
                )
                cost = "" if of.cost_usd is None else f", {of.cost_usd:.2f} USD"
                self.stdout.write(f"  {of.agent}: {came}{cost}, {of.why}")
        if not requests:
            self.stdout.write("No rerun requests.")


def _done(benchmark: Benchmark, options: dict[str, Any], as_of: datetime) -> str:
    if options["look"]:
        return update_alerts(benchmark=benchmark, as_of=as_of)
    if options["draw"]:
        return draw_validation_runs(benchmark=benchmark, as_of=as_of)
    if options["open"] is not None:
        reason = required_reason(options["open"])
        request = open_drift_request(benchmark=benchmark, reason=reason, as_of=as_of)
        return f"request {request.pk} asks for full runs until {request.deadline:%Y-%m-%d}"
    if options["close"]:
        number, reason = options["close"]
        request = _row_numbered(RerunRequest.objects.filter(benchmark=benchmark), number)
        closed = close_request(request=request, by=None, reason=required_reason(reason), as_of=as_of)
        return f"request {closed.pk} is closed"
    if options["close_alert"]:
        number, reason = options["close_alert"]
        alert = _row_numbered(Alert.objects.filter(benchmark=benchmark), number)
        closed_alert = close_alert(alert=alert, by=None, reason=required_reason(reason), as_of=as_of)
        return f"alert {closed_alert.pk} is closed"
    return ""


def _row_numbered(rows: Any, number: str) -> Any:
    if number.isascii() and number.isdigit() and (row := rows.filter(pk=int(number)).first()):
        return row
    raise CommandError(
        f"Unknown {rows.model._meta.verbose_name} {number}. `reruns` without options lists them."
    )
