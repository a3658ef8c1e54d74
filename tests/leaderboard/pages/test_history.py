"""Boards through time: their permalinks, and what changed between them."""

import re

import pytest
from django.template.loader import render_to_string

from leaderboard.boards.models import Board, Entry
from leaderboard.catalog.models import Agent, Benchmark, Policy, Task
from leaderboard.operations.benchmarks import retire
from leaderboard.operations.corrections import unload
from leaderboard.pages.history import best_chart
from leaderboard.submissions.models import Submission
from tests.leaderboard.pages.conftest import AS_OF
from tests.leaderboard.pages.counting import n_queries
from tests.seen import rows_of, text_of
from tests.toys import csv_text, graded, ladder, load_text, recomputed


@pytest.fixture
def two(publish):
    """Board 1 of four agents; on board 2 a fifth that is better than all of them."""
    agents = ladder(6, 20)
    return publish({name: agents[name] for name in ("a00", "a01", "a02", "a03")}, {"best": "1" * 20})


def withdraw(*names):
    """Withdraw all that these agents delivered, without a new board."""
    uuids = [one.uuid for one in Submission.objects.filter(agent__name__in=names)]
    unload(uuids=uuids, reason="the harness was broken", as_of=AS_OF)


class TestPermalink:
    def test_an_older_board_says_that_it_is_not_the_latest(self, client, two):
        response = client.get("/b/toy/v1")
        text, page = text_of(response), response.content.decode()
        assert "Not the latest board. This is board 1 as of 1 June 2026, 12:05 UTC" in text
        assert '<a href="/b/toy">Board 2 is the latest</a>' in page
        assert 'href="/b/toy?since=1#since-title"' in page
        assert "The data have changed" not in text
        assert [row[3].split()[0] for row in rows_of(response)] == ["a03", "a02", "a01", "a00"]
        assert "<title>Board 1 · Toy · Bandstand</title>" in page

    def test_the_latest_board_has_a_permalink_that_says_the_same(self, client, two):
        assert client.get("/b/toy/v2").content == client.get("/b/toy").content
        assert "Not the latest" not in text_of(client.get("/b/toy/v2"))
        assert '<a href="/b/toy/v2">Board 2</a>' in client.get("/b/toy").content.decode()

    def test_the_digest_is_on_the_page(self, client, two):
        for board in Board.objects.all():
            assert f"<code>{board.digest}</code>" in client.get(f"/b/toy/v{board.number}").content.decode()
        assert 'href="/.well-known/bandstand-key"' in client.get("/b/toy/v1").content.decode()

    def test_the_switch_and_the_order_stay_on_it(self, client, two):
        rows = rows_of(client.get("/b/toy/v1?sort=-score"))
        assert [row[3].split()[0] for row in rows] == ["a00", "a01", "a02", "a03"]

    @pytest.mark.parametrize("path", ["v3", "v0", "v999999999999999999999999", "v1x", "v", "v-1"])
    def test_what_was_never_published_is_not_there(self, client, two, path):
        assert client.get(f"/b/toy/{path}").status_code == 404

    def test_what_is_withdrawn_today_is_struck_out_and_nothing_else_changes(self, client, two):
        before = rows_of(client.get("/b/toy/v1"))
        withdraw("a02")
        response = client.get("/b/toy/v1")
        assert "<s><bdi>a02</bdi></s>" in response.content.decode()
        assert response.content.decode().count("<s>") == 1
        assert "Agents withdrawn since are struck out" in text_of(response)
        after = [[cell.removesuffix(" withdrawn since") for cell in row] for row in rows_of(response)]
        assert after == before
        # The latest board is older than the withdrawal, too.
        assert "<s><bdi>a02</bdi></s>" in client.get("/b/toy").content.decode()

    def test_markdown_says_the_same(self, client, two):
        assert "latest" not in client.get("/b/toy/board.md").content.decode()
        withdraw("a02")
        for asked, says_old in (("?board=1", True), ("", False)):
            text = client.get(f"/b/toy/board.md{asked}").content.decode()
            marked = [row for row in text.splitlines() if "withdrawn since" in row]
            assert [row.split(" | ")[2] for row in marked] == ["~~a02~~ withdrawn since"]
            assert ("Board 2 is newer." in text) == says_old

    def test_who_took_back_one_of_two_deliveries_is_not_struck_out(self, client, publish):
        publish({"a": "01..", "b": "0011"}, {"a": "..11"})
        later = Submission.objects.filter(agent__name="a").latest("pk")
        unload(uuids=[later.uuid], reason="the wrong file", as_of=AS_OF)
        assert "<s>" not in client.get("/b/toy/v2").content.decode()
        withdraw("b")
        assert "<s><bdi>b</bdi></s>" in client.get("/b/toy/v2").content.decode()

    def test_costs_that_todays_policy_hides_are_hidden_on_old_boards(self, client, publish):
        priced = "benchmark,agent,scaffold,model,submitted_at,task,trial,outcome,cost_usd\n" + "".join(
            f"Toy,{agent},Loop,M,2026-01-05,t{j},1,{mark},2.5\n"
            for agent, marks in graded(6, 20).items()
            for j, mark in enumerate(marks)
        )
        publish(priced)
        assert "$" in text_of(client.get("/b/toy/v1"))
        values = Policy.objects.values().get() | {"number": 2, "show_costs": False}
        Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
        for path in ("/b/toy/v1", "/b/toy", "/"):
            assert "$" not in text_of(client.get(path))
        assert client.get("/api/v1/benchmarks/toy/board").json()["agents"][0]["cost_usd"] is None


class TestSince:
    def test_who_entered_and_who_moved(self, client, two):
        text = text_of(client.get("/b/toy?since=1"))
        assert "What changed since board 1 1 agent entered" in text
        told = [row[:2] for row in rows_of(client.get("/b/toy?since=1"), "changes")]
        new = "Moved outside its earlier rank range 1 new above it"
        assert told == [["best", "Entered at rank 1"], ["a00", new]]
        assert client.get("/b/toy/v2?since=1").content == client.get("/b/toy?since=1").content

    @pytest.mark.parametrize("since", ["2", "0", "9", "-1", "x", "", "1.0", "٣", "9" * 40])
    def test_what_is_no_older_board_is_ignored(self, client, two, since):
        assert "What changed since" not in text_of(client.get(f"/b/toy?since={since}"))

    def test_the_rank_that_moved_is_told_with_what_it_might_have_been(self, client, publish):
        # 40 tasks, wide apart: each agent's rank is certain. Two better ones come and push all down.
        steps = {f"a{i}": "1" * (10 * i) + "0" * (40 - 10 * i) for i in range(4)}
        publish(steps, {"top": "1" * 40})
        rows = rows_of(client.get("/b/toy?since=1"), "changes")
        assert ["top", "Entered at rank 1", "none", "1 (1)"] in rows
        (moved,) = (row for row in rows if row[0] == "a3")
        assert moved[1] == "Moved outside its earlier rank range 1 new above it"
        assert moved[2] == "1 (1)"
        assert moved[3].startswith("2")

    def test_a_withdrawn_agent_is_told_apart_from_one_that_left(self, client, two):
        withdraw("a00")
        recomputed(as_of=AS_OF)
        assert "1 was withdrawn" in text_of(client.get("/b/toy?since=1"))
        rows = rows_of(client.get("/b/toy?since=2"), "changes")
        assert ["a00", "Withdrawn", "5 (3–5)", "none"] in rows

    def test_corrected_results_are_counted(self, client, two):
        load_text(csv_text({"a02": "0" * 17 + "111"}), replace=True)
        recomputed()
        unload(uuids=[Submission.objects.latest("pk").uuid], reason="wrong", as_of=AS_OF)
        recomputed()
        latest, corrected, *_ = rows_of(client.get("/b/toy/history"), "versions")
        assert latest[1].startswith("1 agent was withdrawn.")
        assert corrected[1] == "1 agent had results or costs corrected."
        assert "1 agent had results or costs corrected." in text_of(client.get("/b/toy/v3?since=2"))

    def test_results_that_were_loaded_again_are_no_correction(self, client, two):
        gone = Submission.objects.filter(agent__name="a02")
        unload(uuids=[gone.get().uuid], reason="again", as_of=AS_OF)
        load_text(csv_text({"a02": "1" * 10 + "0" * 10}))
        recomputed()
        assert len(set(Board.objects.values_list("digest", flat=True))) == 2
        for page in ("history", "v3?since=2"):
            assert "corrected" not in text_of(client.get(f"/b/toy/{page}"))

    def test_a_renamed_agent_neither_comes_nor_goes(self, client, two):
        Agent.objects.filter(name="a00").update(name="renamed")
        withdraw("best")
        recomputed(as_of=AS_OF)
        text = text_of(client.get("/b/toy/v3?since=1"))
        assert "No change: no agent entered" in text


class TestHistory:
    def test_every_board_stands_there_newest_first(self, client, two):
        response = client.get("/b/toy/history")
        rows = rows_of(response, "versions")
        assert [[row[0], *row[2:]] for row in rows] == [
            ["Board 2 2026-06-01 12:05", "5 of 5", "none", "Provisional"],
            ["Board 1 2026-06-01 12:05", "4 of 4", "none", "Cold start"],
        ]
        assert rows[0][1].startswith("1 agent entered")
        assert rows[0][1].endswith(". Agents that changed with board 2")
        assert rows[1][1] == "First board."
        page = response.content.decode()
        assert 'href="/b/toy/v1"' in page
        assert 'href="/b/toy/v2?since=1#since-title"' in page

    def test_its_sentences_are_those_of_the_two_boards(self, client, two):
        withdraw("a00")
        recomputed(as_of=AS_OF)
        row = rows_of(client.get("/b/toy/history"), "versions")[0]
        assert row[1].removesuffix(" Agents that changed with board 3") in text_of(
            client.get("/b/toy?since=2")
        )

    def test_it_takes_nine_queries_however_many_boards(self, client, two, django_assert_num_queries):
        # the benchmark; its boards with their subsets; their entries' places; who is withdrawn or corrected
        with django_assert_num_queries(5):
            client.get("/b/toy/history")
        withdraw("a00")
        recomputed(as_of=AS_OF)
        # From three boards on a chart: boards, who is withdrawn, the best of each, where former ones stand
        with django_assert_num_queries(9):
            client.get("/b/toy/history")

    def test_it_says_what_changed_in_a_table_for_each_board(self, client, two):
        response = client.get("/b/toy/history")
        assert text_of(response).startswith("Toy : history 2 boards so far. Board 2, 1 June 2026: 1 agent")
        told = rows_of(response, "changes")
        assert told[0] == ["best", "Entered at rank 1", "none", "1 (1–2)"]
        best = Entry.objects.get(board=two, name="best").agent_id
        assert f'<a href="/b/toy/agents/{best}"><bdi>best</bdi></a>' in response.content.decode()
        assert told[1][2:] == ["4 (2–4)", "5 (3–5)"]  # a00: three were above it, now four
        assert "Changes with board 2" in text_of(response)
        assert "Changes with board 1" not in text_of(response)

    def test_older_boards_are_a_page_away(self, client, two, monkeypatch):
        monkeypatch.setattr("leaderboard.pages.history.N_VERSIONS", 1)
        first = client.get("/b/toy/history").content.decode()
        assert '<a href="?before=2">Older boards</a>' in first
        response = client.get("/b/toy/history?before=2")
        assert [row[0][:7] for row in rows_of(response, "versions")] == ["Board 1"]
        assert "Older boards" not in text_of(response)
        assert "Latest boards" in text_of(response)

    @pytest.mark.parametrize("before", ["x", "", "-1", "٣", "9" * 12])
    def test_what_is_no_number_or_above_all_leaves_nothing_out(self, client, two, before):
        assert len(rows_of(client.get(f"/b/toy/history?before={before}"), "versions")) == 2

    def test_without_a_board_it_says_so(self, client, db):
        Benchmark.objects.create(slug="empty", title="Empty")
        assert "No board yet" in text_of(client.get("/b/empty/history"))
        assert client.get("/b/none/history").status_code == 404

    def test_under_the_first_board_there_is_none(self, client, two):
        assert "No older board" in text_of(client.get("/b/toy/history?before=1"))


class TestNeighbours:
    """What stands beside a board; its page includes it."""

    def shown(self, number, latest):
        given = {"benchmark": Benchmark(slug="toy"), "number": number, "latest": latest}
        return re.findall(r'href="([^"]+)"', render_to_string("pages/neighbours.html", given))

    def test_the_first_the_last_and_one_between(self):
        assert self.shown(1, 3) == ["/b/toy/v2", "/b/toy/history"]
        assert self.shown(2, 3) == ["/b/toy/v1", "/b/toy/v3", "/b/toy/history"]
        assert self.shown(3, 3) == ["/b/toy/v2", "/b/toy/history"]
        assert self.shown(1, 1) == ["/b/toy/history"]


class TestBest:
    """The best score through the boards: solid where the board itself tells that the new best is better."""

    def drawn(self):
        return best_chart(Benchmark.objects.get(slug="toy"))

    def test_a_best_that_is_surely_better_is_solid(self, publish):
        # 40 of 40 tasks against the 20 of 40 of a2, which stands at rank 2 there
        board = publish({f"a{i}": "1" * (10 * i) + "0" * (40 - 10 * i) for i in range(3)}, {"top": "1" * 40})
        entry, former = (Entry.objects.get(board=board, name=name) for name in ("top", "a2"))
        assert not any(low <= former.position <= high for low, high in entry.line["at"]["full"]["tied_with"])
        chart = self.drawn()
        assert [row[0] for row in chart.rows] == ["1", "2"]
        assert chart.rows[0][2:] == ("a2", "50.0", "all 40 tasks", "first board shown")
        assert chart.rows[1][2:] == ("top", "100.0", "all 40 tasks", "clearly better than a2")
        assert "stroke-dasharray" not in chart.svg

    def test_a_best_that_is_tied_with_the_one_before_is_dashed(self, publish):
        agents = ladder(6, 20)
        board = publish(
            {name: agents[name] for name in ("a00", "a01", "a02", "a03")}, {"a bit": "1" * 15 + "0" * 5}
        )
        entry = Entry.objects.get(board=board, name="a bit")
        former = Entry.objects.get(board=board, name="a03").position
        assert any(low <= former <= high for low, high in entry.line["at"]["full"]["tied_with"])
        chart = self.drawn()
        assert chart.rows[1][2:] == ("a bit", "75.0", "all 20 tasks", "tied with a03")
        assert chart.svg.count("stroke-dasharray") == 1

    def test_who_is_gone_is_not_held_against(self, two):
        withdraw("best")
        recomputed(as_of=AS_OF)
        rows = self.drawn().rows
        assert rows[1][2] == "best (withdrawn since)"
        why = "best (withdrawn since) is no longer ranked"
        assert rows[2][2:] == ("a03", "70.0", "all 20 tasks", why)

    def test_scores_over_other_tasks_are_not_joined(self, two):
        retire(task=Task.objects.get(name="t19"), by=None, reason="broken", as_of=AS_OF)
        recomputed(as_of=AS_OF)
        chart = self.drawn()
        assert chart.rows[2][4:] == ("all 19 tasks", "on other tasks, not comparable")
        assert chart.svg.count("<path") - chart.svg.count("s-grid") == 3

    def test_nothing_changed_is_no_step(self, client, two):
        assert "Best score" not in text_of(client.get("/b/toy/history"))  # under three boards
        withdraw("a00")
        recomputed(as_of=AS_OF)
        assert "Best score" in text_of(client.get("/b/toy/history"))
        assert [row[0] for row in self.drawn().rows] == ["1", "2"]

    def test_without_a_rank_there_is_nothing_to_draw(self, client, db):
        Benchmark.objects.create(slug="toy", title="Toy")
        assert self.drawn() is None
        assert client.get("/b/toy/plots/best.svg").status_code == 404


def test_how_many_queries_each_view_of_a_board_takes(client, two):
    # the benchmark; the board; its entries; the latest number (no subset is fixed: none of its tasks)
    assert n_queries(client, "/b/toy/v2") == 4
    # and the older board, its entries, who is withdrawn, who was corrected
    assert n_queries(client, "/b/toy?since=1") == 3 + 4
    # An old board is older than the data: who is withdrawn is asked.
    assert n_queries(client, "/b/toy/v1") == 5
