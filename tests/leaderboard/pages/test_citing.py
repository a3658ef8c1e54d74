"""How a board is cited."""

import re

import pytest

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Benchmark
from tests.conftest import ROOT


@pytest.fixture
def two(publish):
    return publish({"a": "1" * 10, "b": "0" * 10}, {"c": "01" * 5})


def test_number_date_address_and_digest(client, two):
    answer = client.get("/b/toy/cite")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"
    text = answer.content.decode()
    assert text.startswith("Toy, board 2. Bandstand, 1 June 2026. http://testserver/b/toy/v2\n")
    assert f"Digest of the board (SHA-256): {two.digest}\n" in text
    assert "The benchmark itself: not stated" in text
    assert "Licence of the results: not stated" in text
    assert "@misc{toy-board-2," in text
    assert "year = {2026}" in text
    assert "month = {jun}" in text


def test_an_older_board(client, two):
    first = Board.objects.get(number=1)
    assert first.digest in client.get("/b/toy/cite?board=1").content.decode()
    for asked in ("3", "0", "9" * 20):
        assert client.get(f"/b/toy/cite?board={asked}").status_code == 404
    assert b"board 2" in client.get("/b/toy/cite?board=x").content


def test_the_benchmark_s_own_citation_stands_as_it_is(client, two):
    Benchmark.objects.update(citation="@article{x, title={<GAIA>}}", title="50% {of} A_b\\c\n@misc{evil,")
    text = client.get("/b/toy/cite").content.decode()
    assert "The benchmark itself: @article{x, title={<GAIA>}}" in text
    assert r"title = {{50\% \{of\} A\_b\textbackslash{}c @misc\{evil,: leaderboard, board 2}}" in text
    assert text.count("\n@misc{") == 1


def test_what_is_closed_or_has_no_board_has_none(client, two):
    Benchmark.objects.create(slug="empty", title="Empty")
    assert client.get("/b/empty/cite").status_code == 404
    Benchmark.objects.update(visibility="private")
    assert client.get("/b/toy/cite").status_code == 404


def test_the_software_has_a_citation_of_its_own():
    told = (ROOT / "CITATION.cff").read_text()
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert f"\nversion: {version}\n" in told
    for field in ("cff-version: 1.2.0", "title: Bandstand", "license: Apache-2.0", "authors:", "message:"):
        assert field in told
