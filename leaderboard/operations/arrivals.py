"""Events about outcomes that arrive and count: of a submission, and of a load as a whole."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.events import emit
from leaderboard.operations.mailing import wished_by_deliverers
from leaderboard.operations.models import EventKind
from leaderboard.submissions.models import Status, StatusChange, Submission

MAX_LISTED = 100  # submissions and agents of one event; their numbers are always given


def tell_of_arrivals(
    *, benchmark: Benchmark, changes: Sequence[StatusChange], as_of: datetime, by_mail: bool = False
) -> None:
    """Tell of the submissions that are accepted with these changes: one event, whatever their number.

    `by_mail`: those too who delivered them and wish for it, as they were answered long before.
    """
    accepted = [change.submission for change in changes if change.status == Status.ACCEPTED]
    if accepted:
        emit(
            benchmark=benchmark,
            kind=EventKind.SUBMISSION_ACCEPTED,
            about=str(accepted[0].uuid),
            payload=_payload(benchmark, accepted),
            as_of=as_of,
            emails=wished_by_deliverers(accepted) if by_mail else (),
        )


def tell_of_refusal(*, submission: Submission, reason: str, as_of: datetime) -> None:
    benchmark = submission.agent.benchmark
    emit(
        benchmark=benchmark,
        kind=EventKind.SUBMISSION_REFUSED,
        about=str(submission.uuid),
        payload={
            "path": f"/submissions/{submission.uuid}",
            "submissions": [str(submission.uuid)],
            "agents": [submission.agent.name],
            "reason": reason,
        },
        as_of=as_of,
        emails=wished_by_deliverers([submission]),
    )


def _payload(benchmark: Benchmark, accepted: Sequence[Submission]) -> dict[str, Any]:
    agents = list(dict.fromkeys(submission.agent.name for submission in accepted))
    return {
        "path": f"/b/{benchmark.slug}",
        "loaded": accepted[0].loaded,
        "n_submissions": len(accepted),
        "submissions": [str(submission.uuid) for submission in accepted[:MAX_LISTED]],
        "n_agents": len(agents),
        "agents": agents[:MAX_LISTED],
        "n_outcomes": sum(submission.n_outcomes for submission in accepted),
        "n_invalid": sum(submission.n_invalid for submission in accepted),
    }
