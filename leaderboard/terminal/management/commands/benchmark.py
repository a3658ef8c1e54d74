"""Show and say what a benchmark is."""

from argparse import ArgumentParser
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.benchmarks import DESCRIBED, describe_benchmark
from leaderboard.studies.answers import words
from leaderboard.terminal.arguments import settings_in
from leaderboard.terminal.command import ServiceCommand
from leaderboard.terminal.printing import refusals_as_errors


class Command(ServiceCommand):
    help = "Show what is said of a benchmark, or set it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("benchmark", metavar="SLUG", help="its name in addresses")
        parser.add_argument(
            "--set",
            dest="values",
            nargs="+",
            action="extend",
            metavar="FIELD=VALUE",
            help=", ".join(DESCRIBED),
        )

    def handle(self, *, benchmark: str, values: list[str] | None, **_: Any) -> None:
        with refusals_as_errors():
            stored = benchmark_of(benchmark)
            changed = describe_benchmark(benchmark=stored, values=settings_in(values or []))
        stored.refresh_from_db()
        self.stdout.write(_text(stored))
        if values:
            self.stdout.write(f"Changed: {', '.join(changed) or 'nothing'}.")


def _text(benchmark: Benchmark) -> str:
    tasks, agents = benchmark.tasks.count(), benchmark.agents.count()
    counts = f"{words.counted(tasks, 'task')}, {words.counted(agents, 'agent')}"
    lines = [f"{benchmark.slug}: {counts}, data version {benchmark.data_version:,}"]
    width = max(map(len, DESCRIBED))
    lines += [f"  {field:<{width}}  {getattr(benchmark, field) or '–'}" for field in DESCRIBED]
    for flag in ("frozen", "hidden", "full_runs_only"):
        if since := getattr(benchmark, f"{flag}_at"):
            name = flag.replace("_", " ")
            lines.append(f"  {name} since {since:%Y-%m-%d}: {getattr(benchmark, f'{flag}_reason')}")
    return "\n".join(lines)
