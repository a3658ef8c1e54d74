"""How often rank sets claim an order between equal agents, or leave the best out of those that may be first.

Model
-----
All agents have the pass rates p_j, uniform from .1 to .9 where not said, on k tasks, so that every order
claimed is wrong. A case says what is known of each agent::

    repeated     R trials a task
    single       one trial a task
    linked       R trials on half of the tasks; the mean of the others p̄ + N(0, .03²), v_link = .03²·χ²₁₁/11
    calibrated   p̄ + .04·t₆·√(4/6); s_cal the root mean square of 30 such residuals

Under several *prompts* each agent has R trials of a task under each, and pass rates p_j + N(0, .05²) of its
own; what agents vary by with the prompt is known by the fit of the board (`analytics.tee.benchmark`).

*noisier* and *calmer* are single-trial agents unlike those with repeats: p_j = ½ throughout, or .1 and .9 in
equal parts, with the same mean. There ω̂ is wrong for them, and so may be the order.

The error rate is the share of boards with any order claimed. Every agent is as good as the best: the share of
boards on which one is excluded is the rate at which the best is left out, here for the kind with the highest.

Run with ``python -m perf.studies.rank_sets [boards [case …]]`` and, for one core, OPENBLAS_NUM_THREADS=1.
Where tasks are resampled a board has fewer draws: ⌈.95(B + 1)⌉ keeps the rate whatever B is.

Symbols: R ``n_trials``, k ``n_tasks``; p ``rates`` (n_tasks,).

Not done here
-------------
No selection, no completion by a fitted model, no interaction of agents and tasks.

Source
------
`analytics.differences.ranks`.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from analytics.arrays import FloatArray
from analytics.differences.finite_errors import Calibrated, Measured, TrialNoise, trial_noise
from analytics.differences.ranks import RankSets, rank_sets
from analytics.differences.rows import NEVER_MEASURED, Facet, Row, facets_of
from analytics.differences.trial_variances import N_AGENTS_OMEGA
from analytics.tee.benchmark import TrialOutcomes, variance_study

N_BOARDS = 1_000
N_DRAWS, N_DRAWS_BY_TASKS = 1_999, 499
SD_LINK, DF_LINK = 0.03, 11
SD_RESIDUAL, N_RESIDUALS = 0.04, 30
SD_PROMPT = 0.05


@dataclass(frozen=True)
class Case:
    """Agents of one board.

    Parameters
    ----------
    name : str
    trials : sequence of int
        R of each measured agent.
    n_tasks : int
    n_linked, n_calibrated : int
        The first of the measured ones are linked; the others come on top.
    passed : (float, float)
        Between which pass rates lie.
    n_steady : int
        Of the tasks: each is passed by all in every trial, or failed, in turn.
    n_prompts : int
    unlike : str
        "noisier" or "calmer" for single-trial agents unlike the others, else empty.
    """

    name: str
    trials: Sequence[int]
    n_tasks: int = 55
    n_linked: int = 0
    n_calibrated: int = 0
    passed: tuple[float, float] = (0.1, 0.9)
    n_steady: int = 0
    n_prompts: int = 1
    unlike: str = ""

    @property
    def by_tasks(self) -> bool:
        """Whether too few repeat to tell ω̂, so that tasks are resampled."""
        return 1 in self.trials and sum(r > 2 for r in self.trials) < N_AGENTS_OMEGA

    @property
    def kinds(self) -> Mapping[str, Sequence[int]]:
        """Positions of the agents of each kind."""
        n = len(self.trials)
        kinds = {
            "linked": list(range(self.n_linked)),
            "single": [i for i, r in enumerate(self.trials) if r == 1],
            "repeated": [i for i, r in enumerate(self.trials) if r > 1 and i >= self.n_linked],
            "calibrated": list(range(n, n + self.n_calibrated)),
        }
        return MappingProxyType({kind: rows for kind, rows in kinds.items() if rows})


FEW = ((3, 5), (3, 8), (4, 7), (5, 10))  # agents and tasks
HALVES = (1,) * 8 + (5,) * 7
CASES = (
    *(Case(f"R = {r}", (r,) * 15) for r in (2, 3, 5, 10)),
    Case("R = 2, 15 tasks", (2,) * 15, n_tasks=15),
    Case("R = 2, 3 of 15 tasks vary", (2,) * 15, n_tasks=15, n_steady=12),
    Case("R = 2, 3 of 50 tasks vary", (2,) * 15, n_tasks=50, n_steady=47),
    Case("R = 5, 15 tasks", (5,) * 15, n_tasks=15),
    Case("R = 5, 165 tasks", (5,) * 15, n_tasks=165),
    Case("R = 1 and 5", HALVES),
    Case("R = 1 and 5, 15 tasks", HALVES, n_tasks=15),
    Case("R = 1 and 5, 165 tasks", HALVES, n_tasks=165),
    Case("linked 20%", (5,) * 15, n_linked=3),
    Case("calibrated 40%", (5,) * 9, n_calibrated=6),
    Case("calibrated 40%, R = 1", (1,) * 9, n_calibrated=6),
    Case("R = 1", (1,) * 15),
    Case("R = 1, 15 tasks", (1,) * 15, n_tasks=15),
    Case("R = 1, 165 tasks", (1,) * 15, n_tasks=165),
    Case("R = 1, 20 tasks", (1,) * 15, n_tasks=20),
    Case("R = 1, 65 hard tasks", (1,) * 15, n_tasks=65, passed=(0.0, 0.12)),
    *(Case(f"R = 1, {n} agents, {k} tasks", (1,) * n, n_tasks=k) for n, k in FEW),
    Case("R = 1 and 5, no ω̂", (1,) * 13 + (5,) * 2),
    *(Case(f"2 prompts, {n} agents, 20 tasks", (2,) * n, n_tasks=20, n_prompts=2) for n in (4, 6, 15)),
    Case("single ones noisier", HALVES, unlike="noisier"),
    Case("single ones calmer", HALVES, unlike="calmer"),
)


@dataclass(frozen=True)
class Rates:
    """What a case gives.

    Attributes
    ----------
    n_boards : int
    wrong : float
        Share of boards with any order claimed.
    left_out : float
        Share at which an agent of `kind` is excluded from those that may be first, the highest of all kinds.
    kind : str
    """

    n_boards: int
    wrong: float
    left_out: float
    kind: str


def rates_of(case: Case, n_boards: int, *, n_draws: int | None = None) -> Rates:
    """Simulate boards of a case."""
    n_draws = n_draws or (N_DRAWS_BY_TASKS if case.by_tasks else N_DRAWS)
    claimed, excluded = np.zeros(n_boards), np.zeros((n_boards, len(case.trials) + case.n_calibrated))
    for i in range(n_boards):
        found = ranked(case, np.random.default_rng((1, i)), seed=i, n_draws=n_draws)
        claimed[i], excluded[i] = found.beats.any(), ~found.may_be_first
    left_out = {kind: float(excluded[:, rows].mean()) for kind, rows in case.kinds.items()}
    kind = max(left_out, key=lambda one: left_out[one])
    return Rates(n_boards, float(claimed.mean()), left_out[kind], kind)


def ranked(case: Case, rng: Generator, *, seed: int, n_draws: int) -> RankSets:
    """Rank one board."""
    p = rng.uniform(*case.passed, case.n_tasks)
    p[: case.n_steady] = np.arange(case.n_steady) % 2
    facets: Sequence[Facet] = NEVER_MEASURED
    if case.n_prompts > 1:
        measured, facets = _under_prompts(case, rng, p)
    else:
        measured = [_tried(case, rng, i, p) for i in range(len(case.trials))]
    residuals = _residuals(rng, N_RESIDUALS)
    s2 = float(np.mean(residuals**2))
    level = measured_level(case, p)
    calibrated = [
        Calibrated(f"c{i:02d}", level + float(_residuals(rng, 1)[0]), s2, N_RESIDUALS - 1)
        for i in range(case.n_calibrated)
    ]
    noise = _noise([one for one in measured if not one.row.v_link])
    return rank_sets([*measured, *calibrated], noise, seed=seed, n_draws=n_draws, facets=facets)


def measured_level(case: Case, p: FloatArray) -> float:
    """The true score of everybody."""
    return 0.5 if case.unlike else float(p.mean())


# ---------------------------------------------------------------------------------------------- arithmetic


def _tried(case: Case, rng: Generator, i: int, p: FloatArray) -> Measured:
    r = case.trials[i]
    trials = rng.random((case.n_tasks, r)) < _rates(case, r, p)[:, None]
    means = trials.mean(axis=1)
    variances = trials.var(axis=1, ddof=1) if r > 1 else np.full(means.shape, np.nan)
    row = Row(means, variances, np.full(means.shape, float(r)))
    name = f"a{i:02d}"
    return _linked(name, rng, row, p) if i < case.n_linked else Measured(name, means, row)


def _under_prompts(case: Case, rng: Generator, p: FloatArray) -> tuple[list[Measured], tuple[Facet, ...]]:
    n, r, v = len(case.trials), case.trials[0], case.n_prompts
    suits = rng.normal(0.0, SD_PROMPT, (n, 1, v, 1))
    passed = rng.random((n, p.size, v, r)) < p[:, None, None] + suits
    agent, task, prompt, _ = (axis.ravel() for axis in np.indices(passed.shape))
    columns = {"agent": agent, "task": task, "prompt": prompt}
    columns |= dict.fromkeys(("judge", "temperature", "run"), np.zeros_like(agent))
    texts = {name: values.astype(np.str_) for name, values in columns.items()}
    outcomes = TrialOutcomes(texts, passed.ravel().astype(np.float64))
    study = variance_study(outcomes, complete=(), n_tasks=p.size, with_agents=False)
    means, variances = passed.mean(axis=(2, 3)), passed.var(axis=3, ddof=1).mean(axis=2)
    n_trials, levels = np.full(p.size, float(v * r)), {"prompt": v}
    rows = [Row(x, s2, n_trials, levels=levels) for x, s2 in zip(means, variances, strict=True)]
    return [Measured(f"a{i:02d}", row.means, row) for i, row in enumerate(rows)], facets_of(study)


def _rates(case: Case, r: int, p: FloatArray) -> FloatArray:
    """p_j; where single-trial agents are unlike the others, more or less noise about ½ for them."""
    if not case.unlike:
        return p
    if r > 1:
        return np.asarray(p - p.mean() + 0.5, dtype=np.float64)
    if case.unlike == "noisier":
        return np.full(p.shape, 0.5)
    return np.append(np.tile([0.1, 0.9], p.size // 2), [0.5] * (p.size % 2))


def _linked(name: str, rng: Generator, row: Row, p: FloatArray) -> Measured:
    """Half of the tasks completed by what is expected, off by the linking error in the mean of all."""
    n = p.size // 2
    outcomes, cells = row.means.copy(), row.means.copy()
    outcomes[:n] = np.clip(p[:n] + SD_LINK * rng.standard_normal() * p.size / n, 0, 1)
    cells[:n] = np.nan
    v_link = SD_LINK**2 * float(rng.chisquare(DF_LINK)) / DF_LINK
    return Measured(name, outcomes, replace(row, means=cells, v_link=v_link, df_link=DF_LINK))


def _residuals(rng: Generator, n: int) -> FloatArray:
    return np.asarray(SD_RESIDUAL * np.sqrt(4 / 6) * rng.standard_t(6, n), dtype=np.float64)


def _noise(complete: Sequence[Measured]) -> TrialNoise:
    means, variances, n_trials = (
        np.array([getattr(one.row, field) for one in complete])
        for field in ("means", "trial_variances", "n_trials")
    )
    return trial_noise(means, variances, n_trials)


def main() -> None:
    n_boards, chosen = int(sys.argv[1]) if len(sys.argv) > 1 else N_BOARDS, sys.argv[2:]
    print(f"{n_boards:,} boards of equal agents a case, 15 agents and 55 tasks where not said")
    print(f"{'case':<30}{'any wrong order':>16}{'best left out':>15}  of kind     seconds")
    for case in (one for one in CASES if not chosen or one.name in chosen):
        begin = time.perf_counter()
        found = rates_of(case, n_boards)
        figures = f"{case.name:<30}{found.wrong:>16.3f}{found.left_out:>15.3f}  {found.kind:<12}"
        print(f"{figures}{time.perf_counter() - begin:.0f}", flush=True)


if __name__ == "__main__":
    main()
