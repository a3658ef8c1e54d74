"""The rules of a benchmark, and the switch that closes its intake."""

import json
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import bodies, serializers
from leaderboard.api.permissions import Anyone, MayOperate
from leaderboard.api.views.asked import Asked
from leaderboard.catalog.models import Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import RULES
from leaderboard.operations.benchmarks import Switch, turn
from leaderboard.operations.policies import changed_policy, put_in_force


class PolicyView(Asked):
    """The policy in force."""

    permissions: ClassVar = {"GET": Anyone, "POST": MayOperate}
    takes = bodies.PolicySaid
    answers: ClassVar = {"GET": {200: serializers.PolicyOne}, "POST": {201: serializers.PolicyOne}}
    subject = "rules"

    def get(self, request: Request, slug: str) -> Response:
        return Response(_told(policy_in_force(self.benchmark)))

    def post(self, request: Request, slug: str) -> Response:
        """Set fields of the policy, all or none; the others stay as they are."""
        said = self.said()
        values = {name: _as_text(value) for name, value in said["values"].items()}
        policy = changed_policy(benchmark=self.benchmark, said=values)
        put_in_force(policy=policy, by=self.user, reason=said["reason"])
        return Response(_told(policy_in_force(self.benchmark)), status=201)


def _told(policy: Policy) -> dict[str, Any]:
    values = {name: getattr(policy, name) for name in RULES}
    rules = {name: rule.words for name, rule in RULES.items()}
    told = {"number": policy.number, "created_at": policy.created_at, "values": values, "rules": rules}
    return dict(serializers.PolicyOne(told).data)


def _as_text(value: Any) -> str:
    """A value of JSON as it is typed at the command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)


class Freeze(Asked):
    """Whether intake is closed, since when, and why."""

    permissions: ClassVar = {"GET": Anyone, "POST": MayOperate}
    takes = bodies.FreezeSaid
    answers: ClassVar = {"GET": {200: serializers.Freeze}, "POST": {200: serializers.Freeze}}
    subject = "rules"

    def get(self, request: Request, slug: str) -> Response:
        return self._told()

    def post(self, request: Request, slug: str) -> Response:
        """Close intake, or open it again; boards go on."""
        said = self.said()
        self.benchmark = turn(
            benchmark=self.benchmark,
            switch=Switch.FROZEN,
            on=said["frozen"],
            by=self.user,
            reason=said["reason"],
            as_of=timezone.now(),
        )
        return self._told()

    def _told(self) -> Response:
        since = self.benchmark.frozen_at
        told = {"frozen": since is not None, "since": since, "reason": self.benchmark.frozen_reason}
        return Response(serializers.Freeze(told).data)
