from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.operations.acting import require_seen
from leaderboard.operations.corrections import MAX_LENGTH, figures, verify, verify_by_rerun
from leaderboard.operations.corrections import draw as draw_tasks
from leaderboard.studies.second_runs import N_FEWEST
from leaderboard.submissions.parsing.flat import read_file
from leaderboard.submissions.queries import is_verified
from leaderboard.terminal.command import ServiceCommand, file_path, reading


class Command(ServiceCommand):
    help = (
        "Mark a submission as verified after you checked its logs or ran it yourself. An agent is verified "
        "when all its submissions are."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("submission", type=UUID, help="its id, as the receipt tells it")
        parser.add_argument("--note", default="", help="how it was checked; it is kept")
        way = parser.add_mutually_exclusive_group()
        way.add_argument("--undo", action="store_true", help="remove the mark")
        way.add_argument(
            "--draw",
            type=int,
            nargs="?",
            const=N_FEWEST,
            metavar="N",
            help=f"name N of its tasks at random, at least and by default {N_FEWEST}, for you to run again; "
            "do not publish them before you have run them",
        )
        way.add_argument(
            "--rerun",
            type=file_path,
            metavar="FILE",
            help="a flat file with your own run of the tasks drawn: verify the submission if both runs agree "
            "within chance (1%%)",
        )

    def handle(
        self, *, submission: UUID, note: str, undo: bool, draw: int | None, rerun: Path | None, **_: Any
    ) -> None:
        require_seen(note)
        if len(note) > MAX_LENGTH:
            raise CommandError(f"--note has {len(note):,} characters. Use at most {MAX_LENGTH:,}.")
        if draw is not None:
            return self.draw(submission, draw)
        if rerun is not None:
            return self.rerun(submission, rerun, note)
        verified = verify(uuid=submission, note=note, as_of=timezone.now(), verified=not undo)
        is_now = "no longer verified" if undo else "verified"
        self.stdout.write(
            f"{submission} of {verified.agent.name} is {is_now}.\n"
            f"Next: {PROGRAM} recompute {verified.agent.benchmark.slug}"
        )
        return None

    def draw(self, uuid: UUID, n: int) -> None:
        if n < N_FEWEST:
            raise CommandError(f"--draw is {n}. Use at least {N_FEWEST} tasks.")
        self.stdout.write("\n".join(draw_tasks(uuid=uuid, n=n)))

    def rerun(self, uuid: UUID, file: Path, note: str) -> None:
        with reading(file, "a flat file of outcomes (see docs/flat-file.md)"):
            flat = read_file(file, as_of=timezone.now())
        submission, comparison = verify_by_rerun(uuid=uuid, flat=flat, note=note, as_of=timezone.now())
        if not comparison.agrees:
            is_still = submission.loaded or is_verified(submission)
            now = "It stays verified, but" if is_still else "Not verified:"
            raise CommandError(f"{now} the runs differ by more than chance ({figures(comparison)}).")
        message = f"{uuid} of {submission.agent.name} is verified: {figures(comparison)}."
        self.stdout.write(f"{message}\nNext: {PROGRAM} recompute {submission.agent.benchmark.slug}")
