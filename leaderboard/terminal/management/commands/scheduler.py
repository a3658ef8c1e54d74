import signal
from typing import Any

from django.core.management.base import CommandError

from leaderboard.operations.scheduler.children import PROMPT_NICENESS, give_way
from leaderboard.operations.scheduler.clock import Scheduler
from leaderboard.schema import mismatch
from leaderboard.terminal.command import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Keep boards up to date, run nightly studies, watch for drift and send webhooks, until "
        "stopped. Several may run: one leads, another takes over within seconds."
    )

    def handle(self, **_: Any) -> None:
        scheduler = Scheduler()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, scheduler.end)
        if why := mismatch():
            raise CommandError(f"The tables do not match this version: {why}.")
        give_way(PROMPT_NICENESS)
        scheduler.run()
