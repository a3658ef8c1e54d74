"""Take a broken task out of the count, or back."""

from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.benchmarks import restore, retire, task_of
from leaderboard.operations.previews import foresee_task
from leaderboard.terminal.command import BenchmarkCommand


class Command(BenchmarkCommand):
    help = (
        "Let a broken task count no more: it leaves scores, the subset and what complete means. Its outcomes "
        "stay, and count again once it is restored."
    )
    reason = "why; it is kept"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("task")
        parser.add_argument("--restore", action="store_true", help="let a retired task count again")
        parser.add_argument("--dry-run", action="store_true", help="tell what would change, store nothing")

    def handle(
        self, *, benchmark: Benchmark, task: str, reason: str, restore: bool, dry_run: bool, **_: Any
    ) -> None:
        stored = task_of(benchmark, task)
        for sentence in foresee_task(stored, as_of=timezone.now()).sentences:
            self.stdout.write(sentence)
        if not dry_run:
            self.stdout.write(_done(stored, reason, back=restore))
            self.stdout.write(f"Next: {PROGRAM} recompute {benchmark}")


def _done(task: Any, reason: str, *, back: bool) -> str:
    if back:
        restore(task=task, by=None, reason=reason)
        return f"{task.name} counts again."
    retire(task=task, by=None, reason=reason, as_of=timezone.now())
    return f"{task.name} is retired."
