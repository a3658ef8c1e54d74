from datetime import UTC, datetime

import pytest

from leaderboard.boards.models import Entry
from leaderboard.boards.reading import Line
from leaderboard.pages.queries import COLUMNS, Order


def line(entry, told=None):
    return Line(entry, told or {}, rank=entry.rank, shares_rank=False, tied=())


def lines(**columns):
    """Lines of agents a, b, c … with the values given for each field."""
    n = len(next(iter(columns.values())))
    rows = [{field: values[i] for field, values in columns.items()} for i in range(n)]
    return [line(Entry(name="abcdefgh"[i], **row)) for i, row in enumerate(rows)]


def names(ordered):
    return "".join(line.entry.name for line in ordered)


@pytest.mark.parametrize(
    ("sort", "expected"), [("tasks", "bca"), ("-tasks", "acb"), ("rank", "abc"), ("-rank", "cba")]
)
def test_numbers_begin_with_the_largest_but_ranks_with_the_first(sort, expected):
    assert names(Order.parse(sort).sort(lines(n_scored=[1, 9, 5], rank=[1, 2, 3]))) == expected


@pytest.mark.parametrize(("sort", "expected"), [("full", "cab"), ("-full", "acb")])
def test_what_has_no_value_comes_last_either_way(sort, expected):
    assert names(Order.parse(sort).sort(lines(full_score=[0.1, None, 0.9]))) == expected


@pytest.mark.parametrize(("sort", "expected"), [("date", "bca"), ("-date", "abc")])
def test_equal_values_keep_their_order(sort, expected):
    early, late = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    assert names(Order.parse(sort).sort(lines(submitted_at=[early, late, late]))) == expected


def test_who_has_no_rank_interval_comes_after_who_has_no_ties():
    known = {"rank_lower": 1, "rank_upper": 1}
    ordered = [line(Entry(name="a")), line(Entry(name="b"), known)]
    assert names(Order.parse("ties").sort(ordered)) == names(Order.parse("-ties").sort(ordered)) == "ba"


def test_names_are_ordered_without_regard_to_case():
    mixed = [line(Entry(name=name)) for name in ("b", "C", "A")]
    assert names(Order.parse("agent").sort(mixed)) == "AbC"


@pytest.mark.parametrize("column", COLUMNS)
def test_choosing_a_column_twice_turns_it_round_and_thrice_back(column):
    order = Order("rank" if column != "rank" else "agent")
    first = Order.parse(order.after_choosing(column))
    second = Order.parse(first.after_choosing(column))
    assert (first, second) == (Order(column), Order(column, reverse=True))
    assert Order.parse(second.after_choosing(column)) == first
    assert {first.direction(column), second.direction(column)} == {"ascending", "descending"}
