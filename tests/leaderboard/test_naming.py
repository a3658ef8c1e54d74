"""Agents under another name, and two that are one: what they delivered, deliver, and stand by."""

import io

import pytest
from django.core.management import call_command

from leaderboard.catalog.models import Agent, AgentAlias, Benchmark
from leaderboard.catalog.services import AgentDescription, AgentMismatch
from leaderboard.errors import Conflict, Faulty, Missing, Refusal
from leaderboard.operations import services
from leaderboard.operations.corrections import unload_latest
from leaderboard.operations.naming import (
    agent_named,
    check_no_marks,
    merge,
    rename,
)
from leaderboard.studies.history import moments
from leaderboard.studies.outcomes import read_outcomes
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import deliveries, live_outcomes
from tests.leaderboard.world import World
from tests.refusals import refused
from tests.toys import AS_OF, csv_text, lines_of, load_text, recomputed


def agent(name):
    return agent_named(Benchmark.objects.get(slug="toy"), name)


def renamed(old, new):
    return rename(agent=agent(old), name=new, by=None, reason="its owner asked", as_of=AS_OF)


def merged(source, target):
    return merge(agent=agent(source), into=agent(target), by=None, reason="one and the same", as_of=AS_OF)


class TestRename:
    def test_the_next_board_has_the_new_name_and_the_old_board_the_old_one(self, toy):
        first = recomputed()
        renamed("a03", "Aster")
        second = recomputed()
        assert second.number == 2
        assert set(lines_of(first)) - set(lines_of(second)) == {"a03"}
        assert lines_of(second)["Aster"].at["full"].score == lines_of(first)["a03"].at["full"].score
        assert first.entries.get(name="a03").agent == agent("Aster")

    def test_a_sign_in_an_old_name_is_no_mark_of_the_board(self, toy):
        renamed("a03", "★ Aster")
        renamed("★ Aster", "Aster")
        described = AgentDescription("★ Aster", "Loop", "Model")
        check_no_marks(toy, described)
        with pytest.raises(Faulty):
            check_no_marks(toy, described._replace(name="★ Other"))

    def test_while_a_board_is_computed_the_board_is_computed_anew(self, toy, monkeypatch):
        answered, n_before = services.compute_standings, toy.boards.count()

        def slowly(*arguments):
            told = answered(*arguments)
            if toy.agents.filter(name="a03"):
                renamed("a03", "Aster")
            return told

        monkeypatch.setattr(services, "compute_standings", slowly)
        board = recomputed()
        assert "Aster" in lines_of(board)
        assert "a03" not in lines_of(board)
        assert (toy.boards.count(), recomputed()) == (n_before + 1, board)

    def test_a_file_under_the_old_name_is_the_agents_own(self, toy):
        renamed("a03", "Aster")
        report = load_text(csv_text({"a03": "1" * 21}), replace=True)
        assert (report.n_new_tasks, report.n_new) == (1, 1)
        assert not Agent.objects.filter(name="a03").exists()
        assert set(agent("Aster").submissions.values_list("agent__name", flat=True)) == {"Aster"}

    def test_what_comes_through_the_interface_under_the_old_name_too(self, db):
        world = World(n_founders=3, n_tasks=4)
        world.newcomer()
        renamed("n000", "Nova")
        world.deliver("n000", [{"task": world.tasks[0], "trial": 2, "outcome": 1}])
        assert agent("Nova").submissions.count() == 2

    def test_a_name_can_come_back(self, toy):
        renamed("a03", "Aster")
        renamed("Aster", "a03")
        assert list(AgentAlias.objects.values_list("name", flat=True)) == ["Aster"]

    def test_a_name_can_come_back_in_another_case_and_go_again(self, toy):
        for old, new in (("a03", "Aster"), ("Aster", "A03"), ("A03", "Birch"), ("Birch", "ASTER")):
            renamed(old, new)
        assert set(AgentAlias.objects.values_list("name", flat=True)) == {"A03", "Birch"}

    def test_of_two_that_take_a_name_at_once_one_is_refused(self, toy, monkeypatch):
        monkeypatch.setattr("leaderboard.operations.naming._check_free", lambda agent, name: None)
        with refused(Conflict, "name_taken"):
            renamed("a03", "A04")
        assert agent("a03").aliases.count() == 0

    def test_one_that_was_merged_keeps_its_name(self, db):
        load_text(csv_text({"left": "1.", "right": ".1"}))
        merged("left", "right")
        with refused(Conflict, "merged_already"):
            renamed("left", "middle")

    @pytest.mark.parametrize("name", ["a04", "A04", "Ａ04"])
    def test_a_name_that_is_anothers_is_refused(self, toy, name):
        with refused(Conflict, "name_taken"):
            renamed("a03", name)

    def test_a_name_that_another_had_is_refused(self, toy):
        renamed("a03", "Aster")
        with refused(Conflict, "name_taken", match="manage.py merge toy a04 Aster --reason TEXT"):
            renamed("a04", "A03")
        with refused(AgentMismatch, "looks_like_another"):
            load_text(csv_text({"Ａ03": "1" * 20}))

    @pytest.mark.parametrize("name", ["", "x" * 256, "a\x00b"])
    def test_what_is_no_name_is_refused(self, toy, name):
        with refused(Refusal, "not_a_name"):
            renamed("a03", name)

    def test_by_a_command(self, toy):
        out = io.StringIO()
        call_command("rename", "toy", "a03", "Aster", reason="asked", stdout=out)
        assert "a03 is now called Aster" in out.getvalue()
        with refused(Missing, "no_such_agent"):
            agent("a03")


class TestMerge:
    """Of 20 tasks one name ran the first half, the other the second: together they are complete."""

    @pytest.fixture
    def halves(self, toy):
        load_text(csv_text({"left": "1" * 10 + "." * 10, "right": "." * 10 + "0" * 10}))
        return toy

    def test_both_count_as_one(self, halves):
        before = lines_of(recomputed())
        assert before["left"].at["full"].rank is None
        merged("left", "right")
        after = lines_of(recomputed())
        assert "left" not in after
        assert after["right"].at["full"].score == pytest.approx(0.5)
        assert (after["right"].n_tasks, after["right"].n_submissions) == (20, 2)

    def test_before_it_they_were_two(self, halves):
        version = Benchmark.objects.get(slug="toy").data_version
        left, right = agent("left").pk, agent("right").pk
        merged("left", "right")
        then, now = ({one.agent_id for one in deliveries(halves, upto=upto)} for upto in (version, None))
        assert {left, right} <= then
        assert left not in now
        assert sum(one.agent_id == right for one in deliveries(halves)) == 2

    def test_the_order_of_deliveries_knows_when(self, halves):
        version = Benchmark.objects.get(slug="toy").data_version
        counts = [one.n_candidates for one in moments(halves, upto=version)]
        merged("left", "right")
        load_text(csv_text({"later": "1" * 20}))
        now = Benchmark.objects.get(slug="toy").data_version
        after = [one.n_candidates for one in moments(halves, upto=now)]
        assert after[: len(counts)] == counts == [16]
        assert after[-1] == 18  # the two halves together, and the later one

    def test_deliveries_under_its_name_are_the_others(self, halves):
        merged("left", "right")
        load_text(csv_text({"left": "." * 20 + "1"}))
        assert Submission.objects.latest("pk").agent == agent("right")
        # What either of them holds may not come again otherwise.
        report = load_text(csv_text({"left": "1" * 10 + "." * 10}))
        assert (report.n_new, report.n_same) == (0, 10)

    def test_what_stands_for_the_other_holds_both(self, halves):
        merged("left", "right")
        rows = live_outcomes([agent("right").pk])
        assert rows.num_rows == 20
        assert set(rows["agent"].to_pylist()) == {agent("right").pk}

    def test_a_chain_ends_at_the_last(self, halves):
        load_text(csv_text({"whole": "." * 20 + "1"}))
        merged("left", "right")
        merged("right", "whole")
        assert agent("left").merged_into == agent("whole")
        assert {one.agent_id for one in deliveries(halves)} & {agent("left").pk, agent("right").pk} == set()
        assert lines_of(recomputed())["whole"].n_tasks == 21

    def test_the_same_key_in_both_is_refused(self, toy):
        with refused(Conflict, "cannot_merge", match="the same task, setting and trial, 20 times"):
            merged("a01", "a02")

    def test_other_refusals(self, halves):
        with refused(Conflict, "cannot_merge", match="one agent already"):
            merged("left", "left")
        merged("left", "right")
        with refused(Conflict, "merged_already"):
            merged("left", "a01")
        with refused(Conflict, "cannot_merge", match="was merged itself"):
            merged("a01", "left")
        load_text(csv_text({"far": "1"}), slug="elsewhere")
        far = agent_named(Benchmark.objects.get(slug="elsewhere"), "far")
        with refused(Conflict, "cannot_merge", match="different benchmarks"):
            merge(agent=agent("right"), into=far, by=None, reason="?", as_of=AS_OF)

    def test_pages_show_the_other_agent_where_all_that_counts_was_the_merged_ones(self, toy):
        load_text(csv_text({"left": "1" * 20}))
        load_text(csv_text({"right": "1" * 20}))
        unload_latest(benchmark=toy, by=None, reason="twice", as_of=AS_OF)
        recomputed()
        merged("left", "right")
        recomputed()
        read = read_outcomes(toy)
        assert (read.n_unread, agent("right") in read.agents) == (0, True)

    def test_what_was_merged_may_be_taken_back(self, halves):
        merged("left", "right")
        assert len(unload_latest(benchmark=halves, reason="wrong", as_of=AS_OF)) == 2
        assert "right" not in lines_of(recomputed())

    def test_a_merged_agent_is_still_described_as_it_was(self, halves):
        merged("left", "right")
        text = csv_text({"left": "." * 20 + "1"}).replace("Model left", "Model other")
        with refused(AgentMismatch, "agent_described_otherwise"):
            load_text(text)

    def test_by_a_command(self, halves):
        out = io.StringIO()
        call_command("merge", "toy", "left", "right", "--dry-run", reason="one", stdout=out)
        assert out.getvalue().startswith("1 submission of left would count for right.\n")
        assert "counts as" not in out.getvalue()
        assert agent("left").merged_into is None
        call_command("merge", "toy", "left", "right", reason="one", stdout=out)
        assert out.getvalue().endswith("left now counts as right.\nNext: manage.py recompute toy\n")
        assert agent("left").merged_into == agent("right")
