"""Recalls: who comes to stand on the podium by an estimate is asked for the rest before a board says so."""

import csv
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection

from leaderboard.accounts.models import User
from leaderboard.boards.queries import standings_of
from leaderboard.catalog.models import Agent, Membership, Policy
from leaderboard.catalog.services import AgentDescription
from leaderboard.operations import jobs
from leaderboard.operations.assignments import assign
from leaderboard.operations.corrections import withdraw_by
from leaderboard.operations.models import Event, Notification, RerunAgent, RerunRequest
from leaderboard.operations.reruns import close_request
from leaderboard.pages.elsewhere import first_of
from leaderboard.studies.answers import words
from leaderboard.studies.reruns import owing
from leaderboard.submissions.models import Submission
from selection.staged.walks import Staging, recalled
from tests.kept import stored
from tests.leaderboard.test_receipts import deliver
from tests.leaderboard.test_staged_assignment import N_TASKS, STAGED, marked, toy, walk
from tests.leaderboard.world import token
from tests.toys import AS_OF, board_of, csv_text, graded, lines_of, load_text, recomputed

N_AGENTS = 24
STRONG = "".join(str(int(j % 3 > 0)) for j in range(N_TASKS))
"""What the newcomer would pass: 66 of 100 tasks, below the podium of those before it."""
BETTER = [f"a{i}" for i in range(18, N_AGENTS)]
OVER = AS_OF + timedelta(days=21)
AGENT = AgentDescription("newcomer", "Loop", "Model 9")


def seventh():
    """24 complete agents, and the newcomer, which was stopped below six of them; return its token."""
    board_of(csv_text(graded(N_AGENTS, N_TASKS)))
    Policy.objects.create(benchmark=toy(), number=2, headline_from="self_reported", publish_every=0, **STAGED)
    recomputed()
    by = token("ada@example.org")
    User.objects.filter(email="ada@example.org").update(told_by_mail=True)
    assert walk(by, STRONG)[-1]["assignment"]["staged"]["stage"] == "stopped"
    recomputed()
    return by


def take_back(names):
    by, _ = User.objects.get_or_create(email="op@example.org")
    Membership.objects.get_or_create(user=by, benchmark=toy(), role="operator")
    for one in Submission.objects.filter(agent__name__in=names):
        withdraw_by(uuid=one.uuid, user=by, reason="the logs were of another agent", as_of=AS_OF)


@pytest.fixture
def ada(db):
    return stored("seventh", seventh)


@pytest.fixture
def leading(ada):
    """Whoever stood above the newcomer is withdrawn; return its token and the board that follows."""
    take_back(BETTER)
    return ada, recomputed()


def rest_of(by, *, as_of=AS_OF):
    """The names of what the newcomer is asked for now, and the assignment."""
    found = assign(benchmark=toy(), agent=AGENT, by=by.user, as_of=as_of)
    return list(toy().tasks.filter(pk__in=found.tasks).values_list("name", flat=True)), found


def line_of(board):
    return lines_of(board)["newcomer"]


def holds(board):
    """Whether each agent on the podium ran all tasks, is known well enough, or is recalled: by its lines."""
    lines = standings_of(board).agents
    best = max(line.at["full"].score for line in lines if line.at["full"].rank)
    return all(
        line.n_tasks == N_TASKS
        or "recalled" in line.marks
        or (line.at["full"].se < 0.01 and line.at["full"].score + 2 * line.at["full"].se < best)
        for line in lines
        if line.at["full"].rank and line.at["full"].rank <= 3
    )


def test_nobody_is_recalled_below_the_podium(ada):
    board = toy().boards.latest("number")
    assert line_of(board).at["full"].rank == 7
    assert line_of(board).marks == ("chosen tasks",)
    assert holds(board)
    assert not RerunRequest.objects.exists()


def test_it_is_asked_for_the_rest_once(leading):
    by, board = leading
    request = RerunRequest.objects.get()
    assert (request.kind, request.status, request.subset, request.deadline) == ("recall", "open", None, OVER)
    (asked,) = request.agents.all()
    lacking = N_TASKS - line_of(board).n_tasks
    assert (asked.agent.name, asked.sampled, asked.n_lacking) == ("newcomer", False, lacking)
    assert asked.why == f"rank 1 by an estimate of {words.percent(line_of(board).at['full'].score)}%"
    assert recomputed() == board
    assert RerunRequest.objects.get() == request
    told = Event.objects.get(kind="rerun.requested")
    assert (told.payload["kind"], len(told.payload["agents"][0]["tasks"])) == ("recall", lacking)
    assert Notification.objects.get(event=told).email == "ada@example.org"
    tasks, assignment = rest_of(by)
    assert (len(tasks), assignment.mode, assignment.request) == (lacking, "delta", request)


def test_it_is_marked_everywhere_and_nowhere_called_the_best(leading, client):
    _, board = leading
    line, standings = line_of(board), standings_of(board)
    assert (line.at["full"].rank, line.marks) == (1, ("chosen tasks", "recalled"))
    assert holds(board)
    assert "newcomer" not in standings.targets["full"].may_be_first
    for target in standings.targets:
        assert "newcomer" not in words.headline(standings, target)
    assert words.headline(standings).endswith("1 agent ranked higher is recalled to run the remaining tasks.")
    says = (
        "Each agent on the first 3 places ran all tasks, or is recalled to run the rest, or has a standard "
    )
    says += "error under 1 point and a score at least two standard errors below the best."
    assert says in standings.notices
    (row,) = [
        row
        for row in csv.DictReader(StringIO(client.get("/api/v1/benchmarks/toy/board.csv").content.decode()))
        if row["agent"] == "newcomer"
    ]
    assert row["marks"] == "chosen tasks recalled"
    told = client.get("/api/v1/benchmarks/toy/board").json()
    (told,) = [one for one in told["agents"] if one["agent"] == "newcomer"]
    assert "recalled" in told["marks"]
    assert "recalled" in client.get("/b/toy").content.decode()
    page = client.get(f"/b/toy/agents/{Agent.objects.get(name='newcomer').pk}").content.decode()
    assert "must run the remaining tasks" in page
    drawn, n_ranked = first_of(toy())
    assert (drawn[0][1], n_ranked) == (2, N_AGENTS - len(BETTER) + 1)
    requests = client.get("/api/v1/benchmarks/toy/rerun-requests?kind=recall").json()["results"]
    assert [one["subset"] for one in requests] == [None]


def test_what_it_delivers_is_measured_and_closes_it(leading):
    by, _ = leading
    deliver(by, marked(rest_of(by)[0], STRONG))
    board = recomputed()
    line = line_of(board)
    assert (line.how, line.marks) == ("measured", ())
    assert line.at["full"].score == pytest.approx(STRONG.count("1") / N_TASKS)
    assert RerunRequest.objects.get().status == "fulfilled"
    assert holds(board)


def test_a_part_of_the_rest_leaves_it_recalled(leading):
    by, before = leading
    tasks, _ = rest_of(by)
    (lacks,) = deliver(by, {task: [1] for task in tasks[:10]})["warnings"]
    assert lacks.endswith(": until all are delivered, its score on all tasks is estimated")
    line = line_of(recomputed())
    assert "recalled" in line.marks
    assert line.at["full"].rank == 1
    assert RerunRequest.objects.get().status == "open"
    assert line.at["full"].score == line_of(before).at["full"].score


def test_after_the_deadline_it_is_incomplete_until_it_delivers(leading):
    by, board = leading
    assert list(jobs.due_boards(OVER - timedelta(hours=1))) == []
    (one,) = jobs.due_boards(OVER)
    assert one.benchmark == toy()
    late = recomputed(as_of=OVER)
    line = line_of(late)
    assert (late.number, RerunRequest.objects.get().status) == (board.number + 1, "expired")
    assert (line.how, line.at["full"].rank, line.at["full"].score) == ("incomplete", None, None)
    assert "they have not all arrived in time" in line.at["full"].reason
    assert "incomplete" in line.marks
    assert "recalled" not in line.marks
    lower, upper = line.at["full"].bounds
    assert 0 < lower < upper < 1
    assert recomputed(as_of=OVER) == late
    tasks, assignment = rest_of(by, as_of=OVER)
    assert len(tasks) == N_TASKS - line.n_tasks
    assert assignment.mode == "delta"
    deliver(by, marked(tasks, STRONG), as_of=OVER)
    assert (line_of(recomputed(as_of=OVER)).how, RerunRequest.objects.count()) == ("measured", 1)


def test_who_was_overtaken_meanwhile_is_let_go(leading):
    load_text(csv_text({"b1": "1" * 80 + "0" * 20, "b2": "0" * 20 + "1" * 80, "b3": "01111" * 20}))
    assert "recalled" in line_of(recomputed()).marks
    board = recomputed(as_of=OVER)
    request = RerunRequest.objects.get()
    assert (request.status, request.closed_reason) == ("cancelled", "it stands on the podium no more")
    assert (line_of(board).at["full"].rank, line_of(board).marks) == (4, ("chosen tasks",))
    take_back(["b1"])
    assert "recalled" in line_of(recomputed(as_of=OVER)).marks
    assert RerunRequest.objects.latest("id").deadline == OVER + timedelta(days=21)


def test_while_intake_is_frozen_no_deadline_passes(leading):
    toy().__class__.objects.update(frozen_at=AS_OF, frozen_reason="a move")
    assert list(jobs.due_boards(OVER)) == []
    assert "recalled" in line_of(recomputed(as_of=OVER)).marks


def test_an_operator_cancels_it(leading, capsys):
    call_command("reruns", "toy", "--close", str(RerunRequest.objects.get().pk), "its harness is gone")
    assert "cancelled" in capsys.readouterr().out
    board = recomputed()
    assert (line_of(board).at["full"].rank, line_of(board).marks) == (1, ("chosen tasks",))
    assert any(
        told.endswith("two standard errors below the best, but for newcomer, excused by an operator.")
        for told in standings_of(board).notices
    )
    assert words.headline(standings_of(board)).count("newcomer") == 1
    assert recomputed() == board
    assert RerunRequest.objects.count() == 1


def test_where_all_are_asked_for_the_subset_nobody_is(ada):
    Policy.objects.create(benchmark=toy(), number=3, headline_from="self_reported", assignment="subset")
    take_back(BETTER)
    recomputed()
    assert not RerunRequest.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_that_compute_at_once_ask_once():
    seventh()
    take_back(BETTER)

    def computed(_):
        try:
            return recomputed().number
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        numbers = set(threads.map(computed, range(2)))
    assert RerunAgent.objects.count() == 1
    assert len(numbers) == 1
    assert holds(toy().boards.latest("number"))
    assert all("recalled" in line_of(board).marks for board in toy().boards.filter(number__in=numbers))


@pytest.mark.parametrize(
    ("scores", "errors", "found"),
    [
        ([0.8, 0.7, 0.6, 0.5], [None, None, None, 0.02], []),  # fourth
        ([0.8, 0.7, 0.6, 0.5], [None, None, 0.02, None], [2]),
        ([0.8, 0.7, 0.6, 0.6], [None, None, 0.02, 0.02], [2, 3]),  # both third
        ([0.8, 0.7, 0.6, 0.5], [None, None, 0.009, None], []),  # SE under 1 point, and 61.8% at most
        ([0.8, 0.79, 0.6, 0.5], [None, 0.009, None, None], [1]),  # SE under 1 point, and may lead
        ([0.8, 0.7, 0.6, 0.5], [0.001, None, None, None], [0]),  # leads
        ([0.9], [0.02], [0]),
        ([], [], []),
    ],
)
def test_who_has_to_run_the_rest(scores, errors, found):
    se = np.array([np.nan if one is None else one for one in errors], dtype=float)
    assert recalled(np.array(scores, dtype=float), se, Staging()).tolist() == found


def test_it_owes_the_rest_also_while_it_is_recalled(leading):
    _, board = leading
    assert [line.agent for line in owing(standings_of(board), 3)] == ["newcomer"]


def test_a_closed_request_is_cancelled_by_whoever_closed_it(leading):
    closed = close_request(request=RerunRequest.objects.get(), by=None, reason="enough", as_of=AS_OF)
    assert (closed.status, closed.closed_reason) == ("cancelled", "enough")
