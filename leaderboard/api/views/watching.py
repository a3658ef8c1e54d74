"""What is watched and decided: alerts, rerun requests, proposals of another subset."""

from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import bodies, serializers
from leaderboard.api.parameters import PAGE, flag, one_of
from leaderboard.api.permissions import MayOperate
from leaderboard.api.views.base import BaseEndpoint, Listing
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
    row = serializers.AlertRowSerializer
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.AlertRowSerializer)}}
    subject = "watching"

    def rows(self) -> QuerySet[Alert]:
        alerts = self.benchmark.alerts.select_related("subset")
        if self.query["open"] is not None:
            alerts = alerts.filter(closed_at__isnull=self.query["open"])
        return alerts.order_by("-id")


class RerunRequests(Listing):
    """Agents that are asked for full runs, until when, and who has made them; the latest first."""

    parameters = PAGE | {
        "status": one_of("Those of this status.", RerunStatus.values),
        "kind": one_of("Those of this kind.", RerunKind.values),
    }
    row = serializers.RerunRowSerializer
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.RerunRowSerializer)}}
    subject = "watching"

    def rows(self) -> QuerySet[RerunRequest]:
        agents = RerunAgent.objects.select_related("agent").order_by("agent__name")
        requests = self.benchmark.rerun_requests.select_related("subset")
        wanted = {name: self.query[name] for name in ("status", "kind") if self.query[name] is not None}
        return requests.filter(**wanted).prefetch_related(Prefetch("agents", agents)).order_by("-id")


class ReselectionEndpoint(BaseEndpoint):
    """Proposals are for operators: they name what a subset may become before it does."""

    permissions: ClassVar = {"GET": MayOperate, "POST": MayOperate}
    subject = "reselections"

    def proposals(self) -> QuerySet[Reselection]:
        return self.benchmark.reselections.select_related("previous", "subset", "benchmark")

    def to_response(self, reselection: Any, status: int = 200) -> Response:
        reselection.obstacle = (
            obstacle_to(reselection)
            if reselection.status == ReselectionStatus.PROPOSED
            else f"it is {reselection.status}"
        )
        form = serializers.ReselectionOneSerializer(
            reselection, context={"view": self, "request": self.request}
        )
        return Response(form.data, status=status)


class Reselections(ReselectionEndpoint, Listing):
    """Proposals of another subset, the latest first."""

    parameters = PAGE | {"status": one_of("Those of this status.", ReselectionStatus.values)}
    row = serializers.ReselectionRowSerializer
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.ReselectionRowSerializer)}}

    def rows(self) -> QuerySet[Reselection]:
        proposals = self.proposals().defer("content")
        return (
            proposals.filter(status=self.query["status"]) if self.query["status"] else proposals
        ).order_by("-id")


class ReselectionOne(ReselectionEndpoint):
    """One proposal with its variants."""

    answers: ClassVar = {"GET": {200: serializers.ReselectionOneSerializer}}

    def get(self, request: Request, slug: str, pk: int) -> Response:
        return self.to_response(self.get_or_404(self.proposals(), pk=pk))


class Approve(ReselectionEndpoint):
    """Activate a variant of the open proposal as the next version of the subset."""

    takes = bodies.ApprovalBody
    answers: ClassVar = {"POST": {200: serializers.ReselectionOneSerializer}}

    def post(self, request: Request, slug: str, pk: int) -> Response:
        reselection = self.get_or_404(self.proposals(), pk=pk)
        approve(reselection=reselection, by=self.user, as_of=timezone.now(), **self.cleaned_data())
        return self.to_response(self.get_or_404(self.proposals(), pk=pk))


class Reject(ReselectionEndpoint):
    """Decide that the subset in use stays."""

    takes = bodies.ReasonBody
    answers: ClassVar = {"POST": {200: serializers.ReselectionOneSerializer}}

    def post(self, request: Request, slug: str, pk: int) -> Response:
        reselection = self.get_or_404(self.proposals(), pk=pk)
        reject(reselection=reselection, by=self.user, as_of=timezone.now(), **self.cleaned_data())
        return self.to_response(self.get_or_404(self.proposals(), pk=pk))
