"""Every chart at an address of its own, from the function that the page calls: /b/{slug}/plots/{name}.svg."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, QueryDict

from leaderboard.boards.queries import NoBoardYet, NoSuchBoard, entries_of, latest_board, standings_of
from leaderboard.catalog.models import Benchmark
from leaderboard.pages import agent, board, compare, health, history, replay_summary, tasks
from leaderboard.pages.access import for_all, number_in, visible
from leaderboard.pages.board_query import FILTERS, PLOTS
from leaderboard.pages.caching import cached_page
from leaderboard.pages.ordered_outcomes import ordered_outcomes
from leaderboard.pages.uncertainty import variance_chart
from leaderboard.pages.validity import validity_chart
from leaderboard.plots.marks import Chart
from leaderboard.studies.models import DriftCheck, Study, ValidationStudy, VarianceStudy
from leaderboard.studies.queries import latest_study

Draw = Callable[[Benchmark, QueryDict], Chart | None]


def _number(params: QueryDict, name: str) -> int:
    return number_in(params.get(name, "")) or 0


def _board_page(benchmark: Benchmark, params: QueryDict) -> dict[str, Any]:
    return board.board_page(benchmark, params, number=number_in(params.get("board", "")))


def _tasks(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    of = ordered_outcomes(benchmark)
    return tasks.chart(of, tasks.task_lines(of))


def _replayed(benchmark: Benchmark, params: QueryDict) -> Chart | None:
    latest = latest_board(benchmark)
    summary = replay_summary.replay_summary(benchmark, standings_of(latest, entries_of(latest)))
    return summary["chart"] if summary else None


def _of_board(name: str, benchmark: Benchmark, params: QueryDict) -> Chart | None:
    return board.score_chart(_board_page(benchmark, params), name)


def _of_study(model: type[Study], draw: Callable[[Any], Chart | None]) -> Draw:
    def drawn(benchmark: Benchmark, params: QueryDict) -> Chart | None:
        study = latest_study(model, benchmark)
        return draw(study) if study else None

    return drawn


# What is drawn of a benchmark, under the parameters of the address; None where there is nothing to draw.
CHARTS: dict[str, Draw] = {
    "tasks": _tasks,
    "task": lambda of, params: tasks.task_page(of, _number(params, "task"))["agents_chart"],
    "quarters": lambda of, params: tasks.task_page(of, _number(params, "task"))["quarters_chart"],
    "agent": lambda of, params: agent.agent_page(of, _number(params, "agent"))["chart"],
    "best": lambda of, _: history.best_chart(of),
    **{name: partial(_of_board, name) for name in PLOTS},
    "bounds": lambda of, params: board.bounds_chart(_board_page(of, params)),
    "compare": lambda of, params: compare.compare_page(of, params).get("chart"),
    "replayed": _replayed,
    "variance": _of_study(VarianceStudy, lambda of: variance_chart(of.result)),
    **{
        name: _of_study(ValidationStudy, partial(validity_chart, name))
        for name in ("validity", "coverage", "widths", "overlap")
    },
}


@for_all
@cached_page(
    *("agent", "task", "a", "target", "board", "vs", *FILTERS),
    of_data=True,
    reads=(DriftCheck, ValidationStudy, VarianceStudy),
)
def plot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    benchmark = visible(slug)
    try:
        draw = CHARTS.get(name)
        drawn = draw(benchmark, request.GET) if draw else health.chart_at(benchmark, name)
    except (NoBoardYet, NoSuchBoard):
        drawn = None
    if drawn is None:
        raise Http404(f"There is no plot “{name}” of this benchmark.")
    return HttpResponse(drawn.svg, content_type="image/svg+xml")
