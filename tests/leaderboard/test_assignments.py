"""Assignments: which tasks, for how long, whether they were run, and what intake makes of them."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.utils import ProgrammingError

from leaderboard.catalog.models import Agent, Benchmark, Model, Policy, Scaffold
from leaderboard.catalog.services import AgentDescription, AgentMismatch
from leaderboard.errors import Conflict, Forbidden, Frozen
from leaderboard.operations import reruns
from leaderboard.operations.assignments import (
    assign,
    expire_due,
)
from leaderboard.operations.corrections import confirm, withdraw
from leaderboard.operations.models import Assignment, RerunRequest
from leaderboard.operations.reruns import close_request, draw_validation_runs, open_drift_request
from leaderboard.operations.services import check_drift, recompute
from leaderboard.submissions.models import Submission
from tests.leaderboard.test_receipts import deliver, token
from tests.leaderboard.test_reruns import subset_runs
from tests.leaderboard.world import World
from tests.refusals import refused
from tests.toys import AS_OF, csv_text, first_board, in_subset, ladder, lines_of, load_text

NEW = AgentDescription("newcomer", "Loop", "Model 9")
OVER = AS_OF + timedelta(days=14)


@pytest.fixture(autouse=True)
def _whoever_came_may_be_drawn(monkeypatch):
    """Not one newcomer in five: few are enough for a test."""
    monkeypatch.setattr(reruns, "ONE_IN", 1)


@pytest.fixture
def ada(toy):
    return token("ada@example.org")


@pytest.fixture
def subset(toy):
    return in_subset(first_board(toy))


def ask(by, agent=NEW, *, as_of=AS_OF, **more):
    toy = Benchmark.objects.get(slug="toy")
    return assign(benchmark=toy, agent=agent, by=by and by.user, as_of=as_of, **more)


def names(assignment, ids=None):
    tasks = assignment.agent.benchmark.tasks.filter(pk__in=assignment.tasks if ids is None else ids)
    return sorted(tasks.values_list("name", flat=True))


def audit(assignment):
    return names(assignment, assignment.audit)


def runs(tasks, outcome=1):
    return {task: [outcome] for task in tasks}


def described(name, model):
    return {"name": name, "scaffold": "Loop", "model": model}


class TestMode:
    def test_the_subset_and_a_share_from_outside_it(self, ada, subset):
        assignment = ask(ada)
        assert (assignment.mode, assignment.subset.number, assignment.status) == ("subset", 1, "open")
        assert len(audit(assignment)) == 2  # 5% of the subset, and two at least
        assert set(audit(assignment)).isdisjoint(subset)
        assert names(assignment) == sorted([*subset, *audit(assignment)])
        assert assignment.reason == (
            f"subset 1 is asked for, {len(subset)} of 20 tasks; 2 tasks from outside it, drawn for this "
            "agent, check that it ranks like the rest"
        )
        assert (assignment.n_trials, assignment.n_trials_recommended) == (1, 20 // len(subset))
        assert assignment.expires_at == OVER

    def test_audit_tasks_differ_between_agents_and_follow_the_share(self, ada, subset, toy):
        Policy.objects.create(benchmark=toy, number=2, audit_share=0.5)
        drawn = {tuple(audit(ask(ada, AgentDescription(f"n{i}", "Loop", f"Model n{i}")))) for i in range(6)}
        assert len(drawn) > 1
        assert {len(one) for one in drawn} == {round(0.5 * len(subset))}
        Policy.objects.create(benchmark=toy, number=3, audit_share=0)
        assert ask(ada).audit == []

    def test_everything_before_there_is_a_subset(self, db):
        load_text(csv_text(ladder(8, 20)))
        recompute(benchmark=Benchmark.objects.get(), as_of=AS_OF)
        assignment = ask(token("ada@example.org"))
        assert (assignment.mode, len(assignment.tasks), assignment.audit) == ("full", 20, [])
        assert assignment.reason.startswith("no ranking tasks are in use, so every agent runs all tasks: ")
        assert (assignment.subset, assignment.n_trials_recommended) == (None, None)

    def test_everything_where_an_operator_wants_it(self, ada, subset):
        Benchmark.objects.update(full_runs_only_at=AS_OF, full_runs_only_reason="an audit")
        assignment = ask(ada)
        assert (assignment.mode, len(assignment.tasks)) == ("full", 20)
        assert assignment.reason == "an operator asked for full runs: an audit"

    def test_everything_while_a_drift_request_is_open(self, ada, toy):
        subset_runs(toy, 3)
        request = open_drift_request(benchmark=toy, reason="the jump", as_of=AS_OF)
        assignment = ask(ada)
        assert (assignment.mode, len(assignment.tasks), assignment.request) == ("full", 20, request)
        assert assignment.reason == "a drift request is open: the jump"
        close_request(request=request, by=None, reason="a false alarm", as_of=AS_OF)
        assert ask(ada) == assignment  # tasks never change
        assert ask(ada, AgentDescription("other", "Loop", "M 2")).mode == "subset"

    def test_an_agent_that_is_named_gets_what_it_lacks(self, ada, toy):
        subset_runs(toy, 3)
        draw_validation_runs(benchmark=toy, as_of=AS_OF)
        request = RerunRequest.objects.get()
        agents = set(request.agents.values_list("agent__name", flat=True))
        (other,) = {"s00", "s01", "s02"} - agents
        name = min(agents)
        model = Agent.objects.get(name=name).model.name
        assignment = ask(ada, AgentDescription(name, "Loop", model))
        assert (assignment.mode, assignment.request, assignment.audit) == ("delta", request, [])
        has = Submission.objects.get(agent__name=name).asked
        assert len(assignment.tasks) == 20 - len(has)
        assert set(assignment.tasks).isdisjoint(has)
        with refused(Conflict, "nothing_lacks"):
            ask(ada, AgentDescription(other, "Loop", Agent.objects.get(name=other).model.name))
        assert ask(ada).mode == "subset"  # others are asked as ever

    def test_what_is_lacking_of_the_subset(self, ada, subset):
        deliver(ada, runs(subset[:-2]))
        assignment = ask(ada)
        assert (assignment.mode, names(assignment), assignment.audit) == ("delta", subset[-2:], [])
        assert "asked for is what the agent lacks of it" in assignment.reason

    def test_confirmed_failures_of_the_harness_are_lacking(self, ada, subset):
        receipt = deliver(ada, runs(subset) | {subset[0]: [None]})
        with refused(Conflict, "nothing_lacks"):
            ask(ada)
        confirm(uuid=UUID(receipt["id"]), reason="the sandbox was full", as_of=AS_OF)
        assert names(ask(ada)) == subset[:1]

    def test_retired_tasks_are_not_asked_for(self, ada, subset, toy):
        toy.tasks.filter(name=subset[0]).update(retired_at=AS_OF, retired_reason="broken")
        assert subset[0] not in names(ask(ada))


class TestAsking:
    def test_asking_again_returns_the_same(self, ada, subset):
        assert ask(ada) == ask(ada, as_of=OVER - timedelta(seconds=1))

    def test_after_its_days_there_is_a_new_one_with_the_same_audit_tasks(self, ada, subset):
        first = ask(ada)
        second = ask(ada, as_of=OVER)
        first.refresh_from_db()
        assert (first.status, first.ended_at, second.status) == ("expired", OVER, "open")
        assert (first.audit, first.tasks) == (second.audit, second.tasks)

    def test_expire_due(self, ada, subset):
        ask(ada)
        assert expire_due(as_of=OVER - timedelta(seconds=1)) == "0 assignments have expired"
        assert expire_due(as_of=OVER) == "1 assignments have expired"
        assert Assignment.objects.get().status == "expired"

    def test_frozen(self, ada, subset):
        Benchmark.objects.update(frozen_at=AS_OF, frozen_reason="maintenance")
        with pytest.raises(Frozen, match="maintenance"):
            ask(ada)

    def test_ownership_is_that_of_deliveries(self, ada, subset):
        ask(ada)
        bob = token("bob@example.org")
        with refused(Forbidden, "not_your_agent", match="its owner or an operator can add to it"):
            ask(bob)
        assert ask(bob, by_operator=True).asked_by == ada.user
        assert ask(None) == ask(ada)  # the command line
        with refused(AgentMismatch, "agent_described_otherwise"):
            ask(ada, AgentDescription("newcomer", "Tree", "Model 9"))
        assert Agent.objects.get(name="newcomer").owner == ada.user

    def test_how_others_spell_a_scaffold_is_not_told(self, client, ada, subset):
        """Until the agent's own page shows it."""
        Scaffold.objects.create(name="SECRET")
        Model.objects.create(name="HIDDEN 9")
        agent = AgentDescription("newcomer", "secret", "hidden 9")
        ask(ada, agent)
        with refused(AgentMismatch, "agent_described_otherwise", match="You described 'newcomer'") as refusal:
            ask(ada, agent._replace(scaffold="Tree", model="other"))
        client.force_login(ada.user)
        shown = f"{refusal.value} {refusal.value.details} {client.get('/account').content.decode()}"
        assert not re.search("SECRET|HIDDEN", shown)
        deliver(ada, runs(names(ask(ada, agent))), agent._asdict())
        with refused(AgentMismatch, "agent_described_otherwise", match="known here with scaffold 'SECRET'"):
            ask(ada, agent._replace(scaffold="Tree"))

    def test_the_tasks_never_change(self, ada, subset):
        assignment = ask(ada)
        assignment.tasks = assignment.tasks[:-1]
        with pytest.raises(ProgrammingError, match="Cannot update"):
            assignment.save()


@pytest.mark.django_db(transaction=True)
def test_twenty_at_once_get_one(toy, submit_token):
    from leaderboard.accounts.models import User

    recompute(benchmark=toy, as_of=AS_OF)
    ada = User.objects.get(email="ada@example.org")

    def once(_):
        try:
            return assign(benchmark=toy, agent=NEW, by=ada, as_of=AS_OF).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as threads:
        assert len(set(threads.map(once, range(20)))) == 1
    assert Assignment.objects.count() == 1
    assert Agent.objects.filter(name="newcomer").count() == 1


class TestDelivering:
    def test_while_a_drift_request_is_open_a_newcomer_is_asked_for_everything_unasked(self, ada, toy, subset):
        deliver(ada, runs(subset), agent="before", model="M 8")
        open_drift_request(benchmark=toy, reason="the jump", as_of=AS_OF + timedelta(seconds=1))
        receipt = deliver(ada, runs(subset))
        assert any("of the 20 tasks asked for have no outcome" in one for one in receipt["warnings"])
        lines = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])
        assert lines["newcomer"].at["full"].rank is None
        assert lines["before"].at["full"].rank is not None

    @pytest.mark.parametrize("by_assignment", [False, True])
    def test_a_part_before_a_drift_request_spares_nobody_the_full_run(self, ada, toy, subset, by_assignment):
        deliver(ada, runs(subset), agent="before", model="M 8")
        deliver(ada, runs(subset[:1]))
        open_drift_request(benchmark=toy, reason="the jump", as_of=AS_OF + timedelta(seconds=1))
        later = AS_OF + timedelta(seconds=2)
        more = {"assignment": str(ask(ada, as_of=later).uuid)} if by_assignment else {}
        receipt = deliver(ada, runs(subset[1:]), as_of=later, **more)
        left = 20 - len(subset)
        assert any(f"{left} of the 20 tasks" in one for one in receipt["warnings"])
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].at["full"].rank is None

    def test_nor_does_an_assignment_that_expired(self, ada, toy, subset):
        deliver(ada, runs(subset), agent="before", model="M 8")
        wanted, late = ask(ada), OVER + timedelta(seconds=1)
        open_drift_request(benchmark=toy, reason="the jump", as_of=AS_OF + timedelta(seconds=1))
        tasks = runs(names(wanted))
        in_time = deliver(ada, tasks, dry_run=True)
        assert in_time["warnings"] == []
        receipt = deliver(ada, tasks, as_of=late, assignment=str(wanted.uuid))
        assert any(f"{20 - len(wanted.tasks)} of the 20 tasks" in one for one in receipt["warnings"])
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].at["full"].rank is None

    def test_after_a_withdrawal_the_same_is_asked_for(self, ada, subset):
        assignment = ask(ada)
        first = deliver(ada, runs(names(assignment)))
        withdraw(uuid=UUID(first["id"]), token=ada, reason="a wrong run", as_of=AS_OF)
        again = deliver(ada, runs(names(assignment)), dry_run=True)
        assert (again["assignment"]["id"], again["n_outside"]) == (str(assignment.uuid), 0)
        short = deliver(ada, runs(subset))  # without its audit tasks
        assert short["assignment"]["id"] == str(assignment.uuid)
        assert any("have no outcome" in one for one in short["warnings"])

    def test_all_of_it_fulfils(self, ada, subset):
        assignment = ask(ada)
        receipt = deliver(ada, runs(names(assignment)))
        assert receipt["assignment"] == {
            "id": str(assignment.uuid),
            "mode": "subset",
            "status": "fulfilled",
            "late": False,
        }
        assert (receipt["n_outside"], receipt["warnings"]) == (0, [])
        assignment.refresh_from_db()
        (submission,) = assignment.submissions.all()
        assert (submission.asked, submission.n_trials) == (
            assignment.tasks,
            assignment.n_trials_recommended,
        )

    def test_in_two_parts_and_invalid_ones_count(self, ada, subset):
        wanted = names(ask(ada))
        first = deliver(ada, runs(wanted[:3]) | {wanted[0]: [None]})
        assert first["assignment"]["status"] == "open"
        assert any(f"{len(wanted) - 3} of the {len(wanted)} tasks" in one for one in first["warnings"])
        assert deliver(ada, runs(wanted[3:]))["assignment"]["status"] == "fulfilled"

    def test_without_its_audit_tasks_an_agent_has_no_rank(self, ada, subset, toy):
        extra = audit(ask(ada))
        receipt = deliver(ada, runs(subset))
        assert receipt["assignment"]["status"] == "open"
        assert any(f"2 of the {len(subset) + 2} tasks asked for have no outcome" in one
                   for one in receipt["warnings"])  # fmt: skip
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"].at["subset"].rank is None
        deliver(ada, runs(extra))
        line = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])["newcomer"]
        assert line.at["subset"].rank == 1
        assert line.how == "estimated"

    def test_each_task_as_often_as_was_asked(self, ada, subset, toy):
        Policy.objects.create(benchmark=toy, number=2, n_trials=2)
        wanted = names(ask(ada))
        assert deliver(ada, runs(wanted))["assignment"]["status"] == "open"
        assert deliver(ada, runs(wanted), first=2)["assignment"]["status"] == "fulfilled"

    def test_trials_that_were_recommended_count(self, ada, subset):
        assignment = ask(ada)
        deliver(ada, {task: [1] * 5 for task in names(assignment)})
        assert Submission.objects.get(agent__name="newcomer").n_trials == assignment.n_trials_recommended

    def test_late_outcomes_are_taken_and_marked(self, ada, subset):
        assignment = ask(ada, as_of=AS_OF - timedelta(days=20))
        receipt = deliver(ada, runs(names(assignment)), assignment=str(assignment.uuid))
        assert (receipt["assignment"]["status"], receipt["assignment"]["late"]) == ("open", True)
        assert receipt["warnings"] == [
            "the assignment expired on 2026-05-26: the outcomes count, marked as late"
        ]
        assert assignment.submissions.get().asked == assignment.tasks
        expire_due(as_of=AS_OF)
        assignment.refresh_from_db()
        assert assignment.status == "expired"

    def test_what_another_one_covers_is_fulfilled(self, ada, subset):
        first = ask(ada, as_of=AS_OF - timedelta(days=20))
        second = ask(ada)
        receipt = deliver(ada, runs(names(first)[1:]), assignment=str(first.uuid))
        second.refresh_from_db()
        assert (receipt["assignment"]["id"], second.status) == (str(first.uuid), "open")
        deliver(ada, runs(names(first)[:1]), assignment=str(first.uuid))
        second.refresh_from_db()
        assert (second.status, second.submissions.count()) == ("fulfilled", 0)

    def test_unnamed_and_expired_it_is_as_if_nobody_had_asked(self, ada, subset):
        ask(ada, as_of=AS_OF - timedelta(days=20))
        receipt = deliver(ada, runs(subset))
        assert (receipt["assignment"], receipt["warnings"]) == (None, [])
        assert len(Submission.objects.get(agent__name="newcomer").asked) == len(subset)

    def test_anothers_or_nobodys_is_refused(self, ada, subset):
        other = ask(ada, AgentDescription("other", "Loop", "M 2"))
        for uuid in (other.uuid, uuid4()):
            with refused(Conflict, "not_its_assignment"):
                deliver(ada, runs(subset), assignment=str(uuid))
        assert not Submission.objects.filter(agent__name="newcomer").exists()

    def test_a_replacement_answers_what_the_replaced_one_did(self, ada, subset):
        assignment = ask(ada)
        first = deliver(ada, runs(names(assignment)))
        second = deliver(ada, runs(names(assignment), 0), replaces=first["id"])
        assert second["assignment"]["id"] == str(assignment.uuid)
        assert assignment.submissions.count() == 2

    def test_a_part_of_the_rest_neither_gains_nor_loses(self, ada, toy):
        """A drawn agent that delivers half of what it lacks keeps rank and score."""
        subset_runs(toy, 3)
        draw_validation_runs(benchmark=toy, as_of=AS_OF)
        one = RerunRequest.objects.get().agents.select_related("agent__model").first()
        before = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])[one.agent.name]
        model = one.agent.model.name
        wanted = names(ask(ada, AgentDescription(one.agent.name, "Loop", model)))
        receipt = deliver(ada, runs(wanted[:3]), agent=described(one.agent.name, model))
        (told,) = receipt["warnings"]
        assert told.endswith("until all are delivered, its score on all tasks is estimated")
        assert receipt["n_outside"] == 0
        after = lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])[one.agent.name]
        assert (after.how, after.at["subset"]) == (before.how, before.at["subset"])
        assert after.at["full"].score == pytest.approx(before.at["full"].score)
        rest = deliver(ada, runs(wanted[3:]), agent=described(one.agent.name, model))
        assert rest["assignment"]["status"] == "fulfilled"
        assert lines_of(recompute(benchmark=toy, as_of=AS_OF)[0])[one.agent.name].how == "measured"


def test_audit_tasks_reach_their_monitor(db):
    """Who suits the subset no more than the rest."""
    world = World(seed=2)
    world.board()
    for _ in range(10):
        world.newcomer()
    check, _ = check_drift(benchmark=world.benchmark, as_of=world.now)
    (tuning,) = (one for one in check.result["monitors"] if one["name"] == "tuning to the subset")
    assert tuning["evidence"]["n_audited"] == 10
    assert tuning["state"] == "ok"
