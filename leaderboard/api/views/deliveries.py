"""What agents are asked to run, and what became of what they delivered."""

from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.api import bodies, serializers
from leaderboard.api.delivering import delivered
from leaderboard.api.parameters import PAGE, flag, one_of, text
from leaderboard.api.parsers import BoundedJSON, BoundedMultipart
from leaderboard.api.permissions import AnyToken, MaySubmit, reaches
from leaderboard.api.views.base import BaseEndpoint, Listing, benchmark_for
from leaderboard.boards.presentation import visible_lines
from leaderboard.catalog.services import AgentDescription
from leaderboard.errors import Forbidden
from leaderboard.operations.assignments import assign
from leaderboard.operations.corrections import withdraw
from leaderboard.operations.delivered import Followed, follow, followed_by, submissions_of
from leaderboard.operations.models import Assignment, AssignmentStatus, Mode
from leaderboard.operations.queries import NoSuchSubmission
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.parsing.importers import FORMATS


class Submissions(Listing):
    """GET: one's own submissions, and all for operators. POST: deliver one agent's outcomes."""

    permission_classes = (MaySubmit,)
    parser_classes = (BoundedJSON, BoundedMultipart)
    permissions: ClassVar = {"GET": AnyToken, "POST": MaySubmit}
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
    row = serializers.SubmissionRowSerializer
    takes = bodies.DeliveryBody
    answers: ClassVar = {
        "GET": {200: serializers.page_of(serializers.SubmissionRowSerializer)},
        "POST": {200: serializers.ReceiptSerializer, 201: serializers.ReceiptSerializer},
    }
    subject = "submissions"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if self.is_read:
            super().initial(request, *args, **kwargs)
        else:
            APIView.initial(self, request, *args, **kwargs)

    def post(self, request: Request, slug: str) -> Response:
        benchmark = benchmark_for(request, slug)
        self.check_object_permissions(request, benchmark)
        return delivered(request, benchmark)

    def rows(self) -> QuerySet[Submission]:
        submissions = Submission.objects.filter(agent__benchmark=self.benchmark)
        if not self.operates:
            submissions = submissions_of(self.user, self.benchmark)
        if self.query["status"] is not None:
            submissions = submissions.filter(status=self.query["status"])
        if self.query["agent"] is not None:
            submissions = submissions.filter(agent__name=self.query["agent"])
        return submissions.select_related("agent").order_by("-id")


class SubmissionEndpoint(BaseEndpoint):
    """A submission is told to whoever delivered it, its agent's owner, and operators."""

    permissions: ClassVar = {"GET": AnyToken, "POST": AnyToken}
    subject = "submissions"

    def submission(self, uuid: UUID) -> Submission:
        submission = followed_by(self.user, uuid)
        assert self.token is not None
        if not reaches(self.token, submission.agent.benchmark):
            raise NoSuchSubmission
        return submission


class SubmissionOne(SubmissionEndpoint):
    """What became of a submission: its status, what it lacks, checks, and the agent's line on the board."""

    answers: ClassVar = {"GET": {200: serializers.SubmissionOneSerializer}}

    def get(self, request: Request, uuid: UUID) -> Response:
        follow_up = follow(self.submission(uuid), token=self.token, as_of=timezone.now())
        context = {"view": self, "request": request}
        return Response(serializers.SubmissionOneSerializer(_with_extras(follow_up), context=context).data)


def _with_extras(follow_up: Followed) -> Any:
    submission: Any = follow_up.submission
    lines = visible_lines(follow_up.board, [follow_up.entry]) if follow_up.board and follow_up.entry else []
    extras = {
        "benchmark": submission.agent.benchmark.slug,
        "lacking": follow_up.lacking,
        "history": follow_up.history,
        "checks": follow_up.checks,
        "quota": follow_up.quota,
        "assignment": _assignment(follow_up),
        "replaces": submission.replaces.uuid if submission.replaces else None,
        "replaced_by": follow_up.replaced_by.uuid if follow_up.replaced_by else None,
        "board": follow_up.board.number if follow_up.board else None,
        "entry": lines[0] if lines else None,
        "standing": follow_up.standing,
    }
    for name, value in extras.items():
        setattr(submission, f"extra_{name}", value)
    return submission


def _assignment(follow_up: Followed) -> dict[str, Any] | None:
    if follow_up.assignment is None:
        return None
    fields = {name: getattr(follow_up.assignment, name) for name in ("mode", "status")}
    staged = {"staged": follow_up.staged.as_plain()} if follow_up.staged else {}
    return {"id": str(follow_up.assignment.uuid), **fields, **staged}


class Withdraw(SubmissionEndpoint):
    """Take a submission back: it counts no more, and its history stays."""

    takes = bodies.ReasonBody
    answers: ClassVar = {"POST": {200: serializers.WithdrawnSerializer}}

    def post(self, request: Request, uuid: UUID) -> Response:
        submission = self.submission(uuid)
        assert self.token is not None
        if not {"submit", "operate"} & set(self.token.scopes):
            raise Forbidden(
                "Withdrawing needs a token with the scope submit or operate.", code="may_not_submit"
            )
        withdraw(uuid=submission.uuid, token=self.token, as_of=timezone.now(), **self.cleaned_data())
        submission.refresh_from_db()
        return Response(serializers.WithdrawnSerializer(submission).data)


class AssignmentEndpoint(BaseEndpoint):
    """An assignment is told to whoever asked for it, its agent's owner, and operators."""

    permissions: ClassVar = {"GET": AnyToken, "POST": MaySubmit}
    subject = "assignments"

    def assignments(self) -> QuerySet[Assignment]:
        assignments = Assignment.objects.filter(agent__benchmark=self.benchmark).select_related(
            "agent", "subset"
        )
        return (
            assignments
            if self.operates
            else assignments.filter(Q(asked_by=self.user) | Q(agent__owner=self.user))
        )


class Assignments(AssignmentEndpoint, Listing):
    """One's own assignments, and all for operators; the latest first."""

    parameters = PAGE | {
        "status": one_of("Those of this status.", AssignmentStatus.values),
        "mode": one_of("Those of this mode.", Mode.values),
        "agent": text("Those of this agent."),
    }
    takes = bodies.AssignmentBody
    row = serializers.AssignmentRowSerializer
    answers: ClassVar = {
        "GET": {200: serializers.page_of(serializers.AssignmentRowSerializer)},
        "POST": {200: serializers.AssignmentOneSerializer, 201: serializers.AssignmentOneSerializer},
    }

    def rows(self) -> QuerySet[Assignment]:
        fields = {"status": "status", "mode": "mode", "agent": "agent__name"}
        wanted = {field: self.query[name] for name, field in fields.items() if self.query[name] is not None}
        return self.assignments().filter(**wanted).order_by("-id")

    def post(self, request: Request, slug: str) -> Response:
        """Ask which tasks an agent is to run: 201, or 200 with the assignment that it has open.

        Where tasks are chosen for each agent, asking again once all of them are delivered adds the next ones.
        """
        now = timezone.now()
        assignment = assign(
            benchmark=self.benchmark,
            agent=AgentDescription(**self.cleaned_data()["agent"]),
            by=self.user,
            as_of=now,
            by_operator=self.operates,
        )
        form = serializers.AssignmentOneSerializer(assignment, context={"view": self, "request": request})
        return Response(form.data, status=201 if assignment.created_at == now else 200)


class AssignmentOne(AssignmentEndpoint):
    """One assignment with its tasks."""

    answers: ClassVar = {"GET": {200: serializers.AssignmentOneSerializer}}

    def get(self, request: Request, slug: str, uuid: UUID) -> Response:
        assignment = self.get_or_404(self.assignments(), uuid=uuid)
        return Response(
            serializers.AssignmentOneSerializer(assignment, context={"view": self, "request": request}).data
        )
