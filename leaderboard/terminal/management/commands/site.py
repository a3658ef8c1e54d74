from argparse import ArgumentParser
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management import call_command
from django.utils import timezone

from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.services import measure_variance, recompute
from leaderboard.pages.site import write_site
from leaderboard.submissions.parsing.flat import add_table_options, table_options
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.management.commands.demo import load_file
from leaderboard.terminal.management.commands.recompute import board_text


class Command(ServiceCommand):
    help = (
        "Write the pages of a benchmark as files for any web server, such as GitHub Pages. SOURCE is its name in "
        "addresses, or a file of outcomes: that is loaded into a store which is deleted at the end."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", metavar="SOURCE", help="a benchmark, or a file of outcomes")
        parser.add_argument("--out", type=Path, default=Path("site"), help="the folder to write into (site)")
        parser.add_argument("--only", metavar="NAME", help="the benchmark to take, of a file of several")
        add_table_options(parser)

    def handle(self, *, source: str, out: Path, only: str | None, **options: Any) -> None:
        started = monotonic()
        if Path(source).is_file():
            call_command("migrate", verbosity=0)
            slug = load_file(Path(source), table_options(options), only, self.stdout)
            measure_variance(benchmark=benchmark_of(slug), as_of=timezone.now())
            board, is_new = recompute(benchmark=benchmark_of(slug), as_of=timezone.now())
            self.stdout.write(board_text(board, is_new=is_new))
        else:
            slug = source
        n = sum(1 for _ in write_site(benchmark_of(slug), out))
        self.stdout.write(f"Wrote {n:,} files in {monotonic() - started:.0f} s. Open {out / 'index.html'}.")
