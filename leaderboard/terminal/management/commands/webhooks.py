from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.models import EventKind, Notification
from leaderboard.operations.webhooks import add_webhook, delivery_of, disable_webhook, send_again, webhook_of
from leaderboard.studies.answers import as_text
from leaderboard.terminal.command import BenchmarkCommand, required_reason

N_LOGGED = 50


class Command(BenchmarkCommand):
    help = "Show, add or disable webhooks, show deliveries, or send one again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--add", metavar="URL", help="send events to this URL; prints its secret once")
        what.add_argument("--disable", type=int, metavar="ID", help="stop sending to this webhook")
        what.add_argument("--log", action="store_true", help=f"the latest {N_LOGGED} deliveries and tries")
        what.add_argument("--send-again", type=int, metavar="ID", help="try this delivery at once")
        parser.add_argument(
            "--events", nargs="+", choices=EventKind.values, metavar="KIND", help=", ".join(EventKind.values)
        )
        parser.add_argument("--reason", default="", help="why; it is kept")

    def handle(self, *, benchmark: Benchmark, events: list[str] | None, reason: str, **options: Any) -> None:
        if options["add"] is not None:
            self.add(benchmark, options["add"], events, reason)
        elif options["disable"] is not None:
            webhook = webhook_of(benchmark, options["disable"])
            why, now = required_reason(reason), timezone.now()
            disable_webhook(webhook=webhook, by=None, reason=why, as_of=now)
            self.stdout.write(f"Disabled webhook {webhook.pk}.")
        elif options["send_again"] is not None:
            delivery = delivery_of(benchmark, options["send_again"])
            send_again(delivery=delivery, as_of=timezone.now())
            self.stdout.write(f"Delivery {delivery.pk} is due now.")
        elif options["log"]:
            sent = Notification.objects.filter(event__benchmark=benchmark).select_related("event", "webhook")
            latest = sent.prefetch_related("attempts").order_by("-pk")[:N_LOGGED]
            rows = [_row(one) for one in latest]
            self.stdout.write(as_text({"": rows}) if rows else f"No deliveries for {benchmark}.")
        else:
            self.stdout.write(_webhooks_text(benchmark))

    def add(self, benchmark: Benchmark, url: str, events: list[str] | None, reason: str) -> None:
        if events == []:
            raise CommandError("--events is empty. Name at least one kind.")
        webhook, secret = add_webhook(
            benchmark=benchmark,
            url=url,
            events=events or EventKind.values,
            by=None,
            reason=reason.strip() or "added at the command line",
            as_of=timezone.now(),
        )
        self.stdout.write(
            f"Added webhook {webhook.pk}. Its deliveries are signed with this secret, shown once:\n{secret}"
        )


def _webhooks_text(benchmark: Benchmark) -> str:
    rows = [
        {
            "webhook": webhook.pk,
            "url": webhook.url,
            "events": " ".join(webhook.events),
            "state": f"disabled: {webhook.disabled_reason}" if webhook.disabled_at else "active",
        }
        for webhook in benchmark.webhooks.order_by("pk")
    ]
    return as_text({"": rows}) if rows else f"No webhooks for {benchmark}. Add one: --add URL --events KIND …"


def _row(delivery: Notification) -> dict[str, Any]:
    last = max(delivery.attempts.all(), key=lambda attempt: attempt.pk, default=None)
    return {
        "delivery": delivery.pk,
        "at": f"{delivery.event.at:%Y-%m-%d %H:%M:%S}",
        "event": delivery.event.kind,
        "about": delivery.event.about,
        "to": f"webhook {delivery.webhook_id}" if delivery.webhook_id else delivery.email,
        "state": delivery.status,
        "tries": delivery.n_attempts,
        "answer": last.status if last else None,
        "error": last.error if last else "",
    }
