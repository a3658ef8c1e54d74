"""What became of a submission, for its owner and operators: what arrived, what it lacks, what a board did."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from leaderboard.accounts.models import ApiToken, User
from leaderboard.boards.models import Board, Entry
from leaderboard.boards.queries import boards_of
from leaderboard.catalog.models import Benchmark, Role
from leaderboard.catalog.queries import policy_in_force, role_of, visible_benchmarks
from leaderboard.operations import quotas
from leaderboard.operations.asking import in_blocks, lacking, names_asked
from leaderboard.operations.assignments import wanted_by
from leaderboard.operations.corrections import NoSuchSubmission
from leaderboard.operations.delivered import standing
from leaderboard.operations.models import Assignment, Mode
from leaderboard.operations.queries import is_recalled
from leaderboard.operations.staging import step_of
from leaderboard.studies.queries import active_subset
from leaderboard.studies.receipt import AgentContext, conditions_counted
from leaderboard.studies.staged_steps import WalkState
from leaderboard.submissions.models import LIVE, Status, Submission
from leaderboard.submissions.queries import live_outcomes, settings_of, standing_submissions
from leaderboard.submissions.rows import KEY

OF_STATUS = {
    Status.CHECKING: "It is being checked.",
    Status.WAITING: "It waits for review, or for the end of its embargo, and does not count yet.",
    Status.REFUSED: "It was refused and does not count.",
    Status.SUPERSEDED: "Another submission took its place; it does not count any more.",
    Status.WITHDRAWN: "It was withdrawn and does not count any more.",
}


def submissions_of(user: User, benchmark: Benchmark | None = None) -> QuerySet[Submission]:
    """What this person delivered, and what their agents did; the latest first."""
    submissions = Submission.objects.filter(Q(submitted_by=user) | Q(agent__owner=user))
    if benchmark is not None:
        submissions = submissions.filter(agent__benchmark=benchmark)
    return submissions.select_related("agent__benchmark").order_by("-id")


def followed_by(user: User, uuid: UUID) -> Submission:
    """The submission, to whoever delivered it, its agent's owner, and operators; to others there is none."""
    submissions = Submission.objects.select_related("agent__benchmark", "replaces", "submitted_by").filter(
        uuid=uuid
    )
    submission = submissions.filter(agent__benchmark__in=visible_benchmarks(user).values("pk")).first()
    if submission is None or not _may_follow(user, submission):
        raise NoSuchSubmission
    return submission


def _may_follow(user: User, submission: Submission) -> bool:
    if user.pk in (submission.submitted_by_id, submission.agent.owner_id):
        return True
    return role_of(user, submission.agent.benchmark) == Role.OPERATOR


@dataclass(frozen=True)
class Followed:
    """`lacking` is in words and empty for a whole run; `checks` is None until they were made.

    `staged` is where an agent stands that is asked batch by batch. `quota` is what the token and the agent
    may still deliver today, None where nobody counts.
    """

    submission: Submission
    lacking: list[str]
    history: list[Any]
    checks: list[dict[str, str]] | None
    quota: dict[str, Any] | None
    assignment: Assignment | None
    staged: WalkState | None
    replaced_by: Submission | None
    board: Board | None
    entry: Entry | None

    @property
    def quota_lines(self) -> list[tuple[str, str]]:
        """The same in words."""
        counted = [(name, one) for name, one in (self.quota or {}).items() if isinstance(one, dict)]
        return [
            (f"of this {name}", f"{one['left']:,} of {one['limit']:,} submissions") for name, one in counted
        ]

    @property
    def standing(self) -> str:
        """What the board did with it."""
        if sentence := OF_STATUS.get(Status(self.submission.status)):
            return sentence
        if self.entry is None or self.board is None:
            return "It counts; no board has shown it yet."
        return f"Board {self.board.number} shows {self.entry.name}: {_place(self.board, self.entry)}"


def _place(board: Board, entry: Entry) -> str:
    place = entry.at.get(board.target) or {}
    if place.get("rank") is None:
        return f"listed without a rank: {place.get('reason') or 'no reason is stored'}."
    lower, upper = place.get("rank_lower"), place.get("rank_upper")
    between = f", between {lower} and {upper} with 95%" if lower is not None else ""
    return f"rank {place['rank']}{between}."


def follow(submission: Submission, *, token: ApiToken | None, as_of: datetime) -> Followed:
    """Read what became of it."""
    assignment = submission.assignments.select_related("subset").order_by("-id").first()
    board, entry = _entry_of(submission)
    check = getattr(submission, "machine_check", None)
    return Followed(
        submission=submission,
        lacking=_lacking(submission, assignment) if submission.status in LIVE else [],
        history=list(submission.status_changes.order_by("id")),
        checks=check.found if check else None,
        quota=_left(token or submission.token, submission, as_of),
        assignment=assignment,
        staged=step_of(assignment) if assignment and assignment.mode == Mode.STAGED else None,
        replaced_by=submission.replaced_by.order_by("-id").first(),
        board=board,
        entry=entry,
    )


def _entry_of(submission: Submission) -> tuple[Board | None, Entry | None]:
    """The agent's line on the latest board."""
    agent = submission.agent
    board = boards_of(agent.benchmark).order_by("-number").first()
    entry = board.entries.filter(agent_id=agent.merged_into_id or agent.pk).first() if board else None
    return (board, entry) if entry else (None, None)


def _lacking(submission: Submission, assignment: Assignment | None) -> list[str]:
    """What the agent still lacks of what this delivery was asked for, with all that it delivered since."""
    benchmark = submission.agent.benchmark
    policy, wanted = policy_in_force(benchmark), wanted_by(assignment, submission)
    agent = submission.agent.merged_into_id or submission.agent_id
    outcomes = live_outcomes([agent])
    once = outcomes.group_by(KEY).aggregate([])  # a failure of the harness and its repetition are one
    tasks = names_asked(policy, None)
    of_agent = AgentContext(
        agent=agent,
        submissions=standing_submissions(agent),
        policy=policy,
        subset=active_subset(benchmark),
        tasks=tasks,
        settings={pk: facets for facets, pk in settings_of(benchmark).items()},
    )
    row = standing(once, once.slice(0, 0), conditions_counted(outcomes, of_agent))
    blocks = in_blocks([one.asked for one in of_agent.submissions.values()], tasks)
    unranked = wanted == submission.asked and not is_recalled(agent)
    return list(lacking(row, names_asked(policy, wanted), blocks, policy.missing, unranked=unranked))


def _left(token: ApiToken | None, submission: Submission, as_of: datetime) -> dict[str, Any] | None:
    """What of today's quotas is left; None where nobody counts, and for operators, who have no bound."""
    if token is None:
        return None
    agent = submission.agent
    left = quotas.remaining(benchmark=agent.benchmark, token=token, agent=agent, as_of=as_of)
    return dict(left.as_plain()) if left else None
