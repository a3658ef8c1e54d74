"""What the page on data shows: all that can be downloaded, under which licence, and what is not in it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard.boards.models import Board
from leaderboard.boards.signing import ALGORITHM, public_key
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.pages.access import absolute, for_all, visible
from leaderboard.studies.answers import words
from leaderboard.submissions.export.columns import KNOWN
from leaderboard.submissions.models import Status, Submission

TABLES = ("csv", "ndjson", "parquet")
LABELS = {"csv": "CSV", "ndjson": "NDJSON", "parquet": "Parquet", "json": "JSON"}


class Link(NamedTuple):
    label: str
    address: str


class Download(NamedTuple):
    """One thing that can be taken, in several forms; `description` says what a row of it is."""

    name: str
    description: str
    links: tuple[Link, ...]


@dataclass(frozen=True)
class DataPage:
    """`n_outcomes` are those of accepted submissions, `n_agents` the agents that they count for."""

    benchmark: Benchmark
    board: Board | None
    n_outcomes: int
    n_agents: int
    n_tasks: int
    n_retired: int
    tells_costs: bool
    server: str

    @property
    def verdict(self) -> str:
        if not self.n_outcomes:
            return "No outcome counts yet, so that there is nothing to download."
        return (
            f"{words.counted(self.n_outcomes, 'outcome')} of {words.counted(self.n_agents, 'agent')} on "
            f"{words.counted(self.n_tasks, 'task')} can be downloaded by anybody, one trial a row."
        )

    @property
    def downloads(self) -> list[Download]:
        return list(_downloads(self.benchmark.slug, self.board))

    @property
    def left_out(self) -> list[str]:
        """What is not in the downloads. Nothing is counted of what nobody may know of yet."""
        retired = f"Outcomes on {words.counted(self.n_retired, 'retired task')}."
        return [
            "Submissions that wait: for their embargo to end, for review, or for their checks.",
            "Submissions that were refused, replaced or withdrawn. Boards that were published before keep "
            "their lines, marked as withdrawn.",
            *([retired] if self.n_retired else []),
            *([] if self.tells_costs else ["Costs: the operator’s policy hides them."]),
            "Totals that a submitter states: every score is computed from the outcomes.",
        ]

    @property
    def columns(self) -> list[dict[str, Any]]:
        return [column.as_plain() for column in KNOWN]

    @property
    def feed(self) -> str:
        return self._at("pages:feed")

    @property
    def badge(self) -> str:
        """In Markdown."""
        return f"[![board]({self._at('pages:badge')})]({self._at('pages:board')})"

    @property
    def frame(self) -> str:
        """In HTML. A slug needs no escaping, and the title stands nowhere in it."""
        return (
            f'<iframe src="{self._at("pages:embed")}?n=10" width="640" height="480" title="board"></iframe>'
        )

    def _at(self, name: str) -> str:
        return f"{self.server}{reverse(name, args=[self.benchmark.slug])}"


def _downloads(slug: str, board: Board | None) -> Iterable[Download]:
    yield Download("Outcomes", "one trial of an agent on a task a row", _tables("outcomes", slug))
    if board is not None:
        whole = Link("JSON", reverse("api:board-numbered", args=[slug, board.number]))
        links = (*_tables("boards", slug, board.number), whole)
        yield Download(f"Board {board.number}", "an agent a row, for every target; it never changes", links)
        latest = Link("JSON", reverse("api:board", args=[slug]))
        yield Download("The latest board", "the same, whichever it is", (*_tables("board", slug), latest))
    for name, description, route in (
        ("Subsets and rules", "which tasks were chosen when, the calibration, the policy", "subsets_json"),
        ("Data dictionary", "what each column holds, with licence and citation", "data_dictionary"),
        ("Tasks", "with their pass rates when the subset was chosen", "tasks"),
        ("Validations", "every figure of every protocol and strategy", "validations"),
        ("Variance studies", "every component, and the error of each agent", "variances"),
    ):
        yield Download(name, description, (Link("JSON", reverse(f"api:{route}", args=[slug])),))


def _tables(name: str, *of: Any) -> tuple[Link, ...]:
    return tuple(Link(LABELS[kind], reverse(f"api:{name}_{kind}", args=of)) for kind in TABLES)


def data_page(benchmark: Benchmark, *, server: str) -> DataPage:
    """Four queries: the latest board, what is accepted, the tasks, the policy."""
    accepted = Submission.objects.filter(agent__benchmark=benchmark, status=Status.ACCEPTED)
    whose = Coalesce("agent__merged_into", "agent")
    counted = accepted.aggregate(n_outcomes=Sum("n_outcomes"), n_agents=Count(whose, distinct=True))
    is_retired = Q(retired_at__isnull=False)
    tasks = benchmark.tasks.aggregate(
        n_tasks=Count("pk", filter=~is_retired), n_retired=Count("pk", filter=is_retired)
    )
    return DataPage(
        benchmark=benchmark,
        board=benchmark.boards.defer("content").order_by("-number").first(),
        n_outcomes=counted["n_outcomes"] or 0,
        n_agents=counted["n_agents"],
        **tasks,
        tells_costs=policy_in_force(benchmark).show_costs,
        server=server,
    )


@require_safe
@for_all
def data(request: HttpRequest, slug: str) -> HttpResponse:
    benchmark = visible(slug)
    page = data_page(benchmark, server=absolute(request, "/").removesuffix("/"))
    return render(request, "pages/data.html", {"page": page, "benchmark": benchmark, "here": "data"})


@require_safe
@for_all
def signing_key(request: HttpRequest) -> HttpResponse:
    """The key that boards are signed with; `null` where this server signs none."""
    return JsonResponse({"algorithm": ALGORITHM, "key": public_key()})
