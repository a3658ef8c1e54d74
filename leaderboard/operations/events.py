"""Telling of what happened: an event, and a delivery to each webhook that wants it.

The event is written in the transaction in which it happens, so that neither is without the other; the
scheduler, woken by the same transaction's NOTIFY, delivers.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.notify import CHANNEL, wake
from leaderboard.operations.models import Event, EventKind, Notification

__all__ = ["CHANNEL", "emit", "wake"]


def emit(
    *,
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
