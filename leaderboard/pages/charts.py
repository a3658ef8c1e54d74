"""Every chart at an address of its own, from the function that the page calls: /b/{slug}/plots/{name}.svg."""

from collections.abc import Callable, Mapping

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_safe

from leaderboard.catalog.models import Benchmark
from leaderboard.pages import agent, task, tasks
from leaderboard.pages.board import cost_chart
from leaderboard.pages.caching import kept
from leaderboard.pages.compare import drawn_compare
from leaderboard.pages.health import CHARTS as OF_MONITORS
from leaderboard.pages.history import drawn_best
from leaderboard.pages.replayed import drawn_replayed
from leaderboard.pages.shown import for_all, visible
from leaderboard.pages.uncertainty import drawn_variance
from leaderboard.pages.validity import drawn_coverage, drawn_overlaps, drawn_validity, drawn_widths
from leaderboard.plots.chart import Chart
from leaderboard.studies.models import DriftCheck, ValidationStudy, VarianceStudy

# What is drawn of a benchmark, under the parameters of the address; None where there is nothing to draw.
CHARTS: Mapping[str, Callable[[Benchmark, QueryDict], Chart | None]] = {
    "tasks": tasks.drawn,
    "task": task.drawn_agents,
    "quarters": task.drawn_quarters,
    "agent": agent.drawn,
    "best": drawn_best,
    "cost": cost_chart,
    "compare": drawn_compare,
    "replayed": drawn_replayed,
    "coverage": drawn_coverage,
    "variance": drawn_variance,
    "validity": drawn_validity,
    "widths": drawn_widths,
    "overlap": drawn_overlaps,
    **OF_MONITORS,
}


@require_safe
@for_all
@kept(
    *("agent", "task", "a", "target", "board", "vs"),
    of_data=True,
    reads=(DriftCheck, ValidationStudy, VarianceStudy),
)
def plot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    benchmark = visible(slug)
    drawn = CHARTS[name](benchmark, request.GET) if name in CHARTS else None
    if drawn is None:
        raise Http404(f"There is no plot “{name}” of this benchmark.")
    return HttpResponse(drawn.svg, content_type="image/svg+xml")
