"""Why a figure of a validation is missing or doubtful, in words with the numbers.

Nothing is measured here. Every figure that is None has its note under its own name; "se", "seeds" and "folds"
are about several figures at once.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from analytics.arrays import FloatArray
from selection.held_out import HeldOutRecords, Subsets
from selection.validation.figures import FIGURES

N_AGENTS_R2, N_FOLDS_R2 = 10, 3
RHO = FIGURES.index("rho")
DRIFT = "the permuted matrices have no drift: the difference would measure the drift, not the subset"
NO_OTHER = "no held-out agent has a training agent with another full score"
NOT_CLEAR = "no pair of agents differs by more than 1.96 standard errors"


class Pool(Protocol):
    """What is asked of a pool: the records it covers and the folds they come from."""

    @property
    def covered(self) -> FloatArray:
        """One value a record."""

    @property
    def n_folds(self) -> int:
        """Folds with a record."""


def too_few_for_r2(pools: Sequence[Pool]) -> dict[str, str]:
    """Say why there is no R²; empty where there is one."""
    n, n_folds = sum(pool.covered.size for pool in pools), sum(pool.n_folds for pool in pools)
    if n >= N_AGENTS_R2 and n_folds >= N_FOLDS_R2:
        return {}
    needed = f"R² needs {N_AGENTS_R2} held-out agents in {N_FOLDS_R2} folds"
    return {"r2": f"{needed}; there are {n} in {n_folds}"}


def few_subsets(subsets: Subsets) -> str:
    """Say in how many folds a strategy refused, and what it said first."""
    n_folds = len(subsets.folds) + subsets.n_refused
    return f"no subset in {subsets.n_refused} of {n_folds} folds: {subsets.refusal}"


def of_pool(pool: HeldOutRecords, values: FloatArray) -> dict[str, str]:
    """Say why a figure of the pool is undefined."""
    if pool.n < 2:
        constant = f"{pool.n} held-out agents have no order"
    else:
        constant = (
            f"all {pool.n} held-out agents have one full score, or one value of what it is compared with"
        )
    reasons = dict.fromkeys(FIGURES, constant)
    if pool.n and np.isnan(pool.rest_means).all():
        reasons["rho_rest"] = "no held-out agent has a valid outcome outside the subset"
    if pool.n:
        reasons |= dict.fromkeys(("pairs_correct", "pairs_correct_full", "full_difference"), NO_OTHER)
        reasons |= dict.fromkeys(("pairs_clear", "pairs_clear_full"), NOT_CLEAR)
    return {name: reasons[name] for name, value in zip(FIGURES, values, strict=True) if np.isnan(value)}


def of_seeds(runs: FloatArray, is_seeds: bool) -> dict[str, str]:
    """Say how many random splits were left out."""
    n_constant = int(np.count_nonzero(np.isnan(runs[:, RHO]))) if is_seeds else 0
    if not n_constant:
        return {}
    return {"seeds": f"{n_constant} of {len(runs)} left out: constant full scores or predictions"}


def no_difference(what: str, is_same: bool, is_undefined: bool) -> str:
    """Say why a strategy has no difference to random tasks, or to the strategy in use."""
    if is_same:
        return "these are the random tasks" if what == "random" else "this is the strategy in use"
    if is_undefined:
        return NO_OTHER
    return f"{'random tasks' if what == 'random' else 'the strategy in use'} have no figure to compare with"
