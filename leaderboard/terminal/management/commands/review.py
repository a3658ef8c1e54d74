from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.db.models import OuterRef, Subquery
from django.utils import timezone

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.reviewing import accept as accept_submission
from leaderboard.operations.reviewing import refuse as refuse_submission
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Status, StatusChange, Submission
from leaderboard.terminal.command import BenchmarkCommand, required_reason

ACCEPTED = "accepted in review"


class Command(BenchmarkCommand):
    help = (
        "Show waiting submissions with the reason, accept or refuse them. They wait for review (policy "
        "review=manual), because they look implausible, or under embargo."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--accept", type=UUID, metavar="SUBMISSION", help="accept it: it counts")
        what.add_argument("--refuse", type=UUID, metavar="SUBMISSION", help="refuse it: it never counts")
        parser.add_argument("--reason", default="", help="why; it is kept. A refusal needs it")

    def handle(
        self, *, benchmark: Benchmark, accept: UUID | None, refuse: UUID | None, reason: str, **_: Any
    ) -> None:
        uuid = accept or refuse
        if uuid is None:
            latest = StatusChange.objects.filter(submission=OuterRef("pk")).order_by("-id").values("reason")
            waiting = Submission.objects.filter(agent__benchmark=benchmark, status=Status.WAITING)
            rows = waiting.annotate(reason=Subquery(latest[:1])).select_related("agent").order_by("id")
            for one in rows:
                about = f"{one.agent}, {words.counted(one.n_outcomes, 'outcome')}: {one.reason}"
                self.stdout.write(f"{one.uuid}  {one.received_at:%Y-%m-%d}  {about}")
            if not rows:
                self.stdout.write("No submission waits for review.")
            return
        if not Submission.objects.filter(agent__benchmark=benchmark, uuid=uuid).exists():
            raise CommandError(
                f"Unknown submission {uuid} on {benchmark}. Copy the id from the list of `review`."
            )
        if accept:
            accept_submission(uuid=uuid, by=None, reason=reason.strip() or ACCEPTED, as_of=timezone.now())
        else:
            refuse_submission(uuid=uuid, by=None, reason=required_reason(reason), as_of=timezone.now())
        self.stdout.write(f"{uuid} {'now counts' if accept else 'is refused'}.")
