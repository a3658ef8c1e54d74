import pytest

from leaderboard.pages.board_query import direction, order_in, sort_lines
from leaderboard.pages.board_table import ORDERS, BoardLine
from leaderboard.pages.templatetags.figures import heading
from tests.leaderboard.pages.lines import entrant


def lines(**columns):
    """Lines of agents a, b, c … with the values given for each field; those of targets as (target, field)."""
    n = len(next(iter(columns.values())))
    return [line("abcdefgh"[i], **{field: values[i] for field, values in columns.items()}) for i in range(n)]


def line(name, *, target="full", **fields):
    entry = entrant(name, **fields)
    return BoardLine(entry, entry.at[target], {})


def names(ordered):
    return "".join(line.entry.agent for line in ordered)


@pytest.mark.parametrize(
    ("sort", "expected"), [("tasks", "bca"), ("-tasks", "acb"), ("rank", "abc"), ("-rank", "cba")]
)
def test_numbers_begin_with_the_largest_but_ranks_with_the_first(sort, expected):
    assert names(sort_lines(lines(n_tasks=[1, 9, 5], rank=[1, 2, 3]), sort)) == expected


@pytest.mark.parametrize(("sort", "expected"), [("full", "cab"), ("-full", "acb")])
def test_what_has_no_value_comes_last_either_way(sort, expected):
    assert names(sort_lines(lines(score=[0.1, None, 0.9]), sort)) == expected


def test_a_cost_that_is_not_believed_comes_last():
    entries = [entrant(name, cost_usd=cost) for name, cost in (("a", 9.0), ("b", 0.01), ("c", 8.0))]
    asked = [BoardLine(one, one.at["full"], {"Cost": "?" if one.agent == "b" else "$9"}) for one in entries]
    assert names(sort_lines(asked, "cost")) == "cab"


def test_a_cost_of_some_trials_alone_comes_last():
    prices = [("a", 9.0, "linear"), ("b", 0.01, "in part"), ("c", 8.0, "linear")]
    entries = [entrant(name, cost_usd=cost, cost_basis=basis) for name, cost, basis in prices]
    asked = [BoardLine(one, one.at["full"], {"Cost": f"${one.cost_usd}"}) for one in entries]
    assert names(sort_lines(asked, "cost")) == "cab"


@pytest.mark.parametrize(("sort", "expected"), [("cost", "bca"), ("-cost", "acb")])
def test_the_cheapest_comes_first(sort, expected):
    assert names(sort_lines(lines(cost_usd=[3.0, 1.0, 2.0]), sort)) == expected


@pytest.mark.parametrize(("sort", "expected"), [("date", "bca"), ("-date", "abc")])
def test_equal_values_keep_their_order(sort, expected):
    days = ["2025-01-01", "2026-01-01", "2026-01-01"]
    assert names(sort_lines(lines(submitted_at=days), sort)) == expected


def test_who_has_no_rank_interval_comes_after_who_has_no_ties():
    ordered = [line("a"), line("b", rank_lower=1, rank_upper=1)]
    assert names(sort_lines(ordered, "ties")) == names(sort_lines(ordered, "-ties")) == "ba"


def test_names_are_ordered_without_regard_to_case():
    mixed = [line(name) for name in ("b", "C", "A")]
    assert names(sort_lines(mixed, "agent")) == "AbC"


@pytest.mark.parametrize("column", ORDERS)
def test_choosing_a_column_twice_turns_it_round_and_thrice_back(column):
    def chosen(order):
        page = {"order": order, "direction": direction(order), "address": lambda sort: sort}
        head = heading(page, column, "")
        return order_in(head["address"])

    first = chosen("rank" if column != "rank" else "agent")
    second = chosen(first)
    assert (first, second) == (column, f"-{column}")
    assert chosen(second) == first
    assert {direction(first), direction(second)} == {"ascending", "descending"}
