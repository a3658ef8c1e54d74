"""Rank sets of estimates whose errors have one covariance: for every agent the places it may hold.

Model
-----
Estimates β̂_a with the covariance Σ̂, as a fit of all agents at once gives them::

    se²_ab = Σ̂_aa + Σ̂_bb − 2Σ̂_ab          e ~ N(0, Σ̂),   q ~ χ²_{m−1}/(m − 1),   m items
    T_ba   = (e_b − e_a)/(se_ab·√q)
    c      = the ⌈.95(B + 1)⌉-th smallest of max over all pairs of T, of B draws
    a beats b when β̂_a − β̂_b > c·se_ab;  rank of a in [1 + #{b beats a}, n − #{a beats b}]

Agents a and b are tied where neither beats the other. Who may be first comes from `first`, on the same draws.
e = Σ̂^½·z, and z_a comes from the generator of (seed, name of a). One q for all pairs of a draw stands for
what is not known of Σ̂.

Symbols
-------
======  ==============  ====================  ========
symbol  code            shape                 unit
======  ==============  ====================  ========
β̂       ``estimates``   (n_agents,)           any
Σ̂       ``covariance``  (n_agents, n_agents)  squared
c       ``critical``    scalar                1
======  ==============  ====================  ========

Limits: of two agents whose difference has no error at all (se_ab = 0) none beats the other.

Not done here: pairs that differ on few items know less of their se than q says (docs/decisions/ranks.md).

Source
------
Mogstad, Romano, Shaikh & Wilhelm, *Review of Economic Studies* 91 (2024) 476-518. Hothorn, Bretz & Westfall,
*Biometrical Journal* 50 (2008) 346-363 (maximum of t statistics).
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, read_only
from analytics.differences.domain_ranks import RankIntervals
from analytics.differences.first import may_be_first_by_tasks
from analytics.differences.neyman_draws import N_DRAWS
from analytics.errors import CoreError
from analytics.resampling import generator

MIN_DRAWS = 19
MIN_VARIANCE = 1e-12
MAX_GAPS = 1 << 20  # at once: 8 MB


def joint_ranks(
    agents: Sequence[str],
    estimates: FloatArray,
    covariance: FloatArray,
    n_items: int,
    *,
    seed: int,
    n_draws: int = N_DRAWS,
) -> RankIntervals:
    """Simultaneous rank intervals, nominal 95%, and who may be first.

    agents: length n_agents; names, ascending by code point, none twice.
    estimates: (n_agents,).
    covariance: (n_agents, n_agents).
    n_items: m, what the covariance was estimated from; two at least.
    seed, n_draws: at least 19 draws; 10,000 for what is published.
    """
    _check(agents, estimates, covariance, n_items, n_draws)
    # √se²_ab, infinite where a difference has no error, and between an agent and itself
    variances = np.diag(covariance)
    pairs = variances[:, None] + variances - 2.0 * covariance
    se = np.asarray(np.sqrt(np.where(pairs > MIN_VARIANCE * variances.max(), pairs, np.inf)))
    scale = generator(seed, "joint scale").chisquare(n_items - 1, n_draws) / (n_items - 1)
    ahead = _ahead(_errors(agents, covariance, seed, n_draws), se) / scale[:, None]
    place = -(-95 * (n_draws + 1) // 100)
    critical = math.sqrt(np.sort(ahead.max(axis=1))[place - 1])
    shown = np.round(estimates, DECIMALS)
    d = np.round(shown[:, None] - shown, DECIMALS)
    beats = d / se > critical
    lead = (d / se).max(axis=0)
    none = np.zeros(len(agents))
    return RankIntervals(
        agents=tuple(agents),
        means=read_only(shown),
        lower=read_only(1 + np.count_nonzero(beats, axis=0)),
        upper=read_only(len(agents) - np.count_nonzero(beats, axis=1)),
        beats=read_only(beats),
        se=read_only(se),
        critical=critical if len(agents) > 1 else None,
        n_tasks=n_items,
        n_draws=n_draws,
        may_be_first=read_only(may_be_first_by_tasks(ahead, lead, place, least=none)),
    )


def _errors(agents: Sequence[str], covariance: FloatArray, seed: int, n_draws: int) -> FloatArray:
    """e, shape (n_draws, n_agents)."""
    names = [name.encode("utf-8", "surrogatepass") for name in agents]
    z = np.stack([generator(seed, "joint rank", *name).standard_normal(n_draws) for name in names], axis=1)
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.asarray(z @ root, dtype=np.float64)


def _ahead(errors: FloatArray, se: FloatArray) -> FloatArray:
    """How far the best of the others is ahead of each agent, max over b of T_ba², (n_draws, n_agents)."""
    n_draws, n_agents = errors.shape
    largest = np.empty((n_draws, n_agents))
    for part in np.array_split(np.arange(n_draws), -(-n_draws * n_agents**2 // MAX_GAPS)):
        gaps = errors[part][:, None, :] - errors[part][:, :, None]
        gaps /= se
        largest[part] = np.maximum(gaps.max(axis=2), 0.0) ** 2
    return largest


def _check(
    agents: Sequence[str], estimates: FloatArray, covariance: FloatArray, n_items: int, n_draws: int
) -> None:
    shape = (len(agents),) * 2
    if not agents or estimates.shape != shape[:1] or covariance.shape != shape:
        raise CoreError(
            f"estimates {estimates.shape} and covariance {covariance.shape} for {len(agents)} agents",
            code="ranks",
        )
    if not (np.isfinite(estimates).all() and np.isfinite(covariance).all()):
        raise CoreError("an estimate or a covariance is not finite", code="ranks")
    if n_items < 2:
        raise CoreError(f"{n_items} item tells no error", code="ranks")
    if n_draws < MIN_DRAWS:
        raise CoreError(
            f"{n_draws} draws have no upper 5% point; at least {MIN_DRAWS} are needed", code="ranks"
        )
    for earlier, later in pairwise(agents):
        if earlier >= later:
            raise CoreError(f"{later!r} stands after {earlier!r}; names ascend, none twice", code="ranks")
