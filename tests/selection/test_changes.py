"""What changed between two boards, by hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selection.standings import words
from selection.standings.changes import Changes, Moved, Place, compared

ROOT = Path(__file__).resolve().parent.parent.parent

OLDER = {
    "alpha": Place(1, 1, 2, 0.90),
    "bravo": Place(2, 1, 3, 0.80),
    "delta": Place(3, 2, 4, 0.70),
    "echo": Place(4, 3, 5, 0.60),
    "golf": Place(5, 5, 5, 0.50),
    "hotel": Place(score=0.40),
    "india": Place(6, 6, 6, 0.30),
}
# Two newcomers on top, hotel gets a rank, echo and golf are gone, india has no rank any more.
NEWER = {
    "new 1": Place(1, 1, 2, 0.99),
    "new 2": Place(2, 1, 2, 0.98),
    "alpha": Place(3, 3, 3, 0.90),
    "delta": Place(4, 4, 5, 0.85),
    "hotel": Place(5, 4, 6, 0.82),
    "bravo": Place(6, 5, 6, 0.80),
    "india": Place(score=0.30),
}


def test_each_change_is_told_once():
    told = compared(OLDER, NEWER, target="full", withdrawn={"golf", "alpha"})
    assert told == Changes(
        target="full",
        entered=("new 1", "new 2"),
        left=("echo",),
        withdrawn=("golf",),
        moved=(
            Moved("alpha", Place(1, 1, 2, 0.90), Place(3, 3, 3, 0.90), 2),
            Moved("bravo", Place(2, 1, 3, 0.80), Place(6, 5, 6, 0.80), 3),
        ),
        now_ranked=("hotel",),
        now_unranked=("india",),
    )


def test_delta_stays_within_the_ranks_that_it_might_hold():
    """Rank 3 became 4, of 2 to 4."""
    assert "delta" not in {moved.agent for moved in compared(OLDER, NEWER, target="full").moved}


@pytest.mark.parametrize(("rank", "moved"), [(1, True), (2, False), (4, False), (5, True)])
def test_the_ends_of_the_interval_belong_to_it(rank, moved):
    told = compared({"a": Place(3, 2, 4)}, {"a": Place(rank, 1, 9)}, target="full")
    assert bool(told.moved) == moved


def test_without_a_rank_interval_no_move_can_be_told():
    told = compared({"a": Place(1), "b": Place(2, 2, 2)}, {"a": Place(9), "b": Place(2)}, target="full")
    assert (told.moved, told.n_untold, told.anything) == ((), 1, False)
    assert words.changes_text(told) == (
        "No change: no agent entered, left or moved outside its earlier rank range; 1 agent had no rank "
        "range before and cannot be compared."
    )


def test_a_new_name_is_the_same_agent():
    told = compared(
        {"old": Place(1, 1, 1), "other": Place(2, 2, 2)},
        {"new": Place(2, 2, 2), "other": Place(1, 1, 1)},
        target="full",
        renamed={"old": "new"},
    )
    assert ([moved.agent for moved in told.moved], told.entered, told.left) == (["other", "new"], (), ())


def test_a_withdrawn_agent_under_a_new_name():
    told = compared({"old": Place(1, 1, 1)}, {}, target="full", withdrawn={"old"}, renamed={"old": "new"})
    assert (told.withdrawn, told.left) == (("new",), ())


rank_sets = st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 3)).map(
    lambda told: Place(told[0], max(1, told[0] - told[1]), told[0] + told[2])
)
boards = st.dictionaries(st.sampled_from("abcdefgh"), rank_sets | st.just(Place()))


@given(boards, boards, st.sets(st.sampled_from("abcdefgh")))
def test_every_agent_is_accounted_for(older, newer, withdrawn):
    told = compared(older, newer, target="full", withdrawn=withdrawn)
    assert set(told.entered) == newer.keys() - older.keys()
    assert {*told.left, *told.withdrawn} == older.keys() - newer.keys()
    assert not set(told.left) & withdrawn
    assert set(told.withdrawn) <= withdrawn
    ranked = {n for n in older.keys() & newer.keys() if older[n].rank and newer[n].rank}
    assert {m.agent for m in told.moved} == {
        n for n in ranked if newer[n].rank not in range(older[n].rank_lower, older[n].rank_upper + 1)
    }
    for moved in told.moved:
        above = [n for n in newer if newer[n].rank and newer[n].rank < moved.now.rank]
        assert moved.n_new_above == sum(n not in older or older[n].rank is None for n in above)


@given(boards)
def test_a_board_differs_in_nothing_from_itself(board):
    """A rank lies in its own interval."""
    told = compared(board, board, target="full", withdrawn=set("abcdefgh"))
    assert not told.anything
    assert told.n_untold == 0


def test_as_objects_of_json():
    told = compared(OLDER, NEWER, target="full", withdrawn={"golf"}).as_plain()
    assert json.loads(json.dumps(told)) == told
    assert told["moved"][0] == {
        "agent": "alpha",
        "before": {"rank": 1, "rank_lower": 1, "rank_upper": 2, "score": 0.9},
        "now": {"rank": 3, "rank_lower": 3, "rank_upper": 3, "score": 0.9},
        "n_new_above": 2,
    }
    assert {name: told[name] for name in ("entered", "left", "withdrawn", "now_ranked", "now_unranked")} == {
        "entered": ["new 1", "new 2"],
        "left": ["echo"],
        "withdrawn": ["golf"],
        "now_ranked": ["hotel"],
        "now_unranked": ["india"],
    }


def test_an_agent_that_entered_is_told_with_its_rank():
    stays = {"a": Place(1, 1, 1)}
    told = compared(stays, {"a": Place(1, 1, 1), "new": Place(5, 3, 8)}, target="full")
    assert words.changes_text(told) == "1 agent entered at rank 5."
    assert words.changed_lists(told) == (("Entered", ("new: rank 5 (3–8)",)),)
    unranked = compared(stays, {"a": Place(1, 1, 1), "new": Place()}, target="full")
    assert words.changes_text(unranked) == "1 agent entered."
    assert words.changed_lists(unranked) == (("Entered", ("new: not ranked",)),)


def test_the_sentences():
    told = compared(OLDER, NEWER, target="full", withdrawn={"golf"})
    assert words.changes_text(told) == (
        "2 agents entered, 2 moved outside their earlier rank range, 1 got a rank, 1 lost the rank, "
        "1 was withdrawn, 1 left."
    )
    one = Changes(
        "full", entered=("a",), moved=(Moved("b", Place(1), Place(2), 0),), now={"a": Place(1), "b": Place(2)}
    )
    assert words.changes_text(one) == "1 agent entered at rank 1, 1 moved outside its earlier rank range."
    assert dict(words.changed_lists(told)) == {
        "Entered": ("new 1: rank 1 (1–2)", "new 2: rank 2 (1–2)"),
        "Moved outside the earlier rank range": (
            "alpha: from rank 1 (1–2) to 3 (3), 2 of those above it new",
            "bravo: from rank 2 (1–3) to 6 (5–6), 3 of those above it new",
        ),
        "Got a rank": ("hotel: rank 5 (4–6)",),
        "Lost the rank": ("india",),
        "Withdrawn": ("golf",),
        "Left": ("echo",),
    }
    assert words.moved_text(Moved("a", Place(1), Place(1200), 0)) == "from rank 1 to 1,200"
    assert words.place_text(Place()) == "not ranked"


def test_nothing_heavy_is_imported():
    code = "import selection.standings.changes, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert not {"numpy", "scipy", "pandas"} & set(done.stdout.split())
