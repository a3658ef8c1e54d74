"""How often ranks for tasks like these claim an order between equal agents, where tasks come in groups.

Model
-----
n agents without any difference, one trial on each of m tasks in G groups of equal size::

    logit p_aj = b_j + u_ag,    b_j ~ N(0, 1.5²),    u_ag ~ N(0, σ²),    g the group of task j

u is what an agent is better or worse by in one group of tasks; over all groups that could have been drawn
agents are equal, so that every order claimed is wrong. The error rate is the share of boards with any.

Run with ``python -m perf.studies.grouped_tasks [boards]``.

Symbols: σ ``sd``, m ``n_tasks``, G ``n_groups``.

Source
------
`analytics.differences.groups`.
"""

import sys
from typing import NamedTuple

import numpy as np

from analytics.arrays import CodeArray, FloatArray
from analytics.differences.domain_ranks import rank_intervals, resample
from analytics.differences.groups import Groups

N_BOARDS = 300
N_DRAWS = 999
SDS = (0.0, 0.4, 0.8)
SIZES = ((100, 20), (300, 20), (300, 12))  # tasks and groups


class Rates(NamedTuple):
    """Share of boards with a wrong order: with tasks taken as independent, and by groups."""

    independent: float
    grouped: float


def board(rng: np.random.Generator, sd: float, n_agents: int, code: CodeArray) -> FloatArray:
    """Outcomes of equal agents, (n_agents, n_tasks)."""
    difficulty = rng.normal(0, 1.5, code.size)
    better = rng.normal(0, sd, (n_agents, int(code.max()) + 1))
    rates = 1 / (1 + np.exp(-(difficulty + better[:, code])))
    return (rng.random(rates.shape) < rates).astype(np.float64)


def rates_of(
    sd: float, n_boards: int, *, n_tasks: int, n_groups: int, n_agents: int = 12, n_draws: int = N_DRAWS
) -> Rates:
    """Simulate boards."""
    code = np.arange(n_tasks) * n_groups // n_tasks
    names = [f"a{i:02d}" for i in range(n_agents)]
    wrong = np.zeros((n_boards, 2))
    for i in range(n_boards):
        outcomes = board(np.random.default_rng((1, i)), sd, n_agents, code)
        for at, groups in enumerate((None, Groups.of(code, "cluster"))):
            drawn = resample(outcomes, names, seed=i, n_draws=n_draws, groups=groups)
            wrong[i, at] = rank_intervals(drawn).beats.any()
    return Rates(*wrong.mean(axis=0).tolist())


def main() -> None:
    """Print the rates."""
    n_boards = int(sys.argv[1]) if len(sys.argv) > 1 else N_BOARDS
    print(f"{n_boards} boards of 12 equal agents, one trial; share with a wrong order, wanted: at most .05")
    for n_tasks, n_groups in SIZES:
        for sd in SDS:
            found = rates_of(sd, n_boards, n_tasks=n_tasks, n_groups=n_groups)
            told = f"independent {found.independent:.3f}   by groups {found.grouped:.3f}"
            print(f"{n_tasks} tasks, {n_groups} groups   agent × group sd {sd:.1f}   {told}", flush=True)


if __name__ == "__main__":
    main()
