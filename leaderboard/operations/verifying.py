"""What an operator vouches for: single submissions, and accounts."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from leaderboard.accounts.models import User
from leaderboard.accounts.services import lock_account
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict
from leaderboard.operations.acting import acting
from leaderboard.operations.corrections import locked_submissions
from leaderboard.operations.rejudging import judge_again
from leaderboard.studies.second_runs import RunAgreement, compare_runs, drawn_tasks
from leaderboard.submissions.models import AccountTrust, Submission, Verification
from leaderboard.submissions.parsing.flat import FlatFile
from leaderboard.submissions.queries import is_verified, trusted_accounts
from leaderboard.submissions.services import bump_data_version


@transaction.atomic
def verify(
    *, uuid: UUID, note: str, as_of: datetime, by: User | None = None, verified: bool = True
) -> Submission:
    """Confirm a submission, or with `verified` false take that back."""
    (submission,) = locked_submissions([uuid])
    benchmark = submission.agent.benchmark
    was_verified = is_verified(submission)
    if verified and (was_verified or submission.loaded):
        raise Conflict(
            f"The submission {uuid} is verified already"
            + (": an operator loaded it." if submission.loaded else "."),
            code="nothing_to_verify",
        )
    if not verified and not was_verified:
        raise Conflict(
            f"No operator confirmed the submission {uuid}, so there is nothing to undo.", code="not_verified"
        )
    version = bump_data_version(benchmark=benchmark)
    Verification.objects.create(
        submission=submission, verified=verified, data_version=version, at=as_of, by=by, note=note
    )
    judge_again(submission.agent, as_of=as_of)
    return submission


@transaction.atomic
def draw(*, uuid: UUID, n: int) -> list[str]:
    """Name n tasks of a submission for an operator to run again."""
    (submission,) = locked_submissions([uuid])
    return drawn_tasks(submission, n)


@transaction.atomic
def verify_by_rerun(
    *, uuid: UUID, flat: FlatFile, note: str, as_of: datetime, by: User | None = None
) -> tuple[Submission, RunAgreement]:
    """Confirm a submission if an operator's own run of the drawn tasks agrees with it; else leave it."""
    (submission,) = locked_submissions([uuid])
    agreement = compare_runs(submission, flat)
    if agreement.agrees:
        verify(uuid=uuid, note="; ".join(filter(None, (note, figures(agreement)))), as_of=as_of, by=by)
    return submission, agreement


def figures(of: RunAgreement) -> str:
    """Say how two runs differ: the submission's first, then the operator's."""
    return (
        f"rerun of {of.n_tasks} tasks: {of.first_mean:.1%} submitted, {of.second_mean:.1%} rerun; "
        f"better on {of.n_first} and {of.n_second} tasks; {of.test}, p = {of.p:.3g}"
    )


@transaction.atomic
def trust_account(
    *,
    benchmark: Benchmark,
    account: User,
    reason: str,
    as_of: datetime,
    by: User | None = None,
    trusted: bool = True,
) -> None:
    """Trust an account on a benchmark, or with `trusted` false do so no longer."""
    lock_account(user=account)
    agents = list(benchmark.agents.filter(owner=account).order_by("id").select_for_update(no_key=True))
    if (account.pk in trusted_accounts(benchmark)) == trusted:
        raise Conflict(
            f"{account.email} is {'trusted' if trusted else 'not trusted'} on {benchmark} already.",
            code="trust_unchanged",
        )
    with acting(by=by, reason=reason):
        version = bump_data_version(benchmark=benchmark)
        AccountTrust.objects.create(
            benchmark=benchmark,
            account=account,
            trusted=trusted,
            data_version=version,
            at=as_of,
            by=by,
            reason=reason,
        )
        for agent in agents:
            judge_again(agent, as_of=as_of)
