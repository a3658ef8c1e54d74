"""``completion`` of agents that folds hold out: known outcomes, and the model's probabilities elsewhere.

The model (`selection.staged.model`) is fitted to the training agents of a fold, from where the fit to all
agents ended. Above 10⁶ cells a fit is shared: with one agent held out of all, it is that without the tenth of
the agents (by position, modulo ten) that it is in; where folds train on more and more agents, a fit is made
anew each time that these have become a ninth more. Shared or not, it never rests on an agent that the fold
does not train on.

Source: as in `selection.staged.model`.
"""

from collections.abc import Sequence

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from selection.folds import CompleteAgents
from selection.staged.model import StagedModel, estimates

MAX_CELLS = 1_000_000
N_TENTHS = 10


def predictions(
    agents: CompleteAgents,
    held_out: Sequence[IndexArray],
    trained: Sequence[IndexArray],
    subsets: Sequence[IndexArray],
) -> list[FloatArray]:
    """ŷ of the held-out agents of each fold, in its order.

    agents: keeps the fits for another call.
    held_out, trained, subsets: length n_folds.
    Raises SelectionError (model_unfinished).
    """
    used = rows_used(agents, trained)
    return [
        _of_fold(agents, agents.model_of(rows), rows, out, tasks)
        for rows, out, tasks in zip(used, held_out, subsets, strict=True)
    ]


def rows_used(agents: CompleteAgents, trained: Sequence[IndexArray]) -> Sequence[IndexArray]:
    """Return the agents that each fold's fit rests on."""
    return trained if agents.outcomes.size <= MAX_CELLS else _shared(agents.n, trained)


def _of_fold(
    agents: CompleteAgents, model: StagedModel, rows: IndexArray, out: IndexArray, tasks: IndexArray
) -> FloatArray:
    seen = np.full((out.size, agents.outcomes.shape[1]), np.nan)
    seen[:, tasks] = agents.outcomes[np.ix_(out, tasks)]
    return estimates(model, seen, agents.means_after(model, rows, out)).scores


def _shared(n: int, trained: Sequence[IndexArray]) -> list[IndexArray]:
    """Agents of each fold's training that its fit rests on, so that many folds have the same."""
    sets = list[IndexArray](trained)
    everyone, last = np.arange(n), np.empty(0, dtype=np.intp)
    for f in sorted(range(len(sets)), key=lambda f: sets[f].size):
        rows = trained[f]
        if rows.size == n - 1:
            (held_out,) = np.setdiff1d(everyone, rows).tolist()
            sets[f] = everyone[everyone % N_TENTHS != held_out % N_TENTHS]
            continue
        if last.size and N_TENTHS * last.size >= (N_TENTHS - 1) * rows.size and np.isin(last, rows).all():
            sets[f] = last
        else:
            last = rows
    return sets
