"""All pairs and simultaneous rank intervals, against a plain loop over pairs.

The rivals are what one writes at first: `scipy.stats.ttest_rel` for each pair's standard error, and for the
ranks a numpy bootstrap of each pair by itself (2,000 draws of tasks, mean and standard error of each draw).
They are timed on 20 pairs and scaled to all of them, which flatters them: the second does not yet take the
maximum over pairs. Ours is the median of five runs, of one at 500 agents. Run with `python -m perf.decisions`
and, for one core, OPENBLAS_NUM_THREADS=1.
"""

import resource
import statistics
import time
from collections.abc import Callable
from itertools import combinations, islice

import numpy as np
from scipy import stats

from analytics.arrays import FloatArray
from analytics.differences.domain_ranks import N_DRAWS, rank_intervals, resample
from analytics.differences.pairs import finite_variances

BOARDS = ((57, 500, 5, 2.0), (500, 500, 1, 60.0))
N_PAIRS_TIMED = 20
LIMIT_MIB = 2048


def outcomes_of(n_agents: int, n_tasks: int) -> FloatArray:
    """Passes and failures of a Rasch model."""
    rng = np.random.default_rng(1)
    logit = np.linspace(-2, 2, n_agents)[:, None] - rng.normal(0, 1.5, n_tasks)
    return (rng.random((n_agents, n_tasks)) < 1 / (1 + np.exp(-logit))).astype(float)


def seconds(call: Callable[[], object], n_runs: int) -> float:
    def once() -> float:
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    return statistics.median(once() for _ in range(n_runs))


def scaled(outcomes: FloatArray, rival: Callable[[FloatArray, FloatArray], object]) -> float:
    """Seconds of a rival for all pairs, from some of them."""
    n_pairs = len(outcomes) * (len(outcomes) - 1) // 2
    timed = list(islice(combinations(outcomes, 2), N_PAIRS_TIMED))
    return seconds(lambda: [rival(a, b) for a, b in timed], 3) * n_pairs / len(timed)


def bootstrap_pair(a: FloatArray, b: FloatArray) -> FloatArray:
    d = a - b
    drawn = d[np.random.default_rng(1).integers(0, d.size, (N_DRAWS, d.size))]
    gap, error = drawn.mean(axis=1) - d.mean(), drawn.std(axis=1, ddof=1) / np.sqrt(d.size)
    return np.divide(np.abs(gap), error, out=np.zeros(N_DRAWS), where=error > 0)


def report(what: str, ours: float, rival: str, theirs: float) -> None:
    print(f"  {what}: {ours:.3f} s; {rival}: {theirs:.1f} s; ratio {theirs / ours:,.0f}")


def main() -> None:
    for n_agents, n_tasks, n_runs, limit in BOARDS:
        outcomes = outcomes_of(n_agents, n_tasks)
        names = [f"a{i:04d}" for i in range(n_agents)]
        n_pairs = n_agents * (n_agents - 1) // 2
        print(
            f"{n_agents} agents, {n_tasks} tasks, {n_pairs:,} pairs; rivals scaled from {N_PAIRS_TIMED} pairs"
        )
        ours = seconds(lambda x=outcomes: finite_variances(x), 5)
        rival = scaled(outcomes, stats.ttest_rel)
        report("pair variances", ours, "scipy.stats.ttest_rel of each pair", rival)
        ours = seconds(lambda x=outcomes, a=names: rank_intervals(resample(x, a, seed=1)), n_runs)
        rival = scaled(outcomes, bootstrap_pair)
        report(f"rank intervals (at most {limit:g} s)", ours, "bootstrap of each pair", rival)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  peak memory of the process so far {peak:.0f} MiB (at most {LIMIT_MIB})")


if __name__ == "__main__":
    main()
