"""All tasks of a benchmark: what is said of them, and where it leads."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Agent, Benchmark, Task
from leaderboard.operations.benchmarks import retire
from leaderboard.operations.corrections import unload
from leaderboard.pages import tasks
from leaderboard.pages.charts import CHARTS
from leaderboard.studies.models import AgentScores
from leaderboard.submissions.models import Submission
from tests.leaderboard.pages.conftest import AS_OF
from tests.seen import rows_of, text_of
from tests.toys import csv_text, graded, in_subset, ladder, load_text, only, recomputed, rows_text

# Pass rates by hand: 1 1 ¾ ¾ ½ ½ ¼ ½ 0 0.
FOUR = {"a": "1111111100", "b": "1111110000", "c": "1111000100", "d": "1100000000"}
LATER = AS_OF + timedelta(days=1)


def seen(client, query="", slug="toy"):
    return client.get(f"/b/{slug}/tasks{query}")


def table(response):
    return {row[0]: row[1:] for row in rows_of(response, "every-task")}


def test_how_many_tell_agents_apart(client, publish):
    publish(FOUR)
    text = text_of(seen(client))
    assert (
        "3 of 10 tasks have a pass rate of 30% to 70%. 4 are easier and 3 are harder. 2 are passed by" in text
    )
    assert "There are no ranking tasks" in text
    assert "Pass rates are means over the 4 agents with results on at least 95% of the tasks." in text


def test_the_subset_is_the_band(client, publish):
    # Of 16 agents task j is passed by 16 − ⌊(16j + 1)/40⌋: 5 to 11 of them for j from 13 to 29.
    publish(ladder(16, 40))
    response = seen(client)
    text = text_of(response)
    assert "17 of 40 tasks have a pass rate of 30% to 70%. 13 are easier and 10 are harder" in text
    assert "The 17 tasks from 30% to 70% are the ranking tasks." in text
    chosen = {name for name, cells in table(response).items() if cells[-1] == "yes"}
    assert chosen == {f"t{j:02d}" for j in range(13, 30)}
    assert "the 17 ranking tasks, 30% to 70%" in text


def test_the_table_holds_what_is_drawn_from_the_easiest_on(client, publish):
    publish(FOUR)
    response = seen(client)
    rows = rows_of(response, "every-task")
    assert [row[0] for row in rows] == [f"t{j:02d}" for j in (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)]
    assert [row[1] for row in rows[:7]] == ["100.0%"] * 2 + ["75.0%"] * 2 + ["50.0%"] * 3
    assert {row[2] for row in rows} == {"4"}
    twin = CHARTS["tasks"](Benchmark.objects.get(), {})
    assert [row[:2] for row in twin.rows] == [tuple(row[:2]) for row in rows]
    # t06: passed by a alone. Others, of 9: 7, 6, 5, 2; deviations 2 1 0 −3 and ¾ −¼ −¼ −¼: r = 2/√(14·¾).
    assert table(response)["t06"][2] == f"{2 / (14 * 0.75) ** 0.5:.2f}" == "0.62"
    assert table(response)["t00"][2] == "none"


def test_agents_stand_in_the_boards_order_and_lead_to_their_pages(client, publish):
    board = publish(FOUR)
    page = seen(client).content.decode()
    ids = list(map(int, re.findall(r'<a href="/b/toy/agents/(\d+)"><text', page)))
    assert ids == list(Entry.objects.filter(board=board).order_by("position").values_list("agent", flat=True))
    drawn = client.get("/b/toy/plots/tasks.svg").content.decode()
    assert drawn.count("<path") == 4 + 4  # agents; the pass rates and three ticks of their axis


def test_tasks_are_found_by_name_and_by_subset(client, publish):
    publish(ladder(16, 40))
    assert list(table(seen(client, "?find=T1"))) == [f"t{j}" for j in range(10, 20)]
    assert "10 of 40 tasks" in text_of(seen(client, "?find=T1"))
    assert list(table(seen(client, "?find=t1&subset=no"))) == ["t10", "t11", "t12"]
    assert len(table(seen(client, "?subset=yes"))) == 17
    nothing = text_of(seen(client, "?find=<script>"))
    assert "No task matches." in nothing
    assert "17 of 40 tasks have a pass rate" in nothing  # what is found changes no figure
    assert "<script>" not in seen(client, "?find=<script>").content.decode()


def test_a_task_leads_to_its_page(client, publish):
    publish(FOUR)
    page = seen(client).content.decode()
    for task in Task.objects.all():
        assert f'<a href="/b/toy/tasks/{task.pk}"><bdi>{task.name}</bdi></a>' in page
    assert reverse("api:outcomes_csv", args=["toy"]) in page


def test_half_of_the_trials_is_half_of_the_height(client, publish):
    rows = [
        {"agent": agent, "task": f"t{j}", "trial": trial, "outcome": outcome}
        for agent, first, second in (("a", 1, 0), ("b", 0, 0), ("c", 1, 1))
        for j in range(2)
        for trial, outcome in ((1, first), (2, second))
    ]
    publish(rows_text(rows))
    page = seen(client).content.decode()
    assert "A partly filled cell is a mean between 0 and 1." in page
    assert "A dash is" not in page
    assert 'd="M0 0v0.5h2v-0.5"' in page
    assert 'd="M0 0v1h2v-1"' in page


def test_what_is_missing_is_told(client, publish):
    publish({"a": "11111111111111111111", "b": "1111111111111111110x", "c": "1" * 10 + "." * 10})
    response = seen(client)
    assert 'class="f-caution"' in response.content.decode()
    assert "A filled cell is a pass. A dash is no valid result." in text_of(response)
    assert table(response)["t19"][:2] == ["100.0%", "1"]
    assert table(response)["t18"][:2] == ["50.0%", "2"]
    assert table(response)["t19"][3] == "1"  # an invalid trial
    assert "1 other is left out" in text_of(response)


def test_newcomers_on_the_subset_move_no_pass_rate(client, publish):
    subset = in_subset(publish(ladder(16, 40), slug="first"))
    publish(ladder(16, 40), {"newcomer": only("1" * 40, subset)})
    response = seen(client)
    assert "17 of 40 tasks have a pass rate" in text_of(response)
    assert table(response)["t13"][:2] == ["68.8%", "17"]  # 11 of 16
    assert table(response)["t39"][:2] == ["6.2%", "16"]


def test_a_band_that_moved_is_told_and_marked(client, publish):
    board = publish(graded(16, 40), graded(20, 40, seed=3, prefix="b"))
    text = text_of(seen(client))
    n, inside = len(in_subset(board)), int(re.search(r"(\d+) of 40 tasks have a pass rate", text)[1])
    out, into = map(
        int,
        re.search(
            r"Now (\d+) of the \d+ (?:is|are) outside .*? and (\d+) other tasks? (?:is|are) inside", text
        ).groups(),
    )
    assert f"The {n} ranking tasks were chosen from the results of 16 agents" in text
    assert n - out + into == inside
    assert "The line below marks the ranking tasks." in text
    assert 'class="f-pareto"' in seen(client).content.decode()


def test_one_agent_tells_nothing_apart(client, publish):
    publish({"only": "01" * 10})
    text = text_of(seen(client))
    assert "One agent so far. Pass rates need at least two. It passes 10 of 20 tasks." in text


def test_without_a_valid_outcome_there_is_no_pass_rate(client, publish):
    lost = {"outcome": "", "valid": 0}
    publish(rows_text([{"agent": agent, "task": f"t{j}"} | lost for agent in "ab" for j in range(8)]))
    text = text_of(seen(client))
    assert "There is no valid result on the 8 tasks." in text
    assert "Pass rates are" not in text


def test_one_agent_that_ran_all_tasks_tells_nothing_apart(client, publish):
    # By hand: b and c lack half of the tasks, so that pass rates are a's own: 14 of 20.
    publish({"a": "111010" * 3 + "11", "b": "1" * 10 + "." * 10, "c": "0" * 10 + "." * 10})
    text = text_of(seen(client))
    assert "Only one agent has run the tasks. Pass rates need at least two." in text
    assert "It passes 14 of 20 tasks." in text


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("task", ["t00", "t01", "t02"]),
        ("-task", ["t09", "t08", "t07"]),
        ("rate", ["t08", "t09", "t06"]),  # equal ones stay from the easiest on
        ("-rate", ["t00", "t01", "t02"]),
        ("nonsense", ["t00", "t01", "t02"]),
    ],
)
def test_tasks_are_sorted_by_a_column(client, publish, sort, first):
    publish(FOUR)
    response = seen(client, f"?sort={sort}")
    assert list(table(response))[:3] == first
    if sort == "rate":
        assert '<th scope="col" class="c-rate" aria-sort="ascending">' in response.content.decode()
        assert 'href="?sort=-rate#table-tasks"' in response.content.decode()


def test_what_is_not_known_stands_last_whichever_way_tasks_are_sorted(client, publish):
    publish(FOUR)
    for sort, sign in (("discrimination", 1), ("-discrimination", -1)):
        told = [row[2] for row in table(seen(client, f"?sort={sort}")).values()]
        known = [float(text) for text in told if text != "none"]
        assert told[len(known) :] == ["none"] * 4
        assert known == sorted(known, key=lambda value: sign * value)


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        (
            {"a": "11111", "b": "11111"},
            "0 of 5 tasks have a pass rate of 30% to 70%. 5 are easier.",
        ),
        (
            {"a": "00000", "b": "00000"},
            "0 of 5 tasks have a pass rate of 30% to 70%. 5 are harder. 5 are passed by no agent.",
        ),
        (
            {"a": "11111", "b": "00000"},
            "5 of 5 tasks have a pass rate of 30% to 70%. No task is easier or harder.",
        ),
        (
            {"a": "10", "b": "00"},
            "1 of 2 tasks has a pass rate of 30% to 70%. 1 is harder. 1 is passed by no agent.",
        ),
    ],
)
def test_tasks_that_are_all_alike(client, publish, agents, said):
    publish(agents)
    assert said in text_of(seen(client))


def test_before_any_outcome(client, db):
    Benchmark.objects.create(slug="toy", title="Toy").policies.create(number=1)
    assert "There are no tasks yet." in text_of(seen(client))
    Task.objects.create(benchmark=Benchmark.objects.get(), name="t")
    text = text_of(seen(client))
    assert "There are no results yet on the 1 task." in text
    assert "No board has been published yet." in text
    assert client.get("/b/toy/plots/tasks.svg").status_code == 404


def test_before_the_board_outcomes_are_not_told(client, db):
    load_text(csv_text(FOUR))
    text = text_of(seen(client))
    assert "There are no results yet on the 10 tasks." in text
    assert "4 agents are not shown: new results wait for the next board." in text


def test_what_was_withdrawn_shows_nowhere_at_once(client, publish):
    publish(FOUR)
    gone = Submission.objects.get(agent__name="a")
    unload(uuids=[gone.uuid], reason="a mistake", as_of=LATER)
    text = text_of(seen(client))
    # Of b, c and d: 1 1 ⅔ ⅔ ⅓ ⅓ 0 ⅓ 0 0.
    assert "5 of 10 tasks have a pass rate of 30% to 70%. 2 are easier and 3 are harder" in text
    assert "Ranks and scores are from that board" in text
    assert f"/agents/{gone.agent_id}" not in seen(client).content.decode()


def test_a_part_under_another_name_is_not_shown(client, publish):
    """What is kept of an agent may be of other tasks; its columns would be read as those of now."""
    publish(FOUR)
    retire(task=Task.objects.get(name="t00"), by=None, reason="it leaked", as_of=LATER)
    text = text_of(seen(client))
    assert "There are no results yet on the 9 tasks." in text
    assert "4 agents are not shown" in text
    recomputed(as_of=LATER)
    response = seen(client)
    assert "3 of 9 tasks have a pass rate of 30% to 70%." in text_of(response)
    assert "t00 , 2026-06-02 : it leaked" in text_of(response)
    assert "t00" not in table(response)


def test_above_200_agents_rows_are_tenths(client, publish, monkeypatch):
    assert tasks.MAX_ROWS == 200
    monkeypatch.setattr(tasks, "MAX_ROWS", 20)
    publish({f"a{i:03d}": "1" * (i // 3) + "0" * (12 - i // 3) for i in range(30)})
    page = client.get("/b/toy/plots/tasks.svg").content.decode()
    assert page.count("<path") == 9 + 4  # the last tenth passes nothing
    assert "agents 1 to 3" in page
    assert "agents 28 to 30" in page
    assert "Each row is a tenth of the agents, best first" in text_of(seen(client))
    assert 'd="M0 0v1h9v-1h3"' in page  # the best tenth: all pass nine of twelve


def test_names_are_data(client, publish):
    publish(FOUR)
    Agent.objects.filter(name="a").update(name="<i>a</i>" + "x" * 240)
    Task.objects.filter(name="t00").update(name="\"'<b>t00" + "y" * 240)
    page = seen(client).content.decode()
    assert "<i>" not in page
    assert "<b>" not in page
    assert "&lt;b&gt;t00" in page
    assert "…" in page  # before its row the name is short, in its title whole
    assert "&lt;i&gt;a&lt;/i&gt;" + "x" * 240 in page


def test_the_drawing_stands_alone(client, publish):
    publish(FOUR)
    response = client.get("/b/toy/plots/tasks.svg")
    assert response["Content-Type"] == "image/svg+xml"
    assert response.content.decode() in seen(client).content.decode()
    assert Board.objects.count() == 1
    assert AgentScores.objects.count() == 4
