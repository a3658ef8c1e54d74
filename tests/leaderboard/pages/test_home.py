import re

import pytest

from leaderboard.boards.reading import standings_of
from leaderboard.catalog.models import Benchmark
from leaderboard.studies.answers import words
from tests.leaderboard.pages.conftest import AS_OF
from tests.seen import text_of
from tests.toys import graded, ladder


def test_without_a_benchmark_it_says_how_to_load_one(client, db):
    response = client.get("/")
    assert response.status_code == 200
    assert "manage.py load outcomes.csv.gz --benchmark my-benchmark" in text_of(response)


@pytest.mark.parametrize(
    "outcomes", [ladder(16, 20) | {"a99": "1" * 20}, graded(16, 30), ladder(1, 20), ladder(3, 20)]
)
def test_a_benchmark_is_told_in_its_boards_own_headline(client, publish, outcomes):
    board = standings_of(publish(outcomes))
    text, n = text_of(client.get("/")), len(outcomes)
    assert words.headline(board) in text
    assert f"Agents {n} ranked, of {n} listed Tasks {board.n_tasks}" in text
    assert "Leader" not in text


def test_who_is_not_ranked_is_counted(client, publish):
    publish(ladder(3, 20) | {"stopped": "1" * 5 + "." * 15})
    text = text_of(client.get("/"))
    assert "Agents 3 ranked, of 4 listed" in text
    assert "1 more is listed without a rank: it lacks outcomes among all" in text


def test_the_latest_board_is_shown(client, publish):
    publish(ladder(3, 20), {"best": "1" * 20})
    assert "Agents 4 ranked" in text_of(client.get("/"))
    assert client.get("/").content.count(b"<h2>") == 1


def test_a_benchmark_without_a_board_is_listed(client, db):
    Benchmark.objects.create(slug="new", title="New")
    assert "New No board yet" in text_of(client.get("/"))


def test_only_public_benchmarks_are_listed(client, publish):
    publish(ladder(3, 20), slug="seen")
    publish(ladder(3, 20), slug="unlisted", visibility="unlisted")
    publish(ladder(3, 20), slug="private", visibility="private")
    publish(ladder(3, 20), slug="hidden", hidden_at=AS_OF, hidden_reason="a dispute")
    assert re.findall(r'href="/b/(\w+)"', client.get("/").content.decode()) == ["seen"]


@pytest.mark.parametrize("n", [1, 3])
def test_it_takes_three_queries_however_many_there_are(client, publish, django_assert_num_queries, n):
    for i in range(n):
        publish(ladder(3, 20), slug=f"toy{i}")
    # the benchmarks; their latest boards with policies; the entries of these
    with django_assert_num_queries(3):
        client.get("/")
