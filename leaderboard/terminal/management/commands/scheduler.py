"""Do by itself what an operator would type."""

import signal
from typing import Any

from leaderboard.operations.models import JobRun
from leaderboard.operations.scheduler.clock import Scheduler
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import refusals_as_errors


class Command(ServiceCommand):
    help = (
        "Bring boards up to date, study the data at night, look for drift and deliver webhooks, until "
        "told to end. Any number may run: one leads, another takes over within seconds."
    )

    def handle(self, **_: Any) -> None:
        scheduler = Scheduler()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, scheduler.end)
        with refusals_as_errors():
            JobRun.objects.exists()  # asked here, tables that are not there are told once
        scheduler.run()
