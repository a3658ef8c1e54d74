"""One task: who passes it, and whether it tells agents apart."""

import re
from datetime import timedelta

import pytest

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Agent, Task
from leaderboard.operations.benchmarks import retire
from leaderboard.operations.corrections import unload
from leaderboard.studies.models import SubsetTask
from leaderboard.submissions.models import Submission
from tests.leaderboard.pages.conftest import AS_OF
from tests.seen import rows_of, text_of
from tests.toys import csv_text, in_subset, ladder, load_text, only, recomputed, rows_text

# Ranks by hand: a 8, b 6, c 5, d 2 of 10.
FOUR = {"a": "1111111100", "b": "1111110000", "c": "1111000100", "d": "1100000000"}
LATER = AS_OF + timedelta(days=1)


def seen(client, name, slug="toy"):
    task = Task.objects.get(benchmark__slug=slug, name=name)
    return client.get(f"/b/{slug}/tasks/{task.pk}")


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("t07", "2 of 4 agents pass this task. 1 of the 2 ranks below an agent that fails."),
        ("t04", "2 of 4 agents pass this task. None of the 2 ranks below an agent that fails."),
        ("t06", "1 of 4 agents passes this task. No higher-ranked agent fails."),
        ("t00", "All 4 agents pass this task."),
        ("t09", "None of the 4 agents passes this task."),
    ],
)
def test_who_passes_it(client, publish, task, said):
    publish(FOUR)
    assert said in text_of(seen(client, task))


def test_the_one_that_passes_it_may_be_weak(client, publish):
    publish({"a": "11110", "b": "11100", "c": "10001"})
    said = "1 of 3 agents passes this task. It ranks below an agent that fails."
    assert said in text_of(seen(client, "t04"))


def test_dots_stand_in_the_order_of_ranks(client, publish):
    publish(FOUR)
    page = seen(client, "t07").content.decode()
    titles = re.findall(r"<title>([abcd]: [^<]*)</title>", page)
    assert titles == ["a: passed, rank 1", "b: failed, rank 2", "c: passed, rank 3", "d: failed, rank 4"]
    ids = [Agent.objects.get(name=name).pk for name in "abcd"]
    assert re.findall(r'<a href="/b/toy/agents/(\d+)"><circle', page) == list(map(str, ids))


def test_what_it_tells(client, publish):
    publish(FOUR)
    text = text_of(seen(client, "t06"))
    assert "Pass rate 25.0% over 4 agents; number 8 of 10, from the easiest" in text
    assert (
        "Discrimination 0.62: correlation with the mean on the other tasks, over 4 agents" in text
    )  # by hand in test_tasks_page
    for unknown in ("Ranking task", "Invalid trials", "Category", "Versions"):
        assert unknown not in text.split("Statistics")[1]


def test_where_all_are_equal_it_has_no_discrimination(client, publish):
    publish(FOUR)
    assert "Discrimination" not in text_of(seen(client, "t00"))  # all pass it


def test_versions_of_the_subset(client, publish):
    board = publish(ladder(16, 40))
    (row,) = rows_of(seen(client, "t13"), "versions")
    assert row[0] == "1"
    assert row[2:] == ["yes", "68.8%", "30% to 70%"]  # 11 of 16
    assert SubsetTask.objects.get(task__name="t13").pass_rate == 11 / 16
    assert in_subset(board)[0] == "t13"
    (row,) = rows_of(seen(client, "t12"), "versions")
    assert row[2:] == ["no", "–", "30% to 70%"]


def test_pass_rates_by_quarter(client, publish):
    dated = {"a": "2025-01-05", "b": "2025-03-31", "c": "2025-04-01", "d": "2026-01-01"}
    files = [csv_text({name: FOUR[name]}, day=day).splitlines() for name, day in dated.items()]
    publish("\n".join([files[0][0], *(line for file in files for line in file[1:])]) + "\n")
    page = seen(client, "t07").content.decode()
    assert re.findall(r"<title>(\d{4} Q\d: [^<]*)</title>", page) == [
        "2025 Q1: 50.0% of 2",  # a passes, b fails
        "2025 Q2: 100.0% of 1",
        "2026 Q1: 0.0% of 1",
    ]


def test_half_of_the_trials_passes_and_is_said_to(client, publish):
    rows = [
        {"agent": agent, "task": "t", "trial": trial, "outcome": outcome}
        for agent, outcomes in (("a", (1, 1)), ("b", (1, 0)), ("c", (0, 0)))
        for trial, outcome in enumerate(outcomes, 1)
    ]
    publish(rows_text([*rows, *({**row, "task": "u"} for row in rows)]))
    text = text_of(seen(client, "t"))
    assert "2 of 3 agents pass this task" in text
    assert "A mean of at least ½ counts as a pass." in text
    assert "b: mean score 50.0%, rank 2" in seen(client, "t").content.decode()


def test_graded_results_have_mean_scores_and_no_passes(client, publish):
    scores = {"a": (0.7, 1.0, 0.0), "b": (0.45, 0.2, 0.0), "c": (0.25, 0.1, 0.0)}
    rows = [
        {"agent": agent, "task": f"t{j}", "outcome": outcome, "submitted_at": "2026-01-05"}
        for agent, outcomes in scores.items()
        for j, outcome in enumerate(outcomes)
    ]
    publish(rows_text(rows))
    text = text_of(seen(client, "t0"))
    assert "3 agents score 25.0% to 70.0% on this task. Results by agent" in text
    assert "Mean score 46.7% over 3 agents" in text
    assert "Mean score over time" in text
    assert "3 agents score 0.0% on this task." in text_of(seen(client, "t2"))
    assert "a: mean score 100.0%, rank 1" in seen(client, "t1").content.decode()
    every = text_of(client.get("/b/toy/tasks"))
    assert (
        "2 of 3 tasks have a mean score of 30% to 70%. 1 is harder. Every agent scores 0% on 1 task." in every
    )
    assert "Mean scores are over the 3 agents with results on at least 95% of the tasks." in every
    for shown in (text, every):
        assert "mean score" in shown
        assert not re.search(r"(?i)pass rate|passes|a pass\b", shown)


def test_one_fraction_among_passes_and_failures_makes_no_board_graded(client, publish):
    rows = [
        {"agent": agent, "task": f"t{j}", "outcome": 0.5 if (agent, j) == ("a", 0) else j % 2}
        for agent in "abc"
        for j in range(10)
    ]
    publish(rows_text(rows))
    assert "All 3 agents pass this task." in text_of(seen(client, "t1"))


def test_invalid_trials_are_told_by_agent(client, publish):
    publish({"a": "1" * 20, "b": "1" * 19 + "x"})
    text = text_of(seen(client, "t19"))
    assert "One agent has run this task and passes it." in text
    assert "Invalid trials 1 (harness failures): b 1" in text
    assert "<title>b: no valid result, not ranked</title>" in seen(client, "t19").content.decode()


def test_a_task_that_was_retired_says_so(client, publish):
    publish(FOUR)
    retire(task=Task.objects.get(name="t07"), by=None, reason="it leaked <b>", as_of=LATER)
    recomputed(as_of=LATER)
    response = seen(client, "t07")
    assert "This task was retired on 2026-06-02. It leaked <b>." in text_of(response)
    assert "not counted since the task was retired" in text_of(response)
    assert "<b>" not in response.content.decode()
    assert "plot task" not in response.content.decode()
    assert client.get(f"/b/toy/plots/task.svg?task={Task.objects.get(name='t07').pk}").status_code == 404


def test_newcomers_that_were_not_asked_are_told_so(client, publish):
    subset = in_subset(publish(ladder(16, 40), slug="first"))
    board = publish(ladder(16, 40), {"newcomer": only("1" * 40, subset)})
    page = seen(client, "t39").content.decode()
    line = next(line for line in standings_of(board).agents if line.agent == "newcomer")
    assert f"newcomer: no valid result, rank {line.at['full'].rank}" in page
    assert "1 of 16 agents passes this task" in text_of(seen(client, "t39"))


def test_what_was_withdrawn_shows_nowhere_at_once(client, publish):
    publish(FOUR)
    unload(uuids=[Submission.objects.get(agent__name="c").uuid], reason="a mistake", as_of=LATER)
    text = text_of(seen(client, "t07"))
    assert "1 of 3 agents passes this task. No higher-ranked agent fails." in text
    assert "Ranks and scores are from that board" in text


def test_before_any_board_there_is_no_outcome(client, db):
    load_text(csv_text(FOUR))
    assert "No agent has a valid result on this task." in text_of(seen(client, "t07"))


def test_what_does_not_count_is_said(client, publish):
    publish(FOUR)
    policy = Task.objects.get(name="t07").benchmark.policies.get()
    policy.pk, policy.number, policy.universe = None, 2, [f"t{j:02d}" for j in range(5)]
    policy.save()
    assert "This task does not count." in text_of(seen(client, "t07"))


@pytest.mark.parametrize("pk", [0, 10**9, 10**30])
def test_there_is_no_such_task(client, publish, pk):
    publish(FOUR)
    assert client.get(f"/b/toy/tasks/{pk}").status_code == 404
    assert client.get(f"/b/toy/plots/task.svg?task={pk}").status_code == 404
    assert client.get("/b/toy/plots/quarters.svg").status_code == 404


def test_a_task_of_another_benchmark_is_not_found(client, publish):
    publish(FOUR)
    publish(FOUR, slug="second")
    other = Task.objects.filter(benchmark__slug="second").first()
    assert client.get(f"/b/toy/tasks/{other.pk}").status_code == 404
