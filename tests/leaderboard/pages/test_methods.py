"""Every statistic has its sentence, its formula and its source."""

import re

import pytest

from analytics.drift.monitor import ADVICE
from leaderboard.studies.answers import validated, words
from tests.conftest import ROOT
from tests.seen import text_of

# What other pages link to.
ANCHORS = {
    "score",
    "intervals",
    "rank-sets",
    "first",
    "icc",
    "validation",
    "error-bars",
    "drift",
    "costs",
    "trust",
}


@pytest.fixture
def page(client):
    return client.get("/methods").content.decode()


@pytest.fixture
def methods(page):
    """What stands under each heading, by its anchor."""
    parts = re.split(r'<h3 id="([^"]+)">', page)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_what_other_pages_link_to_is_there_once(page):
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(ids) >= ANCHORS
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_all_are_listed_at_the_top_by_their_names(page):
    named = re.findall(r'<h3 id="([^"]+)">(.*?)</h3>', page)
    assert re.findall(r'<a href="#([^"]+)">(.*?)</a>', page.split("</nav>")[-2]) == named


def test_each_begins_with_a_sentence_and_names_its_source(methods):
    for anchor, text in methods.items():
        assert re.match(r".*?</h3>\s*<p>.*\.</p>", text), anchor
        assert '<ul class="formula">' in text or '<dl class="legend">' in text, anchor
        if anchor in ANCHORS - {"costs", "trust"}:
            assert "Source: " in text, anchor


def test_every_word_of_a_board_and_of_a_validation_is_explained(client):
    text = text_of(client.get("/methods"))
    told = [*words.LEGEND.values(), *validated.LEGEND.values(), *words.PHASES.values(), *words.MARKS.values()]
    unsaid = [one for one in told if " ".join(one.replace("`", "").split()) not in text]
    assert unsaid == [words.LEGEND["Tied with"]]  # the same as `Ties`, for a table of one's own


def test_every_monitor_is_named(methods):
    assert {name.lower() for name in re.findall("<dt>(.*?)</dt>", methods["drift"])} == set(ADVICE)


def test_the_sources_are_there(page):
    """A module that is named exists."""
    sources = " ".join(re.findall("Source: (.*?)</p>", page))
    named = re.findall(r"(?:analytics|selection)/[\w/.]+", sources)
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path.rstrip(".")).exists()] == []


def test_it_takes_no_query_and_holds_for_everybody(client, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        answer = client.get("/methods")
    assert "public" in answer["Cache-Control"]
    assert not answer.cookies
