"""Who and what: the index, benchmarks, tasks, agents."""

from typing import Any, ClassVar

from csp.decorators import csp_update
from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from leaderboard.api import bodies, serializers
from leaderboard.api.parameters import PAGE, flag, text
from leaderboard.api.permissions import Anyone, AnyToken
from leaderboard.api.schema import as_text
from leaderboard.api.views import BaseEndpoint, Listing
from leaderboard.boards.queries import boards_of, visible_lines
from leaderboard.catalog.models import Agent, Benchmark, Task, Visibility
from leaderboard.catalog.queries import visible_benchmarks
from leaderboard.operations.corrections import report
from leaderboard.studies.models import SubsetTask
from leaderboard.studies.outcomes import people_of
from leaderboard.studies.queries import active_subset
from leaderboard.submissions.queries import ever_counted

MEDIA_TYPE = "application/vnd.oai.openapi+json"


class SchemaView(BaseEndpoint):
    """The whole interface in OpenAPI 3.1."""

    schema = None  # it does not describe itself
    subject = "index"

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(as_text(), content_type=MEDIA_TYPE)


@method_decorator(csp_update(settings.DOCS_CONTENT), name="dispatch")
class DocsView(SpectacularSwaggerSplitView):
    """Swagger, its script and style from this server."""

    permission_classes = [Anyone]  # noqa: RUF012 - an instance's, by the class above
    authentication_classes = []  # noqa: RUF012
    url_name = "schema"
    url_self = None


class Index(BaseEndpoint):
    """What there is."""

    one = serializers.IndexSerializer
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

    row = serializers.BenchmarkRowSerializer
    subject = "benchmarks"

    def rows(self) -> QuerySet[Benchmark]:
        listed = Q(visibility=Visibility.PUBLIC, hidden_at=None)
        if self.token is None:
            return visible_benchmarks(None).filter(listed).order_by("slug")
        theirs = Q() if self.user.is_staff else Q(memberships__user=self.user)
        if self.token.benchmarks:
            theirs &= Q(slug__in=self.token.benchmarks)
        return visible_benchmarks(self.user).filter(listed | theirs).distinct().order_by("slug")


class BenchmarkOne(BaseEndpoint):
    """One benchmark, and where its parts are."""

    one = serializers.BenchmarkRowSerializer
    subject = "benchmarks"

    def get(self, request: Request, slug: str) -> Response:
        return self.respond(self.benchmark)


class Tasks(Listing):
    """The tasks by name, those that were retired included."""

    parameters = PAGE | {
        "name": text("The task of this name."),
        "category": text("Tasks of this category."),
        "in_subset": flag("Those of the subset in use, or the others."),
        "retired": flag("Those that were retired, or the active ones."),
    }
    row = serializers.TaskRowSerializer
    subject = "benchmarks"

    def rows(self) -> QuerySet[Task]:
        chosen = SubsetTask.objects.filter(subset=active_subset(self.benchmark), task=OuterRef("pk"))
        tasks = self.benchmark.tasks.annotate(
            in_subset=Exists(chosen), pass_rate=Subquery(chosen.values("pass_rate")[:1])
        )
        if self.query["retired"] is not None:
            tasks = tasks.filter(retired_at__isnull=not self.query["retired"])
        return tasks.filter(**self.conditions("name", "category", "in_subset")).order_by("name")


class AgentEndpoint(BaseEndpoint):
    """Agents that have delivered something that counted, one's own, and all for operators."""

    def agents(self) -> QuerySet[Agent]:
        agents = self.benchmark.agents.annotate(
            scaffold_name=F("scaffold__name"), model_name=F("model__name")
        ).select_related("scaffold", "model")
        if self.token is not None and self.operates:
            return agents
        counted = Exists(ever_counted().filter(agent=OuterRef("pk")))
        return agents.filter(counted | Q(owner=self.user) if self.token else counted)


class Agents(AgentEndpoint, Listing):
    """The agents by name."""

    parameters = PAGE | {
        "name": text("The agent of this name."),
        "scaffold": text("Agents on this scaffold."),
        "model": text("Agents of this model."),
    }
    row = serializers.AgentRowSerializer
    subject = "agents"

    def rows(self) -> QuerySet[Agent]:
        wanted = self.conditions("name", scaffold="scaffold__name", model="model__name")
        return self.agents().filter(**wanted).order_by("name")


class AgentOne(AgentEndpoint):
    """One agent, what it delivered, and its line on the latest board."""

    one = serializers.AgentOneSerializer
    subject = "agents"

    def get(self, request: Request, slug: str, pk: int) -> Response:
        agent: Any = self.get_or_404(self.agents(), pk=pk)
        present = agent.merged_into or agent
        board = boards_of(self.benchmark).order_by("-number").first()
        lines = visible_lines(board, board.entries.filter(agent=present)) if board else []
        return self.respond(
            agent,
            aliases=list(agent.aliases.order_by("name").values_list("name", flat=True)),
            submissions=ever_counted().filter(agent=agent).order_by("id"),
            board=board.number if board and lines else None,
            entry=lines[0] if lines else None,
            people=people_of(present),
        )


class Reports(AgentEndpoint):
    """Report an agent's entry: an operator looks at it; until then nothing changes."""

    permissions: ClassVar = {"POST": AnyToken}
    takes = bodies.ReportBody
    one, statuses = serializers.ReportedSerializer, (201,)
    subject = "agents"

    def post(self, request: Request, slug: str, pk: int) -> Response:
        agent = self.get_or_404(self.agents(), pk=pk)
        stored = report(agent=agent, by=self.user, as_of=timezone.now(), **self.cleaned_data())
        return self.respond(stored, status=201)
