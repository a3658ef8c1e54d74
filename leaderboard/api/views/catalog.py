"""Who and what: the index, benchmarks, tasks, agents."""

from typing import Any, ClassVar

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import bodies, serializers
from leaderboard.api.parameters import PAGE, flag, text
from leaderboard.api.permissions import Known
from leaderboard.api.views.asked import Asked, Listing
from leaderboard.boards.models import Board
from leaderboard.boards.presentation import visible_lines
from leaderboard.boards.queries import boards_of
from leaderboard.catalog.models import Agent, Benchmark, Task, Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.operations.disputes import report
from leaderboard.studies.models import SubsetTask
from leaderboard.studies.people import people_of
from leaderboard.studies.queries import active_subset
from leaderboard.submissions.queries import ever_counted


class Index(Asked):
    """What there is."""

    answers: ClassVar = {"GET": {200: serializers.Index}}
    subject = "index"

    def get(self, request: Request) -> Response:
        at = request.build_absolute_uri
        filled_in = {
            "benchmark": reverse("api:benchmark", args=["slug"]).replace("/slug", "/{slug}"),
            "submission": f"{reverse('api:index')}submissions/{{id}}",
        }
        links = {
            "benchmarks": reverse("api:benchmarks"),
            "schema": reverse("schema"),
            "docs": reverse("docs"),
            "key": reverse("pages:signing_key"),
        }
        whole = {name: at(path) for name, path in links.items()}
        return Response(
            {
                "version": "v1",
                "links": whole | {name: at("/")[:-1] + path for name, path in filled_in.items()},
            }
        )


class Benchmarks(Listing):
    """The benchmarks that are listed for all, and those that the token's owner is a member of."""

    row = serializers.BenchmarkRow
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.BenchmarkRow)}}
    subject = "benchmarks"

    def rows(self) -> QuerySet[Benchmark]:
        listed = Q(visibility=Visibility.PUBLIC, hidden_at=None)
        if self.token is None:
            return visible_benchmarks(None).filter(listed).order_by("slug")
        theirs = Q() if self.user.is_staff else Q(memberships__user=self.user)
        if self.token.benchmarks:
            theirs &= Q(slug__in=self.token.benchmarks)
        return visible_benchmarks(self.user).filter(listed | theirs).distinct().order_by("slug")


class BenchmarkOne(Asked):
    """One benchmark, and where its parts are."""

    answers: ClassVar = {"GET": {200: serializers.BenchmarkRow}}
    subject = "benchmarks"

    def get(self, request: Request, slug: str) -> Response:
        return Response(serializers.BenchmarkRow(self.benchmark, context={"request": request}).data)


class Tasks(Listing):
    """The tasks by name, those that were retired included."""

    parameters = PAGE | {
        "name": text("The task of this name."),
        "category": text("Tasks of this category."),
        "in_subset": flag("Those of the subset in use, or the others."),
        "retired": flag("Those that were retired, or the active ones."),
    }
    row = serializers.TaskRow
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.TaskRow)}}
    subject = "benchmarks"

    def rows(self) -> QuerySet[Task]:
        chosen = SubsetTask.objects.filter(subset=active_subset(self.benchmark), task=OuterRef("pk"))
        found = self.benchmark.tasks.annotate(
            in_subset=Exists(chosen), pass_rate=Subquery(chosen.values("pass_rate")[:1])
        )
        for field in ("name", "category", "in_subset"):
            if self.asked[field] is not None:
                found = found.filter(**{field: self.asked[field]})
        if self.asked["retired"] is not None:
            found = found.filter(retired_at__isnull=not self.asked["retired"])
        return found.order_by("name")


class OfAgents(Asked):
    """Agents that have delivered something that counted, one's own, and all for operators."""

    def agents(self) -> QuerySet[Agent]:
        found = self.benchmark.agents.annotate(
            scaffold_name=F("scaffold__name"), model_name=F("model__name")
        ).select_related("scaffold", "model")
        if self.token is not None and self.operates:
            return found
        counted = Exists(ever_counted().filter(agent=OuterRef("pk")))
        return found.filter(counted | Q(owner=self.user) if self.token else counted)


class Agents(OfAgents, Listing):
    """The agents by name."""

    parameters = PAGE | {
        "name": text("The agent of this name."),
        "scaffold": text("Agents on this scaffold."),
        "model": text("Agents of this model."),
    }
    row = serializers.AgentRow
    answers: ClassVar = {"GET": {200: serializers.page_of(serializers.AgentRow)}}
    subject = "agents"

    def rows(self) -> QuerySet[Agent]:
        fields = {"name": "name", "scaffold": "scaffold__name", "model": "model__name"}
        asked = {field: self.asked[name] for name, field in fields.items() if self.asked[name] is not None}
        return self.agents().filter(**asked).order_by("name")


class AgentOne(OfAgents):
    """One agent, what it delivered, and its line on the latest board."""

    answers: ClassVar = {"GET": {200: serializers.AgentOne}}
    subject = "agents"

    def get(self, request: Request, slug: str, pk: int) -> Response:
        agent: Any = self.found(self.agents(), pk=pk)
        delivered = ever_counted().filter(agent=agent).order_by("id")
        board = boards_of(self.benchmark).order_by("-number").first()
        lines = self._lines(board, agent) if board else []
        told = {
            "aliases": list(agent.aliases.order_by("name").values_list("name", flat=True)),
            "submissions": delivered,
            "board": board.number if board and lines else None,
            "entry": lines[0] if lines else None,
            "people": people_of(agent.merged_into or agent),
        }
        for name, value in told.items():
            setattr(agent, f"told_{name}", value)
        return Response(serializers.AgentOne(agent, context={"view": self, "request": request}).data)

    def _lines(self, board: Board, agent: Agent) -> list[dict[str, Any]]:
        entries = board.entries.filter(agent_id=agent.merged_into_id or agent.pk)
        return visible_lines(board, entries)


class Reports(OfAgents):
    """Report an agent's entry: an operator looks at it; until then nothing changes."""

    permissions: ClassVar = {"POST": Known}
    takes = bodies.ReportSaid
    answers: ClassVar = {"POST": {201: serializers.Reported}}
    subject = "agents"

    def post(self, request: Request, slug: str, pk: int) -> Response:
        agent = self.found(self.agents(), pk=pk)
        stored = report(agent=agent, by=self.user, as_of=timezone.now(), **self.said())
        return Response(serializers.Reported(stored).data, status=201)
