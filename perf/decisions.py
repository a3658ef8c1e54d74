"""All pairs and simultaneous rank intervals, against a plain loop over pairs.

The rivals are what one writes at first: `scipy.stats.ttest_rel` for each pair's standard error, and for the
ranks a numpy bootstrap of each pair by itself (10,000 draws of tasks, mean and standard error of each draw).
They are timed on 20 pairs and scaled to all of them, which flatters them: the second does not yet take the
maximum over pairs. Ours is the median of five runs, of one at 500 agents.

Rank sets are timed against this project's earlier ways, unpacked from the repository's history and run in a
process of their own: tasks resampled for every pair where trials are repeated (commit 9ec05e1, its 2,000
draws), and all pairs in all draws where they are not (960dc2d). Of 40 boards of all kinds the latter's rank
sets are compared to the last bit. Run with `python -m perf.decisions`, for one core with
OPENBLAS_NUM_THREADS=1.
"""

import io
import pickle
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations, islice
from pathlib import Path

import numpy as np
from scipy import stats

from analytics.arrays import FloatArray
from analytics.differences.finite_errors import Calibrated, Measured, TrialNoise, trial_noise
from analytics.differences.neyman_draws import N_DRAWS
from analytics.differences.ranks import rank_intervals, rank_sets, resample
from analytics.differences.rows import Row
from analytics.differences.trial_variances import finite_variances
from perf import seconds

BOARDS = ((57, 500, 5, 2.0), (500, 500, 1, 60.0))
N_PAIRS_TIMED = 20
LIMIT_MIB = 2048
ROOT = Path(__file__).resolve().parent.parent
EARLIER, ALL_PAIRS, N_TIMES = "9ec05e1", "960dc2da", 10
SINGLE = ((57, 500), (300, 586), (632, 1581))
N_BOARDS = 40
RESAMPLED = """
import sys, time, numpy
try:
    from analytics.ranks import rank_intervals, resample
except ImportError:
    from analytics.differences.ranks import rank_intervals, resample
outcomes = numpy.load(sys.argv[1])
begin = time.perf_counter()
rank_intervals(resample(outcomes, [f"a{i:04d}" for i in range(len(outcomes))], seed=1))
print(time.perf_counter() - begin)
"""
DECIDED = """
import pickle, sys
from pathlib import Path
sys.path.append(sys.argv[2])
from perf.decisions import decided
found = [decided(seed) for seed in range(int(sys.argv[3]))]
Path(sys.argv[1]).write_bytes(pickle.dumps(found))
"""


def outcomes_of(n_agents: int, n_tasks: int) -> FloatArray:
    """Passes and failures of a Rasch model."""
    rng = np.random.default_rng(1)
    logit = np.linspace(-2, 2, n_agents)[:, None] - rng.normal(0, 1.5, n_tasks)
    return (rng.random((n_agents, n_tasks)) < 1 / (1 + np.exp(-logit))).astype(float)


def median_seconds(call: Callable[[], object], n_runs: int) -> float:
    return statistics.median(seconds(call) for _ in range(n_runs))


def scaled(outcomes: FloatArray, rival: Callable[[FloatArray, FloatArray], object]) -> float:
    """Seconds of a rival for all pairs, from some of them."""
    n_pairs = len(outcomes) * (len(outcomes) - 1) // 2
    timed = list(islice(combinations(outcomes, 2), N_PAIRS_TIMED))
    return median_seconds(lambda: [rival(a, b) for a, b in timed], 3) * n_pairs / len(timed)


def bootstrap_pair(a: FloatArray, b: FloatArray) -> FloatArray:
    d = a - b
    drawn = d[np.random.default_rng(1).integers(0, d.size, (N_DRAWS, d.size))]
    gap, error = drawn.mean(axis=1) - d.mean(), drawn.std(axis=1, ddof=1) / np.sqrt(d.size)
    return np.divide(np.abs(gap), error, out=np.zeros(N_DRAWS), where=error > 0)


def report(what: str, ours: float, rival: str, theirs: float) -> None:
    print(f"  {what}: {ours:.3f} s; {rival}: {theirs:.1f} s; ratio {theirs / ours:,.1f}")


def trials_of(n_agents: int, n_tasks: int, n_trials: int) -> list[Row]:
    """Agents of a Rasch model with several trials a task."""
    rng = np.random.default_rng(1)
    logit = np.linspace(-2, 2, n_agents)[:, None] - rng.normal(0, 1.5, n_tasks)
    passed = rng.random((n_agents, n_tasks, n_trials)) < 1 / (1 + np.exp(-logit[..., None]))
    counts = np.full(n_tasks, float(n_trials))
    return [Row(one.mean(axis=1), one.var(axis=1, ddof=1), counts) for one in passed]


@contextmanager
def unpacked(commit: str) -> Iterator[Path | None]:
    """Give the folder of an earlier commit's library; None where the history does not hold it."""
    archive = subprocess.run(
        ["git", "archive", commit, "analytics"], cwd=ROOT, capture_output=True, check=False
    )
    with tempfile.TemporaryDirectory() as folder:
        if not archive.returncode:
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
                tar.extractall(folder, filter="data")
        yield None if archive.returncode else Path(folder)


def resampled_earlier(outcomes: FloatArray, commit: str) -> float | None:
    """Seconds of the earlier rank intervals; None where the history does not hold them."""
    with unpacked(commit) as folder:
        if folder is None:
            return None
        np.save(folder / "outcomes.npy", outcomes)
        command = [sys.executable, "-c", RESAMPLED, "outcomes.npy"]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True)
    return float(done.stdout)


def decided(seed: int) -> list[object]:
    """Rank sets of a board: 2 to 200 agents, 5 to 900 tasks; one trial, several or both."""
    rng = np.random.default_rng(seed)
    n, k = int(2 * 100 ** rng.random()), int(5 * 180 ** rng.random())
    logit = rng.normal(0, rng.choice([0.0, 0.3, 1.5]), n)[:, None] - rng.normal(0, 1.5, k)
    n_trials = np.where(rng.random(n) < (0.0, 0.1, 0.6, 1.0)[seed % 4], 3, 1)
    rows = []
    for chance, r in zip(1 / (1 + np.exp(-logit)), n_trials.tolist(), strict=True):
        passed = (rng.random((k, r)) < chance[:, None]).astype(float)
        if seed % 5 == 0 and r == 1:
            passed = np.round(rng.random((k, 1)) * 7) / 7
        s2 = passed.var(axis=1, ddof=1) if r > 1 else np.full(k, np.nan)
        rows.append(Row(passed.mean(axis=1), s2, np.full(k, float(r))))
    for i in range(1, n, 7):  # a copy
        rows[i] = rows[i - 1]
    agents = [Measured(f"a{i:04d}", row.means, row) for i, row in enumerate(rows)]
    calibrated = [
        Calibrated(f"b{i:04d}", float(rng.random()), 0.02, 9.0, 0) for i in range(seed % 3 if n > 5 else 0)
    ]
    found = rank_sets([*agents, *calibrated], TrialNoise(), seed=seed)
    return [found.critical, *(getattr(found, name).tobytes() for name in ("beats", "may_be_first", "se"))]


def same_as_all_pairs() -> None:
    """Compare rank sets of boards of all kinds with those of all pairs in all draws."""
    with unpacked(ALL_PAIRS) as folder:
        if folder is None:
            print(f"not compared: the history here does not hold {ALL_PAIRS}")
            return
        command = [sys.executable, "-c", DECIDED, "decided", str(ROOT), str(N_BOARDS)]
        subprocess.run(command, cwd=folder, check=True)
        earlier = pickle.loads((folder / "decided").read_bytes())
    equal = sum(then == decided(seed) for seed, then in enumerate(earlier))
    print(f"rank sets of {equal} of {N_BOARDS} boards equal those of {ALL_PAIRS} to the last bit")


def single_trials() -> None:
    """Rank ranges of agents with one trial."""
    print("one trial; all pairs in all draws of " + ALL_PAIRS)
    for n_agents, n_tasks in SINGLE:
        outcomes = outcomes_of(n_agents, n_tasks)
        names = [f"a{i:04d}" for i in range(n_agents)]
        ours = median_seconds(lambda x=outcomes, a=names: rank_intervals(resample(x, a, seed=1)), 3)
        theirs = resampled_earlier(outcomes, ALL_PAIRS)
        if theirs is not None:
            report(f"{n_agents} agents, {n_tasks} tasks: rank ranges", ours, "all pairs", theirs)


def rank_sets_of(rows: list[Row]) -> None:
    moments = ([getattr(row, part) for row in rows] for part in ("means", "trial_variances", "n_trials"))
    agents = [Measured(f"a{i:04d}", row.means, row) for i, row in enumerate(rows)]
    rank_sets(agents, trial_noise(*map(np.array, moments)), seed=1)


def repeated_trials() -> None:
    """Rank sets of 500 agents on 500 tasks with 5 trials each, 10,000 draws."""
    rows = trials_of(500, 500, 5)
    theirs = resampled_earlier(np.array([row.means for row in rows]), EARLIER)
    ours = median_seconds(lambda: rank_sets_of(rows), 5)
    print("500 agents, 500 tasks, 5 trials, 10,000 draws")
    if theirs is None:
        print(f"  rank sets: {ours:.3f} s; not compared: the history here does not hold {EARLIER}")
    else:
        report(
            f"rank sets (at least {N_TIMES} times)",
            ours,
            f"resampled tasks of {EARLIER}, 2,000 draws",
            theirs,
        )


def main() -> None:
    same_as_all_pairs()
    single_trials()
    repeated_trials()
    for n_agents, n_tasks, n_runs, limit in BOARDS:
        outcomes = outcomes_of(n_agents, n_tasks)
        names = [f"a{i:04d}" for i in range(n_agents)]
        n_pairs = n_agents * (n_agents - 1) // 2
        print(
            f"{n_agents} agents, {n_tasks} tasks, {n_pairs:,} pairs; rivals scaled from {N_PAIRS_TIMED} pairs"
        )
        ours = median_seconds(lambda x=outcomes: finite_variances(x), 5)
        rival = scaled(outcomes, stats.ttest_rel)
        report("pair variances", ours, "scipy.stats.ttest_rel of each pair", rival)
        ours = median_seconds(lambda x=outcomes, a=names: rank_intervals(resample(x, a, seed=1)), n_runs)
        rival = scaled(outcomes, bootstrap_pair)
        report(f"rank intervals (at most {limit:g} s)", ours, "bootstrap of each pair", rival)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  peak memory of the process so far {peak:.0f} MiB (at most {LIMIT_MIB})")


if __name__ == "__main__":
    main()
