"""What staged assignment gets right on simulated boards: who is stopped, and whether estimates hold.

50 agents on 100 tasks by a two-parameter model: logit P = a_j(θ_i − b_j + c_ig), slopes log-normal with sd
.3, an interaction of agents with ten clusters of tasks of sd .3; abilities are stationary, or rise by .04 an
agent. Each board is fed to the rule in its order. Printed are, over all boards, the share of the true best
five that were stopped (with its standard error over boards), those of them stopped at an se of .01 or more,
the bias of published estimates in points, and the share of published 95% intervals that hold.
`python -m perf.studies.staged_boards [BOARDS]` prints docs/evidence/staged-boards.txt.
"""

import sys
from datetime import date, timedelta

import numpy as np

from analytics.arrays import FloatArray
from selection.folds import CompleteAgents
from selection.staged.replay import Walk, published, walked
from selection.staged.walks import PRECISE, Staging

N_AGENTS, N_TASKS, N_CLUSTERS, TOP = 50, 100, 10, 5
RULES = {
    "podium 5, no stop at a point": Staging(podium=5, precise=0.0),
    "podium 5": Staging(podium=5),
    "podium 3": Staging(),
}


def board(rng: np.random.Generator, rising: float) -> CompleteAgents:
    """Draw one."""
    ability = rng.normal(0.0, 1.0, N_AGENTS) + rising * np.arange(N_AGENTS)
    slope, difficulty = np.exp(rng.normal(0.0, 0.3, N_TASKS)), rng.normal(0.5, 1.3, N_TASKS)
    of_cluster = rng.normal(0.0, 0.3, (N_AGENTS, N_CLUSTERS))[:, np.arange(N_TASKS) % N_CLUSTERS]
    logits = slope * (ability[:, None] - difficulty + of_cluster)
    outcomes = (rng.random((N_AGENTS, N_TASKS)) < 1.0 / (1.0 + np.exp(-logits))).astype(np.float64)
    names = tuple(f"a{i:02d}" for i in range(N_AGENTS))
    dates = tuple(date(2025, 1, 1) + timedelta(days=i) for i in range(N_AGENTS))
    return CompleteAgents(names, outcomes, outcomes.mean(axis=1), dates, names, names, np.ones(N_AGENTS))


def stopped(walks: tuple[Walk, ...], truth: FloatArray) -> tuple[float, float]:
    """Share of the best five that were stopped, and that were stopped at se of .01 or more."""
    best = truth >= np.sort(truth)[-TOP]
    found = [walk.published for walk in walks]
    ends = np.array([np.nan if one is None else one.upper - one.lower for one in found])
    return float(np.mean(~np.isnan(ends[best]))), float(np.mean(ends[best] >= 2.0 * 2.0 * PRECISE))


def main(n_boards: int) -> None:
    """Print the table."""
    print(f"{'':42s}{'stopped':>10s}{'se':>7s}{'wide':>8s}{'bias':>8s}{'held':>8s}{'spent':>8s}")
    for case, rising in (("stationary", 0.0), ("rising", 0.04)):
        for name, rule in RULES.items():
            shares, wide, errors, holds, spent = [], [], [], [], []
            for seed in range(n_boards):
                agents = board(np.random.default_rng([7, seed]), rising)
                found = walked(agents, range(N_AGENTS), rule, seed=seed)
                one, other = stopped(found.walks, found.truth)
                held, error = published(found)
                shares.append(one)
                wide.append(other)
                errors.append(error)
                holds.append(held)
                spent.append(float(found.n_run.mean() / N_TASKS))
            error = np.concatenate(errors)
            se = float(np.std(shares) / np.sqrt(n_boards))
            print(
                f"{case + ', ' + name:42s}{np.mean(shares):10.3f}{se:7.3f}{np.mean(wide):8.3f}"
                f"{100 * error.mean():+8.2f}{np.concatenate(holds).mean():8.3f}{np.mean(spent):8.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 40)
