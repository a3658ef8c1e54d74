"""What boards say of a second run of the leader, and where they say nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest

from analytics.differences.finite_errors import Measured, TrialNoise, error_of
from analytics.differences.rows import Facet, Row
from analytics.rerun import regressed
from selection.prior import PriorDecisions
from selection.schema.board import SecondRun, Standings
from selection.standings import answer, printed, words
from tests.selection.records import board, record_of, with_newcomers


def test_one_trial_bounds_it_from_below():
    outcomes = board()
    found = answer(record_of(outcomes))
    errors = [error_of(Measured("a", row, Row(row)), TrialNoise()) for row in outcomes]
    expected = regressed(outcomes.mean(axis=1), np.array([one.variance for one in errors]), 60).expected
    told = found.targets["full"].second_run
    assert told == SecondRun("a15", 0.75, expected[15], 16)
    sentence = (
        "The highest score may be partly luck: "
        f"on average, a second full run of a15 would score about {words.percent(told.expected)}%, or more, "
        "because trial noise is only known as an upper bound."
    )
    assert words.second_run_text(found) == sentence
    assert sentence in " ".join(printed.text(found, explain=True).split())
    assert Standings.of_plain(json.loads(json.dumps(found.as_plain()))) == found


def test_repeated_trials_estimate_it():
    counts = np.random.default_rng(3).binomial(5, np.linspace(0.3, 0.8, 8)[:, None], (8, 60))
    means = counts / 5
    found = answer(record_of(means, n_trials=5, trial_variances=means * (1 - means) * 5 / 4))
    told = found.targets["full"].second_run
    assert told.score - 0.05 < told.expected < told.score
    assert f"would score about {words.percent(told.expected)}%." in words.second_run_text(found)


def test_a_second_run_has_the_same_prompts_and_judges():
    """What was measured of full runs is drawn anew, what was of prompts and judges is not."""
    record = record_of(board())
    of = {
        name: answer(record, prior=PriorDecisions(facets=facets)).targets["full"].second_run.expected
        for name, facets in {
            "nothing": (),
            "prompts": (Facet("prompt", 0.01, 0.02), Facet("judge", 0.01, 0.02)),
            "runs": (Facet("run", 0.01),),
        }.items()
    }
    assert of["prompts"] == of["nothing"]
    assert of["runs"] < of["nothing"] - 0.005


@pytest.mark.parametrize("n_agents", [4, 5])
def test_under_five_agents_nothing_is_said(n_agents):
    found = answer(record_of(board(n_agents)))
    assert (found.targets["full"].second_run is None) == (n_agents == 4)
    assert bool(words.second_run_text(found)) == (n_agents == 5)


def test_nothing_is_said_of_an_estimated_leader_nor_for_the_domain():
    outcomes, tasks = with_newcomers(n_new=1)
    outcomes[-1, tasks] = 1
    found = answer(record_of(outcomes, submitted=[14]))
    assert found.agents[0].at["full"].estimated
    assert found.targets["full"].second_run is None
    assert found.targets["subset"].second_run.agent == "a14"
    assert found.targets["domain"].second_run is None


def test_it_is_of_the_agent_that_makes_headlines_and_of_those_it_is_held_against():
    record = record_of(board(9))
    about = [
        replace(one, trust="verified" if i < 7 else "self_reported") for i, one in enumerate(record.about)
    ]
    found = answer(replace(record, about=tuple(about)))
    told = found.targets["full"].second_run
    leader = next(line for line in found.agents if line.trust == "verified")
    assert (told.agent, told.score, told.n_agents) == (leader.agent, leader.at["full"].score, 7)
    assert leader is not found.agents[0]
    assert words.second_run_text(found).startswith("The highest score of verified agents may be")


def test_it_changes_no_rank_and_is_left_out_where_it_says_nothing_new():
    found = answer(record_of(board()))
    line = replace(found.targets["full"], second_run=SecondRun("a", 0.5, 0.49999, 6))
    assert words.second_run_text(replace(found, targets={**found.targets, "full": line})) == ""
    plain = found.as_plain()
    del plain["targets"]["full"]["second_run"]  # as boards were stored before
    assert Standings.of_plain(plain).targets["full"].second_run is None
