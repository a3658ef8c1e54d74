"""What a search for settings finds, and whether the interval of ΔR holds: ``python -m perf.studies.tuning``.

On `tuning.bench`, whose F is known: regret = best F there is − true F of what was found, after the search and
after the five best were run again in full. Figures are means over seeds ± one Monte Carlo standard error.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from analytics.arrays import FloatArray
from analytics.harness import ScoreTensor, compare, fitness
from analytics.resampling import generator
from analytics.research.tuning import bench
from analytics.research.tuning.figures import (
    HarnessFigures,
    parts,
    reliability_difference,
    standard_error,
)
from analytics.research.tuning.report import front, hypervolume
from analytics.research.tuning.search import SearchTrial, search, trial_of
from analytics.research.tuning.space import Configuration
from analytics.research.tuning.study import HarnessStudy, Search

BEST = 0.725  # of 20,000 random configurations; tests/tuning/test_figures.py
WAYS = {
    "random": Search("random", patience=99),
    "TPE": Search("tpe", patience=99),
    "TPE + Hyperband": Search("tpe", hyperband=(3, 9, 3), n_runs=9, patience=99),
    "NSGA-II": Search("nsga2", patience=99),
}
N_RUNS_FULL, N_BEST = 5, 5
N_TASKS, RESIDUAL = 20, 0.01  # of the pairs of studies
Settings = tuple[tuple[float, float, float], tuple[float, float, float]]
# Variance of run and of model:run, and the scale of abilities: before, after.
CASES: Mapping[str, Settings] = {
    "pinned environments": ((0.004, 0.0015, 1.0), (0.0005, 0.0012, 1.0)),
    "nothing changed": ((0.004, 0.0015, 1.0), (0.004, 0.0015, 1.0)),
    "quieter, and a better scorer": ((0.003, 0.006, 0.75), (0.0006, 0.002, 1.1)),
}


def main() -> None:
    """Print both tables; a number as argument: seeds of a search (24)."""
    n_seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    print(f"regret on tuning.bench, {n_seeds} seeds, 50 trials, 30% of 200 tasks, best F {BEST}")
    heads = ("after the search", "search − truth", "best five again")
    print(f"{'':18}{''.join(f'{head:>20}' for head in heads)}{'hypervolume':>16}{'seconds':>9}")
    for name, way in WAYS.items():
        start = time.process_time()
        rows = np.array([searched(way, seed) for seed in range(n_seeds)])
        cells = "".join(f"{told_(column):>20}" for column in rows[:, :3].T)
        print(f"{name:18}{cells}{told_(rows[:, 3]):>16}{time.process_time() - start:9.0f}", flush=True)
    print("\nhow often the 95% interval of ΔR holds: 5 models, 20 tasks, 1,500 pairs")
    print(f"{'':32}         {'runs redrawn':>14}{'tasks resampled':>17}")
    for name, (before, after) in CASES.items():
        for n_runs in (5, 10):
            redrawn, resampled = coverage(before, after, n_runs)
            print(f"{name:32} L = {n_runs:2}  {share(redrawn)}  {share(resampled)}", flush=True)


def share(held: list[bool]) -> str:
    """Share ± its standard error."""
    p = sum(held) / len(held)
    return f"{p:.3f} ± {(p * (1 - p) / len(held)) ** 0.5:.3f}"


def told_(values: FloatArray) -> str:
    """Mean ± its standard error."""
    return f"{values.mean():.4f} ± {values.std(ddof=1) / len(values) ** 0.5:.4f}"


def searched(way: Search, seed: int) -> tuple[float, float, float, float]:
    """Regret and optimism after a search, regret after the best five were run again, and the hypervolume."""
    study = study_of(way, seed)
    evaluate = evaluate_on_bench(study, "search", study.subsample)
    done: list[Any] = []
    search(study, evaluate, [], keep=done.append)
    trials = [one for one in (trial_of(study, each) for each in done) if one.state == "complete"]
    trials.sort(key=lambda one: (-(one.figures.F or 0.0), one.number))
    top = trials[0]
    again = evaluate_on_bench(study, "full", study.tasks)
    best = max(trials[:N_BEST], key=lambda one: again(one.configuration, N_RUNS_FULL).F or 0.0)
    true = bench.true_fitness(top.configuration)
    return (
        BEST - true,
        (top.figures.F or 0.0) - true,
        BEST - bench.true_fitness(best.configuration),
        volume(trials),
    )


def volume(trials: list[SearchTrial]) -> float:
    """Hypervolume of the front over R, D/3, C and the share of $1 that is spared."""
    points = np.array(
        [
            [one.figures.R, (one.figures.D or 0.0) / 3, one.figures.C, 1 - one.figures.cost_usd]
            for one in trials
        ]
    )
    return hypervolume(points[front(points)], (0.0, 0.0, 0.0, 0.0))


def study_of(way: Search, seed: int) -> HarnessStudy:
    """The bench as a study that keeps nothing."""
    return HarnessStudy(
        name="bench",
        seed=seed,
        command=(),
        called="",
        deadline_seconds=1.0,
        models=bench.MODELS,
        strata={"": bench.TASKS},
        folder=Path(),
        store=Path(),
        space=bench.SPACE,
        baseline=bench.BASELINE,
        search=replace(way, n_trials=50),
        full_runs=N_RUNS_FULL,
        usd=None,
        usd_per_evaluation=None,
        metadata={},
        tau_min=0.9,
    )


def evaluate_on_bench(
    study: HarnessStudy, purpose: str, tasks: tuple[str, ...]
) -> Callable[[Configuration, int], HarnessFigures]:
    """Run the bench in this process, every score there: what is lost counts in C alone."""
    seen: dict[tuple[str, int], HarnessFigures] = {}

    def evaluated(configuration: Configuration, n_runs: int) -> HarnessFigures:
        key = (repr(sorted(configuration.items())), n_runs)
        if key not in seen:
            seen[key] = _on_bench(study, f"{purpose} {key[0]}", configuration, tasks, n_runs)
        return seen[key]

    return evaluated


def _on_bench(
    study: HarnessStudy, what: str, configuration: Configuration, tasks: tuple[str, ...], n_runs: int
) -> HarnessFigures:
    seed = int(generator(study.seed, what).integers(2**31))
    request = {"configuration": configuration, "models": bench.MODELS, "tasks": tasks, "seed": seed}
    cells = bench.run(request | {"first_run": 1, "n_runs": n_runs})["cells"]
    shape = (n_runs, len(bench.MODELS), len(tasks))
    scores = np.array([cell["score"] for cell in cells]).reshape(shape).transpose(1, 2, 0)
    valid = np.array([cell["valid"] for cell in cells]).reshape(shape).transpose(1, 2, 0)
    runs = tuple(f"{run:03d}" for run in range(n_runs))
    tensor = ScoreTensor(bench.MODELS, tasks, runs, scores, np.ones(scores.shape, dtype=np.bool_))
    r, d = parts(tensor)
    c, paid = float(valid.mean()), sum(cell["cost_usd"] for cell in cells)
    return HarnessFigures(r, d, c, fitness(r, d, c), standard_error(tensor), paid, n_runs)


def coverage(
    before: tuple[float, float, float], after: tuple[float, float, float], n_runs: int, n: int = 1500
) -> tuple[list[bool], list[bool]]:
    """Whether the interval of ΔR holds in each of n pairs of studies: runs redrawn, and tasks resampled."""
    draw = generator(n_runs, f"coverage {before} {after}")
    true = _true_reliability(*after) - _true_reliability(*before)
    redrawn, resampled = [], []
    for place in range(n):
        first, second = _drawn(draw, before, n_runs), _drawn(draw, after, n_runs)
        _, anew, _ = reliability_difference(first, second, place, n_draws=400)
        redrawn.append(anew.lower <= true <= anew.upper)
        interval = compare(first, second, place, n_draws=400)[0].interval
        resampled.append(interval is not None and interval.lower <= true <= interval.upper)
    return redrawn, resampled


def _drawn(draw: np.random.Generator, case: tuple[float, float, float], n_runs: int) -> ScoreTensor:
    run, model_run, scale = case
    y = scale * bench.ABILITIES[:, None] + draw.normal(0.0, run**0.5, (1, n_runs))
    y = y + draw.normal(0.0, model_run**0.5, (5, n_runs))
    scores = y[:, None] + draw.normal(0.0, bench.TASK**0.5, (1, N_TASKS, 1))
    scores = scores + draw.normal(0.0, RESIDUAL**0.5, (5, N_TASKS, n_runs))
    names = bench.MODELS, bench.TASKS[:N_TASKS], tuple(f"{place:03d}" for place in range(n_runs))
    return ScoreTensor(*names, scores, np.ones(scores.shape, dtype=np.bool_))


def _true_reliability(run: float, model_run: float, scale: float) -> float:
    signal = float(bench.ABILITIES.var(ddof=1)) * scale**2
    return signal / (signal + run + model_run + RESIDUAL / N_TASKS)


if __name__ == "__main__":
    main()
