"""What the page on data shows: all that can be downloaded, under which licence, and what is not in it."""

from typing import Any

from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from leaderboard.boards.signing import ALGORITHM, public_key
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.queries import policy_in_force
from leaderboard.pages.access import absolute, for_all, visible
from leaderboard.submissions.export.columns import KNOWN
from leaderboard.submissions.models import Status, Submission


def data_page(benchmark: Benchmark, *, server: str) -> dict[str, Any]:
    """Four queries: the latest board, what is accepted, the tasks, the policy."""
    accepted = Submission.objects.filter(agent__benchmark=benchmark, status=Status.ACCEPTED)
    whose = Coalesce("agent__merged_into", "agent")
    n = accepted.aggregate(outcomes=Sum("n_outcomes"), agents=Count(whose, distinct=True))
    is_retired = Q(retired_at__isnull=False)
    tasks = benchmark.tasks.aggregate(
        active=Count("pk", filter=~is_retired), retired=Count("pk", filter=is_retired)
    )
    board = benchmark.boards.defer("content").order_by("-number").first()
    at = {
        name: f"{server}{reverse(f'pages:{name}', args=[benchmark.slug])}"
        for name in ("feed", "badge", "board", "embed")
    }
    return {
        "board": board,
        "server": server,
        "n_outcomes": n["outcomes"],
        "n_agents": n["agents"],
        "n_tasks": tasks["active"],
        "n_retired": tasks["retired"],
        "tells_costs": policy_in_force(benchmark).show_costs,
        "kinds": {"csv": "CSV", "ndjson": "NDJSON", "parquet": "Parquet"},
        "columns": [column.as_plain() for column in KNOWN],
        "feed": at["feed"],
        "badge": f"[![board]({at['badge']})]({at['board']})",  # in Markdown
        # A slug needs no escaping, and the title stands nowhere in it.
        "frame": f'<iframe src="{at["embed"]}?n=10" width="640" height="480" title="board"></iframe>',
    }


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
