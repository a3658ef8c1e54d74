"""Two to five agents side by side: how they differ, how surely, and on which tasks."""

import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

import numpy as np
import pytest
from django.db.models import F

from leaderboard.boards.models import Entry
from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.operations.corrections import unload
from leaderboard.pages.compare import (
    AgentDifference,
    n_shared,
    points_text,
    rest_of,
    time_text,
    tokens_text,
    verdict_of,
    wins,
    wins_text,
)
from leaderboard.pages.templatetags.figures import score
from leaderboard.studies.pairs import LAST
from leaderboard.submissions.models import Submission
from tests.leaderboard.pages.test_studies import cells
from tests.leaderboard.world import World
from tests.seen import text_of
from tests.toys import board_of, csv_text, ladder, lines_of, load_text, rows_text

AS_OF = datetime(2026, 6, 1, 12, 5, tzinfo=UTC)


def published(outcomes=None, *, text=None):
    return board_of(text or csv_text(outcomes), as_of=AS_OF)


@pytest.fixture
def toy(db):
    """Agent i of 16 passes the first tasks of 20: a15 all, a14 all but t19, a07 to t09, a05 to t07."""
    return published(ladder(16, 20))


def address(*names, page="compare"):
    ids = dict(Agent.objects.values_list("name", "pk"))
    return f"/b/toy/{page}?" + "&".join(f"a={ids[name]}" for name in names)


def twin(response):
    """The rows of the table under the drawing."""
    source = response.content.decode()
    (table,) = re.findall(r'<details id="table-compare">.*?<tbody>(.*?)</tbody>', source, re.S)
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]


def test_differences_are_counted_by_hand(client, toy):
    response = client.get(address("a15", "a14", "a05"))
    first, second = twin(response)
    assert first[:2] == ["a14", "−5.0"]
    assert first[4:7] == ["0", "1", "19"]
    assert second[:2] == ["a05", "−60.0"]
    assert second[4:] == ["0", "12", "8", "0", "worse"]
    text = text_of(response)
    assert "Compare with a15" in text
    assert "wins 0, loses 1, same on 19" in text
    assert "One of these two is tied with the reference (95%). a05 is clearly worse." in text
    assert "They differ on 12 of 20 tasks" in text


def test_the_interval_is_the_error_of_the_pair_times_the_critical_value_of_the_board(client, toy):
    """One trial of each task: two half-weight pseudo-tasks of ±1 beside the twenty differences."""
    d = np.array([0] * 17 + [-1] * 3)
    se = np.sqrt(d @ d + 1 - d.sum() ** 2 / 22) / 22
    half = toy.content["targets"]["full"]["critical"] * se
    ((_, value, lower, upper, *_),) = twin(client.get(address("a15", "a12")))
    assert [value, lower, upper] == [points_text(v) for v in (-0.15, -0.15 - half, -0.15 + half)]


def test_no_interval_goes_beyond_100_points(client, toy):
    ((_, value, lower, *_),) = twin(client.get(address("a15", "a00")))
    assert [value, lower] == ["−90.0", "−100.0"]


@pytest.mark.parametrize("reference", ["a15", "a08", "a00"])
def test_who_is_tied_is_what_the_board_says(client, toy, reference):
    lines = lines_of(toy)
    names = [entry.name for entry in toy.entries.order_by("position")]
    ranges = lines[reference].at["full"].tied_with
    tied = {name for lo, hi in ranges for name in names[lo : hi + 1]}
    others = [name for name in names if name != reference]
    for some in (others[i : i + 4] for i in range(0, 12, 4)):
        for row in twin(client.get(address(reference, *some))):
            assert (row[-1] == "tied") == (row[0] in tied)
            holds_0 = not ({row[2][0], row[3][0]} == {"+"} or {row[2][0], row[3][0]} == {"−"})
            assert holds_0 == (row[0] in tied)


def test_tasks_on_which_they_differ_are_listed_with_what_each_has_there(client, toy):
    page = client.get(address("a15", "a13", "a14")).content.decode()
    assert cells(page, "differing") == [
        ["t18", "passed", "failed", "passed"],  # a13 passes 18 tasks: j·16 < 14·20 − 1
        ["t19", "passed", "failed", "failed"],
    ]


def facts(response):
    """By label the cells of the table of facts, a star before what is bold."""
    (table,) = re.findall(r'<table class="side-by-side">.*?</table>', response.content.decode(), re.S)
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', table, re.S)
    return {
        label: [
            re.sub("<[^>]+>", "", cell.replace("<b>", "*")) for cell in re.findall("<td>(.*?)</td>", cells)
        ]
        for label, cells in rows
    }


def test_facts_stand_side_by_side_and_what_differs_from_the_reference_is_bold(client, db):
    """a05 states what it cost and used, a04 only a cost: of 20 tasks at $0.50, 120 tokens and 9 s each."""
    rows = [
        {"agent": f"a{i:02d}", "task": f"t{j:02d}", "outcome": int(j < 3 * i), "submitted_at": "2026-02-04"}
        | {"cost_usd": 0.5 if i > 3 else 0.25}
        | (
            {"n_input_tokens": 120, "seconds_execution": 9, "organisation": "Acme", "weights": "open"}
            if i == 5
            else {}
        )
        for i in range(6)
        for j in range(20)
    ]
    board = published(text=rows_text(rows))
    at = {name: line.at["full"] for name, line in lines_of(board).items()}
    told = facts(client.get(address("a05", "a04", "a03")))
    assert told == {
        "95% rank range": [
            ("*" if i and at[a] != at["a05"] else "") + f"{at[a].rank_lower}–{at[a].rank_upper}"
            for i, a in enumerate(("a05", "a04", "a03"))
        ],
        "Score on all 20 tasks": [score(at["a05"]), *(f"*{score(at[a])}" for a in ("a04", "a03"))],
        "Cost per full run": ["$10.00", "$10.00", "*$5.00"],
        "Tokens per full run": ["2.4 k", "*–not stated", "*–not stated"],
        "Time per full run": ["3 min", "*–not stated", "*–not stated"],
        "Date": ["2026-02-04"] * 3,
        "Organisation": ["Acme", "*–not stated", "*–not stated"],
        "Weights": ["open", "*–not stated", "*–not stated"],
        "Trust": ["verified"] * 3,
    }  # no agent states a link
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=2, show_costs=False)
    assert "Cost per full run" not in facts(client.get(address("a05", "a04")))


def test_numbers_of_facts_are_short():
    assert [tokens_text(n) for n in (850, 12_345, 4_100_000)] == ["850", "12.3 k", "4.1 M"]
    assert [time_text(n) for n in (42, 720, 12_600)] == ["42 s", "12 min", "3.5 h"]


def test_tasks_stand_by_category_and_those_that_the_reference_wins_come_first(client, db):
    """Tasks 0–9 are of 'b', the others of 'a'; a0 passes the even ones, a1 the lower half of each."""
    rows = [
        {
            "agent": f"a{i}",
            "task": f"t{j:02d}",
            "category": "b" if j < 10 else "a",
            "outcome": int(j % 2 == 0 if i == 0 else j % 10 < 5 if i == 1 else (i + j) % 3 == 0),
        }
        for i in range(6)
        for j in range(20)
    ]
    published(text=rows_text(rows))
    source = client.get(address("a0", "a1")).content.decode()
    found = re.findall(r'<th scope="rowgroup"[^>]*><bdi>(\w)|<a href="/b/toy/tasks/\d+"><bdi>(t\d+)', source)
    assert [one or other for one, other in found] == [
        *("a", "t16", "t18", "t11", "t13"),
        *("b", "t06", "t08", "t01", "t03"),
    ]


def test_repeated_trials_count_as_their_mean(client, db):
    rows = [
        {"agent": f"a{i}", "task": f"t{j:02d}", "trial": trial, "outcome": int((j + i * trial) % 4 < 2)}
        for i in range(6)
        for j in range(20)
        for trial in (1, 2)
    ]
    published(text=rows_text(rows))
    means = [[np.mean([(j + i * t) % 4 < 2 for t in (1, 2)]) for j in range(20)] for i in range(2)]
    told = wins(means[1], means[0])
    response = client.get(address("a0", "a1"))
    ((_, points, *_, won, lost, alike, _, _),) = twin(response)
    assert [won, lost, alike] == [str(n) for n in told[:3]]
    assert points == points_text(np.mean(means[1]) - np.mean(means[0]))
    assert "50.0%" in text_of(response)


def test_wins_are_counted_on_tasks_that_both_ran():
    nan = float("nan")
    told = wins([1, 0, 0.5, nan, 1 / 3], [0, 1, 0.5, 1, 1 - 2 / 3])
    assert told == (1, 1, 2, 1)
    assert wins_text(told) == "wins 1, loses 1, same on 2 of 4 both ran"


def test_tasks_are_counted_that_more_than_one_ran():
    nan = float("nan")
    assert n_shared([[1, 0, nan, nan], [1, nan, 0, nan], None, [0, nan, nan, 1]]) == 1
    assert n_shared([[1, 0], [nan, 1]]) == 1
    assert n_shared([None]) == 0


def test_an_estimated_agent_is_compared_by_its_estimate(client, db):
    world = World()
    world.board()
    name, _ = world.newcomer()
    board = world.board()
    lines = lines_of(board)
    assert lines[name].at["full"].estimated
    ((_, points, *_),) = twin(client.get(address("f00", name)))
    assert points == f"~{points_text(lines[name].at['full'].score - lines['f00'].at['full'].score)}"
    text = text_of(client.get(address("f00", name)))
    n_both, n_all = lines[name].n_tasks, board.n_tasks
    assert f" of {n_both} both ran" in text
    assert f"{points} points" in text
    assert re.search(rf"They differ on \d+ of {n_both} tasks", text)
    assert f"{n_all - n_both} other tasks were run by at most one of them." in text


def test_without_agents_there_is_a_form_with_a_suggestion(client, toy):
    response = client.get("/b/toy/compare")
    source = response.content.decode()
    assert len(re.findall(r'<select name="a"', source)) == 5
    chosen = re.findall(r'<option selected value="(\d+)">(\w+)</option>', source)
    assert [name for _, name in chosen][:1] == ["a15"]
    names = [entry.name for entry in toy.entries.order_by("position")]
    tied = {n for lo, hi in lines_of(toy)["a15"].at["full"].tied_with for n in names[lo : hi + 1]}
    assert {name for _, name in chosen[1:]} <= tied
    assert "<svg" not in source.split("<main")[1]


def test_a_single_agent_has_nobody_to_be_compared_with(client, db):
    published({"only": "01" * 10})
    response = client.get("/b/toy/compare")
    assert "There is only one agent so far." in text_of(response)
    assert "<select" not in response.content.decode()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?a=0", "One agent is not on the latest board."),
        ("?a=x&a=%00&a=9999999999999999999", "3 agents are not on the latest board."),
        ("?a=&a=", ""),
    ],
)
def test_whom_it_does_not_know_it_says(client, toy, query, said):
    response = client.get(f"/b/toy/compare{query}")
    assert response.status_code == 200
    assert said in text_of(response)
    assert "Compare agents" in text_of(response)


def test_one_is_too_few_and_six_are_too_many(client, toy):
    text = text_of(client.get(address("a15")))
    assert "You chose one agent. Choose one to four others." in text
    names = [f"a{i:02d}" for i in range(10, 16)]
    text = text_of(client.get(address(*names)))
    assert "You chose 6 agents. The first 5 are compared." in text
    assert "wins" not in text
    assert "You chose one agent" in text_of(client.get(address("a15", "a15")))


def test_an_agent_is_made_the_reference_or_left_out_by_a_link(client, toy):
    a, b, c = (Agent.objects.get(name=name).pk for name in ("a15", "a14", "a07"))
    source = client.get(address("a15", "a14", "a07")).content.decode()
    assert f'href="?a={c}&amp;a={a}&amp;a={b}"' in source
    assert f'href="?a={a}&amp;a={b}"' in source
    assert "/api/v1/benchmarks/toy/compare?agents=a15&amp;agents=a14&amp;agents=a07&amp;target=full" in source


def test_newer_data_are_told(client, toy):
    assert "The data are newer" not in text_of(client.get(address("a15", "a14")))
    load_text(csv_text({"new": "1" * 20}, day="2026-02-05"))
    text = text_of(client.get(address("a15", "a14")))
    assert f"The data are newer than board {toy.number}." in text


def test_what_is_withdrawn_is_not_compared(client, toy):
    (submission,) = Submission.objects.filter(agent__name="a14")
    unload(uuids=[submission.uuid], reason="the wrong file", as_of=AS_OF)
    response = client.get(address("a15", "a14"))
    assert response.status_code == 200
    assert "a14 was withdrawn after board" in text_of(response)
    assert "wins" not in text_of(response)


def test_the_drawing_stands_alone_under_the_same_agents(client, toy):
    source = client.get(address("a15", "a05")).content.decode()
    (link,) = re.findall(r'<a href="([^"]+compare\.svg[^"]*)">SVG</a>', source)
    response = client.get(link.replace("&amp;", "&"))
    assert response["Content-Type"] == "image/svg+xml"
    assert "a05: −60.0 points, worse" in ET.tostring(ET.fromstring(response.content), "unicode")
    assert client.get("/b/toy/plots/compare.svg").status_code == 404
    assert client.get("/b/toy/plots/compare.svg?a=0&a=1").status_code == 404


def test_what_is_not_public_does_not_exist_and_before_a_board_it_says_so(client, db):
    load_text(csv_text(ladder(6, 12)))
    assert "No board yet" in text_of(client.get("/b/toy/compare"))
    assert client.get("/b/toy/plots/compare.svg").status_code == 404
    Benchmark.objects.update(visibility="private")
    assert client.get("/b/toy/compare").status_code == 404


@pytest.mark.parametrize("n", [16, 60])
def test_it_takes_as_many_queries_for_few_agents_as_for_many(client, db, n, django_assert_num_queries):
    published(ladder(n, 20))
    LAST.clear()
    first, second = address("a00", "a05"), address("a00", "a07")
    with django_assert_num_queries(4):  # the benchmark; its latest board; its entries; the leader's ties
        client.get("/b/toy/compare")
    # Those; names of today; twice what decides what is read; the record, and what was decided; facts; tasks.
    with django_assert_num_queries(42):
        client.get(first)
    with django_assert_num_queries(12):  # what decides what is read, which is kept; two entries; tasks
        client.get(second)


def test_what_was_read_is_kept_until_anything_changes(client, toy):
    text = text_of(client.get(address("a15", "a14")))
    assert len(LAST) == 1
    assert text_of(client.get(address("a15", "a14"))) == text
    Agent.objects.filter(name="a14").update(name="renamed")
    Benchmark.objects.update(shown_version=F("shown_version") + 1)
    ids = dict(Agent.objects.values_list("name", "pk"))
    assert client.get(f"/b/toy/compare?a={ids['a15']}&a={ids['renamed']}").status_code == 200
    ((now, *_),) = LAST.values()
    assert "renamed" in now.record.table.agents


def differences(*words):
    return [AgentDifference(Entry(name=f"a{i}"), 0.0, word=word) for i, word in enumerate(words)]


@pytest.mark.parametrize(
    ("words", "verdict", "rest"),
    [
        (["tied"], "They are tied: no clear difference (95%).", ""),
        (["worse"], "a0 is clearly worse (95%).", ""),
        (["tied", "tied"], "Both are tied with the reference (95%).", ""),
        (["tied"] * 4, "All four are tied with the reference (95%).", ""),
        (
            ["tied", "tied", "tied", "worse"],
            "Three of these four are tied with the reference (95%).",
            "a3 is clearly worse.",
        ),
        (
            ["better", "worse", "worse"],
            "None of these three is tied with the reference (95%).",
            "a0 is clearly better. a1 and a2 are clearly worse.",
        ),
        (["", ""], "These data cannot order them.", ""),
    ],
)
def test_the_verdict_counts_who_is_tied(words, verdict, rest):
    found = differences(*words)
    assert re.sub("<[^>]+>", "", verdict_of(found)) == verdict
    assert re.sub("<[^>]+>", "", rest_of(found)) == rest


def test_agents_are_called_by_the_names_that_were_delivered(client, db):
    made_of = {"Tree (M 5)": ("Tree", "M 5"), "Loop v3": ("Loop", "not stated"), "other": ("Zed", "M 7")}
    rows = [
        {"agent": name, "scaffold": scaffold, "model": model, "task": f"t{j:02d}", "outcome": int(j < 10 * i)}
        for i, (name, (scaffold, model)) in enumerate(made_of.items())
        for j in range(20)
    ]
    published(text=rows_text(rows))
    offered = re.findall(r"<option[^>]*>([^<]*)<", client.get("/b/toy/compare").content.decode())
    assert set(offered) == {*made_of, "nobody"}
    text = text_of(client.get(address("Tree (M 5)", "other")))
    assert "Compare with Tree (M 5)" in text
    assert "other is clearly better (95%)" in text
