from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.corrections import after_undo, unload, unload_latest
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Status, Submission
from leaderboard.terminal.command import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Withdraw submissions, all or none. They stay in the history but no longer count. What they replaced "
        "does not come back; load it again if you need it."
    )
    reason = "why; it is kept"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "what",
            nargs="+",
            metavar="SUBMISSION",
            help="submission ids; with --latest the name of a benchmark",
        )
        parser.add_argument("--latest", action="store_true", help="withdraw the latest load of a benchmark")

    def handle(self, *, what: list[str], latest: bool, reason: str, **_: Any) -> None:
        if latest and len(what) > 1:
            raise CommandError("--latest needs the name of exactly one benchmark.")
        why: dict[str, Any] = {"reason": reason, "as_of": timezone.now()}
        if latest:
            submissions = unload_latest(benchmark=benchmark_of(what[0]), **why)
        else:
            submissions = unload(uuids=[_uuid(text) for text in what], **why)
        n_outcomes = sum(submission.n_outcomes for submission in submissions)
        benchmark = submissions[0].agent.benchmark
        self.stdout.write(
            f"Withdrew {words.counted(len(submissions), 'submission')} with "
            f"{words.counted(n_outcomes, 'outcome')} from {benchmark}."
        )
        for sentence in after_undo(submissions):
            self.stdout.write(sentence)
        if Submission.objects.filter(agent__benchmark=benchmark, status=Status.ACCEPTED).exists():
            self.stdout.write(f"Next: {PROGRAM} recompute {benchmark}")


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise CommandError(f"Not a submission id: {text!r}. Copy it from the receipt.") from None
