import json
from argparse import ArgumentParser
from pathlib import Path
from textwrap import fill
from typing import Any

from django.core.management.base import CommandError
from django.db.models.functions import Coalesce

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import NoSuchBenchmark, benchmark_of
from leaderboard.operations.replaying import replay, store_replay
from leaderboard.studies.answers import WIDTH, as_text, progress_bar, replay_figures, words
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.parsing.flat import add_table_options, table_options
from leaderboard.terminal.command import USAGE, ServiceCommand, check_slug, file_path, whole
from leaderboard.terminal.management.commands.load import read

MAX_SEEDS = 1_000


class Command(ServiceCommand):
    help = (
        "Simulate the service on past full runs, oldest agent first. Shows the trials saved and the ranks "
        "beside those of full runs. Takes the results of FILE, or those of SLUG. An unknown SLUG has the "
        "rules of a new benchmark."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="benchmark with the rules")
        parser.add_argument(
            "file",
            type=file_path,
            nargs="?",
            metavar="FILE",
            help="full runs with dates: a flat file or a table",
        )
        parser.add_argument("--only", metavar="NAME", help="which benchmark, if the file holds several")
        parser.add_argument(
            "--store", metavar="NEW-SLUG", help="store the result as a benchmark with a board"
        )
        parser.add_argument(
            "--seeds",
            type=whole(1, MAX_SEEDS),
            metavar="N",
            help="number of replays to average over (10; 20 if dates are missing)",
        )
        parser.add_argument("--json", action="store_true", help="print figures and verdict as one object")
        add_table_options(parser)

    def handle(
        self, *, benchmark: str, file: Path | None, only: str | None, store: str | None, **options: Any
    ) -> None:
        check_slug(benchmark)
        known = _benchmark(benchmark, must_exist=store is not None or file is None)
        if store is not None and options["seeds"]:
            raise CommandError("--store keeps the replay of one seed: leave --seeds out.", returncode=USAGE)
        if store is not None and file:
            raise CommandError("--store replays what is stored: load FILE first.", returncode=USAGE)
        board = None
        flat, note = read(file, only=only, table=table_options(options)) if file else (None, "")
        self.stderr.write(note, ending="\n" if note else "")
        with progress_bar("Replaying", "steps") as progress:
            if store is not None:
                check_slug(store)
                assert known is not None
                board, result = store_replay(source=known, slug=store, progress=progress)
            else:
                result = replay(benchmark=known, flat=flat, n_seeds=options["seeds"], progress=progress)
        if options["json"]:
            self.stdout.write(json.dumps(result, indent=2, ensure_ascii=False))
        else:
            self.stdout.write(text(result, len(flat.agents) if flat else n_listed(benchmark)))
        if board:
            self.stdout.write(
                f"\nThe simulated board is stored as benchmark {store}, board {board.number}.\n"
                f"This is one replay. Other random seeds give other figures. For the mean of ten, run: "
                f"{PROGRAM} replay {benchmark}"
            )


def _benchmark(slug: str, *, must_exist: bool) -> Benchmark | None:
    try:
        return benchmark_of(slug)
    except NoSuchBenchmark as refusal:
        if must_exist:
            message = f"{refusal} To replay a file by the rules of a new benchmark, add FILE."
            raise CommandError(message, returncode=USAGE) from None
    return None


def n_listed(slug: str) -> int:
    of = Submission.objects.filter(agent__benchmark__slug=slug, status=Status.ACCEPTED)
    return of.values(one=Coalesce("agent__merged_into", "agent")).distinct().count()


def text(result: dict[str, Any], n_agents: int) -> str:
    """Verdict and figures for a reader, and how many of the agents were not replayed."""
    verdict = result["verdict"]
    head = verdict["text"] if verdict else f"Not known yet: {result['reason']}."
    figures = result["figures"]
    n_left_out = n_agents - figures["n_agents"] if figures else 0
    left_out = (
        f"Left out: {words.counted(n_left_out, 'agent')}. The replay uses only full runs that the service "
        "did not ask for."
    )
    parts = [
        fill(head, WIDTH),
        as_text(replay_figures({"replay": result})),
        fill(left_out, WIDTH) if n_left_out else "",
    ]
    return "\n\n".join(filter(None, parts))
