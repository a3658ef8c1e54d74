from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from leaderboard.called import PROGRAM
from leaderboard.operations.benchmarks import list_tasks
from leaderboard.studies.answers import words
from leaderboard.submissions.parsing.task_list import read_tasks
from leaderboard.terminal.command import ServiceCommand, check_slug, file_path, reading


class Command(ServiceCommand):
    help = (
        "Create the tasks of a benchmark from a list; a new benchmark is created. The list is CSV with a "
        "header or NDJSON, with name and optional category, group and position. Safe to repeat."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")
        parser.add_argument("file", type=file_path)

    def handle(self, *, benchmark: str, file: Path, **_: Any) -> None:
        check_slug(benchmark)
        with reading(file, "a list of tasks (CSV with a header, or NDJSON)"):
            tasks = read_tasks(file)
        n_new, n_changed, is_new = list_tasks(slug=benchmark, tasks=tasks)
        listed = words.counted(len(tasks), "task")
        self.stdout.write(f"{benchmark}: {listed}, {n_new:,} new, {n_changed:,} changed.")
        if is_new:
            self.stdout.write(f"Next: {PROGRAM} benchmark {benchmark} --set title=…")
