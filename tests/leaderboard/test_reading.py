"""A board in lines and in words."""

import pytest

from leaderboard.boards.models import Board, Entry
from leaderboard.boards.reading import (
    choose_target,
    covers_text,
    first_place,
    gaps,
    lines_at,
    money,
    savings_text,
)
from leaderboard.catalog.models import Policy
from leaderboard.studies.models import TaskSubset


def entry(name, *, rank=1, targets=None, **fields):
    return Entry(name=name, rank=rank, targets=targets or {}, **fields)


def full(score, lower=None, upper=None, tied_with=()):
    told = {"score": score, "se": 0.1}
    return {
        "full": told
        | ({"rank_lower": lower, "rank_upper": upper, "tied_with": [*tied_with]} if lower else {})
    }


def board(default="subset", **targets):
    told = {name: {"covers": "something", "reason": ""} | one for name, one in targets.items()}
    return Board(policy=Policy(default_target=default), targets=told)


def test_ranks_are_by_the_score_of_the_target_and_not_of_the_board():
    entries = [
        entry("a", rank=1, targets=full(0.3)),
        entry("b", rank=2, targets=full(0.5)),
        entry("c", rank=3, targets=full(0.3 + 1e-12)),
        entry("d", rank=4),
    ]
    lines = lines_at("full", entries)
    assert [(line.entry.name, line.rank, line.shares_rank) for line in lines] == [
        ("b", 1, False),
        ("a", 2, True),
        ("c", 2, True),
        ("d", None, False),
    ]


def test_who_is_not_ranked_has_no_line():
    assert lines_at("full", [entry("a", rank=None, targets=full(0.3))]) == []


def test_ties_are_told_from_the_best_rank_down():
    entries = [
        entry("z", targets=full(0.9, 1, 3, ["a", "m"])),
        entry("a", targets=full(0.1, 1, 3)),
        entry("m", targets=full(0.5, 1, 3)),
    ]
    assert lines_at("full", entries)[0].tied == ("m", "a")


@pytest.mark.parametrize(
    ("asked", "default", "chosen"),
    [
        ("", "subset", "subset"),
        ("full", "subset", "full"),
        ("domain", "subset", "subset"),
        ("nonsense", "subset", "subset"),
        ("\0", "full", "full"),
        ("", "domain", "full"),
    ],
)
def test_a_target_that_nothing_is_said_about_is_replaced(asked, default, chosen):
    known = board(default, subset={"n_agents": 3}, full={"n_agents": 2}, domain={"n_agents": 0})
    assert choose_target(known, asked) == chosen


def test_without_a_subset_the_default_is_the_full_suite():
    assert choose_target(board("subset", subset={"reason": "none"}, full={"n_agents": 2})) == "full"


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([], ""),
        ([entry("a", targets=full(0.9))], "a is first; there are no rank intervals to say how surely."),
        ([entry("a", targets=full(0.9, 1, 1))], "a is first, and better than every other agent at 95%."),
        (
            [entry("a", targets=full(0.9, 1, 2, "b")), entry("b", targets=full(0.8, 1, 2, "a"))],
            "a is first, but one other agent is tied with it.",
        ),
        (
            [
                entry("a", targets=full(0.9, 1, 4, "bcd")),
                entry("b", targets=full(0.9, 1, 3, "ac")),
                entry("c", targets=full(0.5, 1, 4, "ab")),
                entry("d", targets=full(0.4, 1, 4, "a")),
            ],
            "2 agents share the first place, but 2 other agents are tied with them.",
        ),
    ],
)
def test_the_first_place_is_told_with_its_rivals(entries, said):
    assert first_place(lines_at("full", entries)) == said


def test_gaps_are_grouped_by_their_reason():
    known = board(subset={"n_agents": 2}, domain={"n_agents": 1, "reason": ""})
    known.subset = TaskSubset()
    one = {
        "subset": {"score": 0.0, "se": None, "reason": "the mean is 0 or 1"},
        "full": {"reason": "no full run"},
    }
    entries = [
        entry("a", targets=one, icc={"reason": "not measured: one trial per task"}),
        entry("b", targets=one, icc={"reason": "not measured: one trial per task"}),
        entry("c", targets={"subset": {"score": 0.5, "se": 0.1}}, icc={"icc": 0.5, "note": "only 5 tasks"}),
        entry(
            "d",
            targets={"subset": {"score": 0.5, "se": 0.1, "rank_lower": 1, "rank_upper": 2}},
            full_score=0.5,
            full_interval={"reason": "residuals of 8 agents"},
        ),
    ]
    told = {(gap.what, gap.reason): gap.names for gap in gaps(known, "subset", lines_at("subset", entries))}
    assert told == {
        ("No standard error", "the mean is 0 or 1"): ("a", "b"),
        ("No full score", "no full run"): ("a", "b"),
        ("No intraclass correlation", "one trial per task"): ("a", "b"),
        ("No rank interval", "some tasks cannot be completed yet"): ("c",),
        ("No full score", "not run on all tasks"): ("c",),
        ("Intraclass correlation unreliable", "only 5 tasks"): ("c",),
        ("No interval of the full score", "residuals of 8 agents"): ("d",),
    }
    nothing = gaps(known, "domain", lines_at("domain", entries[:1]))[0]
    assert (nothing.what, nothing.reason) == ("No score", "not run on all tasks")


def test_the_reason_against_rank_intervals_is_told_with_what_is_covered():
    told = board(
        full={"covers": "the mean", "note": "conservative: so", "reason": "no rank intervals: k = 4"}
    )
    assert covers_text(told, "full") == (
        "The 95% intervals cover the mean. On ranks and ties: conservative: so. No rank intervals: k = 4."
    )


RUN = {"median": 41.2978, "lower_quartile": 22.49, "upper_quartile": 176.9}
SAVINGS = {
    "n_tasks": 120,
    "k": 55,
    "reduction": 65 / 120,
    "per_run": RUN,
    "note": "cost: measured per task for 3 of 3 agents",
    "so_far": {"n_runs": 7, "n_tasks_saved": 455, "saved": 547.9558, "n_not_measured": 2},
}
NOTHING = {"n_runs": 0, "n_tasks_saved": 0, "saved": None}


def test_savings_in_tasks_and_in_money():
    assert savings_text(SAVINGS) == (
        "A run on the subset takes 55 of 120 tasks, 54% fewer, and saves 41.30 USD in the median "
        "(middle half of the agents: 22.49 USD to 177 USD; cost: measured per task for 3 of 3 agents). "
        "So far 7 runs were spared 455 tasks and 548 USD, 2 of them without a stated cost left out."
    )


def test_money_that_was_not_measured_or_is_not_to_be_seen():
    unknown = SAVINGS | {"per_run": None, "so_far": NOTHING}
    tasks = "A run on the subset takes 55 of 120 tasks, 54% fewer"
    assert savings_text(unknown) == f"{tasks}; what that saves in money was not measured."
    hidden = savings_text(SAVINGS, with_money=False)
    assert hidden == f"{tasks}. So far 7 runs were spared 455 tasks."
    assert savings_text({}) == ""


@pytest.mark.parametrize(
    ("amount", "said"), [(0.1459, "0.15 USD"), (99.999, "100.00 USD"), (1422.84, "1,423 USD")]
)
def test_money(amount, said):
    assert money(amount) == said
