"""At which turn a conversation first crosses a threshold: hazards as counted, and by a model of scores.

Model
-----
A conversation is one item (under one prompt, in one run) through turns 1, 2, …, T. At turn t there are n_t
conversations at risk, that have not crossed before and have that turn, and d_t of them cross::

    h_t = d_t/n_t      S(t) = Π_{s ≤ t} (1 − h_s)                                     Kaplan and Meier
    φ_j = Σ_{s ≤ t} (d_js − h_s·n_js)/(n_s·(1 − h_s)),      SE² = m/(m − 1)·Σ_j φ_j²  of log S, m items
    [S^exp(+c), S^exp(−c)],  c = t_{m−1,.975}·SE/|log S|                              on the scale log(−log S)

Conversations on one item are not independent, so that items are the clusters.

Of scores y_t = μ_t + u + e_t, crossing where y_t > θ*, with u the part that stays through a conversation
(item and prompt) and e_t the rest::

    published   Φ((μ_t − θ*)/√(σ_u² + σ_e²))                         TEE Eq. 12
    model       1 − S(t)/S(t − 1),   S(t) = E_u Π_{s ≤ t} Φ((θ* − μ_s − u)/σ_e)

Eq. 12 is the marginal probability of crossing at t. It is a hazard only where nothing stays (σ_u² = 0): else
those likely to cross are gone early, and the hazard among the rest falls. That more variance raises it holds
where μ_t < θ* only. E_u is by Gauss-Hermite quadrature.

Symbols
-------
======  =====================  ===============  ======
symbol  code                   shape            unit
======  =====================  ===============  ======
h, S    ``hazard``…            (n_turns,)       0 to 1
μ       ``mean``               (n_turns,)       score
θ*      ``threshold``          scalar           score
σ²      ``persistent``…        scalar           score²
======  =====================  ===============  ======

Limits: where nobody crosses S = 1, and where all do S = 0: no interval.

Not done here
-------------
No proportional hazards (Cox), no covariates. A conversation that ends counts as ended by chance.

Source
------
Messing, *Hidden Measurement Error in LLM Pipelines*, App. F.1. Kaplan & Meier, *JASA* 53 (1958) 457-481.
Kalbfleisch & Prentice, *The Statistical Analysis of Failure Time Data*, 2nd ed. 2002, §1.4 (log-log). Ying &
Wei, *J. Multivariate Analysis* 50 (1994) 17-29 (dependent times).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtrit

from analytics.arrays import CodeArray, FloatArray, Mask
from analytics.errors import CoreError

N_NODES = 64
LEAST_ITEMS = 2


class TurnsRefused(CoreError):
    """Rows from which no hazard can be told.

    Codes: ``turns``, ``few_items``, ``variance``.
    """


@dataclass(frozen=True, eq=False)
class Crossing:
    """When the conversations of one agent cross, (n_turns,) each.

    Attributes
    ----------
    n_at_risk, n_crossed : int array
    hazard, survival : float array
        h and S; NaN where nobody is at risk.
    se : float array
        Of log S; NaN where S is 0 or nobody is at risk.
    lower, upper : float array
        95% interval of S; NaN where it has none.
    n_items : int
    """

    n_at_risk: CodeArray
    n_crossed: CodeArray
    hazard: FloatArray
    survival: FloatArray
    se: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_items: int


def crossing(item: CodeArray, seen: Mask, crossed: Mask) -> Crossing:
    """Hazards and survival, with errors clustered by item.

    Parameters
    ----------
    item : int array, shape (n_conversations,)
        From 0.
    seen : bool array, shape (n_conversations, n_turns)
        Which turns a conversation has: the first ones, without a gap.
    crossed : bool array, shape (n_conversations, n_turns)
        Whether a turn's score lies above the threshold.

    Raises
    ------
    TurnsRefused
    """
    _check(item, seen)
    before: CodeArray = np.cumsum(crossed & seen, axis=1) - (crossed & seen)
    risk = seen & (before == 0)
    first = risk & crossed
    n, d = risk.sum(axis=0), first.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard = d / n
        survival = np.cumprod(1.0 - hazard)
        beyond = (first - hazard * risk) / (n * (1.0 - hazard))
    influence = np.cumsum(np.where(risk, beyond, 0.0), axis=1)
    m = int(item.max()) + 1
    by_item = np.stack([np.bincount(item, column, m) for column in influence.T], axis=1)
    told = (n > 0) & (survival > 0)
    se = np.where(told, np.sqrt(m / (m - 1) * (by_item**2).sum(axis=0)), np.nan)
    lower, upper = _log_log(survival, se, m)
    return Crossing(n, d, hazard, survival, se, lower, upper, m)


def published_hazard(mean: FloatArray, threshold: float, variance: float) -> FloatArray:
    """Eq. 12, shape (n_turns,): the marginal probability of crossing at a turn.

    Parameters
    ----------
    mean : float array, shape (n_turns,)
    threshold, variance : float

    Raises
    ------
    TurnsRefused
    """
    if not variance > 0:
        raise TurnsRefused("scores that do not vary have no hazard by Eq. 12", code="variance")
    return np.asarray(ndtr((mean - threshold) / math.sqrt(variance)), dtype=np.float64)


def model_survival(mean: FloatArray, threshold: float, persistent: float, rest: float) -> FloatArray:
    """S(t) of the model, shape (n_turns,).

    Parameters
    ----------
    mean : float array, shape (n_turns,)
    threshold : float
    persistent, rest : float
        σ_u² and σ_e².

    Raises
    ------
    TurnsRefused
    """
    if not (persistent >= 0 and rest > 0):
        raise TurnsRefused("a model of turns needs a variance that is not persistent", code="variance")
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    u = math.sqrt(persistent) * nodes
    below = ndtr((threshold - mean[:, None] - u) / math.sqrt(rest))
    return np.asarray(np.cumprod(below, axis=0) @ weights / weights.sum(), dtype=np.float64)


def model_hazard(mean: FloatArray, threshold: float, persistent: float, rest: float) -> FloatArray:
    """Hazard of the model, shape (n_turns,): among those that have not crossed before.

    Parameters
    ----------
    mean, threshold, persistent, rest
        As in `model_survival`.
    """
    survival = model_survival(mean, threshold, persistent, rest)
    return np.asarray(1.0 - survival / np.concatenate([[1.0], survival[:-1]]), dtype=np.float64)


def _log_log(survival: FloatArray, se: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(survival)
        c = float(stdtrit(m - 1, 0.975)) * se / -log
        ends = [np.where(log < 0, np.exp(log * np.exp(sign * c)), np.nan) for sign in (1, -1)]
    return ends[0], ends[1]


def _check(item: CodeArray, seen: Mask) -> None:
    if not item.size or int(item.max()) + 1 < LEAST_ITEMS:
        raise TurnsRefused(f"errors by item need {LEAST_ITEMS} items at least", code="few_items")
    gap = ~seen[:, :-1] & seen[:, 1:]
    if gap.any() or not seen[:, 0].all():
        row = int(np.argmax(gap.any(axis=1) | ~seen[:, 0]))
        raise TurnsRefused(f"conversation {row + 1}: turns are 1, 2, … without a gap", code="turns")
