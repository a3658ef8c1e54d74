"""rho_null of every strategy: Spearman's rho of subset mean and full mean where agents do not differ.

Model
-----
One value for each strategy, on the subset it chooses from all complete agents; for `random` the mean over its
draws. The permuted matrices are drawn once and shared by all subsets (`analytics.drift.fidelity.rho_null`).

Symbols
-------
==========  ============  ==================  =======
symbol      code          shape               unit
==========  ============  ==================  =======
S           ``subsets``   (n_subsets, m)      tasks
ρ₀          ``rho_null``  one a strategy      −1 to 1
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
from analytics.drift.fidelity import rho_null
from selection.folds import Fold, Plan, fold_bands
from selection.held_out import Subsets, choose
from selection.validation.study import Study


def with_rho_null(study: Study, strategies: Sequence[str], n_null_draws: int) -> Study:
    """Return the study with rho_null of each strategy, or why it has none.

    Parameters
    ----------
    study : Study
    strategies : sequence of str
    n_null_draws : int
        Permuted matrices.
    """
    chosen = {name: _subsets(study, name) for name in strategies}
    tasks = {name: [s.tasks[0] for s in subsets if s.tasks] for name, subsets in chosen.items()}
    notes = {
        name: f"rho without agent effects: {chosen[name][0].refusal or 'all complete agents have no subset'}"
        for name in strategies
        if not tasks[name]
    }
    values = _values(study, [subset for subsets in tasks.values() for subset in subsets], n_null_draws)
    nulls, first = dict[str, float | None](), 0
    for name, subsets in tasks.items():
        known = [value for value in values[first : first + len(subsets)] if value is not None]
        nulls[name], first = float(np.mean(known)) if known else None, first + len(subsets)
        if subsets and not known:
            notes[name] = "rho without agent effects: every permuted matrix has constant means"
    return replace(study, rho_null=nulls, null_notes=notes)


def _subsets(study: Study, strategy: str) -> list[Subsets]:
    """Subsets of all complete agents, one for each draw."""
    everyone = Fold("all", np.empty(0, dtype=np.intp), np.arange(study.agents.n))
    bands = fold_bands(study.agents, Plan("all", (everyone,), ""), study.rule)
    return [
        choose(study.agents, bands, strategy, study.rule, study.base_seed, "all", draw)
        for draw in range(study.n_draws if strategy == "random" else 1)
    ]


def _values(study: Study, subsets: Sequence[IndexArray], n_null_draws: int) -> tuple[float | None, ...]:
    if not subsets:
        return ()
    members = np.zeros((len(subsets), study.agents.outcomes.shape[1]), dtype=np.bool_)
    for row, tasks in zip(members, subsets, strict=True):
        row[tasks] = True
    return rho_null(study.agents.outcomes, members, study.base_seed, n_null_draws)
