from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.operations.backups import back_up
from leaderboard.terminal.command import ServiceCommand, file_path
from leaderboard.terminal.management.commands.export import check_free, replacing


class Command(ServiceCommand):
    help = (
        "Write the whole database to a file with pg_dump. The service keeps running. The file is complete "
        "or absent. Settings are not in it: also keep SECRET_KEY and SIGNING_KEY."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=file_path)
        parser.add_argument("--force", action="store_true", help="replace what is there")

    def handle(self, *, file: Path, force: bool, **_: Any) -> None:
        check_free(file, force)
        with replacing(file) as part:
            server = back_up(part)
            n_bytes = part.stat().st_size
        self.stdout.write(f"{file}: {n_bytes:,} bytes, from PostgreSQL {server}.")
        self.stdout.write("SECRET_KEY and SIGNING_KEY are not in it. Keep them elsewhere.")
