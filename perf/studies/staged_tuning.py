"""Whether agents that are asked batch by batch are seen to be tuned to their first batches.

Boards and newcomers as in `perf.studies.staged_cheats`, of 60 agents on 100 tasks: 40 with full runs teach,
20 come. Tuned ones pass so many more tasks of the first batch that its estimate is to rise by ten points. *z*
is that of `selection.staged.walks`; *agent* is flagged below −2.33; *alert* is that of the monitor
(`analytics.drift.first_batch_tuning`), whose look at 20 has the level .00375.
`python -m perf.studies.staged_tuning [BOARDS]` prints docs/evidence/staged-tuning.txt.
"""

import sys

import numpy as np

from analytics.arrays import FloatArray
from analytics.drift import first_batch_tuning
from perf.studies import staged_boards
from perf.studies.staged_cheats import BELOW, N_TEACHING, Newcomer, newcomer, taught_by_all, tuned
from perf.studies.table import print_table
from selection.staged.walks import Fit, beyond_first_batch

N_AGENTS, LIFT = 60, 0.10
SHARES = {"none": 0, "one": 1, "five of 20": 5, "all": 20}


def z_of(fit: Fit, one: Newcomer) -> float:
    """Return z of an agent."""
    z = beyond_first_batch(fit, one.outcomes, np.isin(np.arange(fit.n_tasks), one.asked))
    assert z is not None  # audit tasks at least
    return z


def one_board(seed: int) -> tuple[FloatArray, FloatArray]:
    """Return z of each newcomer, honest and tuned; honest where it cannot be tuned so far."""
    rng = np.random.default_rng([19, seed])
    everyone, every_chance = staged_boards.board(rng, 0.0, n_agents=N_AGENTS)
    fit = taught_by_all(everyone.take(np.arange(N_TEACHING))).fit
    honest, cheats = list[float](), list[float]()
    for k, chances in enumerate(every_chance[N_TEACHING:]):
        luck, name = rng.random(chances.size), f"b{k:02d}"
        passing = tuned(fit, chances, name, seed, LIFT)
        honest.append(z_of(fit, newcomer(fit, (luck < chances).astype(np.float64), name, seed)))
        known = chances if passing is None else passing
        cheats.append(z_of(fit, newcomer(fit, (luck < known).astype(np.float64), name, seed)))
    return np.array(honest), np.array(cheats)


def main(n_boards: int) -> None:
    """Print the table."""
    boards = [one_board(seed) for seed in range(n_boards)]
    rows = []
    for what, n in SHARES.items():
        z = np.array([np.concatenate([cheats[:n], honest[n:]]) for honest, cheats in boards])
        looked = z[:, :n] if n else z
        agents = [str(k) for k in range(z.shape[1])]
        alerts = [first_batch_tuning(one, agents, [None] * len(agents)).state == "alert" for one in z]
        figures = (z.mean(axis=1), (looked < BELOW).mean(axis=1), np.array(alerts, dtype=np.float64))
        rows.append([what, *(_with_error(one) for one in figures)])
    print_table(f"{n_boards} boards", ("tuned by ten points", "mean z", "agent", "alert"), rows)


def _with_error(values: FloatArray) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(values.size):.3f}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 40)
