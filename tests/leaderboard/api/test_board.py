import logging

import pytest
from django.db import OperationalError

from leaderboard.catalog.models import Benchmark, Visibility
from tests.toys import first_board

URL = "/api/v1/benchmarks/toy/board"


@pytest.fixture
def board(toy):
    return first_board(toy)


def test_the_board_in_json(client, board):
    response = client.get(URL)
    assert response.status_code == 200
    content = response.json()
    assert (content["benchmark"], content["number"], content["phase"]) == ("toy", 1, "ongoing")
    assert content["subset"]["size"] == len(content["subset"]["tasks"]) == board.subset.members.count()
    ranks = [agent["at"][content["target"]]["rank"] for agent in content["agents"]]
    assert ranks == sorted(ranks)
    assert content["digest"] == board.digest


def test_it_takes_three_queries(client, board, django_assert_num_queries):
    """Benchmark; board with subset and policy; entries."""
    with django_assert_num_queries(3):
        client.get(URL)


def test_no_board_yet(client, toy):
    response = client.get(URL)
    assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
    assert response.json()["detail"] == "No board is published yet."


def test_unknown_benchmark_and_unknown_address(client, db):
    for url in ("/api/v1/benchmarks/nope/board", "/api/v1/nothing"):
        response = client.get(url)
        assert (response.status_code, response["Content-Type"]) == (404, "application/problem+json")
    assert response.json()["detail"] == "Nothing is at this address. Check the path."


def test_private_board_is_for_members(client, board, submit_token):
    Benchmark.objects.update(visibility=Visibility.PRIVATE)
    assert client.get(URL).status_code == 404
    response = client.get(URL, headers={"Authorization": f"Bearer {submit_token}"})
    assert response.status_code == 200
    assert response["Cache-Control"] == "private, no-store"


def test_other_methods(client, board):
    response = client.post(URL, "{}", content_type="application/json")
    assert (response.status_code, response["Content-Type"]) == (405, "application/problem+json")


def test_errors_outside_of_views_are_problems_under_api_and_pages_elsewhere(client, board, monkeypatch):
    client.raise_request_exception = False
    monkeypatch.setattr("leaderboard.api.views.boards.visible", None)
    monkeypatch.setattr("leaderboard.pages.home.listed_benchmarks", None)
    answers = [client.get(URL), client.get("/"), client.get(URL, headers={"Host": "elsewhere.example"})]
    assert [(a.status_code, a["Content-Type"]) for a in answers] == [
        (500, "application/problem+json"),
        (500, "text/html; charset=utf-8"),
        (400, "application/problem+json"),
    ]
    assert "not a name of this service" in answers[-1].json()["detail"]


@pytest.mark.parametrize("address", [URL, "/", "/b/toy", "/b/toy/validity"])
def test_without_its_database_the_service_says_when_to_come_again(client, board, monkeypatch, address):
    def away(*_, **__):
        raise OperationalError("the connection is closed")

    client.raise_request_exception = False
    with monkeypatch.context() as patch:
        patch.setattr("django.db.backends.base.base.BaseDatabaseWrapper.cursor", away)
        answer = client.get(address)
    kind = "application/problem+json" if address == URL else "text/html; charset=utf-8"
    assert (answer.status_code, answer["Content-Type"], answer["Retry-After"]) == (503, kind, "5")
    assert "database does not answer" in answer.content.decode()


def test_a_foreign_host_leaves_no_traceback_in_the_log(client, board, monkeypatch):
    logged, listening = [], logging.Handler()
    monkeypatch.setattr(listening, "emit", logged.append)
    monkeypatch.setattr(logging.getLogger(), "handlers", [listening])
    assert client.get("/", headers={"Host": "elsewhere.example"}).status_code == 400
    assert not [record for record in logged if record.exc_info]
