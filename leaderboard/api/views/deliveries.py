"""What agents are asked to run, and what became of what they delivered."""

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import bodies, serializers
from leaderboard.api.parameters import PAGE, flag, one_of, text
from leaderboard.api.permissions import Known, MaySubmit, reaches
from leaderboard.api.views.asked import Asked, Listing
from leaderboard.api.views.submissions import SubmissionsView
from leaderboard.boards.presentation import visible_lines
from leaderboard.catalog.services import AgentDescription
from leaderboard.errors import Forbidden
from leaderboard.operations.assignments import assign
from leaderboard.operations.corrections import NoSuchSubmission, withdraw
from leaderboard.operations.following import Followed, followed, followed_by, submissions_of
from leaderboard.operations.models import Assignment, AssignmentStatus, Mode
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.parsing.importers import FORMATS


class MayNotSubmit(Forbidden):
    """Withdrawing needs a token with the scope submit or operate."""


class Submissions(Listing, SubmissionsView):
    """GET: one's own submissions, and all for operators. POST: deliver one agent's outcomes."""

    permission_classes = (MaySubmit,)
    permissions: ClassVar = {"GET": Known, "POST": MaySubmit}
    parameters = PAGE | {
        "status": one_of("Those of this status.", Status.values),
        "agent": text("Those of this agent."),
    }
    posted: ClassVar = {
        "dry_run": flag("Tell what would be stored, and store nothing."),
        "format": one_of("The format of a file; by default what it looks like.", tuple(FORMATS)),
        "metric": text("Which of its figures is the outcome, where a file has several."),
        "filter": text("Which of its filters counts, where a file has several."),
    }
    row = serializers.SubmissionRow
    takes = bodies.Delivery
    answers: ClassVar = {
        "GET": {200: serializers.page_of(serializers.SubmissionRow)},
        "POST": {200: serializers.Receipt, 201: serializers.Receipt},
    }
    subject = "submissions"

    def initial(self, request: Request, *arguments: Any, **named: Any) -> None:
        if self.is_read:
            super().initial(request, *arguments, **named)
        else:
            SubmissionsView.initial(self, request, *arguments, **named)

    def rows(self) -> QuerySet[Submission]:
        found = Submission.objects.filter(agent__benchmark=self.benchmark)
        if not self.operates:
            found = submissions_of(self.user, self.benchmark)
        if self.asked["status"] is not None:
            found = found.filter(status=self.asked["status"])
        if self.asked["agent"] is not None:
            found = found.filter(agent__name=self.asked["agent"])
        return found.select_related("agent").order_by("-id")


class OfSubmission(Asked):
    """A submission is told to whoever delivered it, its agent's owner, and operators."""

    permissions: ClassVar = {"GET": Known, "POST": Known}
    subject = "submissions"

    def submission(self, uuid: UUID) -> Submission:
        found = followed_by(self.user, uuid)
        assert self.token is not None
        if not reaches(self.token, found.agent.benchmark):
            raise NoSuchSubmission
        return found


class SubmissionOne(OfSubmission):
    """What became of a submission: its status, what it lacks, checks, and the agent's line on the board."""

    answers: ClassVar = {"GET": {200: serializers.SubmissionOne}}

    def get(self, request: Request, uuid: UUID) -> Response:
        found = followed(self.submission(uuid), token=self.token, as_of=timezone.now())
        context = {"view": self, "request": request}
        return Response(serializers.SubmissionOne(_told(found), context=context).data)


def _told(found: Followed) -> Any:
    submission: Any = found.submission
    lines = visible_lines(found.board, [found.entry]) if found.board and found.entry else []
    named = {
        "benchmark": submission.agent.benchmark.slug,
        "lacking": found.lacking,
        "history": found.history,
        "checks": found.checks,
        "quota": found.quota,
        "assignment": _assignment(found),
        "replaces": submission.replaces.uuid if submission.replaces else None,
        "replaced_by": found.replaced_by.uuid if found.replaced_by else None,
        "board": found.board.number if found.board else None,
        "entry": lines[0] if lines else None,
        "standing": found.standing,
    }
    for name, value in named.items():
        setattr(submission, f"told_{name}", value)
    return submission


def _assignment(found: Followed) -> dict[str, Any] | None:
    if found.assignment is None:
        return None
    told = {name: getattr(found.assignment, name) for name in ("mode", "status")}
    staged = {"staged": found.staged.as_plain()} if found.staged else {}
    return {"id": str(found.assignment.uuid), **told, **staged}


class Withdraw(OfSubmission):
    """Take a submission back: it counts no more, and its history stays."""

    takes = bodies.ReasonSaid
    answers: ClassVar = {"POST": {200: serializers.Withdrawn}}

    def post(self, request: Request, uuid: UUID) -> Response:
        found = self.submission(uuid)
        assert self.token is not None
        if not {"submit", "operate"} & set(self.token.scopes):
            raise MayNotSubmit
        withdraw(uuid=found.uuid, token=self.token, as_of=timezone.now(), **self.said())
        found.refresh_from_db()
        return Response(serializers.Withdrawn(found).data)


class OfAssignments(Asked):
    """An assignment is told to whoever asked for it, its agent's owner, and operators."""

    permissions: ClassVar = {"GET": Known, "POST": MaySubmit}
    subject = "assignments"

    def assignments(self) -> QuerySet[Assignment]:
        found = Assignment.objects.filter(agent__benchmark=self.benchmark).select_related("agent", "subset")
        return found if self.operates else found.filter(Q(asked_by=self.user) | Q(agent__owner=self.user))


class Assignments(OfAssignments, Listing):
    """One's own assignments, and all for operators; the latest first."""

    parameters = PAGE | {
        "status": one_of("Those of this status.", AssignmentStatus.values),
        "mode": one_of("Those of this mode.", Mode.values),
        "agent": text("Those of this agent."),
    }
    takes = bodies.AssignmentSaid
    row = serializers.AssignmentRow
    answers: ClassVar = {
        "GET": {200: serializers.page_of(serializers.AssignmentRow)},
        "POST": {200: serializers.AssignmentOne, 201: serializers.AssignmentOne},
    }

    def rows(self) -> QuerySet[Assignment]:
        fields = {"status": "status", "mode": "mode", "agent": "agent__name"}
        asked = {field: self.asked[name] for name, field in fields.items() if self.asked[name] is not None}
        return self.assignments().filter(**asked).order_by("-id")

    def post(self, request: Request, slug: str) -> Response:
        """Ask which tasks an agent is to run: 201, or 200 with the assignment that it has open.

        Where tasks are chosen for each agent, asking again once all of them are delivered adds the next ones.
        """
        now = timezone.now()
        found = assign(
            benchmark=self.benchmark,
            agent=AgentDescription(**self.said()["agent"]),
            by=self.user,
            as_of=now,
            by_operator=self.operates,
        )
        form = serializers.AssignmentOne(found, context={"view": self, "request": request})
        return Response(form.data, status=201 if found.created_at == now else 200)


class AssignmentOne(OfAssignments):
    """One assignment with its tasks."""

    answers: ClassVar = {"GET": {200: serializers.AssignmentOne}}

    def get(self, request: Request, slug: str, uuid: UUID) -> Response:
        found = self.found(self.assignments(), uuid=uuid)
        return Response(serializers.AssignmentOne(found, context={"view": self, "request": request}).data)
