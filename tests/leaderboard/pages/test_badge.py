"""The badge says the ranks that may be held, never a rank alone."""

import xml.etree.ElementTree as ET

import pytest

from leaderboard.boards.models import Entry
from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.operations.corrections import unload
from leaderboard.pages.elsewhere import draw_badge, ranks_of, width_of
from leaderboard.submissions.models import Submission
from tests.leaderboard.pages.conftest import AS_OF
from tests.leaderboard.pages.counting import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def three(publish):
    """40 tasks, wide apart, so that each rank is certain; and one agent that lacks tasks."""
    agents = {f"a{i}": "1" * (20 * i) + "0" * (40 - 20 * i) for i in range(3)}
    return publish(agents | {"stopped": "1" * 9 + "." * 31})


def said(answer):
    drawn = ET.fromstring(answer.content)
    return drawn.findtext(f"{SVG}title"), [text.text for text in drawn.iter(f"{SVG}text")]


def asked(client, name, slug="toy"):
    return client.get(f"/b/{slug}/badge.svg?agent={Agent.objects.get(name=name).pk}")


def test_of_a_board(client, three):
    answer = client.get("/b/toy/badge.svg")
    assert answer["Content-Type"] == "image/svg+xml"
    assert said(answer) == (
        "Toy: 1 of 3 could be the best, on all 40 tasks",
        ["Toy", "1 of 3 could be the best"],
    )


def test_of_an_agent(client, three):
    assert said(asked(client, "a2"))[1] == ["Toy", "rank 1 of 3"]
    assert said(asked(client, "a0"))[0] == "Toy: rank 3 of 3, on all 40 tasks"


def test_of_an_agent_that_may_hold_several(client, publish):
    board = publish({"a": "01" * 10, "b": "10" * 10, "c": "1" * 10 + "0" * 10})
    entry = Entry.objects.get(board=board, name="a")
    assert (entry.line["at"]["full"]["rank_lower"], entry.line["at"]["full"]["rank_upper"]) == (1, 3)
    assert said(asked(client, "a"))[1] == ["Toy", "ranks 1–3 of 3"]
    assert "#" not in asked(client, "a").content.decode().replace('"#', "")


def test_of_an_agent_without_a_rank(client, three):
    assert said(asked(client, "stopped"))[1] == ["Toy", "not ranked"]


def test_a_rank_without_an_interval_is_not_told(three):
    entry = Entry(line={"at": {"full": {"rank": 1, "rank_lower": None, "rank_upper": None}}})
    assert ranks_of(entry, three, 3) == "one of 3, ranks not known"


@pytest.mark.parametrize("agent", ["999999", "x", "", "-1", "٣", "9" * 40])
def test_who_is_not_there_is_nobody(client, three, agent):
    answer = client.get("/b/toy/badge.svg", {"agent": agent})
    assert answer.status_code == 404
    assert said(answer)[1] == ["Toy", "not on the board"]


def test_who_waits_is_nobody(client, three):
    waiting = Agent.objects.get(name="a1")
    later = Agent.objects.create(
        benchmark=waiting.benchmark, name="z", scaffold=waiting.scaffold, model=waiting.model
    )
    assert said(asked(client, "z"))[1] == ["Toy", "not on the board"]
    later.merged_into, later.merged_version = waiting, 1
    later.save()
    assert said(asked(client, "z"))[1] == ["Toy", "rank 2 of 3"]  # the name of old is that agent's


def test_what_is_withdrawn_since_is_said(client, three):
    (gone,) = Submission.objects.filter(agent__name="a2")
    unload(uuids=[gone.uuid], reason="x", as_of=AS_OF)
    assert said(asked(client, "a2"))[1] == ["Toy", "withdrawn"]
    assert said(asked(client, "a1"))[1] == ["Toy", "rank 2 of 3"]


def test_without_a_board(client, db):
    Benchmark.objects.create(slug="toy", title="Toy")
    assert said(client.get("/b/toy/badge.svg"))[1] == ["Toy", "no board yet"]
    Benchmark.objects.update(visibility="private")
    assert client.get("/b/toy/badge.svg").status_code == 404


def test_a_title_is_data_and_cut(client, three):
    Benchmark.objects.update(title=HOSTILE)
    answer = client.get("/b/toy/badge.svg")
    assert "<script>" not in answer.content.decode()
    Benchmark.objects.update(title="x" * 200)
    assert said(client.get("/b/toy/badge.svg"))[1][0] == "x" * 31 + "…"


def test_widths_follow_the_characters():
    # 6.6 a character, 11.5 a wide one, and 8 on each side
    assert width_of("0123456789") == 82
    assert width_of("日本") == 39
    drawn = ET.fromstring(draw_badge(label="0123456789", value="日本", title="t"))
    assert drawn.get("width") == "121"
    boxes = [(box.get("x"), box.get("width")) for box in drawn.iter(f"{SVG}rect")]
    assert boxes == [(None, "82"), ("82", "39")]
    assert [text.get("x") for text in drawn.iter(f"{SVG}text")] == ["41", "101.5"]
