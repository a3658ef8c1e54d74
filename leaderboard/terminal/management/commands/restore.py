from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.called import PROGRAM
from leaderboard.operations.backups import restore
from leaderboard.schema import mismatch
from leaderboard.terminal.command import ServiceCommand, reading


class Command(ServiceCommand):
    help = (
        "Read what `backup` wrote into an empty database, by pg_restore, whole or not at all. What an "
        "earlier release wrote is brought up to this one by `migrate`."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *, file: Path, **_: Any) -> None:
        with reading(file, "what `backup` wrote"):
            restore(file)
            earlier = mismatch()
        self.stdout.write(f"Restored from {file}.{f' Next: {PROGRAM} migrate' if earlier else ''}")
