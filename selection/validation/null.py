"""rho_null and pairs_null of every strategy: what its subset shows where agents do not differ.

Model
-----
Spearman's ρ of subset mean and full mean, and the share of pairs in the same order, one value of each for a
strategy, on the subset it chooses from all complete agents; for `random` the mean over its draws. The
permuted matrices are drawn once and shared by all subsets (`analytics.drift.fidelity.nulls`).

Symbols
-------
==========  ============  ==================  =======
symbol      code          shape               unit
==========  ============  ==================  =======
S           ``subsets``   (n_subsets, m)      tasks
ρ₀          ``rho``       one a strategy      −1 to 1
p₀          ``pairs``     one a strategy      0 to 1
==========  ============  ==================  =======

Not done here
-------------
No subset is chosen again on a permuted matrix: pass rates, and so the band, are the same in all of them.

Source
------
This project's own; see `analytics.drift.fidelity`.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analytics.arrays import IndexArray
from analytics.drift.fidelity import Nulls, nulls
from selection.folds import Fold, Plan, fold_bands
from selection.held_out import Subsets, choose
from selection.validation.study import NestedStudy, Null


def with_nulls(study: NestedStudy, strategies: Sequence[str], n_null_draws: int) -> NestedStudy:
    """Return the study with rho_null and pairs_null of each strategy, or why it has none.

    n_null_draws: permuted matrices.
    """
    chosen = {name: _subsets(study, name) for name in strategies}
    tasks = {name: [s.tasks[0] for s in subsets if s.tasks] for name, subsets in chosen.items()}
    values = _values(study, [subset for subsets in tasks.values() for subset in subsets], n_null_draws)
    known, first = dict[str, Null](), 0
    for name, subsets in tasks.items():
        if not subsets:
            refusal = chosen[name][0].refusal or "all complete agents have no subset"
            known[name] = Null(None, None, f"without agent effects: {refusal}")
            continue
        of_strategy = slice(first, first + len(subsets))
        known[name] = _null(values.rho[of_strategy], values.pairs[of_strategy])
        first += len(subsets)
    return replace(study, nulls=known)


def _null(rho: Sequence[float | None], pairs: Sequence[float | None]) -> Null:
    """Mean over the draws of a strategy."""
    means = [
        float(np.mean(known)) if (known := [value for value in values if value is not None]) else None
        for values in (rho, pairs)
    ]
    constant = "without agent effects: every permuted matrix has constant means"
    return Null(means[0], means[1], constant if None in means else "")


def _subsets(study: NestedStudy, strategy: str) -> list[Subsets]:
    """Subsets of all complete agents, one for each draw."""
    everyone = Fold("all", np.empty(0, dtype=np.intp), np.arange(study.agents.n))
    bands = fold_bands(study.agents, Plan("all", (everyone,), ""), study.rule)
    return [
        choose(study.agents, bands, strategy, study.rule, study.base_seed, "all", draw)
        for draw in range(study.n_draws if strategy == "random" else 1)
    ]


def _values(study: NestedStudy, subsets: Sequence[IndexArray], n_null_draws: int) -> Nulls:
    if not subsets:
        return Nulls((), ())
    members = np.zeros((len(subsets), study.agents.outcomes.shape[1]), dtype=np.bool_)
    for row, tasks in zip(members, subsets, strict=True):
        row[tasks] = True
    return nulls(study.agents.outcomes, members, study.base_seed, n_null_draws)
