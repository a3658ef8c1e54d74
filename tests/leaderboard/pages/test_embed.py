"""The table for other sites: they may frame it, and nothing else."""

import pytest

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Benchmark
from leaderboard.operations.corrections import unload
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Submission
from tests.leaderboard.pages.conftest import AS_OF
from tests.seen import rows_of, text_of
from tests.toys import graded


@pytest.fixture
def board(publish):
    return publish(graded(14, 20))


def test_other_sites_may_frame_this_page_alone(client, board):
    answer = client.get("/b/toy/embed")
    assert "frame-ancestors *" in answer["Content-Security-Policy"]
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert "X-Frame-Options" not in answer
    for path in ("/b/toy", "/b/toy/history", "/b/toy/data", "/b/toy/badge.svg", "/methods", "/"):
        other = client.get(path)
        assert "frame-ancestors 'none'" in other["Content-Security-Policy"], path
        assert other["X-Frame-Options"] == "DENY", path


@pytest.mark.parametrize("fields", [{"visibility": "private"}, {"hidden_at": AS_OF, "hidden_reason": "x"}])
def test_what_is_closed_cannot_be_framed(client, board, fields):
    Benchmark.objects.update(**fields)
    answer = client.get("/b/toy/embed")
    assert answer.status_code == 404
    assert answer["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]


def test_it_shows_the_first_with_the_ranks_that_they_may_hold(client, board):
    response = client.get("/b/toy/embed")
    standings = standings_of(board)
    rows = rows_of(response, "embed")
    assert len(rows) == 10
    for row, line in zip(rows, words.in_order(standings), strict=False):
        told = line.at["full"]
        assert row == [line.agent, f"{told.rank_lower}–{told.rank_upper}", "", words.percent(told.score)]
    text = text_of(response)
    assert words.headline(standings) in text
    assert "The first 10 of 14 ranked agents on board 1, 1 June 2026." in text
    assert "all 20 tasks" in text


def test_its_headline_is_that_of_the_board_where_an_unranked_agent_surely_scores_more(client, publish):
    board = standings_of(
        publish({"a": "111" + "0" * 17, "b": "11" + "0" * 18, "c": "1" + "0" * 19, "d": "1..1" + "1" * 16})
    )
    headline = words.headline(board)
    assert " ranked agents" in headline
    for path in ("/b/toy", "/b/toy/embed"):
        assert headline in text_of(client.get(path)), path
    assert "highest score of ranked agents" in text_of(client.get("/b/toy"))


@pytest.mark.parametrize(
    ("n", "shown"), [("3", 3), ("0", 1), ("999", 14), ("x", 10), ("-1", 10), ("٣", 10), ("9" * 40, 14)]
)
def test_how_many_may_be_asked_for(client, board, n, shown):
    assert len(rows_of(client.get("/b/toy/embed", {"n": n}), "embed")) == shown


def test_its_links_lead_out_of_the_frame(client, board, settings):
    settings.SITE_URL = "https://board.example"
    page = client.get("/b/toy/embed").content.decode()
    assert (
        page.count("<a ")
        == page.count('href="https://board.example/b/toy" target="_blank" rel="noopener"')
        == 2
    )
    assert "<script" not in page
    assert '<meta name="robots" content="noindex">' in page


def test_what_is_withdrawn_since_is_struck_out(client, board):
    assert "<s>" not in client.get("/b/toy/embed").content.decode()
    (gone,) = Submission.objects.filter(agent__name=rows_of(client.get("/b/toy/embed"), "embed")[0][0])
    unload(uuids=[gone.uuid], reason="x", as_of=AS_OF)
    assert client.get("/b/toy/embed").content.decode().count("<s>") == 1


def test_without_a_board(client, db):
    Benchmark.objects.create(slug="empty", title="Empty")
    assert "No board yet." in text_of(client.get("/b/empty/embed"))
