"""What the service would have run and got right on benchmarks' own histories, by the way of assignment.

``subset``: the first 15 agents run everything, the later ones the band that these choose, one in five drawn
to run everything; full scores completed by the model (`selection.staged.histories`). ``staged``: as
`selection.staged`. ``random``: later agents run as many drawn tasks as the staged ones of the row above did.
Figures are means over five seeds of the draws. `python -m perf.studies.deployment FILE …` prints the table of
docs/evidence/deployment.txt; without files the built-in simulated benchmark is taken.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from analytics.command_line import flat_file
from analytics.record import Record
from analytics.simulation import demonstration
from selection.folds import CompleteAgents
from selection.staged import replay as staged
from selection.staged.histories import StagedHistory, on_subset, walked
from selection.staged.walks import Staging
from selection.standings.choice import training

SEEDS = range(5)
SUBSET = Staging(subset_from=15)
RULES = {"staged, podium 3": Staging(), "staged, podium 5": Staging(podium=5, precise=0.0)}
HEADS = ("spent", "later", "pairs", "clear", "best 5", "regret", "bias", "rmse", "held")


class Run(NamedTuple):
    """One history under one rule: task runs of each agent, board scores, and published estimates."""

    n_run: IndexArray
    board: FloatArray
    errors: FloatArray
    holds: FloatArray


def by_subset(agents: CompleteAgents, order: Sequence[int], seed: int) -> Run:
    """Replay the first version of the service."""
    if len(order) <= SUBSET.subset_from:
        m, n = agents.outcomes.shape[1], len(order)
        return Run(np.full(n, m), agents.scores[list(order)], np.empty(0), np.empty(0))
    return _run(on_subset(agents, order, SUBSET, seed=seed))


def by_stages(agents: CompleteAgents, order: Sequence[int], rule: Staging, seed: int) -> Run:
    """Replay staged assignment."""
    return _run(walked(agents, order, rule, seed=seed))


def _run(found: StagedHistory) -> Run:
    holds, errors = staged.published(found)
    return Run(found.n_run, found.board, errors, holds)


def at_random(agents: CompleteAgents, order: Sequence[int], like: Run, rule: Staging, seed: int) -> Run:
    """Replay as many drawn tasks."""
    later = like.n_run[rule.staged_from :].mean()
    board = staged.at_random(agents, order, rule, later, seed)
    return Run(like.n_run, board, np.empty(0), np.empty(0))


def figures(agents: CompleteAgents, order: Sequence[int], run: Run) -> list[float]:
    """Return the figures of a row."""
    m, truth = agents.outcomes.shape[1], agents.scores[list(order)]
    agreed, differ = staged.right(run.board, truth)
    tells = staged.clear(agents.outcomes[list(order)], truth) & differ
    leader = int(np.argmax(np.round(run.board, 9)))
    return [
        float(run.n_run.mean() / m),
        float(run.n_run[len(order) // 2 :].mean() / m),
        float(agreed[differ].mean()),
        float(agreed[tells].mean()),
        staged.best(run.board, truth, staged.TOP),
        100 * float(truth.max() - truth[leader]),
        100 * _mean(run.errors),
        100 * float(np.sqrt(_mean(run.errors**2))),
        _mean(run.holds),
    ]


def rows(agents: CompleteAgents) -> dict[str, list[float]]:
    """Return the rows of one history, means over seeds."""
    found: dict[str, list[list[float]]] = {}
    for seed in SEEDS:
        order = staged.orders_of(agents, seed)[0]
        runs = {"subset": by_subset(agents, order, seed)}
        for name, rule in RULES.items():
            runs[name] = by_stages(agents, order, rule, seed)
            runs[f"random, as {name}"] = at_random(agents, order, runs[name], rule, seed)
        for name, run in runs.items():
            found.setdefault(name, []).append(figures(agents, order, run))
    return {name: _over_seeds(values) for name, values in found.items()}


def _over_seeds(values: list[list[float]]) -> list[float]:
    """Means over the seeds that have a figure."""
    return [_mean(np.array([one for one in column if one == one])) for column in zip(*values, strict=True)]


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else float("nan")


def _told(name: str, values: Sequence[float]) -> str:
    kinds = ("3f", "3f", "3f", "3f", "2f", "2f", "1f", "1f", "3f")
    cells = ("–" if v != v else f"{v:.{kind}}" for v, kind in zip(values, kinds, strict=True))
    return f"  {name:28s}" + "".join(f"{cell:>8s}" for cell in cells)


def main(paths: Sequence[str]) -> None:
    """Print the table."""
    histories = {Path(path).name.removesuffix(".csv.gz"): flat_file(Path(path), None) for path in paths}
    print(f"{'':30s}" + "".join(f"{head:>8s}" for head in HEADS))
    every: dict[str, list[list[float]]] = {}
    for title, flat in histories.items() or {"simulated": demonstration()}.items():
        agents, begun = training(Record.from_flat(flat)), time.process_time()
        found = rows(agents)
        n, m = agents.outcomes.shape
        print(f"{title}: {n} agents, {m} tasks, {time.process_time() - begun:.0f} s of processor")
        for name, values in found.items():
            print(_told(name, values))
            every.setdefault(name, []).append(values)
    if len(histories) > 1:
        print(f"mean of {len(histories)}")
        for name, columns in every.items():
            print(_told(name, _over_seeds(columns)))


if __name__ == "__main__":
    main(sys.argv[1:])
