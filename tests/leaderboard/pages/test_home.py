import re
from datetime import timedelta

import pytest

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.corrections import unload
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Submission
from tests.leaderboard.pages.conftest import AS_OF
from tests.seen import text_of
from tests.toys import csv_text, graded, ladder, load_text, recomputed


def test_without_a_benchmark_it_says_what_one_is_made_of(client, db):
    response = client.get("/")
    assert response.status_code == 200
    assert "a row for each trial of an agent on a task" in text_of(response)
    assert "manage.py" not in text_of(response)


@pytest.mark.parametrize(
    "outcomes", [ladder(16, 20) | {"a99": "1" * 20}, graded(16, 30), ladder(1, 20), ladder(3, 20)]
)
def test_a_benchmark_is_told_in_its_boards_own_headline(client, publish, outcomes):
    board = standings_of(publish(outcomes))
    text, n = text_of(client.get("/")), len(outcomes)
    assert words.headline(board) in text
    listed = words.counted(n, "agent")
    assert f"{n} ranked, of {listed} listed; {board.n_tasks} tasks" in text
    assert "Leader" not in text


def test_who_is_not_ranked_is_counted(client, publish):
    publish(ladder(3, 20) | {"stopped": "1" * 5 + "." * 15})
    text = text_of(client.get("/"))
    assert "3 ranked, of 4 agents listed" in text
    assert "1 agent is not ranked: results are missing for" in text


def test_the_latest_board_is_shown(client, publish):
    publish(ladder(3, 20), {"best": "1" * 20})
    assert "4 ranked, of 4 agents" in text_of(client.get("/"))
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


def test_the_one_that_changed_last_comes_first(client, publish):
    for slug in ("first", "second", "third"):
        publish(ladder(3, 20), slug=slug)
    publish(ladder(3, 20), slug="third")  # the same board again
    load_text(csv_text({"late": "01" * 10}, benchmark="Second"), slug="second")
    recomputed("second", as_of=AS_OF + timedelta(days=1))
    Benchmark.objects.create(slug="a-new", title="A new one")
    found = re.findall(r'<h2><a href="/b/([\w-]+)"', client.get("/").content.decode())
    assert found == ["second", "first", "third", "a-new"]


def test_a_strip_shows_the_ranks_that_the_first_ten_may_hold(client, publish):
    publish(graded(16, 30))
    page = client.get("/").content.decode()
    (strip,) = re.findall(r'<svg class="plot strip".*?</svg>', page, re.S)
    assert strip.count("<rect") == 10
    assert strip.count('class="f-lead"') == 1


def test_without_rank_intervals_there_is_no_strip(client, publish):
    publish({"a": "0101", "b": "0011"})
    assert b"strip" not in client.get("/").content


def test_a_single_agent_has_no_strip(client, publish):
    publish({"only": "01" * 10})
    source = client.get("/").content.decode()
    assert "One agent so far:" in source
    assert "strip" not in source
    assert "may hold" not in source


def test_what_a_benchmark_is_stands_under_its_name(client, publish):
    publish(ladder(3, 20), description="Twenty <toys>.")
    assert "Toy Twenty <toys>." in text_of(client.get("/"))
    assert "Toy" in text_of(client.get("/b/toy"))
    assert "Twenty <toys>." in text_of(client.get("/b/toy"))


@pytest.mark.parametrize("n", [1, 3])
def test_it_takes_three_queries_however_many_there_are(client, publish, django_assert_num_queries, n):
    for i in range(n):
        publish(ladder(3, 20), slug=f"toy{i}")
    # the benchmarks; their latest boards with policies; the entries of these
    with django_assert_num_queries(3):
        client.get("/")


def test_who_was_withdrawn_since_a_board_is_marked_wherever_the_board_is_told(client, publish):
    """The leader ran for a price and was taken back: home, feed and the picture of costs say so."""
    publish(csv_text(ladder(6, 12)).replace(",valid", ",valid,cost_usd").replace(",1\n", ",1,2.5\n"))
    (leader,) = Submission.objects.filter(agent__name="a05")
    addresses = ("/", "/b/toy/feed", "/b/toy/plots/cost.svg")
    assert not any("ithdrawn" in client.get(one).content.decode() for one in addresses)
    unload(uuids=[leader.uuid], reason="a leak", as_of=AS_OF)
    assert "Withdrawn since: a05." in text_of(client.get("/"))
    assert "Withdrawn since: a05." in client.get("/b/toy/feed").content.decode()
    assert "a05, withdrawn: " in client.get("/b/toy/plots/cost.svg").content.decode()
    assert "a05 (withdrawn since)" in text_of(client.get("/b/toy"))
