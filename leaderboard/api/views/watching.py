"""What is watched and decided: alerts, rerun requests, proposals of another subset."""

import json
from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import bodies, serializers
from leaderboard.api.parameters import PAGE, flag, one_of
from leaderboard.api.permissions import Anyone, MayOperate
from leaderboard.api.views import BaseEndpoint, Listing
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import RULES, described
from leaderboard.operations.benchmarks import Switch, set_switch
from leaderboard.operations.models import (
    Alert,
    RerunAgent,
    RerunKind,
    RerunRequest,
    RerunStatus,
    Reselection,
    ReselectionStatus,
)
from leaderboard.operations.policies import changed_policy, changes, put_in_force
from leaderboard.operations.reselections import approve, obstacle_to, reject


class PolicyView(BaseEndpoint):
    """The policy in force."""

    permissions: ClassVar = {"GET": Anyone, "POST": MayOperate}
    takes = bodies.PolicyBody
    one, statuses = serializers.PolicyOneSerializer, (200, 201)
    subject = "rules"

    def get(self, request: Request, slug: str) -> Response:
        return self._to_response(200)

    def post(self, request: Request, slug: str) -> Response:
        """Set fields of the policy, all or none; the others stay as they are."""
        body = self.cleaned_data()
        values = {name: _as_text(value) for name, value in body["values"].items()}
        policy = changed_policy(benchmark=self.benchmark, values=values)
        if not changes(policy_in_force(self.benchmark), policy):
            return self._to_response(200)
        put_in_force(policy=policy, by=self.user, reason=body["reason"])
        return self._to_response(201)

    def _to_response(self, status: int) -> Response:
        policy = policy_in_force(self.benchmark)
        values = {name: getattr(policy, name) for name in RULES}
        rules = {name: described(name) for name in RULES}
        names = ("number", "created_at", "resolved_from")
        about = {name: getattr(policy, name) for name in names}
        return self.respond(about | {"values": values, "rules": rules}, status=status)


def _as_text(value: Any) -> str:
    """A value of JSON as it is typed at the command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)


class Freeze(BaseEndpoint):
    """Whether intake is closed, since when, and why."""

    permissions: ClassVar = {"GET": Anyone, "POST": MayOperate}
    takes = bodies.FreezeBody
    one = serializers.FreezeSerializer
    subject = "rules"

    def get(self, request: Request, slug: str) -> Response:
        since = self.benchmark.frozen_at
        content = {"frozen": since is not None, "since": since, "reason": self.benchmark.frozen_reason}
        return self.respond(content)

    def post(self, request: Request, slug: str) -> Response:
        """Close intake, or open it again; boards go on."""
        body = self.cleaned_data()
        self.benchmark = set_switch(
            benchmark=self.benchmark,
            switch=Switch.FROZEN,
            on=body["frozen"],
            by=self.user,
            reason=body["reason"],
            as_of=timezone.now(),
        )
        return self.get(request, slug)


class Alerts(Listing):
    """What monitors said of the subset, from when until when; the latest first."""

    parameters = PAGE | {"open": flag("Those that are open, or the closed ones.")}
    row = serializers.AlertRowSerializer
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
    subject = "watching"

    def rows(self) -> QuerySet[RerunRequest]:
        agents = RerunAgent.objects.select_related("agent").order_by("agent__name")
        requests = self.benchmark.rerun_requests.select_related("subset")
        wanted = self.conditions("status", "kind")
        return requests.filter(**wanted).prefetch_related(Prefetch("agents", agents)).order_by("-id")


class ReselectionEndpoint(BaseEndpoint):
    """Proposals are for operators: they name what a subset may become before it does."""

    permissions: ClassVar = {"GET": MayOperate, "POST": MayOperate}
    one = serializers.ReselectionOneSerializer
    subject = "reselections"

    def proposals(self) -> QuerySet[Reselection]:
        return self.benchmark.reselections.select_related("previous", "subset", "benchmark")

    def to_response(self, pk: int) -> Response:
        reselection = self.get_or_404(self.proposals(), pk=pk)
        is_open = reselection.status == ReselectionStatus.PROPOSED
        obstacle = obstacle_to(reselection) if is_open else f"it is {reselection.status}"
        return self.respond(reselection, obstacle=obstacle)


class Reselections(ReselectionEndpoint, Listing):
    """Proposals of another subset, the latest first."""

    parameters = PAGE | {"status": one_of("Those of this status.", ReselectionStatus.values)}
    row = serializers.ReselectionRowSerializer

    def rows(self) -> QuerySet[Reselection]:
        return self.proposals().filter(**self.conditions("status")).defer("content").order_by("-id")


class ReselectionOne(ReselectionEndpoint):
    """One proposal with its variants."""

    def get(self, request: Request, slug: str, pk: int) -> Response:
        return self.to_response(pk)


class Approve(ReselectionEndpoint):
    """Activate a variant of the open proposal as the next version of the subset."""

    takes = bodies.ApprovalBody

    def post(self, request: Request, slug: str, pk: int) -> Response:
        reselection = self.get_or_404(self.proposals(), pk=pk)
        approve(reselection=reselection, by=self.user, as_of=timezone.now(), **self.cleaned_data())
        return self.to_response(pk)


class Reject(ReselectionEndpoint):
    """Decide that the subset in use stays."""

    takes = bodies.ReasonBody

    def post(self, request: Request, slug: str, pk: int) -> Response:
        reselection = self.get_or_404(self.proposals(), pk=pk)
        reject(reselection=reselection, by=self.user, as_of=timezone.now(), **self.cleaned_data())
        return self.to_response(pk)
