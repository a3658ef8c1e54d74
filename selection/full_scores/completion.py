"""``completion``: known outcomes, plus the mean of two predictions of the rest.

Model
-----
::

    ŷ = (Σ_{j∈S} X_aj + (m − k)·½(p̂_a + ẑ_a))/m
    p̂_a = mean over j ∉ S of σ(θ̂_a − b̂_j)       b̂ by Rasch from complete agents, θ̂_a from X_aS alone
    ẑ_a = Ridge(α = 1) of z on X_S               z_i = (m·y_i − Σ_{j∈S} X_ij)/(m − k)

z_i is the mean outside S; where a complete agent lacks a cell, what its full score leaves for there. A
missing cell of S counts as the training mean of its column, but tells nothing of θ̂. A task outside S that no
training agent has run has no b̂ and is left out of p̂; p̂ = ẑ where that leaves none.

The b̂ of a fold are fitted to its training agents from where a fit to all agents ended. Above 10⁶ cells a fit
is shared: with one agent held out of all, b̂ are those without the tenth of the agents (by position, modulo
ten) that it is in; where folds train on more and more agents, a fit is made anew each time that these have
become a ninth more. Shared or not, b̂ never rest on an agent that the fold does not train on.

Symbols
-------
=======  ==================  ====================================  ======
symbol   code                shape                                 unit
=======  ==================  ====================================  ======
X        ``outcomes``        (q, m), NaN: missing                  0 to 1
S        ``members``         (q, m)                                bool
b̂        ``difficulties``    (q, m), NaN: nobody has run it        logits
p̂, ẑ     ``by_rasch``,       (q,)                                  0 to 1
         ``by_ridge``
=======  ==================  ====================================  ======

Limits: S = all tasks gives ŷ = r.

Not done here
-------------
No graded outcomes with a band subset: outside the band the model extrapolates badly there (`estimators`).

Source
------
As in `selection.rasch` and `selection.ridge`; the mean of the two is this project's own.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from analytics.arrays import FloatArray, IndexArray, Mask
from selection import rasch
from selection.folds import CompleteAgents

MOST_CELLS = 1_000_000
N_TENTHS = 10


def combined(known: FloatArray, by_rasch: FloatArray, by_ridge: FloatArray, k: int, m: int) -> FloatArray:
    """ŷ from Σ_{j∈S} X_aj, p̂ and ẑ, shape (q,) each.

    Parameters
    ----------
    known, by_rasch, by_ridge : float array, shape (q,)
        p̂ is NaN where no task outside S has a difficulty.
    k, m : int
    """
    by_rasch = np.where(np.isnan(by_rasch), by_ridge, by_rasch)
    return np.asarray((known + (m - k) * (by_rasch + by_ridge) / 2.0) / m, dtype=np.float64)


def means_outside(known: FloatArray, scores: FloatArray, k: int, m: int) -> FloatArray:
    """Return the means outside S, z = (m·y − Σ_{j∈S} X_ij)/(m − k), shape (n,); k < m."""
    return np.asarray((m * scores - known) / (m - k), dtype=np.float64)


def expected_outside(outcomes: FloatArray, difficulties: FloatArray, members: Mask) -> FloatArray:
    """p̂ of many agents, shape (q,); NaN where no task outside S has a difficulty.

    Parameters
    ----------
    outcomes, difficulties : float array, shape (q, m)
    members : bool array, shape (q, m)
        Of the tasks in S; each with a difficulty.

    Raises
    ------
    RaschUnfinished
    """
    found = np.empty(len(outcomes))
    step = max(1, MOST_CELLS // max(1, outcomes.shape[1]))
    for first in range(0, len(outcomes), step):
        part = slice(first, first + step)
        found[part] = _expected_outside(outcomes[part], difficulties[part], members[part])
    return found


def _expected_outside(outcomes: FloatArray, difficulties: FloatArray, members: Mask) -> FloatArray:
    rated = ~np.isnan(difficulties)
    logits = np.where(rated, difficulties, 0.0)
    columns, there = _columns_of(members)
    inside = np.take_along_axis(outcomes, columns, axis=1)
    seen = there & ~np.isnan(inside)
    of_inside = np.take_along_axis(logits, columns, axis=1)
    abilities = rasch.abilities(np.where(seen, inside, 0.0), of_inside, seen)
    outside = rated & ~members
    passing = expit(abilities[:, None] - logits) * outside
    n, means = np.count_nonzero(outside, axis=1), np.full(len(outcomes), np.nan)
    np.divide(passing.sum(axis=1), n, out=means, where=n > 0)
    return means


def expected_elsewhere(outcomes: FloatArray, of_subset: FloatArray, of_others: FloatArray) -> FloatArray:
    """p̂ of agents by one set of difficulties, shape (q,); NaN where no task outside S has one.

    Parameters
    ----------
    outcomes : float array, shape (q, k)
        On the subset; NaN where missing.
    of_subset, of_others : float array, shape (k,), (m − k,)
        b̂; NaN in others where nobody has run the task.

    Raises
    ------
    RaschUnfinished
    """
    seen, others = ~np.isnan(outcomes), of_others[~np.isnan(of_others)]
    abilities = rasch.abilities(np.where(seen, outcomes, 0.0), np.broadcast_to(of_subset, seen.shape), seen)
    if not others.size:
        return np.full(len(outcomes), np.nan)
    return np.asarray(expit(abilities[:, None] - others).mean(axis=1), dtype=np.float64)


def _columns_of(members: Mask) -> tuple[IndexArray, Mask]:
    """Tasks of each row's S, (q, k_max), and which places hold one: a Newton step then takes k, not m."""
    sizes = np.count_nonzero(members, axis=1)
    there = np.arange(max(1, int(sizes.max(initial=1)))) < sizes[:, None]
    columns = np.zeros(there.shape, dtype=np.intp)
    columns[there] = np.nonzero(members)[1]
    return columns, there


# --------------------------------------------------------------------------------------------- difficulties


def difficulties_of(agents: CompleteAgents, trained: Sequence[IndexArray]) -> list[FloatArray]:
    """b̂ from the training agents of each fold, shape (m,) each; NaN where none of them has run the task.

    Parameters
    ----------
    agents : CompleteAgents
        Keeps the fits for another call.
    trained : sequence of int arrays, length n_folds
        Positions of the training agents, ascending.

    Raises
    ------
    As `selection.rasch.fit`.
    """
    rows = trained if agents.outcomes.size <= MOST_CELLS else _shared(agents.n, trained)
    return [_difficulties(agents, of_fold) for of_fold in rows]


def _difficulties(agents: CompleteAgents, rows: IndexArray) -> FloatArray:
    if agents.is_whole:
        return agents.fit_of(rows).difficulties
    found = np.full(agents.outcomes.shape[1], np.nan)
    found[~np.isnan(agents.outcomes[rows]).all(axis=0)] = agents.fit_of(rows).difficulties
    return found


def _shared(n: int, trained: Sequence[IndexArray]) -> list[IndexArray]:
    """Agents that each fold's b̂ rest on, so that many folds have the same; never one outside its training."""
    found = list[IndexArray](trained)
    everyone, last = np.arange(n), np.empty(0, dtype=np.intp)
    for f in sorted(range(len(found)), key=lambda f: found[f].size):
        rows = trained[f]
        if rows.size == n - 1:
            (held_out,) = np.setdiff1d(everyone, rows).tolist()
            found[f] = everyone[everyone % N_TENTHS != held_out % N_TENTHS]
            continue
        if last.size and N_TENTHS * last.size >= (N_TENTHS - 1) * rows.size and np.isin(last, rows).all():
            found[f] = last
        else:
            last = rows
    return found
