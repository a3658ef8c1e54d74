import fcntl
import os
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import StringIO
from pathlib import Path
from time import monotonic
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard import called
from leaderboard.boards.queries import NoBoardYet, standings_of
from leaderboard.called import PROGRAM, set_command
from leaderboard.catalog.models import Benchmark, Visibility
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.services import measure_variance, recompute
from leaderboard.pages.site import MANIFEST, write_site
from leaderboard.studies.answers import progress_bar, words
from leaderboard.submissions.parsing.envelope import is_address
from leaderboard.submissions.parsing.flat import TableOptions, add_table_options, table_options
from leaderboard.submissions.parsing.importers import FLAT, sniff
from leaderboard.terminal.command import USAGE, ServiceCommand, file_path, reading
from leaderboard.terminal.management.commands.demo import load_file
from leaderboard.terminal.management.commands.export import check_replaceable_folder, folder_next_to
from leaderboard.terminal.management.commands.load import OUTCOMES
from leaderboard.terminal.management.commands.recompute import board_text


class Command(ServiceCommand):
    help = (
        "Write the pages of a benchmark as files, for any web server. From a file of outcomes, it uses a "
        "database of its own and deletes that at the end."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", metavar="SOURCE", help="a file of outcomes, or the name of a benchmark")
        parser.add_argument("--out", type=file_path, default=Path("site"), help="the folder to write (site)")
        parser.add_argument("--url", default="", help="where it will be served")
        parser.add_argument(
            "--validate",
            action="store_true",
            help="also validate; takes a minute or more",
        )
        parser.add_argument("--benchmark", metavar="NAME", help="its name, if the file has none")
        parser.add_argument(
            "--set", nargs="+", metavar="FIELD=VALUE", help="policy fields, for a file: missing=zero"
        )
        parser.add_argument("--only", metavar="NAME", help="the benchmark to take, of a file of several")
        add_table_options(parser)

    def handle(
        self,
        *,
        source: str,
        out: Path,
        url: str,
        validate: bool,
        benchmark: str | None,
        only: str | None,
        **options: Any,
    ) -> None:
        started = monotonic()
        check_replaceable(out)
        if url and not (is_address(url) and url.isprintable() and not set(" ?#") & set(url)):
            raise CommandError(
                f"--url {url} is not the address of a site. Example: https://board.example.org/swe",
                returncode=USAGE,
            )
        if Path(source).is_file():
            table = table_options(options, benchmark=benchmark)
            chosen = self._loaded(Path(source), table, only, [*(options["set"] or ())])
        elif Path(source).is_dir() and not Benchmark.objects.filter(slug=source).exists():
            raise to_load(source, "is a folder")
        elif Path(source).name != source or Path(source).suffix:
            raise CommandError(
                f"File not found: {source}. Give a file of outcomes or the name of a benchmark.",
                returncode=USAGE,
            )
        elif options["set"]:
            raise CommandError(
                f"--set is for a file. Type: {set_command(source, options['set'])}", returncode=USAGE
            )
        else:
            chosen = benchmark_of(source)
        if validate:
            self._call("validate", chosen.slug)
        if chosen.visibility != Visibility.PUBLIC:
            raise CommandError(f"{chosen} is not public. Its pages are for its members only.")
        with replacing_folder(out) as folder, progress_bar("Writing", "pages") as progress:
            try:
                n = write_site(chosen, folder, url=url.rstrip("/"), progress=progress)
            except NoBoardYet:
                raise CommandError(f"{chosen} has no board yet. Next: {PROGRAM} recompute {chosen}") from None
        self.stdout.write(f"Wrote {n:,} files in {monotonic() - started:.0f} s. Open {out / 'index.html'}.")

    def _loaded(self, file: Path, table: TableOptions, only: str | None, settings: list[str]) -> Benchmark:
        if not table.is_given:
            check_format(file)
        fields = {setting.partition("=")[0] for setting in settings}
        if "missing" in fields and "universe" not in fields:  # the data decide both, or none
            settings.append("universe=all")
        slug = load_file(file, table, only, self.stdout, settings)
        if settings:
            self._call("policy", slug, "--set", *settings)
        return self._computed(slug)

    def _call(self, *arguments: str) -> None:
        """Call a command, and print what it says but for next steps in a database that goes."""
        out = StringIO()
        call_command(*arguments, stdout=out)
        lines = out.getvalue().splitlines()
        self.stdout.write("\n".join(one for one in lines if not (called.is_site_of_file and PROGRAM in one)))

    def _computed(self, slug: str) -> Benchmark:
        benchmark = benchmark_of(slug)
        measure_variance(benchmark=benchmark, as_of=timezone.now())
        board, is_new = recompute(benchmark=benchmark, as_of=timezone.now())
        self.stdout.write(board_text(board, is_new=is_new))
        standings = standings_of(board)
        if standings.next_step:
            command = partial(set_command, slug)
            self.stdout.write(f"No agent is ranked yet. {words.next_step_text(standings, command)}")
        return benchmark


def check_format(file: Path) -> None:
    """Refuse what another project wrote."""
    with reading(file, OUTCOMES):
        found = sniff(file)
    if found not in (None, FLAT):
        raise to_load(str(file), f"has the format {found}")


def to_load(source: str, what: str) -> CommandError:
    """Say how a source gets a site that `load` alone reads."""
    steps = (f"load {shlex.quote(source)} --benchmark NAME", "recompute NAME", "site NAME")
    lines = "".join(f"\n  {PROGRAM} {step}" for step in steps)
    return CommandError(f"{source} {what}. Load it into a benchmark first:{lines}", returncode=USAGE)


def check_replaceable(out: Path) -> None:
    check_replaceable_folder(out, manifest=MANIFEST, option="--out")


@contextmanager
def replacing_folder(out: Path) -> Iterator[Path]:
    """A new folder that replaces the old one only once it is whole; what a kill left is removed, too."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with folder_next_to(out) as temporary:
        new, old = temporary / "new", temporary / "old"
        new.mkdir()
        yield new
        with locked(out.parent):
            check_replaceable(out)
            if out.exists():
                out.rename(old)
            new.rename(out)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
