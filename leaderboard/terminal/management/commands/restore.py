from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.called import PROGRAM
from leaderboard.operations.backups import restore
from leaderboard.schema import mismatch
from leaderboard.terminal.command import ServiceCommand, file_path, reading


class Command(ServiceCommand):
    help = (
        "Read a file of `backup` into an empty database with pg_restore, all or nothing. Run `migrate` "
        "afterwards if an earlier release wrote it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=file_path)

    def handle(self, *, file: Path, **_: Any) -> None:
        with reading(file, "what `backup` wrote"):
            restore(file)
            earlier = mismatch()
        self.stdout.write(f"Restored from {file}.{f' Next: {PROGRAM} migrate' if earlier else ''}")
