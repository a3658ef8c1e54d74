"""The study: every protocol with every strategy, its figures, their errors and their reasons.

Model
-----
`measure` runs one strategy under one protocol. Figures of a protocol are those of its pools, averaged::

    loao, loso, lomo, temporal    one pool: all held-out agents
    within_scaffold               one pool for each scaffold, then the plain mean over scaffolds
    random_80_20                  one pool for each seed, then mean and spread (sd) over seeds

`random` is the mean over its draws, with their spread; a spread is no standard error. skill is
(rho − rho_null)/(1 − rho_null) with one rho_null for each strategy, from the subset of all complete agents;
it counts as fixed, so that the standard error of skill is that of rho over 1 − rho_null.

Symbols
-------
=========  ============  ================================================  =======================
symbol     code          shape                                             unit
=========  ============  ================================================  =======================
θ          ``values``    (n_draws, n_pools, n_figures), NaN: undefined     as in `figures`
θ_(g)      ``without``   (n_draws, n_pools, n_groups, n_figures)           as in `figures`
=========  ============  ================================================  =======================

Not done here
-------------
No strategy is called better than another.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4. Efron & Tibshirani 1993, ch. 11.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.drift.fidelity import skill
from selection.folds import CompleteAgents, Fold, FoldBands, Rule
from selection.held_out import Records, Subsets, choose, hold_out
from selection.validation.coverage import covered
from selection.validation.figures import (
    FIGURES,
    N_GROUPS_JACKKNIFE,
    figures,
    figures_without,
    standard_errors,
)

N_AGENTS_PER_SCAFFOLD = 5
N_AGENTS_R2, N_FOLDS_R2 = 10, 3
RHO, R2 = FIGURES.index("rho"), FIGURES.index("r2")
DRIFT = "the permuted matrices have no drift: the difference would measure the drift, not the subset"


@dataclass(frozen=True)
class Figures:
    """What one strategy shows under one protocol; a figure that cannot be computed is None.

    Attributes
    ----------
    rho, tau, rho_calibrated, r2, pairs_correct, pairs_clear, rho_rest, rho_null, skill : float or None
    n : int
        Held-out agents scored, over all seeds under `random_80_20`; the fewest over draws.
    n_left_out : int
        Those with more than a tenth of the subset missing; the most over draws.
    coverage : float or None
        Share of scores inside their 95% interval.
    n_intervals : int
        Records it rests on.
    se : mapping of str to (float or None)
        Jackknife standard errors of the figures and of skill.
    spread, worst, best : mapping of str to float
        Over the draws of `random` and over the seeds of `random_80_20`; empty elsewhere.
    notes : mapping of str to str
        Why a figure, or "se", is None; "folds", "seeds" where some were left out; "all" where there are none.
    available : bool
        Whether there are figures.
    reason : str
        Why there are none; "" when available.
    """

    rho: float | None = None
    tau: float | None = None
    rho_calibrated: float | None = None
    r2: float | None = None
    pairs_correct: float | None = None
    pairs_clear: float | None = None
    rho_rest: float | None = None
    rho_null: float | None = None
    skill: float | None = None
    n: int = 0
    n_left_out: int = 0
    coverage: float | None = None
    n_intervals: int = 0
    se: Mapping[str, float | None] = field(default_factory=dict)
    spread: Mapping[str, float | None] = field(default_factory=dict)
    worst: Mapping[str, float | None] = field(default_factory=dict)
    best: Mapping[str, float | None] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    available: bool = True
    reason: str = ""


def unavailable(reason: str, rho_null: float | None = None) -> Figures:
    """Make what a strategy shows that has no figures, and why."""
    return Figures(rho_null=rho_null, notes={"all": reason}, available=False, reason=reason)


@dataclass(frozen=True, eq=False)
class Study:
    """All that `measure` needs, the same for every protocol and strategy.

    Attributes
    ----------
    agents : CompleteAgents
    clear : bool array, shape (n_agents, n_agents)
    groups : int array, shape (n_agents,)
        What the jackknife leaves out together; codes from 0.
    bands : mapping of protocol to FoldBands
    rho_null : mapping of strategy to (float or None)
    null_notes : mapping of strategy to str
        Why rho_null is None.
    rule : Rule
    base_seed, n_draws : int
    with_errors : bool
    coverage_of : str
        The policy's strategy; "" measures none.
    no_coverage : str
        Why its coverage is not measured all the same; "" when it is.
    """

    agents: CompleteAgents
    clear: Mask
    groups: IndexArray
    bands: Mapping[str, FoldBands]
    rho_null: Mapping[str, float | None]
    null_notes: Mapping[str, str]
    rule: Rule
    base_seed: int
    n_draws: int
    with_errors: bool
    coverage_of: str
    no_coverage: str


Pool = str | None


@dataclass(frozen=True, eq=False)
class _Pooled:
    """Figures of the records of one pool: of a scaffold, of a seed, or (None) of all.

    `without` is None where no jackknife is wanted; `covered` is NaN where there is no interval.
    """

    values: FloatArray
    without: FloatArray | None
    has_record: Mask
    covered: FloatArray
    n_folds: int
    n_left_out: int
    reasons: Mapping[str, str]


def measure(
    study: Study, protocol: str, strategy: str, within: Callable[[int], None] | None = None
) -> tuple[Figures, dict[str, Figures]]:
    """Figures of one strategy under one protocol, and by scaffold where the protocol tells them.

    Parameters
    ----------
    study : Study
    protocol, strategy : str
    within : callable, optional
        Called with the number of folds done so far.
    """
    draws, bands = list[dict[Pool, _Pooled]](), study.bands[protocol]
    n_draws = study.n_draws if strategy == "random" else 1
    for draw in range(n_draws):
        each = _told(within, draw * len(bands.folds), n_draws)
        subsets = choose(
            study.agents, bands, strategy, study.rule, study.base_seed, protocol, draw, each=each
        )
        if not is_enough(len(subsets.folds), len(subsets.folds) + subsets.n_refused):
            return unavailable(_few_subsets(subsets), study.rho_null.get(strategy)), {}
        draws.append(_pools(study, protocol, strategy, subsets))
    averaged, told = _pool_names(protocol, subsets.folds)
    notes = {"folds": _few_subsets(subsets)} if subsets.n_refused else {}
    total = _concluded(study, strategy, protocol, [[draw[name] for name in averaged] for draw in draws])
    return replace(total, notes={**notes, **total.notes}), {
        name: _concluded(study, strategy, protocol, [[draw[name]] for draw in draws]) for name in told
    }


def _told(within: Callable[[int], None] | None, before: int, n_draws: int) -> Callable[[int], None] | None:
    """Count the folds of one draw towards those of all, which are as many as the folds of a protocol."""
    return within and (lambda n_folds: within((before + n_folds) // n_draws))


def is_enough(n_used: int, n_folds: int) -> bool:
    """At least 80% of the folds, and one."""
    return n_used > 0 and 5 * n_used >= 4 * n_folds


# --------------------------------------------------------------------------------------------------- pools


def _pool_names(protocol: str, folds: Sequence[Fold]) -> tuple[list[Pool], list[str]]:
    """Pools that are averaged, and scaffolds that are told one by one."""
    if protocol == "within_scaffold":
        scaffolds = sorted({fold.pool for fold in folds})
        return [*scaffolds], scaffolds
    if protocol == "random_80_20":
        return [fold.name for fold in folds], []
    large = [fold.name for fold in folds if fold.held_out.size >= N_AGENTS_PER_SCAFFOLD]
    return [None], large if protocol == "loso" else []


def _pools(study: Study, protocol: str, strategy: str, subsets: Subsets) -> dict[Pool, _Pooled]:
    """Hold out once, and compute the figures of every pool."""
    records = hold_out(study.agents, subsets)
    hits = np.full(records.n, np.nan)
    if strategy == study.coverage_of and not study.no_coverage:
        hits = covered(study.agents, subsets, records, strategy, study.rule, study.base_seed)
    averaged, told = _pool_names(protocol, subsets.folds)
    labels = [fold.pool if protocol == "within_scaffold" else fold.name for fold in subsets.folds]
    pools = dict[Pool, _Pooled]()
    for name in [*averaged, *told]:
        in_pool = np.array([name is None or label == name for label in labels], dtype=np.bool_)
        kept = in_pool[records.folds]
        n_left_out = int(records.n_left_out[in_pool].sum())
        pools[name] = _pooled(study, records.take(kept), hits[kept], n_left_out, protocol == "random_80_20")
    return pools


def _pooled(study: Study, pool: Records, hits: FloatArray, n_left_out: int, is_seed: bool) -> _Pooled:
    values = figures(pool, study.clear)
    if is_seed and np.isnan(values[: FIGURES.index("r2") + 1]).any():
        values = np.full(values.shape, np.nan)
    with_errors = study.with_errors and not is_seed
    return _Pooled(
        values=values,
        without=figures_without(pool, study.clear, study.groups) if with_errors else None,
        has_record=np.bincount(study.groups[pool.agents], minlength=study.groups.max() + 1) > 0,
        covered=hits,
        n_folds=np.unique(pool.folds).size,
        n_left_out=n_left_out,
        reasons=_reasons(pool, values),
    )


# --------------------------------------------------------------------------------------------- conclusions


def _concluded(study: Study, strategy: str, protocol: str, draws: list[list[_Pooled]]) -> Figures:
    """Average over pools and draws; `draws` holds the pools of every draw."""
    is_seeds, has_drift = protocol == "random_80_20", protocol == "temporal"
    values = np.array([[pool.values for pool in pools] for pools in draws])
    few = _too_few_for_r2(draws[0])
    values[:, :, R2] = np.nan if few else values[:, :, R2]
    runs = _mean_known(values, ~np.isnan(values), axis=0 if is_seeds else 1)
    null = None if has_drift else study.rho_null.get(strategy)
    estimates: dict[str, Any] = _with_skill(_mean_known(runs, ~np.isnan(runs), axis=0), null)
    hits = np.concatenate([pool.covered for pool in draws[0]])
    n_intervals = int(np.count_nonzero(~np.isnan(hits)))
    errors, error_note = _errors(draws, values, null, is_seeds)
    scatter = _scatter(runs if is_seeds or len(draws) > 1 else runs[:0], null)
    result = Figures(
        **estimates,
        rho_null=study.rho_null.get(strategy),
        n=min(sum(pool.covered.size for pool in pools) for pools in draws),
        n_left_out=max(sum(pool.n_left_out for pool in pools) for pools in draws),
        coverage=float(np.nanmean(hits)) if n_intervals else None,
        n_intervals=n_intervals,
        se=errors,
        spread=scatter[0],
        worst=scatter[1],
        best=scatter[2],
    )
    found = {**_seed_note(runs, is_seeds), **error_note, **draws[0][0].reasons, **few}
    return replace(
        result, notes=_missing(study, strategy, result, found | ({"skill": DRIFT} if has_drift else {}))
    )


def _mean_known(values: FloatArray, known: Mask, axis: int) -> FloatArray:
    """Mean over what is known along an axis; NaN where nothing is, or where what is known holds a NaN."""
    n_known = np.count_nonzero(known, axis=axis)
    sums = np.sum(np.where(known, values, 0.0), axis=axis)
    means = np.full(sums.shape, np.nan)
    np.divide(sums, n_known, out=means, where=n_known > 0)
    return means


def _with_skill(values: FloatArray, null: float | None) -> dict[str, float | None]:
    named = _named(values)
    return {**named, "skill": skill(named["rho"], null)}


def _named(values: FloatArray) -> dict[str, float | None]:
    return {
        name: None if np.isnan(value) else value for name, value in zip(FIGURES, values.tolist(), strict=True)
    }


def _scaled(values: dict[str, float | None], null: float | None) -> dict[str, float | None]:
    """Add the error or spread of skill: that of rho over 1 − rho_null."""
    rho = values["rho"]
    if rho is None or null is None or null >= 1.0:
        return {**values, "skill": None}
    return {**values, "skill": rho / (1.0 - null)}


def _scatter(runs: FloatArray, null: float | None) -> tuple[dict[str, float | None], ...]:
    """Take standard deviation, smallest and largest over the draws or seeds that are defined."""
    if not len(runs):
        return {}, {}, {}
    columns = [column[~np.isnan(column)] for column in runs.T]
    spread = np.array([np.std(column, ddof=1) if column.size > 1 else np.nan for column in columns])
    worst = np.array([column.min() if column.size else np.nan for column in columns])
    best = np.array([column.max() if column.size else np.nan for column in columns])
    return _scaled(_named(spread), null), _with_skill(worst, null), _with_skill(best, null)


def _errors(
    draws: list[list[_Pooled]], values: FloatArray, null: float | None, is_seeds: bool
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Jackknife standard errors, and why there is none."""
    if is_seeds:
        return {}, {"se": "no jackknife over random splits; their spread over seeds stands instead"}
    if draws[0][0].without is None:
        return {}, {"se": "not asked for"}
    known = ~np.isnan(values)
    without = np.array([[pool.without for pool in pools] for pools in draws], dtype=np.float64)
    by_draw = _mean_known(without, np.broadcast_to(known[:, :, None, :], without.shape), axis=1)
    in_draw = np.broadcast_to(np.any(known, axis=1, keepdims=True), by_draw.shape)
    has_record = np.asarray(np.any([pool.has_record for pool in draws[0]], axis=0), dtype=np.bool_)
    errors = _scaled(_named(standard_errors(_mean_known(by_draw, in_draw, axis=0), has_record)), null)
    n_groups = int(np.count_nonzero(has_record))
    if n_groups < N_GROUPS_JACKKNIFE:
        return errors, {"se": f"{n_groups} groups of agents; a jackknife needs {N_GROUPS_JACKKNIFE}"}
    told = np.flatnonzero(known.any(axis=(0, 1)))
    unknown = [FIGURES[f] for f in told if errors[FIGURES[f]] is None]
    return errors, {"se": f"{', '.join(unknown)}: undefined without some group"} if unknown else {}


# ------------------------------------------------------------------------------------------------- reasons


def _too_few_for_r2(pools: list[_Pooled]) -> dict[str, str]:
    """Why there is no R²; empty where there is one."""
    n, n_folds = sum(pool.covered.size for pool in pools), sum(pool.n_folds for pool in pools)
    if n >= N_AGENTS_R2 and n_folds >= N_FOLDS_R2:
        return {}
    needed = f"R² needs {N_AGENTS_R2} held-out agents in {N_FOLDS_R2} folds"
    return {"r2": f"{needed}; there are {n} in {n_folds}"}


def _few_subsets(subsets: Subsets) -> str:
    n_folds = len(subsets.folds) + subsets.n_refused
    return f"no subset in {subsets.n_refused} of {n_folds} folds: {subsets.refusal}"


def _reasons(pool: Records, values: FloatArray) -> dict[str, str]:
    """Why a figure of the pool is undefined."""
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
        reasons["pairs_correct"] = "no held-out agent has a training agent with another full score"
        reasons["pairs_clear"] = "no pair of agents differs by more than 1.96 standard errors"
    return {name: reasons[name] for name, value in zip(FIGURES, values, strict=True) if np.isnan(value)}


def _seed_note(runs: FloatArray, is_seeds: bool) -> dict[str, str]:
    n_constant = int(np.count_nonzero(np.isnan(runs[:, RHO]))) if is_seeds else 0
    if not n_constant:
        return {}
    return {"seeds": f"{n_constant} of {len(runs)} left out: constant full scores or predictions"}


def _missing(study: Study, strategy: str, result: Figures, found: Mapping[str, str]) -> dict[str, str]:
    """Give a reason for every figure that is None, and say what was left out."""
    notes = {name: text for name, text in found.items() if name in ("se", "seeds")}
    for name in FIGURES:
        if getattr(result, name) is None:
            notes[name] = found.get(name, "undefined in every seed")
    if result.rho_null is None:
        notes["rho_null"] = study.null_notes.get(strategy, "not computed")
    if result.skill is None:
        already = "rho is 1 without agent effects already"
        notes["skill"] = found.get("skill") or notes.get("rho") or notes.get("rho_null") or already
    if result.coverage is None:
        is_measured = strategy == study.coverage_of
        whose = study.no_coverage and f"not measured: {study.no_coverage}"
        whose = whose or "no fold has an interval"
        notes["coverage"] = whose if is_measured else "measured for the strategy in use alone"
    return notes
