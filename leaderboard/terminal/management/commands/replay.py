"""What the rules of a benchmark would have asked of agents that ran everything, and what came of it."""

import json
from argparse import ArgumentParser
from pathlib import Path
from textwrap import fill
from typing import Any

from django.core.management.base import CommandError

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.replaying import replay, store_replay
from leaderboard.studies.answers import as_text, printed, replay_figures
from leaderboard.submissions.parsing.flat import add_table_options, table_options
from leaderboard.terminal.arguments import USAGE, check_slug, count
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.management.commands.load import read
from leaderboard.terminal.printing import progress_bar, refusals_as_errors


class Command(ServiceCommand):
    help = (
        "Replay the rules of SLUG on full runs, agent by agent in order of date, and print what they would "
        "have saved and how far the board would agree with full runs. The runs are those of FILE, or those "
        "that SLUG has. Where there is no SLUG, the rules are those of a new benchmark."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="whose rules are replayed")
        parser.add_argument(
            "file", type=Path, nargs="?", metavar="FILE", help="full runs with dates: a flat file or a table"
        )
        parser.add_argument("--only", metavar="NAME", help="the benchmark to read, of a file of several")
        parser.add_argument(
            "--store", metavar="NEW-SLUG", help="store what came of it as a benchmark, with its board"
        )
        parser.add_argument(
            "--seeds",
            type=count,
            metavar="N",
            help="replays with other draws, over which figures are means (10; 20 where dates are missing)",
        )
        parser.add_argument("--json", action="store_true", help="print figures and verdict as one object")
        add_table_options(parser)

    def handle(
        self, *, benchmark: str, file: Path | None, only: str | None, store: str | None, **options: Any
    ) -> None:
        check_slug(benchmark)
        known = Benchmark.objects.filter(slug=benchmark).first()
        if known is None and (store is not None or file is None):
            raise CommandError(f"There is no benchmark {benchmark}.", returncode=USAGE)
        if store is not None and options["seeds"]:
            raise CommandError("--store keeps the replay of one seed: leave --seeds out.", returncode=USAGE)
        if store is not None and file:
            raise CommandError("--store replays what is stored: load FILE first.", returncode=USAGE)
        board = None
        with refusals_as_errors():
            flat, note = read(file, only=only, table=table_options(options)) if file else (None, "")
            self.stderr.write(note, ending="\n" if note else "")
            with progress_bar("Replaying", "agents") as progress:
                if store is not None:
                    check_slug(store)
                    assert known is not None
                    board, found = store_replay(source=known, slug=store, progress=progress)
                else:
                    found = replay(benchmark=known, flat=flat, n_seeds=options["seeds"], progress=progress)
        if options["json"]:
            self.stdout.write(json.dumps(found, indent=2, ensure_ascii=False))
        else:
            self.stdout.write(text(found))
        if board:
            self.stdout.write(f"\nStored as {store}, board {board.number}.")
            self.stdout.write(f"Other draws give other figures. Means over ten: {PROGRAM} replay {benchmark}")


def text(found: dict[str, Any]) -> str:
    """Verdict and figures for a reader."""
    verdict = found["verdict"]
    head = verdict["text"] if verdict else f"Too few to tell: {found['reason']}."
    return "\n\n".join(filter(None, [fill(head, printed.WIDTH), as_text(replay_figures({"replay": found}))]))
