"""One agent: which ranks it may hold, what it passes, and everything that was delivered of it."""

import re
from dataclasses import replace
from datetime import timedelta

import pgtrigger
import pytest
from django.urls import reverse

from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Agent, Benchmark, Policy, Task
from leaderboard.operations.corrections import unload
from leaderboard.operations.erasing import erase_agent
from leaderboard.operations.naming import merge, rename
from leaderboard.pages.agent import THAT_COUNT, convergence_text, headline, icc_text, ordinal
from leaderboard.pages.ordered_outcomes import ordered_outcomes
from leaderboard.pages.templatetags.figures import score
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Status, StatusChange, Submission
from tests.leaderboard.pages.conftest import AS_OF
from tests.leaderboard.pages.lines import entrant
from tests.seen import rows_of, text_of
from tests.toys import csv_text, in_subset, ladder, load_text, only, recomputed, rows_text

# Ranks by hand: a 8, b 6, c 5, d 2 of 10.
FOUR = {"a": "1111111100", "b": "1111110000", "c": "1111000100", "d": "1100000000"}
LATER = AS_OF + timedelta(days=1)


def agent(name, slug="toy"):
    return Agent.objects.get(benchmark__slug=slug, name=name)


def seen(client, name, slug="toy"):
    return client.get(f"/b/{slug}/agents/{agent(name, slug).pk}")


def line_of(board, name):
    return next(line for line in standings_of(board).agents if line.agent == name)


def test_which_ranks_it_may_hold_and_what_it_passes(client, publish):
    board = publish(FOUR)
    told = line_of(board, "c").at["full"]
    assert (told.rank, told.rank_lower < told.rank_upper) == (3, True)
    text = text_of(seen(client, "c"))
    assert f"Rank 3 of 4 (95% rank range {told.rank_lower}–{told.rank_upper})." in text
    half = round(50 * (told.upper - told.lower), 1)
    assert f"Its score is 50.0 ± {half}% on all 10 tasks. Its cost is not stated." in text


def test_with_a_subset_both_scores_carry_their_tasks(client, publish):
    # The subset is t13 to t29; a15 passes all 40 tasks but t39 (39·16 < 16·40 − 1 fails at j = 40 alone).
    publish(ladder(16, 40))
    text = text_of(seen(client, "a07"))
    # a07 passes task j where 16j < 8·40 − 1: 20 tasks, of which t13 to t19 are seven of 17.
    assert re.search(
        r"Its score is 50\.0 ± [\d.]+% on all 40 tasks \(41\.2 ± [\d.]+% on the 17 .*tasks\)",
        text,
    )


def test_what_lies_between_failed_and_passed_is_a_score(client, publish):
    # By hand: (0.5 + 0.25) / 2 = 37.5%; b fails one of two.
    found = {"a": (0.5, 0.25), "b": (1, 0)}
    publish(
        rows_text(
            [
                {"agent": agent, "task": f"t{j}", "outcome": outcome}
                for agent, outcomes in found.items()
                for j, outcome in enumerate(outcomes)
            ]
        )
    )
    assert re.search(r"Its score is 37\.5[^%]*% on all 2 tasks", text_of(seen(client, "a")))
    assert re.search(r"Its score is 50\.0[^%]*% on all 2 tasks", text_of(seen(client, "b")))


def test_an_estimated_score_is_marked(client, publish):
    subset = in_subset(publish(ladder(16, 40), slug="first"))
    board = publish(ladder(16, 40), {"newcomer": only("1" * 40, subset)})
    at = line_of(board, "newcomer").at["full"]
    text = text_of(seen(client, "newcomer"))
    longer = 100 * max(at.upper - at.score, at.score - at.lower)
    assert f"Its score is ~{100 * at.score:.1f} ± {longer:.1f}% on all 40 tasks (100.0" in text
    assert "~ Estimated from the tasks that the agent ran." in text
    assert "Estimated" in text.split("About this agent")[1]  # the mark in words


def test_without_a_rank_it_says_why(client, publish):
    board = publish({"a": "1" * 20, "b": "1" * 10 + "0" * 10, "stopped": "1" * 5 + "." * 15})
    reason = line_of(board, "stopped").at["full"].reason
    text = text_of(seen(client, "stopped"))
    assert f"Not ranked. {words.sentence(reason)}" in text
    assert "The rank is from" not in text
    bounds = words.bounds_text(line_of(board, "stopped").at["full"])
    assert f"On all tasks it would score {bounds}." in text
    assert "Expected:" not in text
    assert "Neighbours on the board" not in text


def test_of_one_task_it_is_said_so(client, publish):
    publish({"only": "0"})
    assert "Its score is 0.0% on the one task" in text_of(seen(client, "only"))
    assert "The one task" in text_of(client.get("/b/toy"))
    assert "All 1 task" not in text_of(client.get("/b/toy?view=all"))


def test_one_agent_is_better_than_nobody(client, publish):
    publish({"only": "01" * 10})
    text = text_of(seen(client, "only"))
    assert "The only ranked agent so far. Its score is 50.0" in text
    assert "Neighbours on the board" not in text


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"rank": 1, "rank_lower": 1, "rank_upper": 1}, "Rank 1 of 4 (95%)."),
        ({"rank": 1, "rank_lower": None, "rank_upper": None}, "Rank 1 of 4."),
        ({"rank": 1, "rank_lower": 1, "rank_upper": 1200}, "Rank 1 of 4 (95% rank range 1–1,200)."),
        ({"rank": None}, "Not ranked."),
    ],
)
def test_every_kind_of_rank_has_its_sentence(publish, told, said):
    publish(FOUR)
    of, mine = (
        ordered_outcomes(Benchmark.objects.get()),
        Agent.objects.select_related("scaffold", "model").get(name="a"),
    )
    entry = of.entries[mine.pk]
    lines = list(of.standings.agents)
    line = lines[entry.position]
    lines[entry.position] = replace(line, at={**line.at, "full": replace(line.at["full"], **told)})
    of = replace(of, standings=replace(of.standings, agents=tuple(lines)))
    assert headline(of, of.line_of(mine), is_withdrawn=False) == said


def costly(costs):
    rows = [
        {"agent": name, "task": f"t{j}", "outcome": int(j < 2 + i), "cost_usd": cost}
        for i, (name, cost) in enumerate(costs.items())
        for j in range(10)
    ]
    return rows_text(rows)


def test_a_run_costs_what_its_tasks_cost(client, publish):
    publish(costly({"a": 1.5, "b": 2.0, "c": 0.001}))
    assert "on all 10 tasks at $15.00 per full run." in text_of(seen(client, "a"))
    # c: a cent, under a fiftieth of the median of $15.
    assert "Its stated cost of $0.01 per full run is implausible." in text_of(seen(client, "c"))


def test_hidden_costs_stay_hidden(client, publish):
    publish(costly({"a": 1.5, "b": 2.0, "c": 0.001}))
    values = Policy.objects.values().get() | {"number": 2, "show_costs": False}
    Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
    page = seen(client, "a")
    assert "$" not in text_of(page)
    assert "on all 10 tasks. The rank is from board 1" in text_of(page)
    assert "Cost hidden" in text_of(page)


def test_the_strip_is_what_it_passes_from_the_easiest_on(client, publish):
    publish(FOUR)
    page = seen(client, "c").content.decode()
    # t00 to t03, not t04 and t05, then t07 (½) before t06 (¼): passed.
    assert 'd="M0 0v1h4v-1h2v1h1v-1h3"' in page
    # The others: 1 1 ⅔ ⅔ ⅔ ⅔ ⅓ ⅓ 0 0 = 16/30, c has 15/30: moved by −1/30.
    expected = [1, 1, 2 / 3, 2 / 3, 2 / 3, 2 / 3, 1 / 3, 1 / 3, 0, 0]
    cells = rows_of(seen(client, "c"), "")
    assert [row[2] for row in cells] == [f"{max(0, 100 * one - 10 / 3):.0f}%" for one in expected]
    assert [row[0] for row in cells][6:8] == ["t07", "t06"]
    said = "Expected: mean of the 3 agents nearest in rank, minus 3.3 points for the difference in score."
    assert said in text_of(seen(client, "c"))


# Four pass t00 to t03 and one more; "odd" fails t00 and passes t09, which none of the others does.
ODD = {
    "a": "1111111100",
    "b": "1111111000",
    "odd": "0111100001",
    "c": "1111100000",
    "d": "1111000000",
    "e": "1110000000",
}


def test_surprises_are_listed_with_what_was_expected(client, publish):
    publish(ODD)
    text = text_of(seen(client, "odd"))
    # Neighbours pass 1 1 1 .8 .6 .4 .4 .2 0 0 = 5.4 of 10, it passes 5: moved by −.04. At most 20%: t07
    # (.16), t08 and t09 (0); at least 80%: t00 to t02 (.96): .16 passes and .12 failures come by chance.
    few, many = (
        f"1 on the 3 tasks with an expected result of {share}." for share in ("at most 20%", "at least 80%")
    )
    usual = "would be usual if the expected results were exact."
    assert f"Surprising passes {few} About 0.2 {usual} t09 : 0% expected" in text
    assert f"Surprising failures {many} About 0.1 {usual} t00 : 96% expected" in text
    assert "mean of the 5 agents nearest in rank, minus 4.0 points" in text
    task = Task.objects.get(name="t09")
    assert f'<a href="/b/toy/tasks/{task.pk}"><bdi>t09</bdi></a>' in seen(client, "odd").content.decode()
    assert seen(client, "odd").content.decode().count('<path class="f-pareto"') == 1


@pytest.mark.parametrize(("scale", "usual"), [(1, "About 0.1 would be usual"), (0.9, "")])
def test_how_many_surprises_are_usual_counts_the_trials(client, publish, scale, usual):
    """Three trials of each task: of t07 (.16) two must pass, 3 · .16² · .84 + .16³ = .07; graded: nothing."""
    rows = [
        {"agent": name, "task": f"t{j:02d}", "trial": k, "outcome": scale * int(mark)}
        for name, marks in ODD.items()
        for j, mark in enumerate(marks)
        for k in (1, 2, 3)
    ]
    publish(rows_text(rows))
    text = text_of(seen(client, "odd"))
    assert f"Surprising passes 1 on the 3 tasks with an expected result of at most 20%. {usual}" in text
    assert ("would be usual" in text) is bool(usual)


def test_its_neighbours_stand_around_it(client, publish):
    board = publish(ladder(16, 40))
    rows = rows_of(seen(client, "a08"), "beside")
    assert [row[2] for row in rows] == ["a11", "a10", "a09", "a08", "a07", "a06", "a05"]
    told = line_of(board, "a07").at["full"]
    assert rows[4][:2] == [str(told.rank), f"{told.rank_lower}–{told.rank_upper}"]
    assert rows[4][3] == score(told)
    assert [row[2] for row in rows_of(seen(client, "a15"), "beside")] == ["a15", "a14", "a13", "a12"]


def test_a_rank_that_others_have_too_is_marked_as_on_the_board(client, publish):
    # By hand: a 8 of 10, then b and c with 6 each, d with 2.
    publish({"a": "1111111100", "b": "1111110000", "c": "0011111100", "d": "1100000000"})
    rows = rows_of(seen(client, "d"), "beside")
    assert [(row[0], row[2]) for row in rows] == [("1", "a"), ("2=", "b"), ("2=", "c"), ("4", "d")]
    # the same on every page
    assert "Rank 2= of 4" in text_of(seen(client, "b"))
    assert "Rank 4 of 4" in text_of(seen(client, "d"))
    task = Task.objects.get(name="t01")
    assert "b: passed, rank 2=" in client.get(f"/b/toy/tasks/{task.pk}").content.decode()


def test_an_agent_under_other_conditions_is_told_what_does_not_count(client, publish):
    judged = [
        {
            "agent": f"a{i:02d}",
            "task": f"t{j}",
            "outcome": (i + j) % 2,
            "judge": "ann" if i < 14 else "bob",
        }
        for i in range(16)
        for j in range(4)
    ]
    publish(rows_text(judged))
    text = text_of(seen(client, "a15"))
    assert "4 with a valid result under judge bob; the board counts none of them" in text
    assert "Repeated trials" not in text
    assert "it would score" not in text


def test_every_submission_is_told(client, publish):
    publish(csv_text({"a": "11111.....", "b": "1111100000"}), csv_text({"a": ".....1000x"}, day="2026-02-01"))
    text = text_of(seen(client, "a"))
    assert f"2 submissions, all listed here: {THAT_COUNT['mean']}." in text
    assert "1st submission: dated 2026-01-05 , received 2026-06-01 ; 5 results" in text
    assert "2nd submission: dated 2026-02-01 , received 2026-06-01 ; 5 results, 1 of them invalid" in text
    assert "One submission." in text_of(seen(client, "b"))


NEW = {"name": "new", "scaffold": "Loop", "model": "Model 9"}


def delivered(post, tasks, trial=1):
    outcomes = [{"task": f"t{j:02d}", "trial": trial, "outcome": 1} for j in tasks]
    assert post({"agent": NEW, "outcomes": outcomes}).status_code == 201
    recomputed(as_of=AS_OF)


@pytest.mark.parametrize("missing", ["gap", "zero"])
def test_how_many_outcomes_count_where_not_all_do(client, post, toy, missing):
    Policy.objects.create(benchmark=toy, number=2, missing=missing)
    delivered(post, range(17))
    assert "results count" not in text_of(seen(client, "new"))
    delivered(post, range(17, 20))
    text = text_of(seen(client, "new"))
    assert f"2 submissions, all listed here: {THAT_COUNT['mean']}. 1st submission" in text
    # Of the other tasks one trial each is there.
    delivered(post, range(12), trial=2)
    response = seen(client, "new")
    assert (
        "3 submissions, all listed here. 20 of 32 results count. The others are extra trials, or the board "
        "leaves out their task, conditions or submission. Which results count" in text_of(response)
    )
    assert '<a href="/methods#counted">' in response.content.decode()
    assert 'id="counted"' in client.get("/methods").content.decode()


def test_of_one_submission_it_is_said_too(client, post, toy):
    delivered(post, [*range(20)])
    Task.objects.filter(name="t00").update(retired_at=AS_OF, retired_reason="broken")
    Benchmark.objects.update(data_version=100)
    recomputed(as_of=AS_OF)
    assert "One submission. 19 of 20 results count. The others" in text_of(seen(client, "new"))


def test_where_nothing_tells_them_apart_nothing_is_claimed(client, publish):
    """Under missing = zero, of graded outcomes."""
    publish(csv_text({"a": "11111.....", "b": "1111100000"}), csv_text({"a": ".....1000x"}, day="2026-02-01"))
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=2, missing="zero")
    half = [{"agent": "b", "task": "t09", "trial": 2, "outcome": 0.5}]
    load_text(rows_text([*half, {"agent": "a", "task": "t00", "trial": 2, "outcome": 0.5}]))
    recomputed(as_of=LATER)
    text = text_of(seen(client, "a"))
    assert "3 submissions, all listed here. 1st submission" in text
    assert "results count" not in text


def test_trials_that_are_missing_or_invalid_are_not_called_valid(client, publish):
    publish(csv_text({"a": "11111000xx", "b": "1111100000", "c": "11111110.."}))
    assert "Tasks 8 with a result, 8 trials that count Invalid trials 2" in text_of(seen(client, "a"))
    assert "Tasks 8 with a valid result, 8 valid trials" in text_of(seen(client, "c"))
    assert "Invalid trials" not in text_of(seen(client, "c"))
    Policy.objects.create(benchmark=Benchmark.objects.get(), number=2, missing="zero")
    recomputed(as_of=LATER)
    failed = "Tasks 10, 10 trials; missing and invalid ones count as failures"
    assert f"{failed} Invalid trials 2" in text_of(seen(client, "a"))
    assert failed in text_of(seen(client, "c"))


def test_of_a_withdrawn_submission_a_line_without_numbers_stays(client, publish):
    publish(csv_text({"a": "11111.....", "b": "1111100000"}), csv_text({"a": ".....1000x"}, day="2026-02-01"))
    second = Submission.objects.get(agent__name="a", n_invalid=1)
    unload(uuids=[second.uuid], reason="secret reason", as_of=LATER)
    response = seen(client, "a")
    assert "2nd submission: withdrawn 2026-06-02" in text_of(response)
    assert "secret reason" not in text_of(response)
    assert "5 results, 1" not in text_of(response)
    assert "The results of this agent have changed. The next board shows them." in text_of(response)
    assert 'class="plot agent"' not in response.content.decode()  # what was read before holds both


def test_of_an_agent_that_was_withdrawn_no_number_shows(client, publish):
    publish(FOUR)
    unload(uuids=[Submission.objects.get(agent__name="a").uuid], reason="a mistake", as_of=LATER)
    response = seen(client, "a")
    text = text_of(response)
    assert "Withdrawn." in text
    assert "80.0%" not in text
    assert "rank range" not in text
    assert "1st submission: withdrawn 2026-06-02" in text
    neighbours = text_of(seen(client, "b"))
    assert f"/agents/{agent('a').pk}" not in seen(client, "b").content.decode()
    assert "Ranks and scores are from that board" in neighbours


def embargoed(mine, **fields):
    return Submission.objects.create(
        agent=mine,
        status=Status.WAITING,
        received_at=AS_OF,
        content_sha256=b"x" * 32,
        n_outcomes=77,
        n_invalid=0,
        embargo_until=LATER,
        links={"report": "https://example.org/secret"},
        **fields,
    )


def test_an_embargoed_submission_shows_nowhere(client, publish):
    publish(FOUR)
    embargoed(agent("a"))
    response = seen(client, "a")
    assert "One submission." in text_of(response)
    assert "secret" not in response.content.decode()


def test_an_agent_under_embargo_alone_does_not_exist(client, publish):
    publish(FOUR)
    a = agent("a")
    new = Agent.objects.create(benchmark=a.benchmark, name="new", scaffold=a.scaffold, model=a.model)
    one = embargoed(new)
    assert seen(client, "new").status_code == 404
    assert client.get(f"/b/toy/plots/agent.svg?agent={new.pk}").status_code == 404
    # One that was taken back before it ever counted is none either.
    StatusChange.objects.create(submission=one, status=Status.WITHDRAWN, data_version=9, at=LATER)
    Submission.objects.filter(pk=one.pk).update(status=Status.WITHDRAWN)
    assert seen(client, "new").status_code == 404


def test_an_agent_that_was_merged_is_found_at_the_other(client, publish):
    publish(csv_text({"a": "11111.....", "old name": ".....11000", "b": "1111100000"}))
    merge(agent=agent("old name"), into=agent("a"), by=None, reason="one agent", as_of=LATER)
    response = seen(client, "old name")
    assert (response.status_code, response["Location"]) == (302, f"/b/toy/agents/{agent('a').pk}")
    recomputed(as_of=LATER)
    text = text_of(seen(client, "a"))
    assert "Its score is 70.0" in text
    assert "2 submissions" in text
    assert "2nd submission, submitted as old name :" in text
    assert "Called before old name" in text


def test_names_before_are_told_and_erased_ones_are_not(client, publish):
    publish(csv_text(FOUR | {"known name": "1110000000"}).replace("Model known name", "Model"))
    found = agent("known name")
    rename(agent=found, name="another name", by=None, reason="asked for", as_of=LATER)
    assert "Called before known name" in text_of(seen(client, "another name"))
    erase_agent(agent=agent("another name"), by=None, reason="asked for", as_of=LATER)
    recomputed(as_of=LATER)
    page = client.get(f"/b/toy/agents/{found.pk}").content.decode()
    assert f"erased agent {found.pk}" in page
    assert "known name" not in page
    assert "another name" not in page


def test_only_addresses_of_the_web_are_links(client, publish):
    publish(FOUR)
    links = {
        "report": "https://example.org/r?a=1&b=2",
        "logs": "http://example.org/l",
        "code": "javascript:alert(1)",
    }
    with_links = Submission.objects.filter(agent__name="a")
    with pgtrigger.ignore("submissions.Submission:submission_changes_status_only"):
        with_links.update(links=links)
    page = seen(client, "a").content.decode()
    assert '<a href="https://example.org/r?a=1&amp;b=2" rel="nofollow"><bdi>Report</bdi></a>' in page
    assert 'href="http://example.org/l" rel="nofollow"' in page
    assert "javascript" not in page


def test_what_is_stated_of_it(client, publish):
    publish(FOUR)
    text = text_of(seen(client, "a"))
    told = text.split("About this agent")[1]
    for said in (
        "Scaffold Loop",
        "Model Model a",
        "Date 2026-01-05",
        "Trust verified: loaded or confirmed by an operator",
        "Tasks 10 with a valid result, 10 valid trials",
    ):
        assert said in told
    for unknown in (
        "Version",
        "Organisation",
        "Weights",
        "Invalid",
        "Cost",
        "Links",
        "Repeated",
        "not stated",
        "none",
    ):
        assert unknown not in told
    assert reverse("api:agent", args=["toy", agent("a").pk]) in seen(client, "a").content.decode()
    load_text(rows_text([{"agent": "a", "task": "t00", "outcome": int(FOUR["a"][0]), "weights": "open"}]))
    assert "Weights open" in text_of(seen(client, "a"))


CALM = {
    **{"condition": "prompt plain", "icc": 0.22, "lower": 0.1, "upper": 0.4},
    **{"n_tasks": 40, "trials_per_task": 4.0, "needed": "4 trials per task", "reason": ""},
}
NOTHING = {"icc": None, "needed": "", "reason": "one trial a task"}


@pytest.mark.parametrize(
    ("icc", "said"),
    [
        ({"icc": 0.8, "needed": "4 trials per task"}, "4 trials per task."),
        ({"icc": None, "needed": ""}, ""),
        (
            {"icc": None, "by_condition": [CALM, {**CALM, **NOTHING, "condition": "prompt terse"}]},
            "Under prompt plain, 4 trials per task.",
        ),
    ],
)
def test_how_many_trials_its_icc_needs(icc, said):
    assert convergence_text(entrant("a", icc=icc)) == said


@pytest.mark.parametrize(
    ("icc", "said"),
    [
        (
            {"icc": 0.8234, "lower": 0.751, "upper": 0.889, "n_tasks": 165, "trials_per_task": 2.0},
            "ICC 0.82 (95%: 0.75–0.89) over 165 tasks, 2.0 trials each",
        ),
        (
            {"icc": 0.5, "lower": None, "upper": None, "n_tasks": 1, "trials_per_task": 3.0},
            "ICC 0.50 over 1 task, 3.0 trials each",
        ),
        (
            {"icc": 0.41, "lower": None, "upper": None, "n_tasks": 15, "trials_per_task": 2.4736842},
            "ICC 0.41; repeated on 15 tasks, 2.47 effective trials per task (n₀)",
        ),
        ({"icc": None, "reason": "one trial a task"}, ""),
        ({"icc": None}, ""),
        (
            {"icc": None, "by_condition": [CALM, {**CALM, **NOTHING, "condition": "prompt terse"}]},
            "Under prompt plain, ICC 0.22 (95%: 0.10–0.40) over 40 tasks, 4.0 trials each.",
        ),
        (
            {"icc": None, "reason": "one trial", "by_condition": [{**CALM, **NOTHING}, {**CALM, **NOTHING}]},
            "",
        ),
    ],
)
def test_how_alike_its_trials_are(icc, said):
    assert icc_text(entrant("a", icc=icc)) == said


def test_ordinals():
    told = [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1001)]
    assert told == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th", "1,001st"]


def test_before_any_board_there_is_no_rank(client, db):
    load_text(csv_text(FOUR))
    text = text_of(seen(client, "a"))
    assert "Not on a board yet. The next board lists it." in text
    assert "The results of this agent have changed. The next board shows them." in text


@pytest.mark.parametrize("pk", [0, 10**9, 10**30])
def test_there_is_no_such_agent(client, publish, pk):
    publish(FOUR)
    assert client.get(f"/b/toy/agents/{pk}").status_code == 404
    assert client.get(f"/b/toy/plots/agent.svg?agent={pk}").status_code == 404
    assert client.get("/b/toy/plots/agent.svg").status_code == 404
