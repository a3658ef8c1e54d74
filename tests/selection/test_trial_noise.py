"""Noise of trials that is borrowed from another benchmark: by hand, and where it is not used."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtrit

from selection.cli import main
from selection.errors import SelectionError
from selection.rules import Rules, borrowed_omega
from selection.schema.board import Standings
from selection.standings import answer, printed, terms, words
from selection.standings.pairs import pairs
from tests.refusals import refused
from tests.selection.records import board, record_of
from tests.toys import csv_text

LENT = "0.118 from Terminal-Bench"
RULES = Rules(trial_noise=LENT)


def test_an_interval_by_hand():
    # SE² = ω·ȳ(1 − ȳ)/k, t with k − 1 degrees of freedom.
    found = answer(record_of(board()), RULES)
    at = found.agents[0].at["full"]
    se = math.sqrt(0.118 * 0.75 * 0.25 / 60)
    assert (at.score, at.se) == pytest.approx((0.75, se), rel=1e-12)
    assert at.upper == pytest.approx(0.75 + float(stdtrit(59, 0.975)) * se, rel=1e-9)
    assert (at.method, at.source, at.upper_bound) == (terms.BORROWED, LENT, False)


def test_a_difference_by_hand():
    # p̃ = (Σ + 2)/(k + 4); SE² = ω·Σ p̃(1 − p̃)/k over the two.
    outcomes = board()
    found = pairs(record_of(outcomes), RULES, agents=["a14", "a15"])
    rates = (outcomes[[14, 15]].sum(axis=1) + 2) / 64
    estimate = found.pairs[0].estimate
    assert estimate.interval.se**2 == pytest.approx(0.118 * np.sum(rates * (1 - rates)) / 60, rel=1e-12)
    assert (estimate.method, found.trial_noise, found.omega) == (terms.BORROWED, LENT, 0.118)
    assert pairs(record_of(outcomes), RULES, agents=["a14", "a15"], target="domain").trial_noise == ""


def test_a_board_says_so_wherever_an_interval_stands():
    found = answer(record_of(board()), RULES)
    assert found.trial_noise == LENT
    for target in ("full", "subset"):
        assert LENT in found.targets[target].note
        assert {line.at[target].source for line in found.agents} == {LENT}
    assert {line.at["domain"].source for line in found.agents} == {""}
    assert f"borrow run-to-run noise ({LENT})" in found.notices[0]
    assert words.bounded_text(found).endswith(
        f"The intervals use the trial noise of another benchmark ({LENT})."
    )
    assert LENT in " ".join(printed.text(found, explain=True).split())
    assert Standings.of_plain(json.loads(json.dumps(found.as_plain()))) == found


def test_agents_with_repeats_borrow_nothing_and_the_board_says_so():
    means = np.random.default_rng(3).binomial(2, np.linspace(0.3, 0.8, 8)[:, None], (8, 60)) / 2
    variances = np.full(means.shape, np.nan)
    variances[0] = means[0] * (1 - means[0]) * 2  # one agent alone has two trials
    record = record_of(means, n_trials=2, trial_variances=variances)
    found, without = answer(record, RULES), answer(record)
    assert found.trial_noise == ""
    assert found.targets == without.targets
    assert found.agents == without.agents
    of_whom = "verified or trusted agents here have repeated trials"
    assert f"({LENT}) is not used: {of_whom}" in found.notices[0]


def test_nobody_unknown_switches_it_off():
    """An agent that nobody vouches for has two trials of one task."""
    variances = np.full((16, 60), np.nan)
    outcomes = board()
    outcomes[15, 0], variances[15, 0] = 0.5, 0.5
    record = record_of(outcomes, n_trials=2, trial_variances=variances)
    about = tuple(replace(one, vouched=i < 15) for i, one in enumerate(record.about))
    found = answer(replace(record, about=about), RULES)
    assert found.trial_noise == LENT
    assert words.bounded_text(found).startswith("No verified or trusted agent has two valid trials")
    assert found.agents[0].at["full"].source == LENT


def test_none_is_borrowed_by_default():
    found = answer(record_of(board()))
    assert found.trial_noise == ""
    assert found.agents[0].at["full"].upper_bound
    assert not any("borrow" in notice for notice in found.notices)


@pytest.mark.parametrize(
    "text", ["0.118", "0 from x", "1.1 from x", "nan from x", "x from y", "0.1 from ", "from x"]
)
def test_other_texts_are_refused(text):
    assert borrowed_omega(text) is None
    with refused(SelectionError, "rules_range", match="above 0 and at most 1, from, and a source"):
        Rules(trial_noise=text)


def test_the_command_line_takes_it(tmp_path, capsys):
    path = tmp_path / "outcomes.csv"
    rows = {f"a{i:02d}": "".join(str(int(one)) for one in row) for i, row in enumerate(board())}
    path.write_text(csv_text(rows))
    assert not main(["standings", str(path), "--trial-noise", LENT, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["trial_noise"] == LENT
    assert told["agents"][0]["at"]["full"]["source"] == LENT
