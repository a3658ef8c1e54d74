from argparse import ArgumentParser
from typing import Any

from django.utils import timezone

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark, Weights
from leaderboard.catalog.services import AgentDescription
from leaderboard.errors import Missing
from leaderboard.operations.asking import step_of
from leaderboard.operations.assignments import assign, names_of
from leaderboard.operations.models import Mode
from leaderboard.studies.answers import words
from leaderboard.terminal.command import BenchmarkCommand


class Command(BenchmarkCommand):
    help = (
        "Print which tasks an agent should run, why, and until when. A second call prints the same tasks, or "
        "the next batch under staged assignment."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--agent", required=True, metavar="NAME")
        parser.add_argument("--scaffold", required=True, metavar="NAME")
        parser.add_argument("--model", required=True, metavar="NAME")
        parser.add_argument("--agent-version", default="", metavar="TEXT")
        parser.add_argument("--organisation", default="", metavar="NAME")
        parser.add_argument("--weights", default="", choices=Weights.values)
        parser.add_argument(
            "--for",
            dest="owner",
            metavar="EMAIL",
            help="account that owns the agent; without it only operators add results",
        )

    def handle(self, *, benchmark: Benchmark, agent: str, scaffold: str, model: str, **options: Any) -> None:
        optional = (options[name] for name in ("agent_version", "organisation", "weights"))
        described = AgentDescription(agent, scaffold, model, *optional)
        owner, email = None, options["owner"]
        if email is not None and not (owner := User.objects.filter(email=email.strip().lower()).first()):
            raise Missing(f"Unknown account {email}. `token` creates one.", code="no_such_account")
        assignment = assign(
            benchmark=benchmark, agent=described, by=owner, by_operator=True, as_of=timezone.now()
        )
        tasks, until = names_of(assignment), f"{assignment.expires_at:%Y-%m-%d}"
        self.stdout.write(f"Assignment {assignment.uuid} of {assignment.agent}, until {until}.")
        self.stdout.write(f"{assignment.mode}: {assignment.reason}.")
        if assignment.mode == Mode.STAGED:
            step = step_of(assignment)
            self.stdout.write(f"{step.sentence}.")
            tasks = step.waiting
        more = assignment.n_trials_recommended or 0
        recommended = f" ({more} recommended)" if more > assignment.n_trials else ""
        trials = words.counted(assignment.n_trials, "trial")
        if tasks:
            counted = words.counted(len(tasks), "task")
            self.stdout.write("\n  ".join([f"{counted}, {trials} of each{recommended}:", *tasks]))
