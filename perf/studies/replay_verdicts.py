"""Whether the verdict by replay is right about the agents that come next.

A board of 40 or 60 agents with full runs on 50 or 100 tasks is replayed (`selection.staged.replay`) and
judged. Then 40 fresh agents of the same population go through the rule, ten by one fit, which is made anew of
all that were run. Right for these is: of the pairs with a fresh agent .95 or more stand on the last board in
the order of full runs, and the fresh agents' best five by the board are the best five of them by full runs,
all of them (*five*; .9 of five are five), or at least four (*four*).

logit P = θ_i − b_j + c_ij, θ ~ N(0, 1), b ~ N(μ, s²) with s .7, 1.3 or 2, c ~ N(0, .5²); one trial of a task
or three. Abilities are stationary, or rise by .02 an agent on a third of the boards.
`python -m perf.studies.replay_verdicts [BOARDS]` prints docs/evidence/replay-verdicts.txt.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from analytics.arrays import FloatArray
from analytics.differences.estimates import wilson
from perf.studies.table import print_table
from selection.folds import CompleteAgents
from selection.staged.histories import run_agent
from selection.staged.replay import TOP, best, replay, right, verdict
from selection.staged.teaching import FullRun, taught
from selection.staged.walks import Staging

N_FRESH, A_FIT, LEAST_PAIRS = 40, 10, 0.95
RISES = (0.0, 0.0, 0.02)
WORDS = ("yes", "mostly", "mostly (few)", "not yet", "full runs")


class Case(NamedTuple):
    """What was said of a board, and what came of it: shares of pairs and of the best five."""

    rising: float
    word: str
    pairs: float
    five: float
    spent: float


def population(rng: np.random.Generator, n: int, m: int, rising: float) -> CompleteAgents:
    """Draw agents in the order in which they come."""
    spread, mean, n_trials = rng.choice([0.7, 1.3, 2.0]), rng.normal(0.0, 0.5), rng.choice([1, 3])
    ability = rng.normal(0.0, 1.0, n) + rising * np.arange(n)
    difficulty = rng.normal(mean + rising * n / 2, spread, m)
    chances = expit(ability[:, None] - difficulty + rng.normal(0.0, 0.5, (n, m)))
    outcomes = rng.binomial(n_trials, chances) / n_trials
    names = tuple(f"a{i:03d}" for i in range(n))
    dates = tuple(date(2025, 1, 1) + timedelta(days=i) for i in range(n))
    return CompleteAgents(names, outcomes, outcomes.mean(axis=1), dates, names, names)


def later(agents: CompleteAgents, n_before: int, seed: int) -> tuple[FloatArray, float]:
    """Let the agents from `n_before` on go through the rule; return the last board, and what they ran."""
    staging, outcomes, scores = Staging(), agents.outcomes.copy(), agents.scores.copy()
    runs = [FullRun(i, float(scores[i])) for i in range(n_before)]
    n_run, found = 0, taught(outcomes[:n_before], scores[:n_before], runs, staging)
    for first in range(n_before, agents.n, A_FIT):
        fit = found.fit
        for i in range(first, first + A_FIT):
            walk, run = run_agent(agents, i, fit, seed)
            n_run += walk.n_tasks
            if run is not None:
                runs.append(replace(run, row=i))
                continue
            scores[i] = np.nan
            outcomes[i, np.setdiff1d(np.arange(fit.n_tasks), np.concatenate(walk.batches))] = np.nan
        n = first + A_FIT
        found = taught(outcomes[:n], scores[:n], runs, staging, before=found)
    return found.estimates, n_run / agents.outcomes[n_before:].size


def case(seed: int) -> Case:
    """Judge a board, and hold the verdict against what comes."""
    rng, rising = np.random.default_rng([11, seed]), RISES[seed % len(RISES)]
    n_before, m = int(rng.choice([40, 60])), int(rng.choice([50, 100]))
    agents = population(rng, n_before + N_FRESH, m, rising)
    word = verdict(replay(agents.take(np.arange(n_before)), seed=seed))["word"]
    board, spent = later(agents, n_before, seed)
    agreed, differ = right(board, agents.scores)
    pairs = float(agreed[n_before:][differ[n_before:]].mean())
    return Case(rising, word, pairs, best(board[n_before:], agents.scores[n_before:], TOP), spent)


def share(cases: Sequence[Case], is_right: Callable[[Case], bool]) -> str:
    """Return a share with its 95% interval (Wilson)."""
    if not cases:
        return "–"
    n = sum(map(is_right, cases))
    lower, upper = wilson(n / len(cases), len(cases), 0.975)
    return f"{n / len(cases):.2f} ({lower:.2f}–{upper:.2f})"


def rows(cases: Sequence[Case]) -> list[list[str]]:
    """Return the table, a row a word."""
    found = []
    for word in WORDS:
        those = [one for one in cases if one.word == word]
        means = np.mean([one[2:] for one in those], axis=0) if those else (np.nan,) * 3
        found.append(
            [
                word,
                str(len(those)),
                share(those, lambda one: one.pairs >= LEAST_PAIRS),
                share(those, lambda one: one.five > 0.9),
                share(those, lambda one: one.five > 0.7),
                share(those, lambda one: one.pairs >= LEAST_PAIRS and one.five > 0.9),
                share(those, lambda one: one.pairs >= LEAST_PAIRS and one.five > 0.7),
                *(f"{value:.3f}" if value == value else "–" for value in means),
            ]
        )
    return found


def main(n_boards: int) -> None:
    """Print a table for each kind of history."""
    cases = [case(seed) for seed in range(n_boards)]
    head = ("verdict", "boards", "pairs", "five", "four", "pairs and five", "pairs and four")
    means = ("mean pairs", "mean five", "mean spent")
    for name, rising in (("Stationary", 0.0), ("Rising by .02 an agent", 0.02)):
        print_table(name, head + means, rows([one for one in cases if one.rising == rising]))
    print_table("Together", head + means, rows(cases), ["Shares of boards, with 95% intervals (Wilson)"])


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 200)
