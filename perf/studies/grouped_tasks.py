"""Errors for tasks like these where tasks come in groups: how often wrong, and how large on real data.

Model
-----
n agents without any difference, one trial on each of m tasks in G groups::

    logit p_aj = b_j + u_ag,    b_j ~ N(0, 1.5²),    u_ag ~ N(0, σ²),    g the group of task j

u is what an agent is better or worse by in one group of tasks; over all groups that could have been drawn
agents are equal, so that every order claimed is wrong. Groups are of one size, or one of them has half of the
tasks. Told are the share of boards with any order, with tasks taken as independent and by groups, and the
share of pairs whose own 95% interval (CR2) excludes 0: with G − 1 degrees of freedom, and with those of
`analytics.differences.groups`.

*Real data.* The ratio √(V/(s²/N)) of the error by groups to the plain one: median and quartiles over agents
that ran every task, and over all their pairs. A task's group is its name up to the last hyphen.

Run with ``python -m perf.studies.grouped_tasks [boards [FILE ...]]``, FILE a flat file.

Symbols: σ ``sd``, m ``n_tasks``, G ``n_groups``.

Source
------
`analytics.differences.groups`.
"""

import datetime
import sys
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import CodeArray, FloatArray
from analytics.differences.groups import Groups, mean_variance
from analytics.differences.ranks import rank_intervals, resample
from analytics.flat_file import read
from analytics.record import Record

N_BOARDS = 100
N_DRAWS = 999
SDS = (0.0, 0.4, 0.8)
SIZES = ((100, 10), (100, 20), (100, 30))  # tasks and groups
QUARTILES = (25, 50, 75)


class Rates(NamedTuple):
    """Share of boards with a wrong order, and of pairs whose interval excludes 0."""

    independent: float
    grouped: float
    pairs_by_number: float
    pairs: float


def codes(n_tasks: int, n_groups: int, *, half: bool = False) -> CodeArray:
    """Group of each task: all groups of one size, or the first with half of the tasks."""
    if not half:
        return np.arange(n_tasks) * n_groups // n_tasks
    first = n_tasks // 2
    return np.concatenate([np.zeros(first, np.int64), 1 + codes(n_tasks - first, n_groups - 1)])


def board(rng: np.random.Generator, sd: float, n_agents: int, code: CodeArray) -> FloatArray:
    """Outcomes of equal agents, (n_agents, n_tasks)."""
    difficulty = rng.normal(0, 1.5, code.size)
    better = rng.normal(0, sd, (n_agents, int(code.max()) + 1))
    rates = 1 / (1 + np.exp(-(difficulty + better[:, code])))
    return (rng.random(rates.shape) < rates).astype(np.float64)


def rates_of(
    sd: float, n_boards: int, code: CodeArray, *, n_agents: int = 12, n_draws: int = N_DRAWS
) -> Rates:
    """Simulate boards."""
    names, groups = [f"a{i:02d}" for i in range(n_agents)], Groups.of(code, "cluster")
    limits = stdtrit([groups.sizes.size - 1, groups.df], 0.975)
    wrong = np.zeros((n_boards, 4))
    for i in range(n_boards):
        outcomes = board(np.random.default_rng((1, i)), sd, n_agents, code)
        for at, known in enumerate((None, groups)):
            drawn = resample(outcomes, names, seed=i, n_draws=n_draws, groups=known)
            wrong[i, at] = rank_intervals(drawn).beats.any()
        squares = _squared_t(outcomes, groups)
        wrong[i, 2:] = [np.mean(squares > limit**2) for limit in limits]
    return Rates(*wrong.mean(axis=0).tolist())


def _squared_t(outcomes: FloatArray, groups: Groups) -> FloatArray:
    """d̄²/V of all pairs; 0 where agents do not differ."""
    pairs = [one - other for one, other in combinations(outcomes, 2)]
    return np.array([d.mean() ** 2 / mean_variance(d, groups).variance if d.any() else 0.0 for d in pairs])


def ratios(outcomes: FloatArray, groups: Groups) -> FloatArray:
    """√(V/(s²/N)) of each row that is not constant."""
    varied = outcomes[np.ptp(outcomes, axis=1) > 0]
    plain = varied.var(axis=1, ddof=1) / groups.code.size
    return np.sqrt([mean_variance(row, groups).variance for row in varied] / plain)


def tell(file: Path) -> None:
    """Print the ratios of a file."""
    table = Record.from_flat(read(file, as_of=datetime.datetime.now(datetime.UTC))).table
    outcomes = table.means[~np.isnan(table.means).any(axis=1)]
    groups = Groups.of([task.rsplit("-", 1)[0] for task in table.tasks], "cluster")
    print(f"{file.name}: {len(outcomes)} agents, {groups.code.size} tasks in {groups.sizes.size} groups, the")
    print(
        f"largest of {groups.sizes.max():.0f}: {groups.df:.1f} degrees of freedom. Ratio to the plain error"
    )
    for name, rows in (("agents", outcomes), ("pairs", _differences(outcomes))):
        low, middle, high = np.percentile(ratios(rows, groups), QUARTILES)
        print(f"{name}: median {middle:.2f}, quartiles {low:.2f} and {high:.2f}")


def _differences(outcomes: FloatArray) -> FloatArray:
    return np.array([one - other for one, other in combinations(outcomes, 2)])


def main() -> None:
    """Print the rates, and the ratios of files."""
    n_boards = int(sys.argv[1]) if len(sys.argv) > 1 else N_BOARDS
    print(f"{n_boards} boards of 12 equal agents, one trial; wanted: at most .07")
    print("boards with a wrong order: tasks independent, by groups; pairs: t of G − 1, t of Groups.df")
    for n_tasks, n_groups in SIZES:
        for half in (False, True):
            code = codes(n_tasks, n_groups, half=half)
            for sd in SDS:
                told = "   ".join(f"{rate:.3f}" for rate in rates_of(sd, n_boards, code))
                sizes = "one has half" if half else "one size    "
                print(f"{n_tasks} tasks, {n_groups} groups, {sizes} sd {sd:.1f}   {told}", flush=True)
    for file in sys.argv[2:]:
        tell(Path(file))


if __name__ == "__main__":
    main()
