"""Every chart at an address of its own, from the function that the page calls: /b/{slug}/plots/{name}.svg."""

from collections.abc import Callable, Mapping

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_safe

from leaderboard.catalog.models import Benchmark
from leaderboard.pages import agent, task, tasks
from leaderboard.pages.access import for_all, visible
from leaderboard.pages.board import cost_chart
from leaderboard.pages.caching import cached_page
from leaderboard.pages.compare import plot_compare
from leaderboard.pages.health import CHARTS as OF_MONITORS
from leaderboard.pages.history import plot_best
from leaderboard.pages.replay_summary import plot_replay
from leaderboard.pages.uncertainty import plot_variance
from leaderboard.pages.validity import plot_coverage, plot_overlaps, plot_validity, plot_widths
from leaderboard.plots.chart import Chart
from leaderboard.studies.models import DriftCheck, ValidationStudy, VarianceStudy

# What is drawn of a benchmark, under the parameters of the address; None where there is nothing to draw.
CHARTS: Mapping[str, Callable[[Benchmark, QueryDict], Chart | None]] = {
    "tasks": tasks.plot_page,
    "task": task.plot_agents,
    "quarters": task.plot_quarters,
    "agent": agent.plot_page,
    "best": plot_best,
    "cost": cost_chart,
    "compare": plot_compare,
    "replayed": plot_replay,
    "coverage": plot_coverage,
    "variance": plot_variance,
    "validity": plot_validity,
    "widths": plot_widths,
    "overlap": plot_overlaps,
    **OF_MONITORS,
}


@require_safe
@for_all
@cached_page(
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
