"""Pages, API, receipts and exports of two small benchmarks that live, and of the demonstration."""

import json
import re

import pytest
from django.core.management import call_command

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.loading import load
from leaderboard.operations.services import check_drift, measure_variance, recompute
from leaderboard.submissions.parsing.flat import read_file
from tests.golden.keeping import as_text, check
from tests.golden.worlds import AS_OF, DEMONSTRATION
from tests.leaderboard.stored_validation import store
from tests.leaderboard.world import World
from tests.seen import text_of

pytestmark = pytest.mark.django_db(transaction=True, reset_sequences=True)

PAGES = (
    *("", "/v1", "/history", "/data", "/compare", "/validity", "/uncertainty", "/health", "/tasks"),
    *("/cite", "/embed", "/board.md", "/feed", "/badge.svg"),
)
ROUTES = (
    *("", "/tasks", "/agents", "/board", "/boards", "/subsets", "/policy", "/alerts", "/rerun-requests"),
    *("/studies/validation", "/studies/variance", "/studies/drift", "/data-dictionary"),
    "/studies/staged",
)
EXPORTS = ("outcomes.csv", "board.csv", "outcomes.ndjson", "board.ndjson", "subsets.json")


def seen(client, address):
    response = client.get(address)
    assert response.status_code == 200, address
    content = b"".join(response.streaming_content) if response.streaming else response.content
    if response["Content-Type"].startswith("text/html") and b"<main" in content:
        return text_of(response)
    if "json" in response["Content-Type"] and "ndjson" not in response["Content-Type"]:
        return as_text(json.loads(content))
    return content.decode()


def first_of(client, slug, what):
    """The addresses of a benchmark's first and last agents, or tasks."""
    pks = list(getattr(Benchmark.objects.get(slug=slug), what).order_by("pk").values_list("pk", flat=True))
    return [f"/b/{slug}/{what}/{pk}" for pk in (pks[0], pks[-1])]


def all_of(client, slug):
    pages = [f"/b/{slug}{page}" for page in PAGES]
    pages += first_of(client, slug, "agents") + first_of(client, slug, "tasks")
    routes = [f"/api/v1/benchmarks/{slug}{route}" for route in ROUTES]
    return {address: seen(client, address) for address in (*pages, *routes)}


def exports_of(client, slug):
    """The first lines of each export."""
    addresses = [f"/api/v1/benchmarks/{slug}/{name}" for name in EXPORTS]
    return {address: "\n".join(seen(client, address).splitlines()[:3])[:3000] for address in addresses}


class Recorded(World):
    """Keeps each receipt."""

    def __init__(self, **options):
        self.receipts = []
        super().__init__(**options)

    def deliver(self, name, rows, **more):
        self.receipts.append(super().deliver(name, rows, **more))


@pytest.fixture(autouse=True)
def _as_is(settings, monkeypatch):
    settings.PAGES_KEPT = 0
    monkeypatch.setattr("leaderboard.studies.rules._secret", lambda: "kept")


def test_a_benchmark_that_lives(client):
    world = Recorded(n_founders=18, cost=1.0)
    world.board()
    for theta in (-1.5, 0.0, 2.0):
        world.newcomer(theta)
        world.board()
    toy = world.benchmark
    measure_variance(benchmark=toy, as_of=world.now)
    check_drift(benchmark=toy, as_of=world.now)
    store(toy)
    world.wait()
    world.board()
    found = all_of(client, "toy") | exports_of(client, "toy")
    check("living", found | {f"receipt {i}": as_text(one) for i, one in enumerate(world.receipts)})


def test_the_demonstration(client, capsys):
    load(flat=read_file(DEMONSTRATION, as_of=AS_OF), slug="demo", as_of=AS_OF)
    demo = Benchmark.objects.get()
    measure_variance(benchmark=demo, as_of=AS_OF)
    recompute(benchmark=demo, as_of=AS_OF)
    call_command("replay", "demo", "--store", "here")
    capsys.readouterr()
    call_command("standings", "demo")
    printed = {"standings": capsys.readouterr().out}
    call_command("standings", "here")
    printed["here"] = capsys.readouterr().out
    pages = ("/b/demo", "/b/here", "/b/demo/tasks", "/b/demo/uncertainty", "/", "/methods")
    pages += (*first_of(client, "here", "agents"), *first_of(client, "demo", "agents"))
    check("service-demonstration", printed | {page: seen(client, page) for page in pages})


def test_the_openapi_document(client):
    text = seen(client, "/api/schema/")
    check("openapi", {"openapi": re.sub(r"\s+", " ", text)})
