"""The feed: Atom that a reader takes, with ids that stay."""

import xml.etree.ElementTree as ET
from datetime import datetime

import pytest

from leaderboard.boards.queries import boards_of, outlines, standings_of
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.operations.models import Event
from leaderboard.studies.answers import words
from tests.leaderboard.pages.counting import HOSTILE
from tests.toys import graded

ATOM = "{http://www.w3.org/2005/Atom}"


def priced(agents):
    """A flat file with costs."""
    head = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,cost_usd\n"
    return head + "".join(
        f"Toy,{agent},Loop,M,2026-01-05,t{j},1,{mark},2.5\n"
        for agent, marks in agents.items()
        for j, mark in enumerate(marks)
    )


@pytest.fixture
def two(publish):
    agents = graded(7, 20)
    best = {"best": "1" * 20}
    return publish(agents, best)


def feed(client, slug="toy"):
    answer = client.get(f"/b/{slug}/feed")
    assert answer["Content-Type"] == "application/atom+xml; charset=utf-8"
    return ET.fromstring(answer.content)


def test_it_has_what_atom_asks_for(client, two):
    found = feed(client)
    assert found.tag == f"{ATOM}feed"
    for element in (found, *found.findall(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert len(element.findall(f"{ATOM}{name}")) == 1
        assert element.findtext(f"{ATOM}id").startswith("urn:uuid:")
        assert datetime.fromisoformat(element.findtext(f"{ATOM}updated")).tzinfo
    assert found.findtext(f"{ATOM}author/{ATOM}name") == "Bandstand"
    links = {link.get("rel"): link.get("href") for link in found.findall(f"{ATOM}link")}
    assert links == {"self": "http://testserver/b/toy/feed", "alternate": "http://testserver/b/toy"}


def test_an_entry_a_board_with_its_headline_and_what_changed(client, two):
    latest, first = feed(client).findall(f"{ATOM}entry")
    assert latest.find(f"{ATOM}link").get("href") == "http://testserver/b/toy/v2"
    headline = words.headline(standings_of(two))
    assert latest.findtext(f"{ATOM}summary").startswith(headline)
    assert "1 agent entered" in latest.findtext(f"{ATOM}summary")
    n_first = len(standings_of(two).targets["full"].may_be_first)
    assert latest.findtext(f"{ATOM}title") == f"Board 2: {n_first} of 8 could be the best"
    assert first.findtext(f"{ATOM}summary").endswith(" The first board.")


def test_its_headlines_are_those_of_the_boards_as_their_own_messages_told_them(client, two):
    told = {
        event.payload["number"]: event.payload["headline"]
        for event in Event.objects.filter(kind="board.published")
    }
    assert len(told) == 2
    boards = list(boards_of(two.benchmark))
    found = outlines(boards)
    assert {board.number: words.headline(found[board.pk]) for board in boards} == told


def test_ids_stay_under_another_host_and_another_title(client, two, settings):
    before = [one.text for one in feed(client).iter(f"{ATOM}id")]
    settings.SITE_URL = "https://board.example"
    Benchmark.objects.update(title="Another")
    found = feed(client)
    assert [one.text for one in found.iter(f"{ATOM}id")] == before
    assert len(set(before)) == 3
    assert found.find(f"{ATOM}link").get("href") == "https://board.example/b/toy"


def test_costs_that_todays_policy_hides_are_hidden_in_old_entries(client, publish):
    publish(priced(graded(6, 20)))
    assert "$" in ET.tostring(feed(client), "unicode")
    values = Policy.objects.values().get() | {"number": 2, "show_costs": False}
    Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
    assert "$" not in ET.tostring(feed(client), "unicode")


def test_names_are_data_in_the_xml_and_in_the_html_inside(client, publish):
    publish({"<b>x</b>&": "1" * 20, "a": "0" * 20})
    Benchmark.objects.update(title=HOSTILE + "\x0b", description="\x00\x1f" if False else "a\x0bb")
    found = feed(client)
    assert "‮" not in found.findtext(f"{ATOM}title")
    summary = found.findtext(f"{ATOM}entry/{ATOM}summary")
    assert "&lt;b&gt;x&lt;/b&gt;&amp;" in summary
    assert "<b>" not in summary


def test_without_a_board_it_is_empty_and_still_dated(client, db):
    made = Benchmark.objects.create(slug="toy", title="Toy")
    made.refresh_from_db()
    found = feed(client)
    assert found.findall(f"{ATOM}entry") == []
    assert datetime.fromisoformat(found.findtext(f"{ATOM}updated")) == made.created_at
