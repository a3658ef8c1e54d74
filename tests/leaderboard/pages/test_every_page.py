"""What holds for each public page of a benchmark: who sees it, what it may do, how many queries it takes."""

import re
from html import unescape

import pytest

from leaderboard.catalog.models import Agent, Benchmark, Task
from leaderboard.operations.services import measure_variance
from tests.leaderboard.pages.conftest import AS_OF
from tests.leaderboard.pages.counting import HOSTILE, n_queries, same_with_few_and_many
from tests.leaderboard.stored_validation import store
from tests.toys import graded, ladder, recomputed

# The benchmark and its latest board stand at the beginning of each.
N_QUERIES = {
    "": 3,  # the entries
    "?target=domain&sort=-ties": 3,
    "?view=all&find=a": 3,
    "/cite": 2,
    "/embed": 4,  # what is told of its agents; the ties of the leader
    "/card.png": 3,  # its first entries
    "/badge.svg": 3,  # what is told of its agents
    "/feed": 5,  # all boards; their places; what is told of them; of their agents
    "/data": 5,  # what is accepted; its tasks; the policy
    # policy, tasks, deliveries, confirmations, merged agents, subset, parts, trusted accounts; the entries
    "/tasks": 12,
}
PAGES = ("", "/v1", "/history", "/data", "/compare", "/validity", "/uncertainty", "/health", "/tasks")
DRAWN = ("/plots/tasks.svg", "/plots/date.svg", "/plots/scores.svg")
OTHERS = ("/cite", "/embed", "/feed", "/badge.svg", "/card.png", "/board.md", "/board.csv", *DRAWN)


@pytest.mark.parametrize(("page", "n"), N_QUERIES.items())
def test_it_takes_as_many_queries_for_few_agents_as_for_many(client, publish, page, n):
    assert same_with_few_and_many(client, publish, f"/b/{{slug}}{page}") == n


def test_so_does_the_page_of_an_agent_and_of_a_task(client, publish):
    found = []
    for slug, n in (("few", 3), ("many", 60)):
        publish(graded(n, 20), slug=slug)
        agent = Agent.objects.filter(benchmark__slug=slug).first().pk
        task = Task.objects.filter(benchmark__slug=slug).first().pk
        pages = (f"agents/{agent}", f"tasks/{task}", f"badge.svg?agent={agent}")
        found.append([n_queries(client, f"/b/{slug}/{page}") for page in pages])
    # Beside the ten of outcomes and board: merged, submissions, names before; the task, versions.
    assert found == [[17, 14, 3]] * 2


@pytest.mark.parametrize("fields", [{"visibility": "private"}, {"hidden_at": AS_OF, "hidden_reason": "x"}])
def test_what_is_not_public_does_not_exist(client, publish, fields):
    publish(graded(6, 20))
    for page in (*PAGES, *OTHERS, "/v1?since=1"):
        assert client.get(f"/b/toy{page}").status_code == 200, page
        assert client.get(f"/b/none{page}").status_code == 404, page
    Benchmark.objects.update(**fields)
    for page in (*PAGES, *OTHERS, "/v1?since=1"):
        assert client.get(f"/b/toy{page}").status_code == 404, page


@pytest.fixture
def whole(publish):
    """The addresses of all pages of a benchmark with studies, whose names are hostile."""
    first, *names = ladder(16, 20)
    board = publish(ladder(16, 20))
    toy = board.benchmark
    store(toy)
    measure_variance(benchmark=toy, as_of=AS_OF)
    for key, name in ((first, HOSTILE), (names[-1], "<i>&</i>" + "x" * 200)):
        Agent.objects.filter(name=key).update(name=name)
    Task.objects.filter(name="t03").update(name=f"{HOSTILE}t03")
    Benchmark.objects.update(title=HOSTILE, description=HOSTILE)
    recomputed(as_of=AS_OF)
    agents, tasks = ([one.pk for one in table.objects.order_by("pk")] for table in (Agent, Task))
    compared = f"/compare?a={agents[0]}&a={agents[-1]}"
    return [f"/b/toy{page}" for page in (*PAGES, compared, f"/agents/{agents[0]}", f"/tasks/{tasks[3]}")]


def test_links_are_described_in_a_sentence(client, whole):
    """Not by a tuple of its parts."""
    for page in whole:
        if described := client.get(page).content.decode().split('property="og:description" content="')[1:]:
            assert not described[0].startswith(("(", "[", "{")), page


def test_names_are_data(client, whole):
    for address in (*whole, *(f"/b/toy{page}" for page in ("/embed", "/feed", "/badge.svg", *DRAWN))):
        page = client.get(address).content.decode()
        assert "<script>" not in page, address
        assert "<i>" not in page, address
    for address in (whole[0], *whole[-3:], "/b/toy/embed"):
        assert "&lt;script&gt;alert(1)" in client.get(address).content.decode(), address


def test_each_drawing_is_at_an_address_of_its_own(client, whole):
    seen = set()
    for address in whole:
        page = client.get(address).content.decode()
        for link in map(unescape, re.findall(r'<a href="([^"]+)">SVG</a>', page)):
            drawn = client.get(link)
            assert drawn["Content-Type"] == "image/svg+xml"
            assert drawn.content.decode() in page
            seen.add(link.split("/")[-1].split(".")[0])
    # The best score is drawn from three boards on.
    assert seen >= {"tasks", "task", "agent", "date", "compare", "validity", "coverage", "widths"}


def test_it_is_only_read_and_needs_no_more_than_the_policy_allows(client, whole):
    for address in whole:
        response = client.get(address)
        source = response.content.decode()
        assert response["Cache-Control"] == "public, max-age=0, must-revalidate"
        assert "style-src 'self'" in response["Content-Security-Policy"]
        assert not re.search(r"<[^>]+\s(style|on\w+)=", source), address
        assert "<style" not in source
        assert all(" src=" in tag for tag in re.findall(r"<script[^>]*>", source)), address
        assert not re.search(r'(src|href)="(https?:)?//(?!testserver)', source), address
        assert 'type="application/atom+xml"' in source
        for accepted in ("", "gzip"):
            whole = client.get(address, headers={"Accept-Encoding": accepted})
            known = {"If-None-Match": whole["ETag"], "Accept-Encoding": accepted}
            again = client.get(address, headers=known)
            assert (again.status_code, again.content) == (304, b""), address
            for name in ("Cache-Control", "ETag", "Vary"):
                assert again[name] == whole[name], address
        assert client.post(address).status_code == 405


def test_head_has_the_headers_of_get(client, whole):
    others = [f"/b/toy{page}" for page in OTHERS]
    for address in (*whole, *others, "/", "/methods", "/submit", "/robots.txt", "/sitemap.xml"):
        page, head = client.get(address), client.head(address)
        assert (head.status_code, head.content) == (200, b""), address
        for name in ("Cache-Control", "Content-Length", "ETag", "Vary"):
            assert head.headers.get(name) == page.headers.get(name), address
        for ask in (client.get, client.head):
            again = ask(address, headers={"If-None-Match": page["ETag"]})
            assert (again.status_code, again["ETag"]) == (304, page["ETag"]), address
            assert again["Vary"] == page["Vary"], address
