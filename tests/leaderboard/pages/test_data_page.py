"""What can be downloaded, under which licence, and what is not in it."""

import re

import pytest
from django.urls import resolve

from leaderboard.catalog.models import Benchmark, Policy, Task
from leaderboard.operations.benchmarks import retire
from leaderboard.operations.corrections import unload
from leaderboard.submissions.models import Status, Submission
from tests.leaderboard.pages.conftest import AS_OF
from tests.leaderboard.pages.counting import HOSTILE
from tests.seen import text_of


@pytest.fixture
def two(publish):
    """Two agents, on ten tasks."""
    return publish({"a": "1" * 10, "b": "01" * 5})


def test_how_much_there_is(client, two):
    text = text_of(client.get("/b/toy/data"))
    assert "Toy : data Download 20 results of 2 agents on 10 tasks." in text
    assert "Data version: 1." in text


def test_what_is_not_stated_is_said(client, two):
    text = text_of(client.get("/b/toy/data"))
    assert "Licence not stated; ask the operator before you share the data" in text
    for name in ("Licence", "Citation"):
        assert f"{name} not stated" in text


def test_what_is_stated_stands_there_as_data(client, two):
    Benchmark.objects.update(
        licence="CC-BY-4.0",
        citation=HOSTILE,
        description=HOSTILE,
        title=HOSTILE,
        url="https://x.example/?a&b",
    )
    page = client.get("/b/toy/data").content.decode()
    assert "<script>alert" not in page
    assert "CC-BY-4.0" in page
    assert "ask the operator" not in page
    assert 'href="https://x.example/?a&amp;b"' in page


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x"])
def test_no_address_of_another_kind_is_a_link(client, two, url):
    Benchmark.objects.update(url=url)
    assert url not in client.get("/b/toy/data").content.decode()


def test_every_download_is_there_and_works(client, two):
    page = client.get("/b/toy/data").content.decode()
    links = set(re.findall(r'href="(/api/v1/[^"]+)"', page))
    named = {link.rsplit("/", 1)[1] for link in links}
    assert {
        f"{name}.{kind}" for name in ("outcomes", "board", "1") for kind in ("csv", "ndjson", "parquet")
    } <= named
    assert {"subsets.json", "data-dictionary", "tasks", "board", "validation", "variance"} <= named
    apart = ("outcomes", "data-dictionary")  # read by a connection of their own, which sees no test's rows
    for link in links:
        assert resolve(link).url_name
        if not link.rsplit("/", 1)[1].startswith(apart):
            assert client.get(link).status_code == 200, link


def test_what_waits_or_was_taken_back_is_not_counted(client, two):
    (gone,) = Submission.objects.filter(agent__name="b")
    unload(uuids=[gone.uuid], reason="the wrong file", as_of=AS_OF)
    assert "10 results of 1 agent on 10 tasks" in text_of(client.get("/b/toy/data"))
    Submission.objects.filter(agent__name="a").update(status=Status.WAITING)
    text = text_of(client.get("/b/toy/data"))
    assert "There are no results to download yet." in text
    assert "Submissions under embargo" in text


def test_retired_tasks_and_hidden_costs_are_said_to_be_left_out(client, two):
    assert "Costs" not in text_of(client.get("/b/toy/data"))
    retire(task=Task.objects.get(name="t03"), by=None, reason="broken", as_of=AS_OF)
    values = Policy.objects.values().get() | {"number": 2, "show_costs": False}
    Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
    text = text_of(client.get("/b/toy/data"))
    assert "on 9 tasks" in text
    assert "Results on 1 retired task." in text
    assert "Costs, which the operator hides." in text


def test_it_says_under_which_address_it_is_read_back(client, two, settings):
    assert "--server http://testserver" in text_of(client.get("/b/toy/data"))
    settings.SITE_URL = "https://board.example"
    text = text_of(client.get("/b/toy/data"))
    assert "bandstand export toy --with-subsets --server https://board.example" in text
    assert "[![board](https://board.example/b/toy/badge.svg)](https://board.example/b/toy)" in text


def test_without_a_board_it_stands(client, db):
    Benchmark.objects.create(slug="empty", title="Empty")
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=1)
    assert "There are no results to download yet." in text_of(client.get("/b/empty/data"))
