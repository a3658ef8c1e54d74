"""What agents are asked to run, and what became of what they delivered."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from math import ceil
from typing import Any, ClassVar, cast
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.accounts.models import ApiToken
from leaderboard.api import bodies, serializers
from leaderboard.api.errors import problem_response
from leaderboard.api.parameters import PAGE, flag, one_of, text
from leaderboard.api.parsers import BoundedJSON, BoundedMultipart, require_length
from leaderboard.api.permissions import AnyToken, MaySubmit, reaches
from leaderboard.api.views import BaseEndpoint, Listing, benchmark_for
from leaderboard.boards.queries import visible_lines
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.services import AgentDescription
from leaderboard.errors import Busy, Exhausted, Forbidden, Refusal
from leaderboard.operations import quotas
from leaderboard.operations.assignments import assign
from leaderboard.operations.corrections import withdraw
from leaderboard.operations.delivered import Followed, followed_by, submissions_of
from leaderboard.operations.intake import Receipt, submit, submit_file
from leaderboard.operations.models import Assignment, AssignmentStatus, Mode
from leaderboard.operations.queries import NoSuchSubmission
from leaderboard.operations.quotas import DAY, Quotas
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.parsing.files import Form, UploadedPart
from leaderboard.submissions.parsing.importers import FORMATS

MAX_KEY_LENGTH = 255
PARAMETERS = ("dry_run", "format", "metric", "filter")
TRUTH = {"true": True, "1": True, "false": False, "0": False}
LARGE = 1 << 20  # bytes of a file; a process reads one such at a time, for its rows take memory
COMPRESSED = (b"\x1f\x8b", b"PAR1", b"PK")  # may be large, however short
WAITED, COME_AGAIN = 10, 5  # seconds

_reading = threading.Lock()
_waiting = threading.Semaphore()  # one delivery of a process: the other threads are for all else


def delivered(request: Request, benchmark: Benchmark) -> Response:
    """Answer a delivery of somebody who may deliver; what stores nothing is counted."""
    token, as_of = cast("ApiToken", request.auth), timezone.now()
    left = None
    try:
        quotas.check_attempts(token=token, as_of=as_of)
        dry_run, form = _read_delivery_query(request)
        receipt = _submit(request, benchmark, token, dry_run, form, as_of)
        links = {"board": request.build_absolute_uri(reverse("api:board", args=[benchmark.slug]))}
        if uuid := receipt.content["id"]:
            links["submission"] = request.build_absolute_uri(reverse("api:submission", args=[uuid]))
        headers = {"Idempotent-Replayed": "true"} if receipt.replayed else {}
        code = status.HTTP_200_OK if dry_run else status.HTTP_201_CREATED
        response = Response(receipt.content | {"links": links}, status=code, headers=headers)
        left, counts = receipt.left, dry_run
    except (Refusal, APIException) as refusal:
        response = cast("Response", problem_response(refusal, {"request": request}))
        counts = not isinstance(refusal, Exhausted)
    if counts:
        quotas.count_attempt(token=token, as_of=as_of)
    left = left or quotas.remaining(benchmark=benchmark, token=token, agent=None, as_of=as_of)
    for name, value in rate_limit_headers(left, as_of=as_of).items():
        response[name] = value
    return response


def _read_delivery_query(request: Request) -> tuple[bool, Form]:
    params = request.query_params
    if strange := sorted(set(params) - set(PARAMETERS)):
        named = ", ".join(strange[:5])
        raise ParseError(f"Unknown parameter {named[:200]}. Use {' and '.join(PARAMETERS)}.")
    if twice := [name for name in PARAMETERS if len(params.getlist(name)) > 1]:
        raise ParseError(f"{twice[0]} appears twice. State it once.")
    dry_run = params.get("dry_run", "false")
    if dry_run not in TRUTH:
        raise ParseError(f"dry_run must be true or false, not {dry_run[:80]!r}.")
    return TRUTH[dry_run], Form(params.get("format"), params.get("metric"), params.get("filter"))


def _submit(
    request: Request, benchmark: Benchmark, token: ApiToken, dry_run: bool, form: Form, as_of: datetime
) -> Receipt:
    require_length(request)
    key = request.headers.get("Idempotency-Key")
    if key is not None and not (0 < len(key) <= MAX_KEY_LENGTH and key.isascii() and key.isprintable()):
        raise ParseError(
            "An Idempotency-Key has 1 to 255 printable ASCII characters.", code="malformed_idempotency_key"
        )
    common: dict[str, Any] = {
        "benchmark": benchmark,
        "token": token,
        "idempotency_key": key,
        "as_of": as_of,
        "dry_run": dry_run,
    }
    body = request.data
    if not isinstance(body, tuple):  # as a multipart body is read
        if form != Form():
            raise ParseError("format, metric and filter are for files only. Remove them from a JSON request.")
        return submit(body=body, **common)
    upload, fields = body
    with upload.file, _in_turn(upload):
        return submit_file(upload=upload, fields=fields, form=form, **common)


@contextmanager
def _in_turn(upload: UploadedPart) -> Iterator[None]:
    """Wait for the file before, but not for long: whoever waits keeps a thread from all others."""
    is_compressed = upload.file.read(4).startswith(COMPRESSED)
    upload.file.seek(0)
    if upload.n_bytes <= LARGE and not is_compressed:
        yield
        return
    if not (_reading.acquire(blocking=False) or _wait_for_turn()):
        raise Busy(
            "Another large file is being read; send this one again soon.",
            code="reading_busy",
            retry_after=COME_AGAIN,
        )
    try:
        yield
    finally:
        _reading.release()


def _wait_for_turn() -> bool:
    """Wait for the turn unless another does, and tell whether it came."""
    if not _waiting.acquire(blocking=False):
        return False
    try:
        return _reading.acquire(timeout=WAITED)
    finally:
        _waiting.release()


def rate_limit_headers(quotas: Quotas | None, *, as_of: datetime) -> dict[str, str]:
    """What is left of quotas, as draft-ietf-httpapi-ratelimit-headers has it.

    `q` submissions in `w` seconds, `r` of them left until `t` seconds from now; nothing for operators.
    """
    if quotas is None:
        return {}
    seconds, window = ceil((quotas.resets_at - as_of).total_seconds()), int(DAY.total_seconds())
    return {
        "RateLimit-Policy": ", ".join(f'"{name}";q={n};w={window}' for name, n in quotas.limits.items()),
        "RateLimit": ", ".join(f'"{name}";r={n};t={seconds}' for name, n in quotas.left.items()),
    }


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
    one, statuses = serializers.ReceiptSerializer, (200, 201)
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
        wanted = self.conditions("status", agent="agent__name")
        return submissions.filter(**wanted).select_related("agent").order_by("-id")


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

    one = serializers.SubmissionOneSerializer

    def get(self, request: Request, uuid: UUID) -> Response:
        followed = Followed(self.submission(uuid), token=self.token, as_of=timezone.now())
        submission, assignment = followed.submission, followed.assignment
        board, entry = followed.board, followed.entry
        answers: dict[str, Any] | None = None
        if assignment:
            answers = {"id": str(assignment.uuid), "mode": assignment.mode, "status": assignment.status}
            answers |= {"staged": followed.staged.as_plain()} if followed.staged else {}
        return self.respond(
            submission,
            benchmark=submission.agent.benchmark.slug,
            lacking=followed.lacking,
            history=followed.history,
            checks=followed.checks,
            quota=followed.quota,
            assignment=answers,
            replaces=submission.replaces.uuid if submission.replaces else None,
            replaced_by=followed.replaced_by.uuid if followed.replaced_by else None,
            board=board.number if board else None,
            entry=visible_lines(board, [entry])[0] if board and entry else None,
            standing=followed.standing,
        )


class Withdraw(SubmissionEndpoint):
    """Take a submission back: it counts no more, and its history stays."""

    takes = bodies.ReasonBody
    one = serializers.WithdrawnSerializer

    def post(self, request: Request, uuid: UUID) -> Response:
        submission = self.submission(uuid)
        assert self.token is not None
        if not {"submit", "operate"} & set(self.token.scopes):
            raise Forbidden(
                "Withdrawing needs a token with the scope submit or operate.", code="may_not_submit"
            )
        withdraw(uuid=submission.uuid, token=self.token, as_of=timezone.now(), **self.cleaned_data())
        submission.refresh_from_db()
        return self.respond(submission)


class AssignmentEndpoint(BaseEndpoint):
    """An assignment is told to whoever asked for it, its agent's owner, and operators."""

    permissions: ClassVar = {"GET": AnyToken, "POST": MaySubmit}
    subject = "assignments"

    def assignments(self) -> QuerySet[Assignment]:
        mine = Q() if self.operates else Q(asked_by=self.user) | Q(agent__owner=self.user)
        of_benchmark = Assignment.objects.filter(mine, agent__benchmark=self.benchmark)
        return of_benchmark.select_related("agent", "subset")


class Assignments(AssignmentEndpoint, Listing):
    """One's own assignments, and all for operators; the latest first."""

    parameters = PAGE | {
        "status": one_of("Those of this status.", AssignmentStatus.values),
        "mode": one_of("Those of this mode.", Mode.values),
        "agent": text("Those of this agent."),
    }
    takes = bodies.AssignmentBody
    row = serializers.AssignmentRowSerializer
    one, statuses = serializers.AssignmentOneSerializer, (200, 201)

    def rows(self) -> QuerySet[Assignment]:
        wanted = self.conditions("status", "mode", agent="agent__name")
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
        return self.respond(assignment, status=201 if assignment.created_at == now else 200)


class AssignmentOne(AssignmentEndpoint):
    """One assignment with its tasks."""

    one = serializers.AssignmentOneSerializer

    def get(self, request: Request, slug: str, uuid: UUID) -> Response:
        assignment = self.get_or_404(self.assignments(), uuid=uuid)
        return self.respond(assignment)
