"""What is told of new boards and of arrivals, and at which pace the clock publishes."""

from dataclasses import make_dataclass
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.urls import reverse

from leaderboard.boards import queries
from leaderboard.boards.models import Board
from leaderboard.boards.queries import as_dict, plain_of, standings_of
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.operations import services
from leaderboard.operations.models import Event, EventKind
from leaderboard.operations.queries import AT_ONCE, may_publish_at
from leaderboard.operations.services import measure_variance, recompute
from leaderboard.studies.answers import words
from leaderboard.submissions.models import Submission
from selection.schema.board import Line, Standings
from tests.toys import AS_OF, board_of, csv_text, ladder, load_text, recomputed

STEPS = {f"a{i}": "1" * (10 * i) + "0" * (40 - 10 * i) for i in range(4)}


def benchmark():
    return Benchmark.objects.get(slug="toy")


def body():
    """A run of all tasks, delivered today."""
    return {
        "agent": {"name": "new", "scaffold": "Loop", "model": "M"},
        "submitted_at": datetime.now(UTC).date().isoformat(),
        "outcomes": [{"task": f"t{j:02d}", "trial": 1, "outcome": 1} for j in range(20)],
    }


def told(kind):
    return list(Event.objects.filter(kind=kind).order_by("pk"))


@pytest.fixture
def first(db):
    """A board of four agents whose ranks are certain."""
    return board_of(csv_text(STEPS))


@pytest.fixture
def second(first):
    """A fifth agent came in above all of them."""
    load_text(csv_text({"top": "1" * 40}))
    return recomputed(as_of=AS_OF + timedelta(seconds=1))


class TestBoards:
    def test_a_first_board_is_told_with_names_and_numbers_of_its_own(self, first):
        (event,) = told(EventKind.BOARD_PUBLISHED)
        standings, published = standings_of(first), as_dict(first)
        assert (event.about, event.at) == ("1", AS_OF)
        names = ("number", "published_at", "data_version", "digest", "signature", "key", "phase", "target")
        assert {name: event.payload[name] for name in names} == {name: published[name] for name in names}
        assert event.payload["headline"] == words.headline(standings)
        assert event.payload["may_be_first"] == list(standings.targets["full"].may_be_first)
        assert (event.payload["n_listed"], event.payload["n_ranked"]) == (4, 4)
        assert event.payload["path"] == reverse("pages:version", args=["toy", 1])
        assert (event.payload["since"], event.payload["changes"]) == (None, None)
        assert not told(EventKind.RANK_CHANGED)

    def test_each_board_is_told_once(self, second):
        recomputed()
        recompute(benchmark=benchmark(), as_of=AS_OF + timedelta(days=1))
        assert [event.about for event in told(EventKind.BOARD_PUBLISHED)] == ["1", "2"]

    def test_a_moved_rank_is_told_with_what_it_might_have_been(self, second):
        published = told(EventKind.BOARD_PUBLISHED)[-1].payload
        assert published["since"] == 1
        assert (published["changes"]["entered"], published["changes"]["left"]) == (1, 0)
        (event,) = told(EventKind.RANK_CHANGED)
        assert (event.about, event.payload["since"], event.payload["number"]) == ("2", 1, 2)
        lines = {line.agent: line.at["full"] for line in standings_of(second).agents}
        moved = {one["agent"]: one for one in event.payload["agents"]}
        assert event.payload["n_agents"] == len(moved) == published["changes"]["moved"]
        assert moved["a3"]["before"]["rank_upper"] == 1
        for name, one in moved.items():
            assert one["now"]["rank"] == lines[name].rank
            assert one["n_new_above"] == 1
            assert "from rank" in one["text"]

    def test_a_board_on_which_nobody_moved_changes_no_rank(self, first):
        measure_variance(benchmark=benchmark(), as_of=AS_OF)
        assert recomputed().number == 2
        assert len(told(EventKind.BOARD_PUBLISHED)) == 2
        assert not told(EventKind.RANK_CHANGED)

    def test_costs_that_the_policy_hides_are_not_told(self, db):
        rows = csv_text(STEPS).replace(",valid", ",valid,cost_usd").replace(",1\n", ",1,2.5\n")
        load_text(rows)
        Policy.objects.update_or_create(
            benchmark=benchmark(), number=2, defaults={"show_costs": False, "created_at": AS_OF}
        )
        recomputed()
        assert "$" not in told(EventKind.BOARD_PUBLISHED)[0].payload["headline"]

    def test_a_board_that_is_not_stored_is_not_told(self, first, monkeypatch):
        load_text(csv_text({"top": "1" * 40}))

        def fails(**_):
            raise KeyboardInterrupt

        monkeypatch.setattr(services, "tell_of_board", fails)
        with pytest.raises(KeyboardInterrupt), transaction.atomic():
            recomputed()
        assert Board.objects.count() == 1  # neither without the other
        monkeypatch.undo()
        recomputed()
        assert [event.about for event in told(EventKind.BOARD_PUBLISHED)] == ["1", "2"]

    def test_many_that_moved_are_counted_and_the_first_of_them_told(self, first, monkeypatch):
        monkeypatch.setattr("leaderboard.operations.services.MAX_LISTED", 1)
        load_text(csv_text({"top": "1" * 40}))
        recomputed()
        (event,) = told(EventKind.RANK_CHANGED)
        assert len(event.payload["agents"]) == 1 < event.payload["n_agents"]


class TestPace:
    def test_the_clock_waits_until_the_latest_board_is_old_enough(self, first):
        load_text(csv_text({"top": "1" * 40}))
        due = may_publish_at(benchmark())
        assert due == AS_OF + timedelta(seconds=60)
        board, is_new = recompute(benchmark=benchmark(), as_of=due - timedelta(seconds=1), paced=True)
        assert (board, is_new) == (first, False)
        board, is_new = recompute(benchmark=benchmark(), as_of=due, paced=True)
        assert (board.number, is_new) == (2, True)

    def test_a_person_does_not_wait(self, first):
        load_text(csv_text({"top": "1" * 40}))
        assert recompute(benchmark=benchmark(), as_of=AS_OF)[1]

    def test_where_there_is_no_board_yet_the_clock_does_not_wait(self, db):
        load_text(csv_text(STEPS))
        assert may_publish_at(benchmark()) < AS_OF - timedelta(days=365)
        assert recompute(benchmark=benchmark(), as_of=AS_OF, paced=True)[1]

    def test_it_is_looked_at_again_when_the_board_is_stored(self, first, monkeypatch):
        """Another board may have come out while the clock computed."""
        load_text(csv_text({"top": "1" * 40}))
        monkeypatch.setattr(services, "may_publish_at", lambda _: AT_ONCE)
        early = AS_OF + timedelta(seconds=59)
        assert recompute(benchmark=benchmark(), as_of=early, paced=True) == (first, False)
        assert [event.about for event in told(EventKind.BOARD_PUBLISHED)] == ["1"]

    def test_the_policy_sets_the_pace(self, first):
        values = Policy.objects.values().get() | {"number": 2, "publish_every": 3600}
        Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
        assert may_publish_at(benchmark()) == AS_OF + timedelta(hours=1)


class TestArrivals:
    def test_a_load_is_told_once(self, db):
        load_text(csv_text(ladder(6, 20)))
        (event,) = told(EventKind.SUBMISSION_ACCEPTED)
        assert (event.payload["n_submissions"], event.payload["n_agents"]) == (6, 6)
        assert (event.payload["n_outcomes"], event.payload["n_invalid"]) == (120, 0)
        assert event.payload["loaded"] is True
        assert set(event.payload["submissions"]) == {str(one.uuid) for one in Submission.objects.all()}
        assert event.payload["agents"] == [f"a{i:02d}" for i in range(6)]
        assert event.payload["path"] == reverse("pages:board", args=["toy"])

    def test_a_load_that_brings_nothing_or_is_tried_alone_tells_nothing(self, db):
        load_text(csv_text(ladder(6, 20)), dry_run=True)
        assert not told(EventKind.SUBMISSION_ACCEPTED)
        load_text(csv_text(ladder(6, 20)))
        load_text(csv_text(ladder(6, 20)))
        assert len(told(EventKind.SUBMISSION_ACCEPTED)) == 1

    def test_a_submission_is_told_when_it_is_accepted(self, toy, post):
        before = Event.objects.count()
        assert post(body() | {"outcomes": []}).status_code == 422
        assert Event.objects.count() == before
        response = post(body())
        assert response.status_code == 201
        event = told(EventKind.SUBMISSION_ACCEPTED)[-1]
        assert event.about == response.json()["id"] == event.payload["submissions"][0]
        assert (event.payload["agents"], event.payload["loaded"]) == (["new"], False)
        assert post(body()).status_code == 409
        assert Event.objects.count() == before + 1

    def test_one_that_waits_for_a_review_is_not_told_yet(self, toy, post):
        values = Policy.objects.values().get() | {"number": 2, "review": "manual"}
        Policy.objects.create(**{name: value for name, value in values.items() if name != "id"})
        before = Event.objects.count()
        assert post(body()).json()["status"] == "waiting"
        assert Event.objects.count() == before


def test_as_standings_words_it(second):
    """The event's names are those of the board: nothing is named anew."""
    payload = told(EventKind.BOARD_PUBLISHED)[-1].payload
    own = {"path", "since", "changes", "headline", "may_be_first", "n_may_be_first", "n_listed", "n_ranked"}
    assert payload.keys() - own <= as_dict(second).keys()


def test_a_field_that_lines_are_given_later_has_its_default_on_older_boards(db, monkeypatch):
    load_text(csv_text(STEPS))
    board = recomputed("toy")
    line = make_dataclass("LaterLine", [("n_retries", int, 7)], bases=(Line,), frozen=True)
    later = make_dataclass("Later", [("agents", tuple[line, ...])], bases=(Standings,), frozen=True)
    monkeypatch.setattr(queries, "LINE_FIELDS", [*queries.LINE_FIELDS, "n_retries"])
    read = later.of_plain(plain_of(board))
    assert [one.n_retries for one in read.agents] == [7] * 4
    assert read.agents[0].at == standings_of(board).agents[0].at
