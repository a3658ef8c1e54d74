"""What is thrown away at night: answers to repeat, rows of old runs, and events that were delivered."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Max, OuterRef

from leaderboard.operations.models import Event, JobRun, Notification, NotificationStatus, Upload
from leaderboard.operations.runs import OPEN
from leaderboard.submissions.models import IdempotencyKey

KEYS_KEPT = timedelta(days=30)
RUNS_KEPT = timedelta(days=30)
EVENTS_KEPT = timedelta(days=90)
UPLOADS_KEPT = timedelta(days=1)


@transaction.atomic
def clear(*, as_of: datetime) -> str:
    """Delete what is old, and say what it was."""
    _, by_model = IdempotencyKey.objects.filter(created_at__lt=as_of - KEYS_KEPT).delete()
    n_keys = by_model.get(IdempotencyKey._meta.label, 0)
    Upload.objects.filter(created_at__lt=as_of - UPLOADS_KEPT).delete()
    # The last run of each kind and benchmark stays: it tells what was done
    before = as_of - RUNS_KEPT
    last = JobRun.objects.values("kind", "benchmark").annotate(last=Max("pk")).values("last")
    old = JobRun.objects.filter(created_at__lt=before).exclude(status__in=OPEN)
    n_runs = old.exclude(pk__in=list(last.values_list("last", flat=True))).delete()[0]
    waiting = Notification.objects.filter(event=OuterRef("pk"), status=NotificationStatus.WAITING)
    _, by_model = Event.objects.filter(~Exists(waiting), at__lt=as_of - EVENTS_KEPT).delete()
    n_events = by_model.get(Event._meta.label, 0)
    return f"cleared {n_keys:,} idempotency keys, {n_runs:,} job runs, {n_events:,} events"
