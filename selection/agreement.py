"""How far one order of agents agrees with another: a board's with that of full evaluation.

Model
-----
x_i is what a board says of agent i, y_i what full evaluation says. Over the pairs i < j with y_i ≠ y_j::

    pairs_correct = (C + ½·T)/n₁          C: x in the order of y,  T: x tied,  n₁ = C + T + D

which is (τ_b + 1)/2 only without ties. Values are rounded to 1e-9 before they are compared.

Limits: under two agents, or where all y are equal, nothing can be in order: None.

Not done here
-------------
No error: the agents of one replay are not a sample, and their boards share them.

Source
------
STATISTICS §4 ("Pairs ordered correctly, pooled").
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.arrays import DECIMALS
from analytics.drift.fidelity import spearman
from selection.errors import SelectionError

N_TOP = 5


class NoTruth(SelectionError):
    """An agent that is to be compared has no score by full evaluation."""


@dataclass(frozen=True)
class Agreement:
    """How far a board agrees with full evaluation.

    Attributes
    ----------
    n : int
        Agents compared.
    pairs_correct : float or None
        0 to 1.
    rho : float or None
        Spearman's ρ.
    top5_overlap : float or None
        Share of the five best by full evaluation that are among the five best by the board; None under five
        agents. Agents that tie for the last place in one of them stand in order of name.
    """

    n: int
    pairs_correct: float | None
    rho: float | None
    top5_overlap: float | None


def agreement(said: Mapping[str, float], truth: Mapping[str, float]) -> Agreement:
    """Compare the scores a board says with those of full evaluation.

    Parameters
    ----------
    said : mapping of str to float
        By agent; those that the board ranks.
    truth : mapping of str to float
        Of these agents at least.

    Raises
    ------
    NoTruth
    """
    if absent := said.keys() - truth.keys():
        raise NoTruth(f"no score by full evaluation for {len(absent)} agents, {min(absent)!r} among them")
    names = sorted(said)
    x = np.round([said[name] for name in names], DECIMALS)
    y = np.round([truth[name] for name in names], DECIMALS)
    return Agreement(
        n=len(names),
        pairs_correct=_pairs_correct(x, y),
        rho=spearman(x, y) if len(names) > 1 else None,
        top5_overlap=len(_top(x) & _top(y)) / N_TOP if len(names) >= N_TOP else None,
    )


def _pairs_correct(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float | None:
    i, j = np.triu_indices(x.size, 1)
    said, true = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
    compared = true != 0
    if not compared.any():
        return None
    return float(np.mean((1 + said[compared] * true[compared]) / 2))


def _top(values: npt.NDArray[np.float64]) -> set[int]:
    """Positions of the best five; names stand in order, so that the sort keeps it inside ties."""
    return set(np.argsort(-values, kind="stable")[:N_TOP].tolist())
