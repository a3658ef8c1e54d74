"""What staged assignment gets right on simulated boards: who is stopped, whether estimates and ranks hold.

50 agents on 100 tasks by a two-parameter model: logit P = a_j(θ_i − b_j + c_ig), slopes log-normal with sd
.3, an interaction of agents with ten clusters of tasks of sd .3; abilities are stationary, or rise by .04 an
agent. Each board is fed to the rule in its order. Printed with standard errors over boards:

=======  =================================================================================================
stopped  share of the true best five that were stopped
wide     those of them stopped at a standard error of .01 or more
bias     of published estimates, in points
held     share of published 95% intervals that hold the full score
spent    share of the task runs of full evaluation
orders   share of boards that claim the order of two agents against that of their full runs
first    share of boards on which an agent with the best full run is not among those that may be first
=======  =================================================================================================

The last two are of the last board of a history, `selection.standings` with `staged_in`, as of a file; for
comparison they stand again (*expected*) against the order of expected scores, the mean P of all tasks.
`python -m perf.studies.staged_boards [BOARDS [ROW …]]` prints docs/evidence/staged-boards.txt.
"""

import sys
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
import pandas as pd

from analytics.arrays import DECIMALS, FloatArray
from analytics.record import Record
from selection.folds import CompleteAgents
from selection.prior import PriorDecisions
from selection.rules import Rules
from selection.schema.board import Standings
from selection.staged.histories import StagedHistory, Walk, walked
from selection.staged.replay import published
from selection.staged.study import staged_in
from selection.staged.walks import PRECISE, Staging
from selection.standings import answer

N_AGENTS, N_TASKS, N_CLUSTERS, TOP = 50, 100, 10, 5
RULES = {
    "podium 5, no stop at a point": Staging(podium=5, precise=0.0),
    "podium 5": Staging(podium=5),
    "podium 3": Staging(),
}
CASES = {"stationary": 0.0, "rising": 0.04}
HEADS = ("stopped", "wide", "bias", "held", "spent", "orders", "first", "orders, exp.", "first, exp.")
KINDS = (".3f", ".3f", "+.2f", *(6 * (".3f",)))


def board(
    rng: np.random.Generator, rising: float, n_tasks: int = N_TASKS, n_agents: int = N_AGENTS
) -> tuple[CompleteAgents, FloatArray]:
    """Draw one; return its agents, and P of each agent on each task."""
    ability = rng.normal(0.0, 1.0, n_agents) + rising * np.arange(n_agents)
    slope, difficulty = np.exp(rng.normal(0.0, 0.3, n_tasks)), rng.normal(0.5, 1.3, n_tasks)
    of_cluster = rng.normal(0.0, 0.3, (n_agents, N_CLUSTERS))[:, np.arange(n_tasks) % N_CLUSTERS]
    chances = 1.0 / (1.0 + np.exp(-slope * (ability[:, None] - difficulty + of_cluster)))
    outcomes = (rng.random((n_agents, n_tasks)) < chances).astype(np.float64)
    names = tuple(f"a{i:02d}" for i in range(n_agents))
    dates = tuple(date(2025, 1, 1) + timedelta(days=i) for i in range(n_agents))
    agents = CompleteAgents(names, outcomes, outcomes.mean(axis=1), dates, names, names)
    return agents, chances


def stopped(walks: tuple[Walk, ...], truth: FloatArray) -> tuple[float, float]:
    """Share of the best five that were stopped, and that were stopped at se of .01 or more."""
    best = truth >= np.sort(truth)[-TOP]
    found = [walk.published for walk in walks]
    errors = np.array([np.nan if one is None or one.se is None else one.se for one in found])
    wide = np.round(errors[best], DECIMALS) >= PRECISE
    return float(np.mean(~np.isnan(errors[best]))), float(np.mean(wide))


def record_of(names: Sequence[str], outcomes: FloatArray) -> Record:
    """Return the record of what agents ran, a day each; NaN: not run."""
    rows, columns = np.nonzero(~np.isnan(outcomes))
    flat = pd.DataFrame(
        {
            "benchmark": "simulated",
            "agent": [names[i] for i in rows],
            "scaffold": "one",
            "model": [names[i] for i in rows],
            "submitted_at": [str(date(2025, 1, 1) + timedelta(days=int(i))) for i in rows],
            "task": [f"t{j:03d}" for j in columns],
            "trial": 1,
            "outcome": outcomes[rows, columns].astype(int),
        }
    )
    return Record.from_frame(flat)


def standings(record: Record, rule: Staging) -> Standings:
    """Return the board of a record, those that ran some tasks alone stopped; no subset, as none is needed."""
    given = PriorDecisions(staged=staged_in(record, rule), full_runs_only="full scores alone are looked at")
    return answer(record, Rules(target="full"), given)


def seen(outcomes: FloatArray, history: StagedHistory) -> FloatArray:
    """Return what was run of all outcomes, NaN where not."""
    found = np.full(outcomes.shape, np.nan)
    for i, walk in enumerate(history.walks):
        tasks = np.concatenate(walk.batches)
        found[i, tasks] = outcomes[i, tasks]
    return found


def contradicted(found: Standings, truth: dict[str, float]) -> tuple[bool, bool]:
    """Whether a board claims a wrong order, and whether a true leader is left out of who may be first."""
    is_wrong = False
    for place, line in enumerate(found.agents):
        tied = {place}.union(*(range(first, last + 1) for first, last in line.at["full"].tied_with))
        better = [truth[one.agent] for k, one in enumerate(found.agents) if k > place and k not in tied]
        is_wrong |= bool(better) and round(max(better) - truth[line.agent], DECIMALS) > 0
    best = {name for name, score in truth.items() if round(max(truth.values()) - score, DECIMALS) <= 0}
    return is_wrong, not best <= set(found.targets["full"].may_be_first)


def row(rising: float, rule: Staging, n_boards: int, *, is_ranked: bool) -> list[tuple[float, float]]:
    """Return each figure of one case under one rule, with its standard error over boards."""
    found: list[list[float]] = []
    for seed in range(n_boards):
        agents, chances = board(np.random.default_rng([7, seed]), rising)
        history = walked(agents, range(N_AGENTS), rule, seed=seed)
        held, errors = published(history)
        figures = [
            *stopped(history.walks, history.truth),
            100 * float(errors.mean()),
            float(held.mean()),
            float(history.n_run.mean()) / N_TASKS,
        ]
        if is_ranked:
            last = standings(record_of(agents.names, seen(agents.outcomes, history)), rule)
            for scores in (history.truth, chances.mean(axis=1)):
                truth = dict(zip(agents.names, scores.tolist(), strict=True))
                figures += [float(one) for one in contradicted(last, truth)]
        found.append(figures)
    of_boards = np.array(found)
    errors_ = of_boards.std(axis=0, ddof=1) / np.sqrt(n_boards)
    return list(zip(of_boards.mean(axis=0).tolist(), errors_.tolist(), strict=True))


def main(n_boards: int, wanted: Sequence[int]) -> None:
    """Print these rows of the table, counted from 1; boards are ranked under the default rule alone."""
    cases = [(*case, *rule) for case in CASES.items() for rule in RULES.items()]
    print(f"{n_boards} boards a case; ± standard errors over boards")
    print(f"{'':42s}" + "".join(f"{head:>15s}" for head in HEADS), flush=True)
    for case, rising, name, rule in (cases[k - 1] for k in wanted or range(1, len(cases) + 1)):
        figures = row(rising, rule, n_boards, is_ranked=rule == Staging())
        told = [f"{value:{kind}} ± {se:.3f}" for (value, se), kind in zip(figures, KINDS, strict=False)]
        print(f"{case + ', ' + name:42s}" + "".join(f"{one:>15s}" for one in told), flush=True)


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:]]
    main(numbers[0] if numbers else 40, numbers[1:])
