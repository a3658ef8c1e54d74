from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.pages.site import write_site
from leaderboard.terminal.command import BenchmarkCommand


class Command(BenchmarkCommand):
    help = "Write the pages of a benchmark as files, to be served by any web server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--out", type=Path, default=Path("site"), help="the folder (site)")

    def handle(self, *, benchmark: Benchmark, out: Path, **_: Any) -> None:
        n = sum(1 for _ in write_site(benchmark, out))
        self.stdout.write(f"Wrote {n:,} files. Open {out / 'index.html'}.")
