import re
from datetime import timedelta

import pytest

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.operations.corrections import unload
from leaderboard.operations.erasing import erase_agent
from leaderboard.pages.home import SHOWN
from leaderboard.pages.templatetags.figures import score
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Submission
from tests.leaderboard.pages.conftest import AS_OF
from tests.seen import text_of
from tests.toys import csv_text, graded, ladder, load_text, recomputed

NAMES = re.compile(r"<bdi>(.*?)</bdi>")


def source_of(client, css):
    (cell,) = re.findall(rf'<td class="{css}">(.*?)</td>', client.get("/").content.decode(), re.S)
    return cell


def row(client):
    """The cells of the one benchmark, as text."""
    (body,) = re.findall(r"<tbody>(.*?)</tbody>", client.get("/").content.decode(), re.S)
    cells = re.findall(r"<t[hd].*?</t[hd]>", body, re.S)
    return [" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in cells]


def test_without_a_benchmark_it_says_what_one_is_made_of(client, db):
    response = client.get("/")
    assert response.status_code == 200
    assert "one row per trial: one attempt of one agent at one task" in text_of(response)
    assert "manage.py" not in text_of(response)


@pytest.mark.parametrize(
    "outcomes", [ladder(16, 20) | {"a99": "1" * 20}, graded(16, 30), ladder(1, 20), ladder(3, 20)]
)
def test_a_row_has_the_verdict_the_first_five_and_the_best_score_with_its_tasks(client, publish, outcomes):
    board = standings_of(publish(outcomes))
    told = row(client)
    assert words.sentence(words.could_be_first(board)) in told[0]
    assert f"{board.n_tasks} tasks" in told[0]
    first = words.in_order(board, board.target)[:5]
    assert NAMES.findall(source_of(client, "c-first")) == [line.agent for line in first]
    assert told[2] == f"{score(first[0].at[board.target])} {words.tasks_of(board, board.target)}"
    assert told[4:] == [f"{len(outcomes)}", "2026-06-01"]


def test_the_best_score_has_half_of_its_interval(client, publish):
    board = standings_of(publish(graded(16, 30)))
    at = words.in_order(board, board.target)[0].at[board.target]
    half = round(50 * (at.upper - at.lower), 1)
    assert f"{round(100 * at.score, 1)} ± {half}% all 30 tasks" in text_of(client.get("/"))


def test_who_is_not_ranked_is_counted(client, publish):
    publish(ladder(3, 20) | {"stopped": "1" * 5 + "." * 15})
    assert row(client)[4] == "3 of 4"


def test_the_latest_board_is_shown(client, publish):
    publish(ladder(3, 20), {"best": "1" * 20})
    assert row(client)[4] == "4"
    assert client.get("/").content.count(b"<h2>") == 1


def test_from_eight_benchmarks_on_one_can_be_found(client, db):
    for i in range(7):
        Benchmark.objects.create(slug=f"b{i}", title=f"Board {i}", description="Web" * (i == 3))
    assert b'name="find"' not in client.get("/").content
    Benchmark.objects.create(slug="last", title="The last")
    page = client.get("/?find=WEB")
    assert "1 of 8 benchmarks" in text_of(page)
    assert re.findall(r'href="/b/(\w+)"', page.content.decode()) == ["b3"]
    assert "No benchmark matches “<none>”." in text_of(client.get("/?find=<none>"))


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


def test_the_first_five_have_bars_of_their_rank_ranges(client, publish):
    board = standings_of(publish(graded(16, 30)))
    first = words.in_order(board, board.target)[:5]
    held = [(at.rank_lower, at.rank_upper) for at in (line.at[board.target] for line in first)]
    told = re.findall(r"95% rank range (\d+) to (\d+)", source_of(client, "c-first"))
    assert [(int(low), int(high)) for low, high in told] == held
    assert source_of(client, "c-first").count("<svg") == 5


@pytest.mark.parametrize("outcomes", [{"a": "0101", "b": "0011"}, {"only": "01" * 10}])
def test_without_rank_intervals_there_is_no_bar(client, publish, outcomes):
    publish(outcomes)
    assert "<svg" not in source_of(client, "c-first")


def test_licence_and_site_stand_under_its_name(client, publish):
    publish(ladder(3, 20), licence="MIT", url="https://example.org/toys")
    assert "20 tasks MIT Site of Toy" in row(client)[0]
    Benchmark.objects.update(url="javascript:alert(1)")
    assert b"javascript" not in client.get("/").content


def test_what_a_benchmark_is_stands_under_its_name(client, publish):
    publish(ladder(3, 20), description="Twenty <toys>.")
    assert "Toy Twenty <toys>." in text_of(client.get("/"))
    assert "Toy" in text_of(client.get("/b/toy"))
    assert "Twenty <toys>." in text_of(client.get("/b/toy"))


@pytest.mark.parametrize("n", [1, 3])
def test_it_takes_three_queries_however_many_there_are(client, publish, django_assert_num_queries, n):
    for i in range(n):
        publish(ladder(3, 20), slug=f"toy{i}")
    # the benchmarks; their latest boards with policies; the entries of those not shown before
    SHOWN.clear()
    with django_assert_num_queries(3):
        first = client.get("/").content
    with django_assert_num_queries(2):
        assert client.get("/").content == first


def test_a_name_that_is_erased_is_shown_no_more(client, publish):
    publish({"secret": "1" * 10, "b": "01" * 5})
    assert "secret" in text_of(client.get("/"))
    erase_agent(agent=Agent.objects.get(name="secret"), by=None, reason="asked for", as_of=AS_OF)
    assert "secret" not in client.get("/").content.decode()


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
    assert "a05, withdrawn: " in text_of(client.get("/b/toy"))
