"""Telling of what happened: an event, and a delivery to each webhook and mail address that wants it.

The event is written in the transaction in which it happens, so that neither is without the other; the
scheduler, woken by the same transaction's NOTIFY, delivers. Mail is about what happens after a delivery was
answered: what became of it, and where agents stand. The wish for it is asked again when it goes out, so that
who takes it back gets nothing that waits.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from leaderboard.accounts.models import User
from leaderboard.boards.models import Board
from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark
from leaderboard.notify import CHANNEL, wake
from leaderboard.operations.models import Alert, Event, EventKind, Notification
from leaderboard.operations.queries import accounts_behind
from leaderboard.studies.answers import AtTarget, as_text, words
from leaderboard.submissions.models import Status, StatusChange, Submission

__all__ = ["CHANNEL", "emit", "wake"]

PERSONAL = (
    EventKind.SUBMISSION_ACCEPTED,
    EventKind.SUBMISSION_REFUSED,
    EventKind.BOARD_PUBLISHED,
    EventKind.RERUN_REQUESTED,
)
LOCAL = "http://localhost:8000"  # where `make serve` serves
MAX_LISTED = 100  # submissions and agents of one event; their numbers are always given


def emit(
    benchmark: Benchmark,
    kind: EventKind,
    about: str,
    payload: dict[str, Any],
    as_of: datetime,
    emails: Iterable[str] = (),
) -> Event | None:
    """Store an event unless the same was stored before; return it if it is new."""
    event, is_new = Event.objects.get_or_create(
        benchmark=benchmark, kind=kind, about=about, defaults={"payload": payload, "at": as_of}
    )
    if not is_new:
        return None
    webhooks = benchmark.webhooks.filter(disabled_at=None, events__contains=[kind])
    due = {"event": event, "next_at": as_of, "first_at": as_of}
    Notification.objects.bulk_create(
        [
            *(Notification(webhook=webhook, **due) for webhook in webhooks),
            *(Notification(email=email, **due) for email in sorted(set(emails)) if benchmark.replay is None),
        ]
    )
    wake()
    return event


def wished_by_deliverers(submissions: Iterable[Submission]) -> list[str]:
    people = {pk for one in submissions for pk in (one.submitted_by_id, one.agent.owner_id) if pk}
    return _wished(pk__in=people)


def wished_by_owners(benchmark: Benchmark, names: Collection[str]) -> list[str]:
    return _wished(agents__benchmark=benchmark, agents__name__in=names)


def _wished(**which: object) -> list[str]:
    users = User.objects.filter(told_by_mail=True, is_active=True, **which)
    return list(users.order_by("email").values_list("email", flat=True).distinct())


def is_wished(event: Event, email: str) -> bool:
    """Whether this mail is still to be sent: mail to operators is no wish."""
    return event.kind not in PERSONAL or bool(_wished(email=email))


def mail_body(event: Event, email: str, payload: dict[str, object]) -> str:
    if event.kind == EventKind.DRIFT_ALERT:  # to operators alone: a payload goes to webhooks too
        alert = (
            Alert.objects.filter(pk=event.payload.get("alert")).select_related("subset__benchmark").first()
        )
        behind = accounts_behind(alert.subset, event.payload["evidence"]) if alert else ""
        return as_text(payload | ({"accounts behind it": behind} if behind else {}))
    if event.kind not in PERSONAL:
        return as_text(payload)
    where = settings.SITE_URL or LOCAL
    page = [f"{where}{event.payload['path']}"] if event.payload.get("path") else []
    end = f"You asked for these mails. To stop them: {where}/account"
    return "\n\n".join([*_mail_lines(event, email), *page, end]) + "\n"


def _mail_lines(event: Event, email: str) -> Iterable[str]:
    if event.kind == EventKind.BOARD_PUBLISHED:
        yield str(event.payload["headline"])
        board = Board.objects.filter(benchmark=event.benchmark, number=event.payload["number"]).first()
        if board is not None:
            theirs = set(board.benchmark.agents.filter(owner__email=email).values_list("name", flat=True))
            standings = standings_of(board)
            of, n_ranked = standings.target, standings.targets[standings.target].n_ranked
            lines = [one for one in standings.agents if one.agent in theirs]
            yield "\n".join(f"{one.agent}: {_place(one.at[of], n_ranked)}" for one in lines)
    elif event.kind == EventKind.RERUN_REQUESTED:
        for one in event.payload["agents"]:
            rest, day = words.counted(len(one["tasks"]), "task"), event.payload["deadline"][:10]
            yield (
                f"{one['agent']} is in the top places of {event.benchmark} by an estimate. Run "
                f"its remaining {rest} until {day}: ask for an assignment. Until then it is not "
                "called the best; after that day it loses its rank without them."
            )
    elif event.kind == EventKind.SUBMISSION_ACCEPTED:
        agents = ", ".join(event.payload["agents"])
        yield f"Results of {agents} now count. The next board shows them."
    else:
        agents, reason = ", ".join(event.payload["agents"]), event.payload["reason"]
        yield f"A submission of {agents} was refused: {reason}"


def _place(line: AtTarget, n_ranked: int) -> str:
    if line.rank is None:
        return f"not ranked: {line.reason}"
    if line.rank_lower is None or line.rank_upper is None:
        return f"rank {line.rank:,} of {n_ranked:,}"
    if line.rank_lower == line.rank_upper:
        return f"rank {line.rank_lower:,} of {n_ranked:,}"
    return f"95% rank range {line.rank_lower:,}–{line.rank_upper:,} of {n_ranked:,}"


def tell_of_arrivals(
    *, benchmark: Benchmark, changes: Sequence[StatusChange], as_of: datetime, by_mail: bool = False
) -> None:
    """Tell of the submissions that are accepted with these changes: one event, whatever their number.

    `by_mail`: those too who delivered them and wish for it, as they were answered long before.
    """
    accepted = [change.submission for change in changes if change.status == Status.ACCEPTED]
    if not accepted:
        return
    agents = list(dict.fromkeys(submission.agent.name for submission in accepted))
    payload = {
        "path": f"/b/{benchmark.slug}",
        "loaded": accepted[0].loaded,
        "n_submissions": len(accepted),
        "submissions": [str(submission.uuid) for submission in accepted[:MAX_LISTED]],
        "n_agents": len(agents),
        "agents": agents[:MAX_LISTED],
        "n_outcomes": sum(submission.n_outcomes for submission in accepted),
        "n_invalid": sum(submission.n_invalid for submission in accepted),
    }
    emails = wished_by_deliverers(accepted) if by_mail else ()
    emit(benchmark, EventKind.SUBMISSION_ACCEPTED, str(accepted[0].uuid), payload, as_of, emails)


def tell_of_refusal(*, submission: Submission, reason: str, as_of: datetime) -> None:
    about, agent = str(submission.uuid), submission.agent
    payload = {
        "path": f"/submissions/{about}",
        "submissions": [about],
        "agents": [agent.name],
        "reason": reason,
    }
    emails = wished_by_deliverers([submission])
    emit(agent.benchmark, EventKind.SUBMISSION_REFUSED, about, payload, as_of, emails)
