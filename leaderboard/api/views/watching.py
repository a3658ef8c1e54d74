"""What is watched and decided: alerts, rerun requests, proposals of another subset."""

from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import bodies, serializers
from leaderboard.api.parameters import PAGE, flag, one_of
from leaderboard.api.permissions import MayOperate
from leaderboard.api.views.asked import Asked, Listing
from leaderboard.operations.models import (
    Alert,
    RerunAgent,
    RerunKind,
    RerunRequest,
    RerunStatus,
    Reselection,
    ReselectionStatus,
)
from leaderboard.operations.reselections import approve, obstacle_to, reject


class Alerts(Listing):
    """What monitors said of the subset, from when until when; the latest first."""

    parameters = PAGE | {"open": flag("Those that are open, or the closed ones.")}
    row = serializers.AlertRow
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.AlertRow)}}
    subject = "watching"

    def rows(self) -> QuerySet[Alert]:
        found = self.benchmark.alerts.select_related("subset")
        if self.asked["open"] is not None:
            found = found.filter(closed_at__isnull=self.asked["open"])
        return found.order_by("-id")


class RerunRequests(Listing):
    """Agents that are asked for full runs, until when, and who has made them; the latest first."""

    parameters = PAGE | {
        "status": one_of("Those of this status.", RerunStatus.values),
        "kind": one_of("Those of this kind.", RerunKind.values),
    }
    row = serializers.RerunRow
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.RerunRow)}}
    subject = "watching"

    def rows(self) -> QuerySet[RerunRequest]:
        agents = RerunAgent.objects.select_related("agent").order_by("agent__name")
        found = self.benchmark.rerun_requests.select_related("subset")
        asked = {name: self.asked[name] for name in ("status", "kind") if self.asked[name] is not None}
        return found.filter(**asked).prefetch_related(Prefetch("agents", agents)).order_by("-id")


class OfReselections(Asked):
    """Proposals are for operators: they name what a subset may become before it does."""

    permissions: ClassVar = {"GET": MayOperate, "POST": MayOperate}
    subject = "reselections"

    def proposals(self) -> QuerySet[Reselection]:
        return self.benchmark.reselections.select_related("previous", "subset", "benchmark")

    def told(self, found: Any, status: int = 200) -> Response:
        found.obstacle = (
            obstacle_to(found) if found.status == ReselectionStatus.PROPOSED else f"it is {found.status}"
        )
        form = serializers.ReselectionOne(found, context={"view": self, "request": self.request})
        return Response(form.data, status=status)


class Reselections(OfReselections, Listing):
    """Proposals of another subset, the latest first."""

    parameters = PAGE | {"status": one_of("Those of this status.", ReselectionStatus.values)}
    row = serializers.ReselectionRow
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.ReselectionRow)}}

    def rows(self) -> QuerySet[Reselection]:
        found = self.proposals().defer("content")
        return (found.filter(status=self.asked["status"]) if self.asked["status"] else found).order_by("-id")


class ReselectionOne(OfReselections):
    """One proposal with its variants."""

    answers: ClassVar = {"GET": {200: serializers.ReselectionOne}}

    def get(self, request: Request, slug: str, pk: int) -> Response:
        return self.told(self.found(self.proposals(), pk=pk))


class Approve(OfReselections):
    """Activate a variant of the open proposal as the next version of the subset."""

    takes = bodies.ApprovalSaid
    answers: ClassVar = {"POST": {200: serializers.ReselectionOne}}

    def post(self, request: Request, slug: str, pk: int) -> Response:
        found = self.found(self.proposals(), pk=pk)
        approve(reselection=found, by=self.user, as_of=timezone.now(), **self.said())
        return self.told(self.found(self.proposals(), pk=pk))


class Reject(OfReselections):
    """Decide that the subset in use stays."""

    takes = bodies.ReasonSaid
    answers: ClassVar = {"POST": {200: serializers.ReselectionOne}}

    def post(self, request: Request, slug: str, pk: int) -> Response:
        found = self.found(self.proposals(), pk=pk)
        reject(reselection=found, by=self.user, as_of=timezone.now(), **self.said())
        return self.told(self.found(self.proposals(), pk=pk))
