from argparse import ArgumentParser
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.benchmarks import DESCRIBED, describe_benchmark
from leaderboard.studies.answers import words
from leaderboard.terminal.command import BenchmarkCommand, settings_in


class Command(BenchmarkCommand):
    help = "Show or set title, description, licence and other details of a benchmark."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--set",
            dest="values",
            nargs="+",
            action="extend",
            metavar="FIELD=VALUE",
            help=", ".join(DESCRIBED),
        )

    def handle(self, *, benchmark: Benchmark, values: list[str] | None, **_: Any) -> None:
        changed = describe_benchmark(benchmark=benchmark, values=settings_in(values or []))
        benchmark.refresh_from_db()
        tasks, agents = benchmark.tasks.count(), benchmark.agents.count()
        counts = f"{words.counted(tasks, 'task')}, {words.counted(agents, 'agent')}"
        self.stdout.write(f"{benchmark.slug}: {counts}, data version {benchmark.data_version:,}")
        width = max(map(len, DESCRIBED))
        for field in DESCRIBED:
            self.stdout.write(f"  {field:<{width}}  {getattr(benchmark, field) or '–'}")
        for flag in ("frozen", "hidden", "full_runs_only"):
            if since := getattr(benchmark, f"{flag}_at"):
                name, why = flag.replace("_", " "), getattr(benchmark, f"{flag}_reason")
                self.stdout.write(f"  {name} since {since:%Y-%m-%d}: {why}")
        if values:
            self.stdout.write(f"Changed: {', '.join(changed)}." if changed else "No change.")
