from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.queries import benchmark_of
from leaderboard.operations.corrections import unload, unload_latest
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Status, Submission
from leaderboard.terminal.command import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Withdraw submissions, all or none. They stay stored and keep their place in the history, but count "
        "no more; what they replaced stays superseded, and may be loaded again."
    )
    reason = "why; it is kept"

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "what",
            nargs="+",
            metavar="SUBMISSION",
            help="ids of submissions; with --latest a benchmark's slug",
        )
        parser.add_argument("--latest", action="store_true", help="all of the latest load of a benchmark")

    def handle(self, *, what: list[str], latest: bool, reason: str, **_: Any) -> None:
        if latest and len(what) > 1:
            raise CommandError("--latest takes the slug of one benchmark.")
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
        if Submission.objects.filter(agent__benchmark=benchmark, status=Status.ACCEPTED).exists():
            self.stdout.write(f"Next: {PROGRAM} recompute {benchmark}")


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise CommandError(f"{text!r} is not the id of a submission.") from None
