"""Outcome tables made directly from coded rows, without deliveries; columns, names and outcomes for some."""

from collections.abc import Sequence

import numpy as np

from analytics.outcome_table import OutcomeTable, cell_moments


def outcome_table(
    *,
    agents: Sequence[str],
    tasks: Sequence[str],
    agent,
    task,
    outcome,
    valid,
    dates=None,
    scaffolds=None,
    models=None,
) -> OutcomeTable:
    """The table of all rows; agents and tasks are named in any order, and coded by their places in it."""
    (agents, agent, order), (tasks, task, _) = _by_name(agents, agent), _by_name(tasks, task)
    shape = (len(agents), len(tasks))
    cells = cell_moments(agent * shape[1] + task, outcome, valid, shape[0] * shape[1])
    told = [
        tuple(values[i] for i in order) if values is not None else (absent,) * len(agents)
        for values, absent in ((dates, None), (scaffolds, ""), (models, ""))
    ]
    return OutcomeTable(
        agents,
        tasks,
        cells.means.reshape(shape),
        cells.n_valid.reshape(shape),
        *told,
        cells.trial_variances.reshape(shape),
        cells.n_trials.reshape(shape),
    )


def _by_name(names, codes):
    order = sorted(range(len(names)), key=lambda place: names[place])
    return tuple(names[place] for place in order), np.argsort(order)[np.asarray(codes, dtype=int)], order


def names(n):
    return tuple(f"a{i:03d}" for i in range(n))


def fifths(seed, n, k):
    return np.random.default_rng(seed).integers(0, 6, (n, k)) / 5


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}
