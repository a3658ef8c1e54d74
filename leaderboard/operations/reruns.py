"""Rerun requests: who is asked for a full run, until when, and what became of it.

A request of the kind *drift* is opened by an alert and turns assignments to full; one of the kind
*validation* changes nothing for others; a *recall* asks one agent that came to stand on the podium by an
estimate. All close by themselves: when the runs have arrived, or on their deadline.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from leaderboard.accounts.models import User
from leaderboard.boards.models import Entry
from leaderboard.boards.queries import head_of, standings_of
from leaderboard.catalog.models import Assigning, Benchmark, Role
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.services import bump_shown_version
from leaderboard.errors import Conflict, Refusal
from leaderboard.operations.acting import acting
from leaderboard.operations.events import emit, wake, wished_by_owners
from leaderboard.operations.models import (
    Alert,
    AlertLevel,
    EventKind,
    RerunAgent,
    RerunKind,
    RerunRequest,
    RerunStatus,
)
from leaderboard.operations.queries import locked_benchmark, open_request
from leaderboard.studies.answers import Standings
from leaderboard.studies.board_inputs import BoardInputs
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader, Snapshot, store_scores
from leaderboard.studies.reruns import (
    AgentToRun,
    agents_to_recall,
    drawn_for_validation,
    drawn_on_alert,
    n_newcomers,
    owing,
    ran_all,
)
from leaderboard.studies.services import CheckClaim

N_VALIDATION = 2  # a week at most
ON_THE_PODIUM = "it is in the top places by an estimate, so it must run all tasks"
OVERTAKEN = "it stands on the podium no more"  # stored, and found by this text
_BY_HAND = Q(request__status=RerunStatus.CANCELLED) & ~Q(request__closed_reason=OVERTAKEN)
ONE_IN = 5  # newcomers is drawn: what a subset saves must not go into proving it
NO_AGENT_TO_ASK = "No agent ran only the ranking tasks, so none can run the rest."
FULL_RUNS_ONLY = "An operator asked for full runs only, so every new agent already runs all tasks."


class CannotRequestRuns(Conflict):
    message = "No agent is available for a full run."


# ------------------------------------------------------------------------------------------------- opening


def open_drift_request(
    *,
    benchmark: Benchmark,
    reason: str,
    as_of: datetime,
    alerts: Sequence[Alert] | None = None,
) -> RerunRequest:
    """Ask agents for full runs because of these alerts, or join the request that is open.

    By hand, without alerts given, it is for all that are open at the level of alert and wait for no request.
    """
    subset, now = _to_ask(benchmark)
    with acting(by=None, reason=reason), transaction.atomic():
        locked = locked_benchmark(benchmark)
        if locked.full_runs_only_at:
            raise CannotRequestRuns(FULL_RUNS_ONLY, code="full_runs_only")
        still_open = locked.alerts.filter(subset=subset, closed_at=None, level=AlertLevel.ALERT)
        # those whose runs were never asked for, or did not come
        unanswered = still_open.exclude(request__status__in=[RerunStatus.OPEN, RerunStatus.FULFILLED])
        behind = list(unanswered) if alerts is None else alerts
        request = open_request(locked, RerunKind.DRIFT)
        if request is None:
            number = _number(subset, RerunKind.DRIFT)
            to_run = drawn_on_alert(now, tied=_at_the_top(locked), number=number)
            request = _ask(locked, RerunKind.DRIFT, to_run, behind, reason=reason, as_of=as_of, subset=subset)
        Alert.objects.filter(pk__in=[alert.pk for alert in behind]).update(request=request)
        bump_shown_version(benchmark=locked)
    return request


def draw_validation_runs(*, benchmark: Benchmark, as_of: datetime) -> str:
    """Draw agents for full validation runs, unless such a request is open; say what was done."""
    try:
        subset, now = _to_ask(benchmark)
    except CannotRequestRuns as refusal:
        return f"nobody drawn: {refusal}"
    with transaction.atomic():
        locked = locked_benchmark(benchmark)
        if locked.full_runs_only_at:
            return f"nobody drawn: {FULL_RUNS_ONLY}"
        if policy_in_force(locked).assignment == Assigning.STAGED:
            return "nobody drawn: staged assignment draws from the agents that it stops"
        if request := open_request(locked, RerunKind.VALIDATION):
            return f"nobody drawn: request {request.pk} is open until {request.deadline:%Y-%m-%d}"
        waiting = RerunAgent.objects.filter(request__benchmark=locked, request__status=RerunStatus.OPEN)
        but, number = _ids(waiting), _number(subset, RerunKind.VALIDATION)
        came = Q(arrived_at__isnull=False) | Q(request__status=RerunStatus.OPEN)
        before = RerunAgent.objects.filter(came, request__subset=subset, request__kind=RerunKind.VALIDATION)
        n = min(N_VALIDATION, n_newcomers(now) // ONE_IN - before.count())
        drawn = drawn_for_validation(now, n=n, number=number, but=but) if n > 0 else []
        if not drawn:
            return f"nobody drawn: {NO_AGENT_TO_ASK}"
        reason = "full runs of agents drawn at random show whether the subset still ranks like the whole"
        request = _ask(locked, RerunKind.VALIDATION, drawn, reason=reason, as_of=as_of, subset=subset)
        bump_shown_version(benchmark=locked)
    return f"request {request.pk} asks {', '.join(one.agent.name for one in drawn)} for full runs"


def open_recalls(
    *,
    now: Snapshot,
    known: BoardInputs,
    standings: Standings,
    as_of: datetime,
    check_claim: CheckClaim,
) -> bool:
    """Ask who stands on the podium of a board that is to be published by an estimate for the rest.

    Returns whether the board has to be made anew, since it does not know of somebody asked. Nobody is asked
    for what older data say, nor again where an operator cancelled that.
    """
    owed = [] if known.podium is None else agents_to_recall(now, standings, known.podium)
    owed = [one for one in owed if one.agent.pk not in known.reruns.recalled]
    if not owed:
        return False
    with transaction.atomic():
        check_claim()
        locked = locked_benchmark(now.benchmark)
        if locked.boards.filter(data_version__gt=now.data_version).exists():
            return False
        recalled = RerunAgent.objects.filter(request__benchmark=locked, request__kind=RerunKind.RECALL)
        excused = _ids(recalled.filter(_BY_HAND))
        owed = [one for one in owed if one.agent.pk not in excused]
        waiting = _ids(recalled.filter(request__status=RerunStatus.OPEN))
        for one in owed:
            if one.agent.pk not in waiting:
                _ask(locked, RerunKind.RECALL, [one], reason=ON_THE_PODIUM, as_of=as_of)
        if owed:
            bump_shown_version(benchmark=locked)
            wake()
    return bool(owed)


def _ids(rows: QuerySet[RerunAgent]) -> set[int]:
    return set(rows.values_list("agent_id", flat=True))


def _to_ask(benchmark: Benchmark) -> tuple[TaskSubset, Snapshot]:
    subset = active_subset(benchmark)
    now = Reader(benchmark).now(subset) if subset else None
    if subset is None or now is None:
        raise CannotRequestRuns("No subset is fixed, so there is none to check.", code="no_subset")
    store_scores(now.stale)
    return subset, now


def _number(subset: TaskSubset, kind: RerunKind) -> int:
    return subset.rerun_requests.filter(kind=kind).count() + 1


def _at_the_top(benchmark: Benchmark) -> Collection[str]:
    latest = benchmark.boards.order_by("-number").first()
    if latest is None:
        return ()
    board = head_of(latest)
    return board.targets[board.target].may_be_first


def _ask(
    benchmark: Benchmark,
    kind: RerunKind,
    to_run: Sequence[AgentToRun],
    alerts: Sequence[Alert] = (),
    *,
    reason: str,
    as_of: datetime,
    subset: TaskSubset | None = None,
) -> RerunRequest:
    """Open a request and tell of it."""
    if not to_run:
        raise CannotRequestRuns(NO_AGENT_TO_ASK, code="nobody_to_ask")
    latest = benchmark.boards.order_by("-number")[:1]
    costs = dict(Entry.objects.filter(board__in=latest).values_list("agent_id", "line__cost_usd"))
    known = [cost for one in to_run if (cost := costs.get(one.agent.pk)) is not None]
    request = RerunRequest.objects.create(
        benchmark=benchmark,
        kind=kind,
        reason=reason,
        n_tasks=benchmark.tasks.filter(retired_at=None).count(),
        cost_usd=sum(known) if known else None,
        opened_at=as_of,
        deadline=as_of + timedelta(days=policy_in_force(benchmark).rerun_days),
        subset=subset,
    )
    RerunAgent.objects.bulk_create(
        RerunAgent(
            request=request,
            agent=one.agent,
            sampled=one.sampled,
            inclusion=one.inclusion,
            why=one.why,
            n_lacking=len(one.lacking),
            cost_usd=costs.get(one.agent.pk),
        )
        for one in to_run
    )
    payload = {
        "request": request.pk,
        "kind": request.kind,
        "reason": request.reason,
        "opened_at": request.opened_at.isoformat(),
        "deadline": request.deadline.isoformat(),
        "cost_usd": request.cost_usd,
        "n_tasks": request.n_tasks,
        "agents": _named(benchmark, to_run, costs),
        "alerts": [{"monitor": alert.monitor, "evidence": alert.evidence} for alert in alerts],
        "link": f"/b/{benchmark.slug}/health",
    }
    recalled = [one.agent.name for one in to_run] if kind == RerunKind.RECALL else []
    emails = wished_by_owners(benchmark, recalled) if recalled else ()
    emit(benchmark, EventKind.RERUN_REQUESTED, f"request {request.pk}", payload, as_of, emails)
    return request


def _named(
    benchmark: Benchmark, to_run: Sequence[AgentToRun], costs: Mapping[int, float | None]
) -> list[dict[str, Any]]:
    """Whom a request asks, as its event tells it; `costs` of a full run by agent id."""
    tasks = dict(benchmark.tasks.values_list("id", "name"))
    return [
        {
            "agent": one.agent.name,
            "why": one.why,
            "sampled": one.sampled,
            "inclusion": one.inclusion,
            "cost_usd": costs.get(one.agent.pk),
            "tasks": sorted(tasks[pk] for pk in one.lacking),
        }
        for one in to_run
    ]


def tell_operators(benchmark: Benchmark, about: str, payload: dict[str, Any], as_of: datetime) -> None:
    """Tell those who have to act of an alert: its operators and staff."""
    members = User.objects.filter(memberships__benchmark=benchmark, memberships__role=Role.OPERATOR)
    people = members | User.objects.filter(is_staff=True)
    emails = people.filter(is_active=True).distinct().values_list("email", flat=True)
    emit(benchmark, EventKind.DRIFT_ALERT, about, payload, as_of, emails)


# ------------------------------------------------------------------------------------------------- closing


def close_due(*, as_of: datetime) -> str:
    """Note which runs have arrived, and close what is complete or over; say what was done."""
    waiting = Benchmark.objects.filter(rerun_requests__status=RerunStatus.OPEN).distinct().order_by("slug")
    done = [close_answered_requests(benchmark=benchmark, as_of=as_of) for benchmark in waiting]
    return "; ".join(filter(None, done)) or "no change"


def close_answered_requests(*, benchmark: Benchmark, as_of: datetime) -> str:
    """Do the same for one benchmark; empty where nothing has changed."""
    subset = active_subset(benchmark)
    now = Reader(benchmark).now(subset)
    if now:
        store_scores(now.stale)
    arrived = ran_all(now) if now else set[int]()
    with transaction.atomic():
        locked = locked_benchmark(benchmark)
        requests = locked.rerun_requests.filter(status=RerunStatus.OPEN).order_by("id")
        done = [_close_if_over(one, subset, arrived, as_of) for one in requests]
        if any(done):
            bump_shown_version(benchmark=locked)
            wake()
    return "; ".join(filter(None, done))


def close_answered_recalls(*, now: Snapshot, as_of: datetime, check_claim: CheckClaim) -> bool:
    """Do the same for recalls alone, by these data; return whether one is closed."""
    recalls = now.benchmark.rerun_requests.filter(status=RerunStatus.OPEN, kind=RerunKind.RECALL)
    if not recalls.exists():
        return False
    arrived = ran_all(now)
    with transaction.atomic():
        check_claim()
        locked = locked_benchmark(now.benchmark)
        done = [_close_if_over(one, None, arrived, as_of) for one in recalls.order_by("id")]
        if any(done):
            bump_shown_version(benchmark=locked)
    return any(done)


def _close_if_over(
    request: RerunRequest, subset: TaskSubset | None, arrived: set[int], as_of: datetime
) -> str:
    n_new = request.agents.filter(agent_id__in=arrived, arrived_at=None).update(arrived_at=as_of)
    absent = request.agents.filter(arrived_at=None).count()
    if not absent:
        return _close(request, RerunStatus.FULFILLED, "all runs have arrived", as_of)
    if request.subset_id and (subset is None or request.subset_id != subset.pk):
        return _close(request, RerunStatus.CANCELLED, "its subset is no longer in use", as_of)
    if request.deadline <= as_of:
        if request.kind == RerunKind.RECALL and request.benchmark.frozen_at:
            return ""  # it cannot deliver
        if request.kind == RerunKind.RECALL and not _still_owes(request):
            return _close(request, RerunStatus.CANCELLED, OVERTAKEN, as_of)
        message = _close(request, RerunStatus.EXPIRED, f"{absent} runs did not arrive in time", as_of)
        for alert in request.alerts.filter(closed_at=None):  # it stands unanswered
            about = f"alert {alert.pk} unanswered by request {request.pk}"
            to_do = "ask again, choose new ranking tasks, or ask for full runs only"
            payload = alert_payload(alert) | {"request": request.pk, "n_absent": absent, "to_do": to_do}
            tell_operators(request.benchmark, about, payload, as_of)
        return message
    return f"request {request.pk}: {n_new} runs have arrived, {absent} are awaited" if n_new else ""


def _still_owes(recall: RerunRequest) -> bool:
    """Whether the agent stands on the podium of the latest board, if tasks are still assigned so."""
    policy, board = policy_in_force(recall.benchmark), recall.benchmark.boards.order_by("-number").first()
    if board is None or policy.assignment != Assigning.STAGED:
        return False
    owed = owing(standings_of(board), policy.podium)
    return recall.agents.filter(agent__name__in=[line.agent for line in owed]).exists()


def _close(
    request: RerunRequest, status: RerunStatus, reason: str, as_of: datetime, by: User | None = None
) -> str:
    request.status, request.closed_at, request.closed_by, request.closed_reason = status, as_of, by, reason
    request.save(update_fields=["status", "closed_at", "closed_by", "closed_reason"])
    return f"request {request.pk} is {status}: {reason}"


def alert_payload(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.pk,
        "monitor": alert.monitor,
        "level": alert.level,
        "subset": alert.subset.number,
        "opened_at": alert.opened_at.isoformat(),
        "evidence": alert.evidence,
        "link": f"/b/{alert.benchmark.slug}/health",
    }


def alert_of_closed_forms(*, benchmark: Benchmark, about: str, why: Refusal, as_of: datetime) -> None:
    """Tell operators once that a validation of these data is not published; no run would mend it."""
    payload = {
        "monitor": "closed forms",
        "level": AlertLevel.ALERT,
        "evidence": {"reason": str(why), **why.details},
        "link": f"/b/{benchmark.slug}/validity",
    }
    tell_operators(benchmark, f"closed forms, {about}", payload, as_of)


def close_request(*, request: RerunRequest, by: User | None, reason: str, as_of: datetime) -> RerunRequest:
    with acting(by=by, reason=reason), transaction.atomic():
        locked = locked_benchmark(request.benchmark)
        locked_request = locked.rerun_requests.get(pk=request.pk)
        if locked_request.status != RerunStatus.OPEN:
            raise Conflict(f"Request {request.pk} is already {locked_request.status}.", code="request_closed")
        _close(locked_request, RerunStatus.CANCELLED, reason, as_of, by)
        bump_shown_version(benchmark=locked)
        wake()
    return locked_request
