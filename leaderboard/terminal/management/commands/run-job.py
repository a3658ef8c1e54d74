from argparse import ArgumentParser
from typing import Any

from leaderboard.notify import wake
from leaderboard.operations.runs import running
from leaderboard.operations.scheduler.children import LONG_NICENESS, Pulse, end_with, give_way, perform
from leaderboard.terminal.command import ServiceCommand


class Command(ServiceCommand):
    help = "Run one long job of the scheduler. Only the scheduler calls it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", type=int, help="of the run")
        parser.add_argument(
            "--scheduler", type=int, metavar="PID", help="the process that calls; the run ends with it"
        )

    def handle(self, *, id: int, scheduler: int | None, **_: Any) -> None:
        if scheduler:
            end_with(scheduler)
            give_way(LONG_NICENESS)
        run = running(id)
        perform(run, Pulse(run, interrupted=lambda: False))
        wake()
