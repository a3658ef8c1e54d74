"""One run of the long lane, in a process of its own."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from leaderboard.operations.runs import running
from leaderboard.operations.scheduler.children import end_with_parent
from leaderboard.operations.scheduler.performing import Pulse, perform
from leaderboard.terminal.printing import refusals_as_errors
from leaderboard.waking import wake


class Command(BaseCommand):
    help = "Work off one long run that the scheduler has begun. The scheduler calls it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, help="of the run")

    def handle(self, *, id: int, **_: Any) -> None:
        if os.getpid() == os.getpgrp():
            end_with_parent()
        with refusals_as_errors():
            run = running(id)
        perform(run, Pulse(run, interrupted=lambda: False))
        wake()
