"""Every public page: its address on a benchmark that has two boards, and what its rows are.

A route of `leaderboard.pages.urls` stands here under its own name, as a page that is looked at in a browser
or as something else (`NOT_PAGES`); a test sees that none is forgotten.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.urls import reverse

from leaderboard.catalog.models import Benchmark
from leaderboard.pages.urls import urlpatterns

ROUTES = {pattern.name for pattern in urlpatterns}
ROWS = "#ranking tbody tr"
NOT_PAGES = {
    *("plot", "feed", "badge", "card", "cite", "board_markdown", "board_csv"),
    *("robots", "sitemap", "signing_key"),
    *("account", "token_made", "token_revoked", "mail", "submission", "withdrawn", "report", "invitation"),
    "unslashed",
}


def _leader(benchmark: Benchmark) -> int:
    return _places(benchmark)[0]


def _places(benchmark: Benchmark) -> list[int]:
    board = benchmark.boards.latest("number")
    return list(board.entries.order_by("position").values_list("agent", flat=True))


def _task(benchmark: Benchmark) -> int:
    return benchmark.tasks.order_by("name").values_list("pk", flat=True)[0]


def _compared(benchmark: Benchmark) -> str:
    return "?" + "&".join(f"a={agent}" for agent in _places(benchmark)[:4])


OF_ALL = {"home": "", "methods": "", "submit": ""}
OF_A_BENCHMARK = (
    "board",
    "tasks",
    "compare",
    "validity",
    "uncertainty",
    "health",
    "history",
    "data",
    "embed",
)
Address = Callable[[Benchmark], str]


def _routed(name: str, *arguments: Callable[[Benchmark], Any]) -> Address:
    return lambda benchmark: reverse(f"pages:{name}", args=[one(benchmark) for one in arguments])


def _slug(benchmark: Benchmark) -> str:
    return benchmark.slug


# By name; the route is the first word.
PAGES: Mapping[str, Address] = {
    **{name: _routed(name) for name in OF_ALL},
    **{name: _routed(name, _slug) for name in OF_A_BENCHMARK},
    "board, all columns": lambda benchmark: f"/b/{benchmark.slug}?view=all",
    "board, another target": lambda benchmark: f"/b/{benchmark.slug}?target=subset",
    "board, what changed": lambda benchmark: f"/b/{benchmark.slug}?since=1",
    "version": _routed("version", _slug, lambda _: 1),
    "agent": _routed("agent", _slug, _leader),
    "task": _routed("task", _slug, _task),
    "compare, four": lambda benchmark: f"/b/{benchmark.slug}/compare{_compared(benchmark)}",
    "sign in": lambda _: reverse("account_login"),
    "nowhere": lambda _: "/nowhere",
}
SHOWN = [name for name in PAGES if name.split(",")[0] in ROUTES | {"sign in", "nowhere"}]
