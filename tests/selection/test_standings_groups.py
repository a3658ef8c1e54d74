"""Groups of tasks on a board: what has which role, what it changes and what it does not."""

from dataclasses import replace

import numpy as np
import pytest

from analytics.differences import groups as grouped
from analytics.differences.groups import Groups
from selection.errors import SelectionError
from selection.rules import GROUPS, Rules
from selection.standings import answer
from selection.standings.pairs import pairs
from selection.standings.targets import grouping
from tests.refusals import refused
from tests.selection.records import board, by_name, record_of

FIFTHS = tuple(f"g{j // 5:02d}" for j in range(60))  # 12 groups of five tasks
HALVES = tuple("ab"[j % 2] for j in range(60))
ALONE = "tasks are taken as independent"


def grouped_record(**stated):
    return replace(record_of(board(14)), **stated)


def told(record, groups):
    found = grouping(record, Rules(groups=groups))
    return found.groups and found.groups.role, found.text


@pytest.mark.parametrize(
    ("groups", "role", "text"),
    [
        ("auto", "cluster", "tasks of one group are taken as drawn together (12 groups)"),
        ("none", None, ALONE),
        ("group:cluster", "cluster", "tasks of one group are taken as drawn together (12 groups)"),
        ("group:stratum", "stratum", "tasks are taken as drawn within each group (12 groups)"),
        ("category:cluster", "cluster", "tasks of one category are taken as drawn together (2 categories)"),
        ("category:stratum", "stratum", "tasks are taken as drawn within each category (2 categories)"),
    ],
)
def test_a_rule_gives_a_column_its_role(groups, role, text):
    assert told(grouped_record(groups=FIFTHS, categories=HALVES), groups) == (role, text)


@pytest.mark.parametrize(
    "groups", [(), ("",) * 60, tuple(f"g{j // 7}" for j in range(60)), tuple(f"g{j}" for j in range(60))]
)
def test_nine_groups_or_groups_of_one_task_have_no_role_of_their_own(groups):
    assert told(grouped_record(groups=groups, categories=FIFTHS), "auto") == (None, ALONE)


def test_a_column_that_nobody_filled_has_no_role():
    assert told(grouped_record(groups=("",) * 60), "group:cluster") == (None, f"no task has a group: {ALONE}")


def test_a_task_without_a_group_stands_for_itself():
    half = grouped_record(groups=tuple("" if j % 2 else name for j, name in enumerate(FIFTHS)))
    assert grouping(half, Rules()).groups.sizes.size == 12 + 30
    assert grouping(half, Rules(groups="group:stratum")).groups.sizes.size == 12 + 1


@pytest.mark.parametrize("role", ["cluster", "stratum"])
def test_errors_ranks_and_pairs_of_the_domain_are_those_of_groups(role):
    record, rules = grouped_record(groups=FIFTHS), Rules(groups=f"group:{role}", target="domain")
    found, plain = answer(record, rules), answer(record, replace(rules, groups="none"))
    groups, means = Groups.of(FIFTHS, role), record.table.means
    for i, name in enumerate(record.table.agents):
        at = by_name(found)[name].at["domain"]
        assert at.se**2 == pytest.approx(grouped.mean_variance(means[i], groups).variance)
        assert at.method == grouped.METHODS[role]
    line = found.targets["domain"]
    assert line.note == grouping(record, rules).text
    assert line.critical != plain.targets["domain"].critical
    assert found.targets["full"] == plain.targets["full"]
    compared = pairs(record, rules, agents=["a00", "a13"])
    (one,) = compared.pairs
    expected = grouped.mean_variance(means[13] - means[0], groups)
    assert one.estimate.method == grouped.METHODS[role]
    assert one.estimate.interval.se**2 == pytest.approx(expected.variance)
    two = grouped.pair_variances(means[[0, 13]], np.zeros(2), groups)[0, 1]
    assert one.se_of_ties**2 == pytest.approx(two)


def test_too_few_groups_of_a_stated_role_are_refused_not_ignored():
    found = answer(grouped_record(categories=HALVES), Rules(groups="category:cluster"))
    assert found.targets["domain"].reason == (
        "no rank ranges: errors by groups of tasks need at least 10 groups, not 2"
    )
    assert all(line.at["domain"].se is None for line in found.agents)
    assert all(line.at["full"].se is not None for line in found.agents)


def test_without_groups_a_board_of_the_domain_says_so():
    found = answer(record_of(board(14)), Rules(target="domain"))
    assert found.targets["domain"].note == ALONE


def test_a_rule_that_is_none_is_refused():
    with refused(SelectionError, "rules_range", match="one of auto, none"):
        Rules(groups="group")
    assert [Rules(groups=one).groups for one in GROUPS] == list(GROUPS)
