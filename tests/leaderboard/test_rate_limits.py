"""How much one visitor may ask of a process."""

import pytest

from leaderboard.rate_limits import MAX_VISITORS, Spent
from tests.toys import recomputed


@pytest.fixture
def ask(client, toy, settings):
    recomputed()
    settings.VISITOR_SECONDS = 1e-9  # any page spends it
    return lambda path, address="192.0.2.1", **heads: client.get(path, headers=heads, REMOTE_ADDR=address)


def test_who_has_asked_for_much_waits(ask):
    assert ask("/b/toy?find=a").status_code == 200
    refused = ask("/b/toy?find=b")
    assert (refused.status_code, refused.headers["Cache-Control"]) == (429, "no-store")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    problem = ask("/api/v1/benchmarks/toy/board")
    assert (problem.status_code, problem.headers["Content-Type"]) == (429, "application/problem+json")
    # Others are not kept waiting; a token has limits of its own, which a page does not know.
    assert ask("/b/toy?find=c", "192.0.2.2").status_code == 200
    assert ask("/api/v1/benchmarks/toy/board", authorization="Bearer none").status_code == 401
    assert ask("/b/toy?find=d", authorization="Bearer none").status_code == 429


def test_an_address_of_ones_own_making_is_no_way_round(ask, settings):
    settings.PROXIES = 1
    assert ask("/b/toy", **{"x-forwarded-for": "192.0.2.1"}).status_code == 200
    assert ask("/b/toy", **{"x-forwarded-for": "8.8.8.8, 192.0.2.1"}).status_code == 429
    assert ask("/b/toy", **{"x-forwarded-for": "192.0.2.1, 192.0.2.7"}).status_code == 200


def test_behind_a_proxy_that_nobody_told_of_visitors_are_not_told_apart(ask):
    for _ in range(3):
        assert ask("/b/toy", **{"x-forwarded-for": "192.0.2.1"}).status_code == 200


def test_a_minute_later_one_begins_anew():
    spent = Spent()
    spent.add("a", 3.0, now=0.0)
    assert spent.wait("a", 3.0, now=10.0) == 50
    assert spent.wait("a", 3.1, now=10.0) == 0
    assert spent.wait("a", 3.0, now=60.0) == 0
    spent.add("a", 1.0, now=61.0)
    assert spent.wait("a", 3.0, now=62.0) == 0


def test_what_is_remembered_has_an_end():
    spent = Spent()
    for n in range(MAX_VISITORS + 5):
        spent.add(str(n), 9.0, now=0.0)
    assert spent.wait("0", 1.0, now=1.0) == 0
    assert spent.wait(str(MAX_VISITORS), 1.0, now=1.0) == 59
