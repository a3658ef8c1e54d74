"""Drift: what the monitors say becomes alerts, and an alert asks for full runs.

Level-triggered: `look` compares what the monitors say of the present data with the alerts that are open, so
that it may be called at any time and as often as one likes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Assigning, Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.services import bump_shown_version
from leaderboard.errors import Conflict
from leaderboard.operations import reruns
from leaderboard.operations.acting import acting
from leaderboard.operations.events import wake
from leaderboard.operations.models import Alert, AlertLevel, JobRun, Lane, RerunStatus
from leaderboard.operations.queries import locked_benchmark
from leaderboard.operations.runs import OPEN
from leaderboard.operations.services import NothingToRank, check_drift
from leaderboard.studies.kinds import VERDICT, asks_for_runs, verdict_found, was_better_since, why_reselect
from leaderboard.studies.models import DriftCheck

RAISED = ("warn", "alert")
RESELECT = "reselect"
NOT_COME = (RerunStatus.OPEN, RerunStatus.EXPIRED)


Monitor = Mapping[str, Any]  # what one says, as in the result of a check


def update_alerts(*, benchmark: Benchmark, as_of: datetime) -> str:
    """Ask the monitors, open and close alerts, and ask for full runs where one alarms; say what was done."""
    try:
        check, _ = check_drift(benchmark=benchmark, as_of=as_of)
    except NothingToRank:
        return "there are no outcomes yet"
    settled = reruns.close_answered_requests(benchmark=benchmark, as_of=as_of)
    with transaction.atomic():
        locked = locked_benchmark(benchmark)
        if locked.driftcheck_set.filter(data_version__gt=check.data_version).exists():
            return "another look has seen later data"
        monitors = [*check.result["monitors"], verdict_found(locked)]
        old = locked.alerts.filter(closed_at=None).exclude(subset=check.subset).order_by("id")
        done = [
            _close(alert, f"subset {alert.subset.number} is no longer in use", as_of)
            for alert in old.select_related("subset")
        ]
        done += _heard(locked, check, monitors, as_of)
        if done:
            bump_shown_version(benchmark=locked)
    alarming = _without_runs(benchmark, check, monitors)
    done += [settled] if settled else []
    done += [_ask(benchmark, alarming, as_of)] if alarming else []
    done += _reselections(benchmark, check, monitors, as_of)
    if done:
        wake()
    return "; ".join(filter(None, done)) or "no change"


def close_alert(*, alert: Alert, by: User | None, reason: str, as_of: datetime) -> Alert:
    """Close an alert by an operator's hand: it opens again once its monitor was quiet, or says more."""
    with acting(by=by, reason=reason), transaction.atomic():
        locked = locked_benchmark(alert.benchmark)
        locked_alert = locked.alerts.get(pk=alert.pk)
        if locked_alert.closed_at:
            raise Conflict("This alert is already closed.", code="alert_closed")
        _close(locked_alert, reason, as_of, by)
        bump_shown_version(benchmark=locked)
    return locked_alert


# ---------------------------------------------------------------------------------------------------- alerts


def _heard(
    benchmark: Benchmark, check: DriftCheck, monitors: Sequence[Monitor], as_of: datetime
) -> list[str]:
    there = benchmark.alerts.filter(closed_at=None, subset=check.subset).select_related("request")
    opened = {alert.monitor: alert for alert in there}
    done = []
    for monitor in monitors if check.subset else ():
        alert = opened.get(monitor["name"])
        if monitor["state"] in RAISED:
            done.append(_raise(benchmark, check, monitor, alert, as_of))
        elif alert and not (alert.request and alert.request.status in NOT_COME):
            done.append(_close(alert, f"quiet again: {monitor['reason']}", as_of))
    return [sentence for sentence in done if sentence]


def _raise(
    benchmark: Benchmark, check: DriftCheck, monitor: Monitor, alert: Alert | None, as_of: datetime
) -> str:
    """Open an alert, or bring the open one up to date; its level only rises."""
    level = AlertLevel(monitor["state"])
    if alert is None:
        if _was_decided(benchmark, check, monitor):
            return ""
        of = {"subset": check.subset, "monitor": monitor["name"], "level": level}
        alert = Alert(benchmark=benchmark, opened_by=check, opened_at=as_of, **of)
        is_news = True
    else:
        is_news = (alert.level, level) == (AlertLevel.WARN, AlertLevel.ALERT)
        alert.level = level if is_news else alert.level
    alert.latest, alert.evidence = check, dict(monitor)
    alert.save()
    if not is_news:
        return ""
    reruns.tell_operators(benchmark, f"alert {alert.pk} {level}", reruns.alert_payload(alert), as_of)
    return f"{monitor['name']}: {level}"


def _was_decided(benchmark: Benchmark, check: DriftCheck, monitor: Monitor) -> bool:
    """Whether an alert was closed though its monitor had not become quiet, and says no more than it did."""
    alerts = benchmark.alerts.filter(subset=check.subset, monitor=monitor["name"]).order_by("-id")
    last, says_more = alerts.first(), (AlertLevel.WARN, AlertLevel.ALERT)
    if last is None or check.subset is None or (last.level, monitor["state"]) == says_more:
        return False
    if monitor["name"] == VERDICT:
        return not was_better_since(benchmark, last.evidence["validation"])
    since = check.subset.drift_checks.filter(pk__gt=last.latest_id)
    states = (
        one["state"] for later in since for one in later.result["monitors"] if one["name"] == last.monitor
    )
    return all(state in RAISED for state in states)


def _close(alert: Alert, reason: str, as_of: datetime, by: User | None = None) -> str:
    alert.closed_at, alert.closed_by, alert.closed_reason = as_of, by, reason
    alert.save(update_fields=["closed_at", "closed_by", "closed_reason"])
    return f"{alert.monitor}: closed, {reason}"


# ------------------------------------------------------------------------------------------ what they ask for


def _now(benchmark: Benchmark, check: DriftCheck, monitors: Sequence[Monitor], *states: str) -> list[Alert]:
    names = [one["name"] for one in monitors if one["state"] in states]
    alerts = benchmark.alerts.filter(subset=check.subset, closed_at=None, monitor__in=names)
    return list(alerts.select_related("request").order_by("id"))


def _without_runs(benchmark: Benchmark, check: DriftCheck, monitors: Sequence[Monitor]) -> list[Alert]:
    """Alerts for which nobody was asked yet; once a request has run out, an operator decides."""
    is_staged = policy_in_force(benchmark).assignment == Assigning.STAGED
    alerts = _now(benchmark, check, monitors, AlertLevel.ALERT)
    return [
        alert
        for alert in alerts
        if alert.request is None and asks_for_runs(alert.monitor, is_staged=is_staged)
    ]


def _ask(benchmark: Benchmark, alerts: list[Alert], as_of: datetime) -> str:
    reason = "; ".join(f"{alert.monitor}: {alert.evidence['reason']}" for alert in alerts)
    try:
        request = reruns.open_drift_request(benchmark=benchmark, reason=reason, as_of=as_of, alerts=alerts)
    except reruns.CannotRequestRuns:
        return ""
    return f"request {request.pk} asks for full runs until {request.deadline:%Y-%m-%d}"


def _reselections(
    benchmark: Benchmark, check: DriftCheck, monitors: Sequence[Monitor], as_of: datetime
) -> list[str]:
    """Ask once for a reselection where a monitor asks for one still when the runs asked for have come."""
    done = []
    for alert in _now(benchmark, check, monitors, *RAISED):
        waits = alert.request is not None and alert.request.status == RerunStatus.OPEN
        reason, about = "" if waits else why_reselect(alert.evidence), f"alert {alert.pk}"
        if not reason:
            continue
        with transaction.atomic():
            of = {"kind": RESELECT, "benchmark": locked_benchmark(benchmark)}
            runs = JobRun.objects.filter(**of)
            if not runs.filter(Q(about=about) | Q(status__in=OPEN)).exists():
                of |= {"lane": Lane.LONG, "about": about, "reason": reason}
                JobRun.objects.create(created_at=as_of, **of)
                done.append("a reselection is asked for")
    return done
