"""The rules of a benchmark, and the switch that closes its intake."""

import json
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import bodies, serializers
from leaderboard.api.permissions import Anyone, MayOperate
from leaderboard.api.views.base import BaseEndpoint
from leaderboard.catalog.models import Policy
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import RULES
from leaderboard.operations.benchmarks import Switch, turn
from leaderboard.operations.policies import changed_policy, put_in_force


class PolicyView(BaseEndpoint):
    """The policy in force."""

    permissions: ClassVar = {"GET": Anyone, "POST": MayOperate}
    takes = bodies.PolicyBody
    answers: ClassVar = {
        "GET": {200: serializers.PolicyOneSerializer},
        "POST": {201: serializers.PolicyOneSerializer},
    }
    subject = "rules"

    def get(self, request: Request, slug: str) -> Response:
        return Response(_policy_content(policy_in_force(self.benchmark)))

    def post(self, request: Request, slug: str) -> Response:
        """Set fields of the policy, all or none; the others stay as they are."""
        body = self.cleaned_data()
        values = {name: _as_text(value) for name, value in body["values"].items()}
        policy = changed_policy(benchmark=self.benchmark, values=values)
        put_in_force(policy=policy, by=self.user, reason=body["reason"])
        return Response(_policy_content(policy_in_force(self.benchmark)), status=201)


def _policy_content(policy: Policy) -> dict[str, Any]:
    values = {name: getattr(policy, name) for name in RULES}
    rules = {name: rule.words for name, rule in RULES.items()}
    content = {"number": policy.number, "created_at": policy.created_at, "values": values, "rules": rules}
    return dict(serializers.PolicyOneSerializer(content).data)


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
    answers: ClassVar = {
        "GET": {200: serializers.FreezeSerializer},
        "POST": {200: serializers.FreezeSerializer},
    }
    subject = "rules"

    def get(self, request: Request, slug: str) -> Response:
        return self._to_response()

    def post(self, request: Request, slug: str) -> Response:
        """Close intake, or open it again; boards go on."""
        body = self.cleaned_data()
        self.benchmark = turn(
            benchmark=self.benchmark,
            switch=Switch.FROZEN,
            on=body["frozen"],
            by=self.user,
            reason=body["reason"],
            as_of=timezone.now(),
        )
        return self._to_response()

    def _to_response(self) -> Response:
        since = self.benchmark.frozen_at
        content = {"frozen": since is not None, "since": since, "reason": self.benchmark.frozen_reason}
        return Response(serializers.FreezeSerializer(content).data)
