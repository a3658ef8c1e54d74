import re
from datetime import UTC, datetime

import pytest

from leaderboard.catalog.models import Benchmark
from leaderboard.operations.services import recompute
from tests.toys import csv_text, ladder, load_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)


@pytest.fixture
def publish(db):
    def do(outcomes, slug, **fields):
        load_text(csv_text(outcomes, benchmark=slug.title()), slug=slug)
        Benchmark.objects.filter(slug=slug).update(**fields)
        recompute(benchmark=Benchmark.objects.get(slug=slug), as_of=AS_OF)

    return do


def text_of(response):
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_without_a_benchmark_it_says_how_to_load_one(client, db):
    response = client.get("/")
    assert response.status_code == 200
    assert "manage.py load outcomes.csv.gz --benchmark my-benchmark" in text_of(response)


def test_a_benchmark_is_told_in_one_line(client, publish):
    publish(ladder(16, 20) | {"a99": "1" * 20}, "toy")
    text = text_of(client.get("/"))
    assert re.search(r"Toy Phase Ongoing Agents 17 Tasks 20 Ranked on \d+ tasks Leaders, tied", text)
    assert "and others 100.0%" in text


def test_a_full_run_is_ranked_on_all_tasks(client, publish):
    publish(ladder(3, 20), "toy")
    assert "Cold start Agents 3 Tasks 20 Ranked on all tasks Leader a02 100.0%" in text_of(client.get("/"))


def test_the_latest_board_is_shown(client, publish):
    publish(ladder(3, 20), "toy")
    publish(ladder(3, 20) | {"best": "1" * 20}, "toy")
    assert "Agents 4" in text_of(client.get("/"))
    assert client.get("/").content.count(b"<h2>") == 1


def test_a_benchmark_without_a_board_is_listed(client, db):
    Benchmark.objects.create(slug="new", title="New")
    assert "New No board yet" in text_of(client.get("/"))


def test_only_public_benchmarks_are_listed(client, publish):
    publish(ladder(3, 20), "seen")
    publish(ladder(3, 20), "unlisted", visibility="unlisted")
    publish(ladder(3, 20), "private", visibility="private")
    publish(ladder(3, 20), "hidden", hidden_at=AS_OF, hidden_reason="a dispute")
    assert re.findall(r'href="/b/(\w+)"', client.get("/").content.decode()) == ["seen"]


@pytest.mark.parametrize("n", [1, 3])
def test_it_takes_three_queries_however_many_there_are(client, publish, django_assert_num_queries, n):
    for i in range(n):
        publish(ladder(3, 20), f"toy{i}")
    # the benchmarks; their latest boards with counts; the first of each
    with django_assert_num_queries(3):
        client.get("/")
