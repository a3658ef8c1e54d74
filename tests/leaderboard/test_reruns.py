"""Rerun requests: whom they ask, how they close, what boards make of them."""

from datetime import timedelta

import pytest

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.errors import Conflict, Refusal
from leaderboard.operations import reruns
from leaderboard.operations.models import Event, RerunAgent, RerunRequest
from leaderboard.operations.reruns import (
    CannotRequestRuns,
    close_due,
    close_request,
    draw_validation_runs,
    open_drift_request,
)
from leaderboard.operations.services import known_reruns, recompute
from leaderboard.studies.board_inputs import board_inputs
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import Reader
from tests.kept import stored
from tests.leaderboard.test_receipts import deliver, token
from tests.leaderboard.trusting import trusted
from tests.refusals import refused
from tests.toys import AS_OF, csv_text, first_board, in_subset, ladder, load_text

LATER = AS_OF + timedelta(days=7)


def subset_runs(toy, n, *, scaffold="Loop"):
    """Let so many new agents deliver the subset; return their names."""
    board, _ = recompute(benchmark=toy, as_of=AS_OF)
    by, names = token("ada@example.org"), in_subset(board)
    trusted("ada@example.org")
    for i in range(n):
        marks = {task: [int((i + j) % 3 > 0)] for j, task in enumerate(names)}
        agent = {"name": f"s{i:02d}", "scaffold": scaffold, "model": f"Model s{i}"}
        deliver(by, marks, agent=agent)
    return [f"s{i:02d}" for i in range(n)]


def run_the_rest(name):
    """Let an agent deliver what it lacks of all tasks."""
    toy = Benchmark.objects.get()
    from leaderboard.catalog.models import Agent

    agent = Agent.objects.get(name=name)
    has = set(agent.submissions.get().asked)
    rest = {task.name: [0] for task in toy.tasks.exclude(pk__in=has)}
    described = {"name": name, "scaffold": agent.scaffold.name, "model": agent.model.name}
    deliver(token("ada@example.org"), rest, agent=described)


@pytest.fixture(autouse=True)
def _whoever_came_may_be_drawn(monkeypatch):
    """Not one newcomer in five: few are enough for a test."""
    monkeypatch.setattr(reruns, "ONE_IN", 1)


def toy_with_newcomers():
    load_text(csv_text(ladder(16, 20)))
    toy = Benchmark.objects.get(slug="toy")
    first_board(toy)
    return subset_runs(toy, 5)


@pytest.fixture
def newcomers(db):
    return stored("newcomers", toy_with_newcomers)


@pytest.fixture
def toy(request, db):
    """16 complete agents on 20 tasks, and the newcomers where a test asks for them too: one copy of both."""
    if "newcomers" in request.fixturenames:
        request.getfixturevalue("newcomers")
    else:
        load_text(csv_text(ladder(16, 20)))
    return Benchmark.objects.get(slug="toy")


def asked(request):
    return {one.agent.name: one for one in request.agents.select_related("agent")}


class TestValidation:
    def test_two_are_drawn_and_nothing_changes_for_others(self, toy, newcomers):
        said = draw_validation_runs(benchmark=toy, as_of=AS_OF)
        request = RerunRequest.objects.get()
        agents = asked(request)
        assert said == f"request {request.pk} asks {', '.join(sorted(agents))} for full runs"
        assert (request.kind, len(agents), request.deadline) == ("validation", 2, AS_OF + timedelta(days=21))
        told = {(one.sampled, one.inclusion, one.why) for one in agents.values()}
        assert told == {(True, 2 / 5, "drawn at random")}
        n_lacking = 20 - len(in_subset(recompute(benchmark=toy, as_of=AS_OF)[0]))
        assert {one.n_lacking for one in agents.values()} == {n_lacking}
        assert recompute(benchmark=toy, as_of=AS_OF)[0].phase == "ongoing"
        (told,) = Event.objects.filter(kind="rerun.requested")
        assert [len(one["tasks"]) for one in told.payload["agents"]] == [n_lacking] * 2
        assert told.payload["kind"] == "validation"

    def test_one_newcomer_in_five_is_drawn(self, toy, newcomers, monkeypatch):
        monkeypatch.setattr(reruns, "ONE_IN", 5)
        draw_validation_runs(benchmark=toy, as_of=AS_OF)
        request = RerunRequest.objects.get()
        (one,) = asked(request)
        run_the_rest(one)
        close_due(as_of=LATER)
        assert "No agent ran only the ranking tasks" in draw_validation_runs(benchmark=toy, as_of=LATER)
        assert RerunRequest.objects.get().status == "fulfilled"

    def test_one_at_a_time_and_another_draw_each_time(self, toy, newcomers):
        draw_validation_runs(benchmark=toy, as_of=AS_OF)
        first = RerunRequest.objects.get()
        assert "is open until" in draw_validation_runs(benchmark=toy, as_of=LATER)
        draws = [frozenset(asked(first))]
        for day in range(8):
            close_request(request=RerunRequest.objects.latest("id"), by=None, reason="a test", as_of=LATER)
            draw_validation_runs(benchmark=toy, as_of=LATER + timedelta(days=day))
            draws.append(frozenset(asked(RerunRequest.objects.latest("id"))))
        assert len(set(draws)) > 2

    def test_whoever_ran_everything_or_is_asked_already_is_not_drawn(self, toy, newcomers):
        run_the_rest("s00")
        open_drift_request(benchmark=toy, reason="a test", as_of=AS_OF)
        assert set(asked(RerunRequest.objects.get())) == {"s01", "s02", "s03", "s04"}
        assert "No agent ran only the ranking tasks" in draw_validation_runs(benchmark=toy, as_of=AS_OF)

    def test_no_subset_no_draw(self, db):
        load_text(csv_text(ladder(8, 20)))
        toy = Benchmark.objects.get()
        assert "No subset is fixed" in draw_validation_runs(benchmark=toy, as_of=AS_OF)
        with refused(CannotRequestRuns, "no_subset"):
            open_drift_request(benchmark=toy, reason="a test", as_of=AS_OF)

    def test_under_full_runs_only_nobody_is_asked(self, toy, newcomers):
        Benchmark.objects.update(full_runs_only_at=AS_OF, full_runs_only_reason="an audit")
        assert "full runs only" in draw_validation_runs(benchmark=toy, as_of=AS_OF)
        with refused(CannotRequestRuns, "full_runs_only"):
            open_drift_request(benchmark=toy, reason="a test", as_of=AS_OF)


class TestDrift:
    def test_who_is_asked(self, toy):
        """Eight of ten at random, and on top those tied at the top and the first of a new scaffold."""
        names = subset_runs(toy, 10, scaffold="Tree")
        request = open_drift_request(benchmark=toy, reason="a test", as_of=AS_OF)
        agents = asked(request)
        drawn = [one for one in agents.values() if one.sampled]
        assert (len(drawn), {one.inclusion for one in drawn}) == (8, {0.8})
        assert names[0] in agents
        assert {one.why for one in agents.values() if not one.sampled} <= {
            "tied at the top",
            "the first of its scaffold",
        }

    def test_opening_and_closing_make_the_board_behind(self, toy, newcomers):
        boards = [recompute(benchmark=toy, as_of=AS_OF)[0]]
        request = open_drift_request(benchmark=toy, reason="the jump", as_of=AS_OF)
        boards.append(recompute(benchmark=toy, as_of=AS_OF)[0])
        assert boards[1].content["why"].startswith("Full runs are asked for until 2026-06-22")
        ada = User.objects.get(email="ada@example.org")
        closed = close_request(request=request, by=ada, reason="a false alarm", as_of=LATER)
        assert (closed.status, closed.closed_by, closed.closed_reason) == ("cancelled", ada, "a false alarm")
        boards.append(recompute(benchmark=toy, as_of=LATER)[0])
        assert [board.phase for board in boards] == ["ongoing", "revalidating", "ongoing"]
        assert (boards[2].number, boards[2].digest) == (boards[1].number + 1, boards[0].digest)
        with refused(Conflict, "request_closed"):
            close_request(request=request, by=ada, reason="again", as_of=LATER)

    def test_a_second_one_joins(self, toy, newcomers):
        first = open_drift_request(benchmark=toy, reason="the jump", as_of=AS_OF)
        assert open_drift_request(benchmark=toy, reason="the costs", as_of=LATER) == first
        assert RerunRequest.objects.get().reason == "the jump"

    def test_each_needs_a_reason(self, toy, newcomers):
        with refused(Refusal, "reason_missing"):
            open_drift_request(benchmark=toy, reason=" ", as_of=AS_OF)

    def test_without_anybody_there_is_no_request(self, toy):
        recompute(benchmark=toy, as_of=AS_OF)
        with refused(CannotRequestRuns, "nobody_to_ask"):
            open_drift_request(benchmark=toy, reason="a test", as_of=AS_OF)

    def test_costs_are_those_of_the_board(self, toy, newcomers):
        """Of two the cost is stated, 0.25 for each task of the subset: 20 tasks would cost 5."""
        board, _ = recompute(benchmark=toy, as_of=AS_OF)
        rows = [{"task": task, "trial": 2, "outcome": 1, "cost_usd": 0.25} for task in in_subset(board)]
        for name in ("s00", "s01"):
            agent = {"name": name, "scaffold": "Loop", "model": f"Model s{int(name[1:])}"}
            deliver(token("ada@example.org"), rows, agent=agent)
        recompute(benchmark=toy, as_of=AS_OF)
        request = open_drift_request(benchmark=toy, reason="a test", as_of=AS_OF)
        assert request.cost_usd == pytest.approx(10.0)
        costs = {name: one.cost_usd for name, one in asked(request).items()}
        assert costs == {
            "s00": pytest.approx(5.0),
            "s01": pytest.approx(5.0),
            "s02": None,
            "s03": None,
            "s04": None,
        }


class TestClosing:
    def test_runs_arrive_one_by_one(self, toy, newcomers):
        request = open_drift_request(benchmark=toy, reason="a test", as_of=AS_OF)
        assert close_due(as_of=AS_OF) == "no change"
        run_the_rest("s00")
        assert close_due(as_of=LATER) == f"request {request.pk}: 1 runs have arrived, 4 are awaited"
        assert RerunAgent.objects.get(agent__name="s00").arrived_at == LATER
        assert close_due(as_of=LATER) == "no change"
        for name in newcomers[1:]:
            run_the_rest(name)
        end = LATER + timedelta(days=30)  # after the deadline, but all are there
        assert close_due(as_of=end) == f"request {request.pk} is fulfilled: all runs have arrived"
        request.refresh_from_db()
        assert (request.status, request.closed_at) == ("fulfilled", end)

    def test_on_the_deadline_it_expires_with_what_arrived(self, toy, newcomers):
        request = open_drift_request(benchmark=toy, reason="a test", as_of=AS_OF)
        run_the_rest("s00")
        assert "4 runs did not arrive in time" in close_due(as_of=request.deadline)
        assert RerunAgent.objects.filter(arrived_at=None).count() == 4
        assert recompute(benchmark=toy, as_of=request.deadline)[0].phase == "ongoing"

    def test_the_pages_know_of_each_change(self, toy, newcomers):
        request = open_drift_request(benchmark=toy, reason="a test", as_of=AS_OF)
        before = Benchmark.objects.get().shown_version
        close_due(as_of=AS_OF)
        assert Benchmark.objects.get().shown_version == before
        close_due(as_of=request.deadline)
        assert Benchmark.objects.get().shown_version == before + 1


def test_sampled_runs_reach_the_core_once_they_are_complete(toy, newcomers):
    draw_validation_runs(benchmark=toy, as_of=AS_OF)
    first, second = sorted(asked(RerunRequest.objects.get()))
    subset = active_subset(toy)

    def given():
        reader = Reader(toy)
        found = board_inputs(reader.now(subset), subset, None, known_reruns(reader.benchmark, subset))
        return found.prior_decisions().sampled, found.rules_sha256

    nothing, before = given()
    assert nothing == {}
    run_the_rest(first)
    known, after = given()
    assert known == {first: pytest.approx(0.4)}
    assert before != after
    close_request(request=RerunRequest.objects.get(), by=None, reason="enough", as_of=LATER)
    assert given()[0] == known  # what has arrived stays sampled
    run_the_rest(second)
    assert set(given()[0]) == {first, second}
