"""Telling others: webhooks, and mail, from the deliveries that `events.emit` has stored.

A delivery is claimed in a short transaction that puts its next try off by `LEASE`, sent outside of any, and
settled in another: of two schedulers none sends what the other holds, and what a killed one held is sent
again once the lease is over. A receiver may so get it twice, and knows it by the event's id. To one webhook
events go in their order: while one waits for its next try, later ones wait behind it.

A try that fails is followed by others after 10 s, 40 s, … up to 6 h, the last one a day after the first; then
the delivery is parked, which the log shows, until somebody says `send_again`.
"""

import hashlib
import hmac
import json
import secrets
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from smtplib import SMTPException
from time import monotonic
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict, Missing, Refusal
from leaderboard.operations import events
from leaderboard.operations.acting import acting
from leaderboard.operations.events import wake
from leaderboard.operations.models import (
    Event,
    EventKind,
    Notification,
    NotificationAttempt,
    NotificationStatus,
    Webhook,
)
from leaderboard.operations.posting import AddressRefused, NotDelivered, check, post

LEASE = timedelta(seconds=60)  # longer than a turn, so that nobody takes what is being sent
TURN = 20.0  # seconds that one call sends for: what else the scheduler has to do waits meanwhile
FIRST_WAIT, MAX_WAIT = timedelta(seconds=10), timedelta(hours=6)
FACTOR = 4
TRIED_FOR = timedelta(hours=24)
SECRET_PREFIX = "bsw_"


def is_disabled() -> Conflict:
    return Conflict("This webhook is disabled. Add it again.", code="is_disabled")


def add_webhook(
    *, benchmark: Benchmark, url: str, events: Iterable[str], by: User | None, reason: str, as_of: datetime
) -> tuple[Webhook, str]:
    """Tell a URL of these kinds of events from now on; return the webhook and its secret."""
    kinds = list(dict.fromkeys(events))
    if not kinds or set(kinds) - set(EventKind.values):
        named = ", ".join(kinds) or "none"
        raise Refusal(
            f"Events are of the kinds {', '.join(EventKind.values)}; named: {named}.", code="unknown_event"
        )
    check(url)  # outside of a transaction, as it may take seconds
    secret = SECRET_PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic(), acting(by=by, reason=reason):
        webhook = Webhook.objects.create(
            benchmark=benchmark, url=url, secret=secret, events=kinds, created_by=by, created_at=as_of
        )
    return webhook, secret


@transaction.atomic
def disable_webhook(*, webhook: Webhook, by: User | None, reason: str, as_of: datetime) -> None:
    """Tell it nothing more; what waits for it is parked."""
    locked = Webhook.objects.select_for_update().get(pk=webhook.pk)
    if locked.disabled_at:
        raise is_disabled()
    with acting(by=by, reason=reason):
        locked.disabled_at, locked.disabled_reason = as_of, reason
        locked.save(update_fields=["disabled_at", "disabled_reason"])
    locked.deliveries.filter(status=NotificationStatus.WAITING).update(
        status=NotificationStatus.PARKED, ended_at=as_of
    )


@transaction.atomic
def send_again(*, delivery: Notification, as_of: datetime) -> None:
    rows = Notification.objects.select_for_update(of=("self",)).select_related("webhook")
    locked = rows.get(pk=delivery.pk)
    if locked.webhook and locked.webhook.disabled_at:
        raise is_disabled()
    locked.status, locked.ended_at, locked.n_attempts = NotificationStatus.WAITING, None, 0
    locked.next_at = locked.first_at = as_of
    locked.save(update_fields=["status", "ended_at", "next_at", "first_at", "n_attempts"])
    wake()


def webhook_of(benchmark: Benchmark, number: int) -> Webhook:
    if webhook := benchmark.webhooks.filter(pk=number).first():
        return webhook
    raise Missing(f"Unknown webhook {number} on {benchmark}.", code="no_such_webhook")


def delivery_of(benchmark: Benchmark, number: int) -> Notification:
    if delivery := Notification.objects.filter(event__benchmark=benchmark, pk=number).first():
        return delivery
    raise Missing(f"Unknown delivery {number} on {benchmark}.", code="no_such_delivery")


def due_deliveries(as_of: datetime) -> QuerySet[Notification]:
    """What may be sent now, the longest due first: to each webhook the earliest of what waits for it."""
    waiting = Notification.objects.filter(status=NotificationStatus.WAITING)
    earlier = waiting.filter(webhook=OuterRef("webhook"), pk__lt=OuterRef("pk"))
    enabled = Q(webhook=None) | Q(webhook__disabled_at=None)
    return waiting.filter(~Exists(earlier), enabled, next_at__lte=as_of).order_by("next_at", "pk")


def deliver_due(*, as_of: datetime) -> str:
    begun, counts = monotonic(), Counter[str]()
    while monotonic() - begun < TURN and (delivery := _claim(as_of)):
        counts[_record_attempt(delivery, _try_delivery(delivery, as_of), as_of)] += 1
    if not counts:
        return "nothing was due"
    return ", ".join(f"{n:,} {word}" for word, n in sorted(counts.items()))


@transaction.atomic
def _claim(as_of: datetime) -> Notification | None:
    """Take the next delivery that no other scheduler holds, and put its next try off."""
    due = due_deliveries(as_of).select_for_update(of=("self",), skip_locked=True)
    delivery = due.select_related("webhook", "event__benchmark").first()
    if delivery is not None:
        delivery.next_at = as_of + LEASE
        delivery.save(update_fields=["next_at"])
    return delivery


def _try_delivery(delivery: Notification, as_of: datetime) -> NotificationAttempt:
    """Send it and say, not yet stored, what came of it: delivered where there is no error."""
    begun, status, error = monotonic(), None, ""
    try:
        if delivery.webhook is None:
            event = delivery.event
            if events.is_wished(event, delivery.email):
                title = " ".join(event.benchmark.title.split())
                text = events.mail_body(event, delivery.email, content_of(event))
                send_mail(f"[Bandstand] {title}: {event.kind}", text, None, [delivery.email])
        else:
            body = json.dumps(content_of(delivery.event), ensure_ascii=False, separators=(",", ":")).encode()
            headers = {
                "Content-Type": "application/json",
                "User-Agent": "Bandstand",
                "Bandstand-Event": delivery.event.kind,
                "Bandstand-Event-Id": str(delivery.event.uuid),
                "Bandstand-Signature": signature(delivery.webhook.secret, body, int(as_of.timestamp())),
            }
            status = post(delivery.webhook.url, body, headers)
            if not 200 <= status < 300:
                redirects = "; redirects are not followed" if 300 <= status < 400 else ""
                error = f"answered {status}{redirects}"
    except (NotDelivered, AddressRefused, SMTPException, OSError) as refused:
        error = str(refused) or type(refused).__name__
    seconds = monotonic() - begun
    return NotificationAttempt(delivery=delivery, at=as_of, status=status, error=error, seconds=seconds)


@transaction.atomic
def _record_attempt(delivery: Notification, tried: NotificationAttempt, as_of: datetime) -> str:
    """Note the try; end the delivery or say when it is tried next, unless somebody else has it by now."""
    tried.save(force_insert=True)
    end, n_attempts = delivery.first_at + TRIED_FOR, delivery.n_attempts + 1
    if not tried.error:
        word, changed = "delivered", {"status": NotificationStatus.DELIVERED, "ended_at": as_of}
    elif as_of >= end:
        word, changed = "parked", {"status": NotificationStatus.PARKED, "ended_at": as_of}
    else:
        word, changed = "to be tried again", {"next_at": min(as_of + wait_after(n_attempts), end)}
    ours = {"pk": delivery.pk, "status": NotificationStatus.WAITING, "next_at": delivery.next_at}
    Notification.objects.filter(**ours).update(n_attempts=n_attempts, **changed)
    return word


def wait_after(n_attempts: int) -> timedelta:
    """10 s · 4ⁿ⁻¹ after the n-th try, and at most 6 h."""
    return min(FIRST_WAIT * FACTOR ** min(n_attempts - 1, 10), MAX_WAIT)


# ------------------------------------------------------------------------------------------- what is sent


def content_of(event: Event) -> dict[str, Any]:
    """The body about an event, the same at each try; with a URL where the service knows its address."""
    content = {
        "id": str(event.uuid),
        "kind": event.kind,
        "at": event.at.isoformat(),
        "benchmark": event.benchmark.slug,
    }
    path = event.payload.get("path")
    address = {"url": settings.SITE_URL + path} if settings.SITE_URL and path else {}
    return content | address | {name: value for name, value in event.payload.items() if name not in content}


def signature(secret: str, body: bytes, at: int) -> str:
    """`t=<unix>,v1=<hex>`: HMAC-SHA256 under the secret of the time, a full stop and the body."""
    code = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256)
    return f"t={at},v1={code.hexdigest()}"
