"""Where fewer than half of the loaded agents could be ranked, nobody is (a rule of this project)."""

from dataclasses import replace

import numpy as np
import pytest

from selection.standings import answer, words
from tests.selection.records import record_of


def board(n_whole: int, n_agents: int = 6) -> np.ndarray:
    """Every agent but the first `n_whole` lacks one task in five."""
    outcomes = np.random.default_rng(3).integers(0, 2, (n_agents, 40)).astype(float)
    for i in range(n_whole, n_agents):
        outcomes[i, i::5] = np.nan
    return outcomes


@pytest.mark.parametrize(("n_whole", "n_ranked"), [(2, 0), (3, 3), (6, 6)])
def test_half_of_the_agents_is_enough(n_whole, n_ranked):
    found = answer(record_of(board(n_whole)))
    assert {found.targets[target].n_ranked for target in ("full", "domain")} == {n_ranked}
    assert sum(line.at["full"].rank is not None for line in found.agents) == n_ranked


def test_the_headline_says_why_nobody_is_ranked():
    found = answer(record_of(board(2)))
    assert words.headline(found) == "No ranking yet: 4 of 6 agents have too many missing results."
    assert words.next_step_text(found, words.flags) == (
        "Run `--missing zero_loaded` to count missing results as failures."
    )
    assert found.targets["full"].reason == "nobody is ranked: 2 of 6 loaded agents could be, fewer than half"


def test_few_missing_results_are_not_called_too_many():
    """Two lack 1 of 40 tasks, 2.5%: enough for an estimate if there were ten full runs."""
    outcomes = board(2)
    outcomes[2:4] = outcomes[0]
    lost = np.zeros(outcomes.shape, bool)
    lost[2:4, 0] = True
    outcomes[lost] = np.nan
    few = "only a few missing results, but an estimate needs 10 full runs and there are"
    assert words.unranked_text(answer(record_of(outcomes, lost=lost))) == (
        f"2 of 6 agents have too many missing results. 2 have {few} 4."
    )
    rows = [0, 2, 3, 3, 3]
    found = answer(record_of(outcomes[rows], lost=lost[rows]))
    assert words.unranked_text(found) == f"4 of 5 agents have {few} 5."


def test_whoever_lost_a_rank_counts_as_one_that_could_have_it():
    """Also an agent that ran the subset alone: what took its rank is not what it lacks."""
    found = answer(record_of(board(2)))
    few = found.targets["full"].reason
    first = found.agents[2]
    at = first.at | {"full": replace(first.at["full"], reason=few)}
    agents = tuple(replace(line, how="estimated", at=at) if line is first else line for line in found.agents)
    told = words.headline(replace(found, agents=agents))
    assert told == "No ranking yet: 3 of 6 agents have too many missing results."
