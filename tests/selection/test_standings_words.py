"""What a board says of itself: headlines, notices, tables; and that saying it imports nothing heavy."""

import subprocess
import sys
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from analytics.differences.rows import Facet
from analytics.record import Counting
from selection.prior import PriorDecisions
from selection.rules import Rules
from selection.schema.board import AtTarget, Conditions, CoverageLine, Line, Standings, TargetLine
from selection.standings import answer, printed, table, terms, words
from selection.standings.table import gaps
from tests.selection.records import board, by_name, record_of, with_newcomers

ROOT = Path(__file__).resolve().parent.parent.parent


def line(agent, rank, score, *, lower=None, upper=None, cost=None, how="measured", **other):
    at = AtTarget(rank=rank, score=score, rank_lower=lower, rank_upper=upper, se=0.01, naive_se=0.02)
    stated = {
        "agent": agent,
        "scaffold": "",
        "model": "",
        "version": "",
        "organisation": "",
        "weights": "",
        "links": {},
        "run_by": "operator",
        "trust": "verified",
        "submitted_at": "2026-01-02",
        "how": how,
        "condition": "",
        "n_tasks": 40,
        "n_trials": 40,
        "n_invalid": 0,
        "n_submissions": 1,
        "cost_usd": cost,
        "cost_basis": "linear" if cost is not None else "not stated",
        "n_tokens": None,
        "seconds": None,
        "icc": {},
        "marks": (),
        "flags": (),
        "at": {"full": at},
    }
    return Line(**stated | other)


def standings(*lines, first=(), reason="", **other):
    n_ranked = sum(one.at["full"].rank is not None for one in lines)
    told = TargetLine("…", 40, n_ranked, may_be_first=tuple(first), reason=reason)
    stated = {
        "n_tasks": 40,
        "n_complete": n_ranked,
        "phase": "ongoing",
        "why": "",
        "target": "full",
        "subset": None,
        "conditions": Conditions(),
        "verdict": None,
        "targets": {"full": told},
        "agents": lines,
        "not_measured": (),
        "savings": None,
    }
    return Standings(**stated | other)


# ------------------------------------------------------------------------------------------------ headlines


def test_several_could_be_the_best():
    found = standings(
        line("a", 1, 0.9, lower=1, upper=2, cost=200.0),
        line("b", 2, 0.8, lower=1, upper=3, cost=12.34),
        line("c", 3, 0.1, lower=3, upper=3, cost=90.0),
        first=("a", "b"),
    )
    assert words.headline(found) == (
        "2 of 3 agents could be the best. a scores highest: 90.0% at $200 per full run. "
        "The cheapest of the 2 is b at $12.34."
    )


def test_who_scores_highest_does_so_among_the_ranked_agents_where_another_surely_scores_more():
    lines = [line("a", 1, 0.611, lower=1, upper=2), line("b", 2, 0.5, lower=1, upper=2), line("c", 3, 0.1)]
    for low, ranked in ((0.62, True), (0.6, False)):
        apart = AtTarget(n_valid=38, n_missing=2, bounds=(low, low + 0.05), reason="38 of 40")
        found = standings(
            *lines, line("d", None, None, how="incomplete", at={"full": apart}), first=("a", "b")
        )
        assert words.headline(found).startswith(
            "2 of the 3 ranked agents could be the best. a scores highest of them: 61.1%."
            if ranked
            else "2 of 3 agents could be the best. a scores highest: 61.1%."
        )
        unsure = replace(found, targets={"full": replace(found.targets["full"], may_be_first=())})
        assert words.headline(unsure).startswith(
            f"a scores highest{' of the 3 ranked agents' if ranked else ''}: 61.1%."
        )
        sure = replace(found, targets={"full": replace(found.targets["full"], may_be_first=("a",))})
        assert words.headline(sure).startswith(
            f"a is the best of {'the 3 ranked' if ranked else '3'} agents (95%): 61.1%."
        )


def test_a_score_has_half_its_interval_where_that_is_known():
    """The half-width is that of the 95% interval beside it in the table, not a standard error."""
    first, second = line("a", 1, 0.669, lower=1, upper=2), line("b", 2, 0.5, lower=1, upper=3)
    last = line("c", 3, 0.1, lower=3, upper=3)
    known = replace(first, at={"full": replace(first.at["full"], lower=0.638, upper=0.7)})
    found = standings(known, second, last, first=("a", "b"))
    assert " a scores highest: 66.9 ± 3.1%." in words.headline(found)
    assert " a scores highest: 66.9%." in words.headline(standings(first, second, last, first=("a", "b")))
    assert words.half_width(known.at["full"]) == pytest.approx(0.031)
    assert words.half_width(first.at["full"]) is None


def test_an_agent_that_nobody_verified_leads_no_headline():
    """An invented run at $1e-9 takes the first rank; five others were loaded."""
    at = {"lower": 1, "upper": 1, "cost": 161e-9, "trust": "self_reported"}
    loaded = [line(f"v{i}", i, 0.9 - i / 10, lower=2, upper=5, cost=2.0) for i in range(2, 7)]
    alone = standings(line("x", 1, 0.9, **at), *loaded, first=("x",), headline_from="verified")
    assert words.headline(alone) == (
        "v2 scores highest of the 5 verified agents: 70.0% at $2.00 per full run. "
        "1 agent ranked higher is not verified."
    )
    among = standings(line("x", 1, 0.9, **at), *loaded, first=("x", "v2", "v3"), headline_from="verified")
    assert words.headline(among) == (
        "2 of the 5 verified agents could be the best. v2 scores highest of them: 70.0% at $2.00 per full "
        "run. 1 agent ranked higher is not verified."
    )
    assert words.could_be_first(among) == "2 of 5 verified agents could be the best"
    assert words.could_be_first(replace(among, headline_from="self_reported")) == "3 of 6 could be the best"
    assert words.first_text(among) == "The best verified agent (95%) is one of v2, v3."
    best = replace(among, targets={"full": replace(among.targets["full"], may_be_first=("v2",))})
    assert words.headline(best) == (
        "v2 is the best of the 5 verified agents (95%): 70.0% at $2.00 per full run. "
        "1 agent ranked higher is not verified."
    )
    costs = {"v2": 2.0}
    alone_stated = replace(
        among, agents=tuple(replace(one, cost_usd=costs.get(one.agent)) for one in among.agents)
    )
    assert "cheapest" not in words.headline(alone_stated)
    everybody = [one.agent for one in loaded]
    unordered = replace(among, targets={"full": replace(among.targets["full"], may_be_first=(*everybody,))})
    assert words.headline(unordered) == (
        "Any of the 5 verified agents could be the best. Scores range from 30.0% to 70.0%. "
        "1 agent ranked higher is not verified."
    )
    free = replace(alone, headline_from="self_reported")
    assert words.headline(free).startswith("x is the best of 6 agents (95%): 90.0%. ")
    assert terms.costs(alone).keys() == {one.agent for one in loaded}


def test_the_next_agent_is_named_if_every_ranked_one_is_verified():
    first, last = line("v", 1, 0.9, lower=1, upper=1), line("w", 3, 0.2, lower=3, upper=3)
    between = {trust: line("x", 2, 0.5, lower=2, upper=2, trust=trust) for trust in ("logs", "verified")}
    told = {"first": ("v",), "headline_from": "verified"}
    ends = {trust: words.headline(standings(first, x, last, **told)) for trust, x in between.items()}
    assert ends["verified"].endswith("Costs are not stated. x is second.")
    assert ends["logs"].endswith("v is the best of the 2 verified agents (95%): 90.0%. Costs are not stated.")


def test_the_only_verified_agent_and_none():
    told = {"lower": 1, "upper": 2, "trust": "self_reported"}
    lines = [line("x", 1, 0.9, **told), line("y", 2, 0.8, **told)]
    one = standings(*lines, line("v", 3, 0.5, lower=3, upper=3), first=("x", "y"), headline_from="verified")
    assert words.headline(one) == (
        "v is the only verified agent: 50.0%. Costs are not stated. 2 agents ranked higher are not verified."
    )
    assert words.could_be_first(one) == "one verified agent so far"
    none = standings(*lines, first=("x",), headline_from="logs")
    assert words.headline(none) == "No agent with logs is ranked yet. 2 ranked agents are without logs."
    assert words.could_be_first(none) == "no agent with logs is ranked yet"


def test_an_agent_is_called_by_the_name_that_was_delivered():
    pair = [
        line(name, 1, 0.9, lower=1, upper=2, model=model, scaffold="Loop")
        for name, model in (("a", "not stated"), ("b", "M2"))
    ]
    one = words.headline(standings(*pair, first=("a",)))
    assert one.startswith("a is the best of 2 agents (95%): 90.0%")
    assert one.endswith(" b is second.")


def test_the_cheapest_is_told_among_measured_costs():
    """A cost of all tasks that is reckoned from a run of the subset is not held against one that was paid."""
    paid = [
        line("a", 1, 0.9, lower=1, upper=5, cost=40.0),
        line("b", 2, 0.8, lower=1, upper=5, cost=30.0, cost_basis="per task"),
        line("d", 4, 0.6, lower=5, upper=5, cost=20.0),
    ]
    reckoned = line("c", 3, 0.7, lower=1, upper=5, cost=10.0, how="estimated")
    found = standings(*paid[:2], reckoned, paid[2], first=("a", "b", "c"))
    assert words.headline(found).endswith(
        " at $40.00 per full run. The cheapest with a measured cost is b at $30.00."
    )
    in_part = line("c", 3, 0.7, lower=1, upper=5, cost=10.0, cost_basis="in part")
    assert words.headline(standings(*paid[:2], in_part, paid[2], first=("a", "b", "c"))).endswith(
        " at $40.00 per full run. The cheapest with a measured cost is b at $30.00."
    )
    assert [row["Cost"] for row in table.rows(found)] == ["$40.00", "$30.00", "~$10.00", "$20.00"]
    stated = replace(found, targets={"full": replace(found.targets["full"], may_be_first=("a", "c"))})
    assert words.headline(stated).endswith(" The cheapest of the 2 is c at ~$10.00.")
    held = replace(found, targets=stated.targets, agents=(*paid[:2], in_part, paid[2]))
    assert words.headline(held).endswith(": 90.0% at $40.00 per full run.")
    led = line("a", 1, 0.9, lower=1, upper=5, cost=1.0, cost_basis="in part")
    assert words.headline(standings(led, *paid[1:], first=("a", "b"))).endswith(": 90.0%.")
    unknown = standings(*paid[:2], line("c", 3, 0.7, lower=1, upper=5), paid[2], first=("a", "b", "c"))
    assert words.headline(unknown).endswith(" The cheapest with a known cost is b at $30.00.")
    one = standings(
        paid[0], *(line(name, 3, 0.7, lower=1, upper=5) for name in "ce"), paid[2], first=("a", "c")
    )
    assert words.headline(one).endswith("at $40.00 per full run.")
    leader = standings(replace(reckoned, at={"full": paid[0].at["full"]}), *paid[1:], first=("c", "b"))
    assert "at ~$10.00 per full run. It is also the cheapest of the 2." in words.headline(leader)


@pytest.mark.parametrize(
    ("costs", "end"),
    [
        ((40.0, 30.0, 30.0), " The cheapest of the 3 are b and c at $30.00 each."),
        ((40.0, 40.0, 50.0), " The cheapest of the 3 are a and b at $40.00 each."),
        ((40.0, 40.0, 40.0), ": 90.0% at $40.00 per full run."),
        ((30.0, 40.0, 40.0), " It is also the cheapest of the 3."),
    ],
)
def test_all_that_cost_the_least_are_named(costs, end):
    alike = [
        line(name, i, 1 - i / 10, upper=3, cost=cost)
        for i, (name, cost) in enumerate(zip("abc", costs, strict=True), 1)
    ]
    found = standings(*alike, line("d", 4, 0.3, lower=4, upper=4, cost=20.0), first=("a", "b", "c"))
    assert words.headline(found).endswith(end)


def test_a_clause_begins_small_but_for_abbreviations():
    told = {"Only 3 tasks.": "only 3 tasks", "A run.": "a run", "GAIA has none": "GAIA has none", "": ""}
    assert {text: terms.clause(text) for text in told} == told


def test_methods_are_named_in_words():
    named = {terms.method_name(method) for method in terms.METHODS}
    assert len(named) == len(terms.METHODS)
    assert not named & {"neyman", "domain"}


def test_one_agent_has_no_ties_to_be_judged():
    found = answer(record_of(board(5, 60)[:1]))
    assert "Rank ranges and ties come from " not in words.covers_text(found)
    assert "Rank ranges and ties come from " in words.covers_text(answer(record_of(board(5, 60))))


def test_one_is_the_best():
    found = standings(
        line("a", 1, 0.9, lower=1, upper=1, cost=3.0),
        line("b", 2, 0.5, lower=2, upper=3),
        line("c", 3, 0.4, lower=2, upper=3),
        first=("a",),
    )
    assert words.headline(found) == (
        "a is the best of 3 agents (95%): 90.0% at $3.00 per full run. 2 agents could be second."
    )
    alone = replace(found, agents=(*found.agents[:1], line("b", 2, 0.5, lower=2, upper=2)))
    assert words.headline(alone).endswith(" b is second.")


def test_the_best_is_told_apart_though_the_ranks_are_wider():
    """Who may be first has an error rate of its own: another agent may still hold rank 1 among all ranks."""
    found = standings(
        line("a", 1, 0.9, lower=1, upper=2),
        line("b", 2, 0.5, lower=1, upper=3),
        line("c", 3, 0.4, lower=2, upper=3),
        first=("a",),
    )
    assert words.headline(found).startswith("a is the best of 3 agents (95%)")
    assert words.headline(found).endswith("2 agents could be second.")
    assert words.first_text(found) == (
        "The best agent (95%) is a. Other rank ranges can include 1, because all ranges must be correct at "
        "the same time."
    )
    assert words.first_text(found) in words.covers_text(found)
    as_narrow = standings(
        line("a", 1, 0.9, lower=1, upper=1),
        line("b", 2, 0.5, lower=2, upper=3),
        line("c", 3, 0.4, lower=2, upper=3),
        first=("a",),
    )
    assert words.first_text(as_narrow) == "The best agent (95%) is a."
    everybody = replace(found, targets={"full": replace(found.targets["full"], may_be_first=("a", "b", "c"))})
    assert words.first_text(everybody) == ""


def test_those_that_could_be_the_best_are_named_by_rank():
    found = standings(
        *(line(f"a{i:02d}", 13 - i, i / 20, lower=1, upper=13) for i in range(1, 14)),
        first=[f"a{i:02d}" for i in range(2, 14)],
    )
    assert words.first_text(found).startswith("The best agent (95%) is one of a13, a12, a11, ")
    assert "a04 and 2 more. " in words.first_text(found)


def test_nothing_is_ordered_and_no_cost_was_stated():
    found = standings(
        line("a", 1, 0.9, lower=1, upper=2), line("b", 2, 0.8, lower=1, upper=2), first=("a", "b")
    )
    assert words.headline(found) == ("Both agents could be the best. Scores range from 80.0% to 90.0%.")
    several = standings(
        *(line(name, i, 0.9 - i / 10, lower=1, upper=3) for i, name in enumerate("abc", 1)), first=("a", "b")
    )
    assert words.headline(several).endswith("80.0%. Costs are not stated.")


def test_one_agent_is_never_better_than_the_others_that_are_not_ranked():
    lacking = [line(name, None, None, how="incomplete") for name in "bcd"]
    found = standings(line("a", 1, 0.9, lower=1, upper=1), *lacking, first=("a",))
    told = words.headline(found)
    assert told == ("Only a is ranked: 90.0%. 3 agents are not ranked: each lacks results for 40 tasks.")
    assert "best" not in told
    assert words.could_be_first(found) == "only one agent is ranked"
    assert words.headline(standings(*lacking[:1])) == (
        "No ranking yet: 1 of 1 agent has too many missing results."
    )


def test_reasons_of_unranked_agents_are_grouped():
    lines = [
        line("a", 1, 0.9, lower=1, upper=1),
        line("b", None, None, how="incomplete"),
        line("c", None, None, how="incomplete"),
        line("d", None, None, how="incomplete", condition="judge j2"),
        line("e", None, None, how="incomplete", marks=("incomplete", "withheld")),
        line("f", None, 0.5, how="estimated", n_tasks=18),
    ]
    assert words.unranked_text(standings(*lines)) == (
        "5 agents are not ranked: 2 have missing results, 1 ran only under judge j2, "
        "1 waits for an operator's approval, 1 did not run all tasks."
    )
    assert words.unranked_text(standings(*lines[:2]), of=True) == (
        "1 of 2 agents is not ranked: results are missing for 40 tasks."
    )


def test_who_has_a_result_for_each_task_can_lack_trials():
    """Of four trials of each of 40 tasks nine are void."""
    whole = line("b", None, None, how="incomplete")
    at = {name: replace(one, n_valid=40) for name, one in whole.at.items()}
    assert words.unranked_text(standings(line("a", 1, 0.9), replace(whole, at=at))) == (
        "1 agent is not ranked: results of some trials are missing."
    )


def test_leaders_share_the_first_place():
    pair = [line(name, 1, 0.9, lower=1, upper=2) for name in "ab"]
    found = standings(*pair, line("c", 3, 0.1, lower=3, upper=3), first=("a", "b"))
    assert "a and b score highest: 90.0%" in words.headline(found)


def test_leaders_of_unlike_costs_are_told_with_the_lowest_and_the_highest():
    pair = [line(name, 1, 0.9, lower=1, upper=2, cost=cost) for name, cost in (("a", 642.0), ("b", 122.0))]
    last = line("c", 3, 0.1, lower=3, upper=3, cost=100.0)
    found = standings(*pair, last, first=("a", "b"))
    assert "a and b score highest: 90.0% at $122 to $642 per full run." in words.headline(found)
    pair[1] = line("b", 1, 0.9, lower=1, upper=2)
    assert "90.0%." in words.headline(standings(*pair, last, first=("a", "b")))


def test_the_headline_calls_agents_as_the_table_does():
    """Also where scaffold and model name them, with names that look like markup or lists."""
    for name in ('Ana, "the" best', "日本 エージェント", "<b>x</b>"):
        found = standings(
            line(name, 1, 0.9, lower=1, upper=1), line("b", 2, 0.1, lower=2, upper=2), first=(name,)
        )
        assert words.headline(found).startswith(f"{name} is the best")
        assert table.rows(found)[0]["Agent"] == name


def test_costs_that_are_hidden_are_not_called_unstated():
    found = standings(
        line("a", 1, 0.9, lower=1, upper=1, cost_basis=terms.HIDDEN),
        line("b", 2, 0.1, lower=2, upper=2),
        first=("a",),
    )
    assert "ost" not in words.headline(found)


@pytest.mark.parametrize(
    ("target", "told"),
    [("subset", "the one ranking task"), ("full", "the one task"), ("domain", "tasks like this one")],
)
def test_one_task_is_one_task(target, told):
    assert terms.task_set(target, 1) == told
    assert terms.task_set(target, 1200).replace("1,200", "").count("tasks") == 1


def test_what_was_measured_is_said_beside_what_was_not():
    facets = (Facet("judge", main=0.01, with_agent=0.02),)
    given = PriorDecisions(facets=facets)
    found = answer(record_of(board()), None, given)
    told = "The effect of judges was measured. The intervals of measured scores include this."
    assert words.measured_text(found) == told
    assert told in " ".join(printed.text(found, explain=True).split())
    assert Standings.of_plain(found.as_plain()) == found
    assert found.as_plain()["measured"] == ["The effect of judges was measured"]
    assert words.measured_text(answer(record_of(board()))) == ""
    legend = printed.legend(found, "full", table.columns(found))["SE"]
    assert legend.endswith("For a measured score it includes how much agents vary with the judge.")
    both = replace(found, measured=(terms.MEASURED["prompt"], *found.measured))
    legend = printed.legend(both, "full", table.columns(both))["SE"]
    assert legend.endswith("how much agents vary with the wording of the prompt and with the judge.")
    without = answer(record_of(board()))
    assert "vary with" not in printed.legend(without, "full", table.columns(without))["SE"]


def test_without_rank_intervals_the_headline_says_why():
    found = standings(line("a", 1, 0.9), line("b", 2, 0.1), reason="no rank ranges: 3 tasks")
    assert words.headline(found) == (
        "a scores highest: 90.0%. Costs are not stated. No rank ranges: 3 tasks."
    )


def test_an_estimated_score_carries_its_sign():
    estimated = line("a", 1, 0.9, lower=1, upper=2)
    estimated = replace(estimated, at={"full": replace(estimated.at["full"], estimated=True)})
    found = standings(estimated, line("b", 2, 0.3, lower=1, upper=2), first=("a", "b"))
    assert "to ~90.0%" in words.headline(found)


def test_a_cost_below_a_fiftieth_of_the_median_is_not_believed():
    stated = {"a": 0.0, "b": 1.0, "c": 100.0, "d": 100.0}
    lines = [line(name, i, 0.5, cost=cost) for i, (name, cost) in enumerate(stated.items(), 1)]
    assert set(terms.costs(standings(*lines))) == {"c", "d"}
    assert [row["Cost"] for row in table.rows(standings(*lines))] == ["?", "?", "$100", "$100"]


def test_what_stands_for_a_cost_that_is_not_believed_is_explained_where_it_stands():
    at = {"full": AtTarget(rank=1, score=0.5)}
    stated = {"a": 1.0, "b": 100.0, "c": 100.0}
    lines = [line(name, 1, 0.5, cost=cost, at=at) for name, cost in stated.items()]
    believed = standings(*lines[1:])
    assert "?" not in printed.legend(believed, "full", table.columns(believed))
    doubted = standings(*lines)
    told = printed.legend(doubted, "full", table.columns(doubted))
    assert told["?"].startswith("Implausible cost, not used. It is 0 or below a fiftieth of the median.")
    without_interval = line("d", 1, 0.5, at=at, icc={"icc": 0.61, "note": "no interval"})
    doubted = standings(*lines[1:], without_interval)
    told = printed.legend(doubted, "full", table.columns(doubted))
    assert "?" not in told
    assert told["ICC"].endswith("A ? after it means that it has no interval.")


def test_names_stand_whole_in_the_terminal():
    name = (
        "HAL Generalist Agent (Claude Sonnet 4.5 High (September 2025)) with a longer name than sixty letters"
    )
    found = standings(
        line(name, 1, 0.9, lower=1, upper=2), line("b", 2, 0.5, lower=1, upper=2), first=(name,)
    )
    shown = printed._table(table.columns(found))
    start = shown.index("Agent")
    lines = [row[start : shown.index("Score %")].strip() for row in shown.splitlines()[1:-1]]
    assert " ".join(lines) == name
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= printed.WIDTH


def test_bounds_are_told_of_what_is_missing_in_part():
    """Where nothing counts of an agent they are 0 to 1, and say nothing."""
    open_ = AtTarget(n_valid=10, n_missing=30, bounds=(0.2, 0.95))
    nothing = AtTarget(n_valid=0, n_missing=40, bounds=(0.0, 1.0))
    ran = [
        line("a", None, None, at={"full": open_}),
        line("b", None, None, at={"full": nothing}, marks=("elsewhere",)),
    ]
    assert [row["Possible score %"] for row in table.rows(standings(*ran))] == ["20.0–95.0", "–"]


def test_that_missing_outcomes_count_as_failures_is_among_the_notices():
    outcomes = board(16, 60)
    gap, zero = (answer(record_of(outcomes, counting=Counting(missing=how))) for how in ("gap", "zero"))
    said = "Missing and invalid results count as failures."
    assert [one for one in (*gap.notices, *zero.notices) if "failures" in one] == [said]
    assert said in printed.text(zero).splitlines()


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0.294, "$0.29"),
        (10.42, "$10.42"),
        (1686.2, "$1,686"),
        (0, "$0.00"),
        (0.004, "under $0.01"),
    ],
)
def test_money(amount, text):
    assert terms.money(amount) == text


# --------------------------------------------------------------------------------------------- savings, gaps


def test_savings_in_words():
    spared = {"n_runs": 0, "n_tasks_saved": 0, "saved": None, "n_not_measured": 0}
    saved = {"n_tasks": 1000, "k": 300, "reduction": 0.7, "per_run": None, "note": "", "so_far": spared}
    assert words.savings_text(saved) == ""
    one = saved | {"so_far": {"n_runs": 1, "n_tasks_saved": 700, "saved": 41.2978, "n_not_measured": 0}}
    assert words.savings_text(one) == (
        "So far 1 agent saved 700 tasks of a full run, $41.30 at its own mean cost per task."
    )
    two = saved | {"so_far": {"n_runs": 2, "n_tasks_saved": 1, "saved": 5.0, "n_not_measured": 1}}
    assert words.savings_text(two) == (
        "So far 2 agents saved 1 task of full runs, $5.00 at their own mean cost per task "
        "(1 without a usable cost left out)."
    )
    assert words.savings_text(two, with_money=False) == "So far 2 agents saved 1 task of full runs."
    for n_chosen, said in ((1, " (1 with tasks chosen for it)"), (2, "")):
        chosen = two | {"so_far": two["so_far"] | {"n_chosen": n_chosen}}
        told = f"So far 2 agents{said} saved 1 task of full runs."
        assert words.savings_text(chosen, with_money=False) == told
    assert words.savings_text(None) == ""


def test_gaps_are_grouped_by_reason():
    outcomes, _ = with_newcomers(n_agents=9)
    found = {
        (gap.what, gap.agents): gap.reason for gap in gaps(answer(record_of(outcomes), Rules(target="full")))
    }
    assert found[("Not ranked", ("a09", "a10"))] == "an estimate needs 10 full runs and there are 9"
    outcomes = board(4, 20)
    outcomes[:2] = [[1.0], [0.0]]
    (gap,) = gaps(answer(record_of(outcomes)))
    assert (gap.what, gap.agents) == ("No standard error", ("a00", "a01"))
    assert gap.reason.startswith("the mean is 0 or 1")


def test_every_mark_and_method_has_its_meaning():
    outcomes, _ = with_newcomers(n_agents=20, n_new=2)
    found = answer(record_of(outcomes), Rules(target="full"))
    for one in found.agents:
        assert set(one.marks) <= set(terms.MARKS)
        assert {told.method for told in one.at.values() if told.method} <= set(terms.METHODS)
    assert {told.method for told in found.targets.values()} <= set(terms.METHODS)


def test_one_trial_per_task_has_an_error_up_to_the_naive_one():
    """Trials of the others nearly repeat each other, so one trial tells nearly as much."""
    outcomes = board(6, 40)
    variances = np.where(np.arange(40) < 2, 1 / 3, 0.0) * np.ones((6, 1))
    variances[5] = np.nan
    found = answer(record_of(outcomes, n_trials=3, trial_variances=variances), Rules(target="full"))
    at = next(line.at["full"] for line in found.agents if line.agent == "a05")
    assert at.se < 0.6 * at.naive_se
    assert terms.LEGEND["naive"].endswith("with one trial per task, SE is at most about this.")


# --------------------------------------------------------------------------------------------------- tables


def test_columns_of_a_board():
    found = answer(record_of(board(16, 60)))
    rows = table.rows(found)
    assert list(rows[0]) == [
        *("Rank", "95% rank range", "Agent", "Score %", "95% interval", "SE", "naive"),
        *("Ranking tasks %", "Ties", "Tasks", "Trials"),
    ]
    first = found.agents[0]
    told = first.at["full"]
    assert rows[0]["Score %"] == f"{100 * told.score:.1f}"
    assert rows[0]["SE"] == f"≤{100 * told.se:.1f}"
    assert rows[0]["Ties"] == str(sum(b - a + 1 for a, b in told.tied_with))
    shared = [row["Rank"] for row in rows if row["Rank"].endswith("=")]
    assert all(shared.count(rank) > 1 for rank in shared)


def test_a_table_for_another_target_stands_in_its_order():
    outcomes, _ = with_newcomers(n_agents=20, n_new=2)
    found = answer(record_of(outcomes))
    rows = table.rows(found, "full")
    ranks = [int(row["Rank"].removesuffix("=")) for row in rows]
    assert ranks == sorted(ranks)
    signs = {row["Agent"] for row in rows if row["Score %"].startswith("~")}
    assert signs == {"a20", "a21"}


def test_a_flat_row_has_every_target_unrounded():
    found = answer(record_of(board(16, 60)))
    row = table.flat(found.agents[0])
    told = found.agents[0].at["full"]
    assert (row["agent"], row["full_score"], row["full_se"]) == (found.agents[0].agent, told.score, told.se)
    assert {f"{t}_rank" for t in ("subset", "full", "domain")} <= set(row)
    assert all(value is None or isinstance(value, str | int | float | bool) for value in row.values())
    assert {tuple(table.flat(line)) for line in found.agents} == {tuple(row)}


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r"])
def test_a_spreadsheet_runs_no_text_of_a_csv(sign):
    row = {"agent": f"{sign}cmd|x", "reason": f"a{sign}b", "score": -0.5, "n": -3, "rank": None, "ok": True}
    assert table.guarded(row) == row | {"agent": f"'{sign}cmd|x"}


def test_rows_of_the_ties_are_those_of_the_table():
    """Also for a target that the agents do not stand in the order of."""
    outcomes, _ = with_newcomers(n_agents=20, n_new=2)
    found = answer(record_of(outcomes))
    for target in ("subset", "full"):
        cells = {column.head: column.cells for column in table.rank_columns(found, target)}
        for row, agent in enumerate(cells["Agent"]):
            line = next(line for line in found.agents if line.agent == agent)
            spans = line.at[target].tied_with
            tied = {found.agents[i].agent for first, last in spans for i in range(first, last + 1)}
            said = set()
            for part in filter(None, cells["Tied with"][row].split(", ")):
                ends = [int(end) for end in part.split("–")]
                said |= {cells["Agent"][place - 1] for place in range(ends[0], ends[-1] + 1)}
            assert said == tied


def test_a_board_on_a_terminal():
    outcomes, _ = with_newcomers(n_agents=20, n_new=2)
    found = answer(record_of(np.vstack([outcomes, np.where(np.arange(60) < 3, 1.0, np.nan)])))
    out = printed.text(found)
    assert out.startswith(words.headline(found)[:60])
    assert "1 agent is not ranked: results are missing for 57 tasks." in out.replace("\n", " ")
    assert len(out.rpartition("\n\n")[2].splitlines()) <= 5
    assert out.endswith("To see all columns and methods, add --explain")
    explained = printed.text(found, explain=True)
    assert max(map(len, (*out.splitlines(), *explained.splitlines()))) <= printed.WIDTH
    for told in (
        "Phase: ongoing.",
        "95% rank range",
        "≤ ",
        "The intervals do not include",
        "Not ranked: a22: ",
        "--target subset",
    ):
        assert told in explained
    assert "~" in out
    assert "chance is 50%" not in out
    assert not any(row.endswith(" ") for row in out.splitlines())


def rows_of(out):
    """The lines of the table: its head, and one for each agent."""
    return out.split("\n\n")[1].splitlines()


def test_a_terminal_marks_who_could_be_the_best_and_says_what_the_mark_is():
    found = answer(record_of(board(20, 60)))
    best = found.targets["full"].may_be_first
    assert 0 < len(best) < 20
    out = printed.text(found)
    marked = [row for row in rows_of(out) if row.startswith("●")]
    assert sorted(row.split()[3] for row in marked) == sorted(best)
    assert "● could be the best (95%); other rank ranges can include 1." in out
    every = printed.text(answer(record_of(np.tile([0.0, 1.0], (12, 30)))))
    assert "●" not in every


def test_a_column_that_is_the_same_for_all_agents_is_one_line():
    outcomes = board(20, 60)
    out = printed.text(answer(record_of(outcomes)))
    assert "The same for all agents: Trials 60" in out
    assert "Trials" not in rows_of(out)[0]
    assert "Trials" in rows_of(printed.text(answer(record_of(with_newcomers(n_agents=20, n_new=2)[0]))))[0]


# -------------------------------------------------------------------------------------------------- imports


def test_reading_a_board_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from selection.schema import board\n"
        "from selection.standings import words, table, printed\n"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'selection.bands', 'analytics.record'} & set(sys.modules)\n"
        "print(*sorted(heavy))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "", "")


# -------------------------------------------------------------------------------------------- never measured


def test_trials_that_were_never_repeated_are_in_the_intervals_as_an_upper_bound():
    outcomes = board(5, 60)
    once = answer(record_of(outcomes))
    assert once.agents[0].at["full"].upper_bound
    absent, bounded = words.not_measured_text(once).split(". ")
    assert absent.startswith("The intervals do not include: how much full runs of an agent differ")
    assert "trials of one task" not in absent
    assert bounded == (
        "No agent has two valid trials of a task, so the intervals use an upper bound for trial noise."
    )
    assert words.confidence_text(once).endswith(" They say nothing of other prompts, judges and dates.")
    alone = replace(once, not_measured=once.not_measured[:1])
    assert words.not_measured_text(alone) == bounded
    assert (
        words.confidence_text(alone) == "With 95% confidence, all rank ranges are correct at the same time."
    )
    without = answer(record_of(np.ones((5, 60))))
    assert words.covers_text(without).startswith("No score here has an interval.")
    assert words.bounded_text(without) == "No agent has two valid trials of a task."
    prompts = replace(without.conditions, compared=("prompt p1", "prompt p2"))  # a trial under each
    assert words.bounded_text(replace(without, conditions=prompts)) == (
        "No agent has two valid trials of a task under one condition."
    )
    repeated = answer(record_of(outcomes, n_trials=3, trial_variances=np.full(outcomes.shape, 0.1)))
    assert words.bounded_text(repeated) == ""
    assert words.not_measured_text(repeated) == f"{absent}."


# ------------------------------------------------------------------------------------------------- coverage


def test_intervals_of_estimated_scores_are_about_a_full_run():
    outcomes, _ = with_newcomers()
    board_of_both = answer(record_of(outcomes))
    assert any(line.at["full"].estimated for line in board_of_both.agents)
    assert words.covers_text(board_of_both, "full").startswith(
        "The 95% intervals are for the agent's mean score over many full runs; for an estimated score, "
        "the score of one full run."
    )


def test_a_measured_coverage_stands_in_the_place_of_95():
    """44 of 60: Wilson's upper bound is .81. 57 of 60 leave the 95% as they are."""
    told = standings(line("a", 1, 0.5))
    short = CoverageLine("completion", 60, 44, 44 / 60, 0.81, falls_short=True)
    said = "as 73.3% intervals, not 95%: they contained 44 of 60 later full scores."
    assert words.coverage_text(replace(told, coverage=short)).endswith(said)
    assert said in words.covers_text(replace(told, coverage=short))
    for fine in (None, replace(short, falls_short=False)):
        assert words.coverage_text(replace(told, coverage=fine)) == ""
    unknown = CoverageLine("ridge", 0, 0, None, None, falls_short=False)
    assert words.coverage_text(replace(told, coverage=unknown)) == (
        "Intervals of estimated scores could not be checked against later full runs: there are too few."
    )


def test_coverage_is_told_of_boards_with_estimates_and_survives_plain_form():
    outcomes, _ = with_newcomers(n_agents=44)
    days = [date(2026, 1, 1) + timedelta(days=i) for i in range(46)]
    rules = Rules(target="full", estimator="ridge")
    found = answer(record_of(outcomes, dates=days), rules)
    assert found.coverage.estimator == "ridge"
    # 44 agents, the first 10 trained on alone, 34 residuals, the first 19 of them before any interval.
    assert found.coverage.n == 15
    assert {line.at["full"].source for line in found.agents if line.how == "estimated"} == {"in time"}
    assert Standings.of_plain(found.as_plain()) == found
    assert answer(record_of(outcomes[:44], dates=days[:44]), rules).coverage is None


def test_of_many_conditions_ten_are_named():
    names = [f"judge j{i:02d}" for i in range(500)]
    for text in (
        words.uncounted_text(names, ["judge a"]),
        words.uncounted_text(["judge a"], names),
        words.uncounted("judge a", names),
        words.compared_text(["judge a"], [(name, 1) for name in names]),
        words.compared_text(names, []),
    ):
        assert "j09" in text
        assert "j10" not in text
        assert "and 490 more" in text
    assert "under x and y do not count" in words.uncounted_text(["x", "y"], ["judge a"])


def test_values_that_agree_to_a_billionth_are_set_alike():
    """A half is set the same from whatever side an earlier sum missed it."""
    for value in (0.2125, 0.0625, 0.8475):
        below, above = np.nextafter(value, 0), np.nextafter(value, 1)
        assert words.percent(float(below)) == words.percent(value) == words.percent(float(above))


def test_scores_are_on_some_of_the_tasks_where_others_are_left_out():
    found = replace(standings(line("a", 1, 0.9, lower=1, upper=1)), n_left_out=7)
    n = found.targets["full"].n_tasks
    assert words.scores_text(found, "full") == f"Scores are on {n} of {n + 7} tasks."


def test_an_estimate_is_from_all_tasks_that_its_agent_ran():
    """Of two newcomers one, then both, passed ten more than the ranking tasks, which raises its score."""
    outcomes, _ = with_newcomers(n_agents=20)
    before = answer(record_of(outcomes))
    n = before.subset.size
    assert words.scores_text(before).endswith(f", estimated (~) for 2 from the {n} ranking tasks.")
    for newcomers, said in (
        ([21], f" the {n} ranking tasks, estimated (~) for 1 from the {n + 10} tasks that it ran."),
        ([20, 21], ", estimated (~) for 2 from the tasks that each ran."),
    ):
        extra = np.flatnonzero(np.isnan(outcomes[21]))[:10]
        more = outcomes.copy()
        more[np.ix_(newcomers, extra)] = 1.0
        found = answer(record_of(more))
        assert by_name(found)["a21"].at["full"].score > by_name(before)["a21"].at["full"].score + 0.02
        assert words.scores_text(found).endswith(said)
