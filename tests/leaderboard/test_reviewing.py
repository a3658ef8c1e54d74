"""Benchmarks are opened and switched, submissions reviewed, reports decided."""

import io
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from leaderboard.catalog.models import Agent, Benchmark, Policy
from leaderboard.catalog.queries import policy_in_force, visible_benchmarks
from leaderboard.errors import Conflict, Faulty, Frozen, Refusal
from leaderboard.operations.benchmarks import Switch, create_benchmark, set_switch
from leaderboard.operations.corrections import decide, report
from leaderboard.operations.models import Dispute
from leaderboard.operations.policies import changed_policy, put_in_force
from leaderboard.operations.queries import CountsNoMore
from leaderboard.operations.reviewing import accept, refuse
from leaderboard.operations.services import recompute
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.parsing.task_list import ListedTask
from tests.leaderboard import world
from tests.leaderboard.desk import person, recorded
from tests.leaderboard.world import stored, token
from tests.refusals import refused
from tests.toys import AS_OF, csv_text, ladder, lines_of, load_text, recomputed


class TestBenchmarks:
    def test_one_is_opened_with_its_tasks(self, db):
        tasks = [ListedTask("a", "easy", "", None), ListedTask("b", "", "", 2)]
        made = create_benchmark(slug="new", title="The New", tasks=tasks, by=None, reason="wanted")
        assert (made.title, made.tasks.count()) == ("The New", 2)
        assert policy_in_force(made).number == 1
        assert {one["reason"] for one in recorded(made)} == {"wanted"}

    def test_refusals(self, toy):
        with refused(Conflict, "slug_taken"):
            create_benchmark(slug="toy", title="x", tasks=[], by=None, reason="wanted")
        with refused(Refusal, "not_a_slug"):
            create_benchmark(slug="a/b", title="x", tasks=[], by=None, reason="wanted")
        with refused(Refusal, "reason_missing"):
            create_benchmark(slug="new", title="x", tasks=[], by=None, reason="")
        assert Benchmark.objects.count() == 1

    @pytest.mark.parametrize("switch", Switch)
    def test_switches_go_on_and_off_with_reasons(self, toy, switch):
        ada = person("ada@example.org")
        shown = toy.shown_version
        found = set_switch(benchmark=toy, switch=switch, on=True, by=ada, reason="a look first", as_of=AS_OF)
        assert (getattr(found, f"{switch}_at"), getattr(found, f"{switch}_reason")) == (AS_OF, "a look first")
        with refused(Conflict, "already_so"):
            set_switch(benchmark=toy, switch=switch, on=True, by=ada, reason="again", as_of=AS_OF)
        found = set_switch(benchmark=toy, switch=switch, on=False, by=ada, reason="looked", as_of=AS_OF)
        assert (getattr(found, f"{switch}_at"), getattr(found, f"{switch}_reason")) == (None, "")
        found.refresh_from_db()
        assert found.shown_version == shown + 2
        assert [one["reason"] for one in recorded(found)][-2:] == ["a look first", "looked"]

    def test_a_frozen_one_takes_nothing(self, toy):
        set_switch(benchmark=toy, switch=Switch.FROZEN, on=True, by=None, reason="moving house", as_of=AS_OF)
        with pytest.raises(Frozen, match="moving house"):
            deliver("new", "1")

    def test_a_hidden_one_is_seen_by_members_alone(self, toy):
        set_switch(benchmark=toy, switch=Switch.HIDDEN, on=True, by=None, reason="wrong", as_of=AS_OF)
        assert not visible_benchmarks(None).exists()
        assert visible_benchmarks(person("eve@example.org", role="viewer", benchmark=toy)).exists()

    def test_full_runs_only_makes_a_board_without_a_subset(self, toy):
        assert recomputed().content["subset"] is not None
        set_switch(benchmark=toy, switch=Switch.FULL_RUNS_ONLY, on=True, by=None, reason="drift", as_of=AS_OF)
        board, is_new = recompute(benchmark=toy, as_of=AS_OF)
        assert is_new
        assert board.phase != "ongoing" or board.content["why"]


def deliver(agent, marks, **more):
    outcomes = [{"task": f"t{j:02d}", "trial": 1, "outcome": int(mark)} for j, mark in enumerate(marks)]
    described = {"name": agent, "scaffold": "Loop", "model": agent}
    more = {"submitted_at": f"{AS_OF:%Y-%m-%d}"} | more
    return stored(world.deliver(token("ada@example.org"), outcomes, described, **more))


class TestReview:
    @pytest.fixture
    def reviewed(self, toy):
        put_in_force(policy=changed_policy(benchmark=toy, values={"review": "manual"}))
        return toy

    def test_what_is_accepted_counts(self, reviewed):
        waiting = deliver("new", "1" * 20)
        assert waiting.status == Status.WAITING
        version = Benchmark.objects.get(slug="toy").data_version
        assert "new" not in lines_of(recomputed())
        accept(uuid=waiting.uuid, by=None, reason="looks right", as_of=AS_OF)
        assert Benchmark.objects.get(slug="toy").data_version == version + 1
        assert lines_of(recomputed())["new"].n_tasks == 20
        changes = waiting.status_changes.order_by("id").values_list("status", "reason")
        assert list(changes)[-1] == (Status.ACCEPTED, "looks right")

    def test_what_is_refused_never_does_and_may_come_again(self, reviewed):
        waiting = deliver("new", "1" * 20)
        version = Benchmark.objects.get(slug="toy").data_version
        refuse(uuid=waiting.uuid, by=None, reason="no logs", as_of=AS_OF)
        assert Benchmark.objects.get(slug="toy").data_version == version
        assert deliver("new", "1" * 20).status == Status.WAITING
        with pytest.raises(CountsNoMore):
            accept(uuid=waiting.uuid, by=None, reason="after all", as_of=AS_OF)

    def test_what_it_replaces_goes_with_it(self, reviewed):
        first = deliver("new", "1" * 20)
        accept(uuid=first.uuid, by=None, reason="looks right", as_of=AS_OF)
        recomputed()
        second = deliver("new", "0" * 20, replaces=str(first.uuid))
        first.refresh_from_db()
        assert first.status == Status.ACCEPTED
        accept(uuid=second.uuid, by=None, reason="a bug in the harness", as_of=AS_OF)
        first.refresh_from_db()
        assert first.status == Status.SUPERSEDED
        line = lines_of(recomputed())["new"]
        assert line.at["full"].score == 0
        assert line.at["full"].rank is not None  # the operator has looked

    def test_what_does_not_wait_is_refused(self, toy):
        loaded = Submission.objects.first()
        with refused(Conflict, "not_waiting", match="accepted"):
            accept(uuid=loaded.uuid, by=None, reason="x", as_of=AS_OF)

    def test_by_a_command(self, reviewed):
        waiting = deliver("new", "1" * 20)
        out = io.StringIO()
        call_command("review", "toy", stdout=out)
        assert out.getvalue().startswith(f"{waiting.uuid}  ")
        assert out.getvalue().endswith("  new, 20 outcomes: an operator reviews it\n")
        call_command("review", "toy", accept=waiting.uuid, reason="looks right", stdout=out)
        assert "now counts." in out.getvalue()
        call_command("review", "toy", stdout=out)
        assert "No submission waits for review." in out.getvalue()

    def test_a_refusal_needs_a_reason_and_an_acceptance_does_not(self, reviewed):
        waiting = deliver("new", "1" * 20)
        with pytest.raises(CommandError, match="--reason is empty"):
            call_command("review", "toy", refuse=waiting.uuid)
        call_command("review", "toy", accept=waiting.uuid, stdout=io.StringIO())
        waiting.refresh_from_db()
        assert waiting.status == Status.ACCEPTED
        assert waiting.status_changes.order_by("-id").first().reason == "accepted in review"


class TestReports:
    def test_one_is_decided_once_with_a_reason(self, toy):
        agent = toy.agents.get(name="a03")
        recompute(benchmark=toy, as_of=AS_OF)
        dispute = report(agent=agent, text=" it read the answers ", by=None, as_of=AS_OF, board=1)
        assert (dispute.text, dispute.board_number) == ("it read the answers", 1)
        with refused(Refusal, "reason_missing"):
            decide(dispute=dispute, upheld=True, by=None, reason="", as_of=AS_OF)
        decided = decide(dispute=dispute, upheld=True, by=None, reason="it did", as_of=AS_OF)
        assert (decided.upheld, decided.decided_reason) == (True, "it did")
        with refused(Conflict, "decided_already"):
            decide(dispute=dispute, upheld=False, by=None, reason="no", as_of=AS_OF)

    def test_nothing_and_too_much_are_refused(self, toy):
        agent = toy.agents.get(name="a03")
        with refused(Refusal, "nothing_said"):
            report(agent=agent, text=" ", by=None, as_of=AS_OF)
        with refused(Refusal, "said_too_much"):
            report(agent=agent, text="x" * 5_001, by=None, as_of=AS_OF)

    def test_only_of_boards_that_there_are(self, toy):
        agent = toy.agents.get(name="a03")
        with pytest.raises(Faulty) as caught:
            report(agent=agent, text="it read the answers", by=None, as_of=AS_OF, board=1)
        assert [(fault.field, fault.value) for fault in caught.value.faults] == [("board", "1")]
        assert not toy.disputes.exists()


@pytest.mark.django_db(transaction=True)
def test_twenty_reports_at_once_are_one():
    load_text(csv_text(ladder(6, 20)))
    agent, ada = Agent.objects.get(name="a03"), person("ada@example.org")

    def once(_):
        try:
            report(agent=agent, text="it read the answers", by=ada, as_of=AS_OF)
        except Conflict as refusal:
            return 409 if refusal.code == "reported_already" else 500
        finally:
            connection.close()
        return 201

    with ThreadPoolExecutor(20) as pool:
        assert sorted(pool.map(once, range(20))) == [201] + [409] * 19
    assert Dispute.objects.count() == 1


def test_a_policy_knows_who_set_it_and_why(toy):
    ada = person("ada@example.org")
    after = changed_policy(benchmark=toy, values={"rerun_days": "10"})
    put_in_force(policy=after, by=ada, reason="shorter")
    policy = Policy.objects.get(benchmark=toy, number=2)
    assert policy.created_by == ada
    assert recorded(policy) == [{"user": ada.pk, "reason": "shorter"}]
