"""Write a benchmark with its whole history to a file, for another installation."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.transfer import export_benchmark
from leaderboard.studies.answers import words
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.management.commands.export import check_free, replacing
from leaderboard.terminal.printing import refusals_as_errors


class Command(ServiceCommand):
    help = (
        "Write a benchmark with all that happened on it to a file that `import-benchmark` takes: outcomes, "
        "submissions, agents, policies, subsets, studies, boards. Roles, tokens and webhooks stay behind."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="replace what is there")

    def handle(self, *, benchmark: str, file: Path, force: bool, **_: Any) -> None:
        check_free([file], force)
        with refusals_as_errors(), replacing(file) as part:
            done = export_benchmark(benchmark=benchmark_of(benchmark), file=part)
        counts = (done.n_outcomes, "outcome"), (done.n_boards, "board"), (done.n_accounts, "account")
        self.stdout.write(f"{file}: {benchmark}, {', '.join(words.counted(n, noun) for n, noun in counts)}.")
        if done.benchmark.frozen_at is None:
            self.stdout.write("Its intake is not frozen: what comes from now on is not in the file.")
