"""Every statistic has its sentence, its formula and its source."""

import re

from analytics.drift.monitor import ADVICE
from leaderboard.pages.methods import HOLDS, PARTS
from leaderboard.studies.answers import validated, words
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


def methods():
    return [method for part in PARTS for method in part.methods]


def test_what_other_pages_link_to_is_there_once(client):
    page = client.get("/methods").content.decode()
    ids = re.findall(r'id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(ids) >= ANCHORS
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_each_begins_with_a_sentence_and_names_its_source():
    for method in methods():
        assert method.plain.endswith("."), method.anchor
        assert method.formula or method.terms, method.anchor
        if method.anchor in ANCHORS - {"costs", "trust"}:
            assert method.source, method.anchor


def test_every_word_of_a_board_and_of_a_validation_is_explained(client):
    text = text_of(client.get("/methods"))
    told = [*words.LEGEND.values(), *validated.LEGEND.values(), *words.PHASES.values(), *words.MARKS.values()]
    unsaid = [one for one in told if " ".join(one.replace("`", "").split()) not in text]
    assert unsaid == [words.LEGEND["Tied with"]]  # the same as `Ties`, for a table of one's own


def test_every_monitor_is_named():
    (drift,) = (method for method in HOLDS.methods if method.anchor == "drift")
    assert {name.lower() for name in drift.terms} == set(ADVICE)


def test_the_sources_are_there():
    """A module that is named exists."""
    from tests.conftest import ROOT

    named = re.findall(r"(?:analytics|selection)/[\w/.]+", " ".join(method.source for method in methods()))
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path.rstrip(".")).exists()] == []


def test_it_takes_no_query_and_holds_for_everybody(client, django_assert_num_queries, db):
    with django_assert_num_queries(0):
        answer = client.get("/methods")
    assert "public" in answer["Cache-Control"]
    assert not answer.cookies
