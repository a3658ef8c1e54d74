from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from leaderboard.called import PROGRAM
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.models import Reselection
from leaderboard.operations.reselections import (
    LABELS,
    NothingWouldChange,
    approve,
    comparison_of,
    open_proposal,
    propose,
)
from leaderboard.operations.reselections import reject as reject_proposal
from leaderboard.terminal.arguments import USAGE, required_reason
from leaderboard.terminal.command import BenchmarkCommand
from leaderboard.terminal.comparing import comparison_text
from leaderboard.terminal.printing import progress_bar


class Command(BenchmarkCommand):
    help = (
        "Show the open proposal of another subset beside the one in use, make one, or decide it. The subset "
        "changes with an approval alone."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--propose", metavar="REASON", help="compute a proposal; why, in words")
        what.add_argument("--approve", type=int, metavar="ID", help="activate a variant of this proposal")
        what.add_argument("--reject", type=int, metavar="ID", help="keep the subset in use")
        parser.add_argument("--variant", choices=list(LABELS), help="which subset to activate")
        parser.add_argument("--reason", default="", help="why it is approved or rejected; it is kept")

    def handle(
        self,
        *,
        benchmark: Benchmark,
        propose: str | None,
        approve: int | None,
        reject: int | None,
        variant: str | None,
        reason: str,
        **_: Any,
    ) -> None:
        if approve is not None:
            text = _approve(benchmark, approve, variant, required_reason(reason))
        elif reject is not None:
            why, proposal = required_reason(reason), _proposal(benchmark, reject)
            reject_proposal(reselection=proposal, by=None, reason=why, as_of=timezone.now())
            version = proposal.previous.number
            text = f"Proposal {reject} is rejected; version {version} of the subset stays."
        elif propose is not None:
            text = _propose(benchmark, propose.strip())
        elif waiting := open_proposal(benchmark):
            text = comparison_text(comparison_of(waiting))
        else:
            text = (
                f"No reselection of {benchmark} is proposed.\n"
                f"Next: {PROGRAM} reselect {benchmark} --propose REASON"
            )
        self.stdout.write(text)


def _propose(benchmark: Benchmark, reason: str) -> str:
    try:
        with progress_bar("Proposing") as progress:
            made = propose(
                benchmark=benchmark, by=None, reason=reason, as_of=timezone.now(), progress=progress
            )
    except NothingWouldChange as answer:
        return str(answer)
    return comparison_text(comparison_of(made))


def _approve(benchmark: Benchmark, number: int, variant: str | None, reason: str) -> str:
    if variant is None:
        raise CommandError(f"--variant says which: {' or '.join(LABELS)}.", returncode=USAGE)
    proposal = _proposal(benchmark, number)
    subset = approve(reselection=proposal, variant=variant, by=None, reason=reason, as_of=timezone.now())
    return (
        f"Version {subset.number} of the subset is active: {subset.reason}.\n"
        f"Next: {PROGRAM} recompute {benchmark.slug} (the board on it)"
    )


def _proposal(benchmark: Benchmark, number: int) -> Reselection:
    proposal = benchmark.reselections.select_related("previous").filter(pk=number).first()
    if proposal is None:
        raise CommandError(f"There is no proposal {number} on {benchmark.slug}.")
    return proposal
