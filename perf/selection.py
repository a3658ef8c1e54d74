"""Nested validation against the plain way: one scikit-learn Ridge.fit per fold and strategy.

The rival chooses the same subset from the fold's training rows by numpy, fits scikit-learn's Ridge, and
computes rho, tau and rho_calibrated by scipy's spearmanr and kendalltau; for greedy it solves one hat matrix
for each candidate. Ours computes all figures of STATISTICS §4 without jackknife, rho_null and coverage.
Medians of five runs, except where it says so. Boards are simulated from a Rasch model of their size.

The last lines are everything, all protocols with all figures: all strategies on 57 × 500; on 300 × 586 with
Ridge alone, beside the packages of commit 9ec05e1, which have no other estimator, taken out of the repository
into a folder of their own, once each on one worker, in seconds of the processor; and three strategies on
47 × 12,032. Run with
`python -m perf.selection`, with `large` for the lines of large boards alone.
"""

import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau, spearmanr
from sklearn.linear_model import Ridge

from analytics.outcome_table import OutcomeTable
from perf import seconds
from selection.folds import complete_agents, plan
from selection.validation import validate

N_RUNS = 5
N_TIMED_FOLDS = 20
BANDS = ((0.30, 0.70), (0.25, 0.75), (0.15, 0.85))
RIDGE_ALONE = {"estimator": "ridge", "other_estimators": False}
BARE = {"coverage": False, "standard_errors": False, "n_null_draws": 0, "other_bands": False, **RIDGE_ALONE}
FIVE = ("loao", "loso", "lomo", "temporal", "random_80_20")
EARLIER = "9ec05e1"
WHOLE = """
import json, sys, time
from threadpoolctl import threadpool_limits
sys.path.append(sys.argv[1])  # this benchmark's, for the simulated board
from selection.validation import validate
from perf.selection import simulated

table = simulated(300, 586, 7)
with threadpool_limits(1):
    begin = time.process_time()
    validate(table, **json.loads(sys.argv[2]))
    print(time.process_time() - begin)
"""


def simulated(n: int, m: int, seed: int) -> OutcomeTable:
    """Rasch outcomes of n agents on m tasks; dates, scaffolds and models as on SWE-bench Verified."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((n, 1)) - 1.5 * rng.standard_normal((1, m))
    return OutcomeTable(
        agents=tuple(f"a{i:04d}" for i in range(n)),
        tasks=tuple(f"t{j:05d}" for j in range(m)),
        means=(rng.random((n, m)) < 1.0 / (1.0 + np.exp(-logits))).astype(float),
        n_valid=np.ones((n, m), dtype=np.int32),
        dates=tuple(date(2024, 1, 1) + timedelta(days=int(day)) for day in rng.integers(0, 39, n)),
        scaffolds=tuple(f"s{group:02d}" for group in rng.integers(0, 28, n)),
        models=tuple(f"m{group:02d}" for group in rng.integers(0, 14, n)),
    )


# --------------------------------------------------------------------------------------------------- rival


def band(x: np.ndarray) -> np.ndarray:
    p = np.nanmean(x, axis=0)
    for lo, hi in BANDS:
        tasks = np.flatnonzero((p >= lo - 1e-9) & (p <= hi + 1e-9))
        if 10 * tasks.size >= p.size:
            break
    return tasks


def chosen(strategy: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    tasks = band(x)
    if strategy == "mid_range":
        return tasks
    if strategy == "greedy":
        return greedy(x, y, tasks.size)
    order = np.argsort(np.round(np.nanmean(x, axis=0), 9), kind="stable")
    return order[: tasks.size] if strategy == "hardest" else order[-tasks.size :]


def greedy(x: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    centred, n = x - x.mean(axis=0), len(y)
    gram, free, taken = np.zeros((n, n)), list(range(x.shape[1])), []
    for _ in range(k):
        errors = []
        for j in free:
            kernel = gram + np.outer(centred[:, j], centred[:, j])
            hat = np.linalg.solve(kernel + np.eye(n), kernel) + 1.0 / n
            errors.append(np.sum(((y - hat @ y) / (1.0 - np.diag(hat))) ** 2))
        best = free.pop(int(np.argmin(np.round(errors, 9))))
        taken.append(best)
        gram += np.outer(centred[:, best], centred[:, best])
    return np.sort(taken)


Split = tuple[np.ndarray, np.ndarray]


def rival_folds(x: np.ndarray, y: np.ndarray, folds: list[Split], strategy: str) -> tuple[np.ndarray, ...]:
    means, predictions, scores = [], [], []
    for held_out, training in folds:
        tasks = chosen(strategy, x[training], y[training])
        model = Ridge(alpha=1.0).fit(x[np.ix_(training, tasks)], y[training])
        predictions.append(model.predict(x[np.ix_(held_out, tasks)]))
        means.append(np.nanmean(x[np.ix_(held_out, tasks)], axis=1))
        scores.append(y[held_out])
    return np.concatenate(means), np.concatenate(predictions), np.concatenate(scores)


def correlations(means: np.ndarray, predictions: np.ndarray, scores: np.ndarray) -> None:
    spearmanr(means, scores)
    spearmanr(predictions, scores)
    kendalltau(means, scores)


def rival(table: OutcomeTable, protocols: tuple[str, ...], strategies: tuple[str, ...]) -> None:
    agents = complete_agents(table)
    x, y = agents.outcomes, agents.scores
    for protocol in protocols:
        folds = [(fold.held_out, fold.training) for fold in plan(protocol, agents).folds]
        for strategy in strategies:
            if protocol == "random_80_20":
                for fold in folds:
                    correlations(*rival_folds(x, y, [fold], strategy))
            else:
                correlations(*rival_folds(x, y, folds, strategy))


# --------------------------------------------------------------------------------------------- measurement


def line(what: str, ours: float, theirs: float, at_least: float) -> bool:
    ratio = theirs / ours
    print(f"{what}: rival {theirs:.2f} s, ours {ours:.4f} s, ratio {ratio:.1f} (at least {at_least:g})")
    return ratio >= at_least


def compared(
    what: str, table: OutcomeTable, protocols: tuple[str, ...], strategies: tuple[str, ...], at_least: float
) -> bool:
    runs = [
        (
            seconds(lambda: validate(table, protocols=protocols, strategies=strategies, **BARE)),
            seconds(lambda: rival(table, protocols, strategies)),
        )
        for _ in range(N_RUNS)
    ]
    ours, theirs = (statistics.median(column) for column in zip(*runs, strict=True))
    return line(what, ours, theirs, at_least)


def large(at_least: float) -> bool:
    """The rival's time on 20 of 1,000 folds, times 50, and its correlations once."""
    table = simulated(1_000, 2_000, 3)
    agents = complete_agents(table)
    folds = [(fold.held_out, fold.training) for fold in plan("loao", agents).folds]
    ours, theirs = [], []
    for run in range(N_RUNS):
        ours.append(seconds(lambda: validate(table, protocols=["loao"], strategies=["mid_range"], **BARE)))
        some = folds[run * N_TIMED_FOLDS : (run + 1) * N_TIMED_FOLDS]
        fits = seconds(lambda some=some: rival_folds(agents.outcomes, agents.scores, some, "mid_range"))
        tail = seconds(lambda: correlations(agents.scores, agents.scores**2, agents.scores))
        theirs.append(fits * len(folds) / N_TIMED_FOLDS + tail)
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {gib:.2f} GiB (at most 1), the rival's and the table's included")
    what = f"LOAO mid_range, 1,000 × 2,000 (rival: {N_TIMED_FOLDS} folds a run, scaled)"
    return line(what, statistics.median(ours), statistics.median(theirs), at_least) and gib <= 1.0


def everything(at_most: float) -> bool:
    took = seconds(lambda: validate(simulated(57, 500, 1), jobs=2))
    print(f"all protocols, strategies and figures, 57 × 500, two workers: {took:.1f} s (at most {at_most:g})")
    return took <= at_most


def seconds_of(packages: Path, options: dict[str, object]) -> float:
    """Processor seconds of a whole validation of 300 × 586 by the `selection` and `analytics` of a folder."""
    here, environment = Path(__file__).parents[1], {**os.environ, "PYTHONPATH": str(packages)}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", WHOLE, str(here), json.dumps(options)]
        ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    return float(ran.stdout)


def beside_earlier(at_least: float) -> bool:
    """One run each, one after the other."""
    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        archived = subprocess.run(
            ["git", "-C", here, "archive", EARLIER, "selection", "analytics"], capture_output=True
        )
        ours = seconds_of(here, RIDGE_ALONE)
        if archived.returncode:
            print(f"all strategies, 300 × 586: {ours:.1f} s; commit {EARLIER} is not here: no ratio")
            return True
        with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as packages:
            packages.extractall(folder, filter="data")
        theirs = seconds_of(Path(folder), {})
    return line(f"all strategies and figures, 300 × 586 (rival: commit {EARLIER})", ours, theirs, at_least)


def long_board() -> bool:
    """All protocols on 47 × 12,032; what nobody could wait for is named."""
    table, found = simulated(47, 12_032, 7), []
    took = seconds(lambda: found.append(validate(table, strategies=["mid_range", "random", "spread"])))
    print(f"mid_range random spread, all protocols and figures, 47 × 12,032: {took:.0f} s")
    return all(protocol.available for protocol in found[0].protocols.values())


def large_boards() -> list[bool]:
    return [beside_earlier(3.0), long_board()]


def main() -> None:
    if sys.argv[1:] == ["large"]:
        sys.exit(0 if all(large_boards()) else 1)
    passed = [
        large(100.0),
        compared(
            "five protocols, mid_range easiest hardest, 57 × 500",
            simulated(57, 500, 1),
            FIVE,
            ("mid_range", "easiest", "hardest"),
            5.0,
        ),
        compared("LOAO greedy, 38 × 45", simulated(38, 45, 2), ("loao",), ("greedy",), 25.0),
        everything(120.0),
        *large_boards(),
    ]
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
