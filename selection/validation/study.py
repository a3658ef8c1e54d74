"""The study: every protocol with every strategy, its figures, their errors and their reasons.

Figures of a protocol are those of its pools, averaged::

    loao, loso, lomo, temporal    one pool: all held-out agents
    within_scaffold               one pool for each scaffold, then the plain mean over scaffolds
    random_80_20                  one pool for each seed, then mean and spread (sd) over seeds

`random` is the mean over its draws, with their spread; a spread is no standard error. rho_null and pairs_null
count as fixed, so that the standard error of skill is that of rho over 1 − rho_null, and that of kappa
likewise.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4. Efron & Tibshirani 1993, ch. 11.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, ratio
from analytics.drift.rank_correlation import skill
from analytics.text import counted
from selection.folds import CompleteAgents, Fold, FoldBands, Rule
from selection.held_out import Subsets, choose, hold_out
from selection.validation.figures import (
    ERROR_FIGURES,
    FIGURES,
    N_GROUPS_JACKKNIFE,
    covered,
    figures,
    figures_without,
    mean_known,
    standard_errors,
)
from selection.validation.paired import Replicates, difference, share_table

N_AGENTS_PER_SCAFFOLD = 5
R2, PAIRS_FULL = FIGURES.index("r2"), FIGURES.index("pairs_correct_full")
DERIVED = {"skill": "rho", "kappa": "pairs_correct"}
N_AGENTS_R2, N_FOLDS_R2 = 10, 3
DRIFT = "shuffled results have no trend over time, so the difference would measure the trend"
NO_OTHER = "no held-out agent has a training agent with another full score"
NOT_CLEAR = "no pair of agents differs by more than 1.96 standard errors"


@dataclass(frozen=True)
class ValidationFigures:
    """What one strategy shows under one protocol; a figure that cannot be computed is None.

    rho to full_difference: see `figures`.
    rho_null, skill, pairs_null, kappa: what a board without differences would show of rho and
        pairs_correct, and how far they lie above it.
    random_difference, policy_difference: pairs_correct_full less that of `random`, and less that of the
        strategy in use.
    n, n_left_out: held-out agents scored, the fewest over draws; those with more than a tenth of the subset
        missing, the most.
    coverage, n_intervals: share of scores inside their 95% interval, and how many records it rests on.
    se: jackknife standard errors of the figures, of skill and kappa, and of the differences, paired.
    spread, worst, best: over the draws of `random` and over the seeds of `random_80_20`; empty elsewhere.
    notes: why a figure is None, under its own name; "se", "seeds", "folds", "all" are about several.
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
    pairs_correct_full: float | None = None
    pairs_clear_full: float | None = None
    full_difference: float | None = None
    rmse_completion: float | None = None
    rmse_ridge: float | None = None
    rmse_line: float | None = None
    pairs_null: float | None = None
    kappa: float | None = None
    random_difference: float | None = None
    policy_difference: float | None = None
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


class Null(NamedTuple):
    """rho_null and pairs_null of a strategy, and why there is none."""

    rho: float | None = None
    pairs: float | None = None
    reason: str = "not computed"

    def of(self, name: str) -> float | None:
        """Return that of a figure of `DERIVED`."""
        return self.rho if name == "skill" else self.pairs


@dataclass(frozen=True, eq=False)
class StrategyResult:
    """A strategy under one protocol: its figures, what they are compared by, and the same by scaffold."""

    figures: ValidationFigures
    replicates: Replicates = field(default_factory=Replicates)
    by_scaffold: "Mapping[str, StrategyResult]" = field(default_factory=dict)


def unavailable(reason: str, null: Null | None = None) -> StrategyResult:
    """Make what a strategy shows that has no figures, and why."""
    null = null or Null()
    empty = ValidationFigures(
        rho_null=null.rho, pairs_null=null.pairs, notes={"all": reason}, available=False, reason=reason
    )
    return StrategyResult(empty)


@dataclass(frozen=True, eq=False)
class NestedStudy:
    """All that `measure` needs, the same for every protocol and strategy.

    groups: (n_agents,); what the jackknife leaves out together; codes from 0.
    estimators, not_estimated: those whose error is measured, the policy's first; why the others' is not.
    coverage_of, no_coverage: the policy's strategy, "" measures none; why its coverage is not measured.
    """

    agents: CompleteAgents
    clear: Mask
    groups: IndexArray
    bands: Mapping[str, FoldBands]
    nulls: Mapping[str, Null]
    estimators: tuple[str, ...]
    not_estimated: Mapping[str, str]
    rule: Rule
    base_seed: int
    n_draws: int
    with_errors: bool
    coverage_of: str
    no_coverage: str

    def of(self, strategy: str) -> tuple[str, ...]:
        """Estimators of a strategy: of random tasks, for their many draws, the policy's alone."""
        return self.estimators[:1] if strategy == "random" else self.estimators

    def null(self, strategy: str) -> Null:
        """Return what a strategy shows where agents do not differ."""
        return self.nulls.get(strategy, Null())


Pool = str | None


@dataclass(frozen=True, eq=False)
class _Pooled:
    """Figures of the records of one pool: of a scaffold, of a seed, or (None) of all.

    `without` is None where no jackknife is wanted; `covered` is NaN where there is no interval; `shares` are
    kept where the choice of a strategy is replayed in time.
    """

    values: FloatArray
    without: FloatArray | None
    has_record: Mask
    covered: FloatArray
    n_folds: int
    n_left_out: int
    reasons: Mapping[str, str]
    shares: FloatArray | None


def measure(
    study: NestedStudy, protocol: str, strategy: str, within: Callable[[int], None] | None = None
) -> StrategyResult:
    """Figures of one strategy under one protocol, and by scaffold where the protocol has them.

    within: called with the number of folds done so far.
    """
    draws, bands = list[dict[Pool, _Pooled]](), study.bands[protocol]
    n_draws = study.n_draws if strategy == "random" else 1
    for draw in range(n_draws):
        before, what = draw * len(bands.folds), (study.rule, study.base_seed, protocol, draw)
        each = within and partial(lambda before, n: within((before + n) // n_draws), before)
        subsets = choose(study.agents, bands, strategy, *what, each=each)
        n_folds = len(subsets.folds) + subsets.n_refused
        few = f"no subset in {subsets.n_refused} of {n_folds} folds: {subsets.refusal}"
        if not is_enough(len(subsets.folds), n_folds):
            return unavailable(few, study.null(strategy))
        draws.append(_pools(study, protocol, strategy, subsets))
    averaged, apart = _pool_names(protocol, subsets.folds)
    notes = {"folds": few} if subsets.n_refused else {}
    whole = _concluded(study, strategy, protocol, [[draw[name] for name in averaged] for draw in draws])
    return replace(
        whole,
        figures=replace(whole.figures, notes={**notes, **whole.figures.notes}),
        by_scaffold={
            name: _concluded(study, strategy, protocol, [[draw[name]] for draw in draws]) for name in apart
        },
    )


def with_differences(
    measured: StrategyResult,
    unit: tuple[str, str],
    others: Mapping[tuple[str, str], StrategyResult],
    policy_strategy: str,
) -> StrategyResult:
    """Add how far a strategy lies above random tasks and above the strategy in use, under one protocol."""
    protocol, strategy = unit
    for what, name in (("random", "random"), ("policy", policy_strategy)):
        other, is_same = others.get((protocol, name)), strategy == name
        by_other = other.by_scaffold if other else {}
        measured = replace(
            _less(measured, other, what, is_same),
            by_scaffold={
                scaffold: _less(mine, by_other.get(scaffold), what, is_same)
                for scaffold, mine in measured.by_scaffold.items()
            },
        )
    return measured


def _less(mine: StrategyResult, other: StrategyResult | None, what: str, is_same: bool) -> StrategyResult:
    figures, name = mine.figures, f"{what}_difference"
    if not figures.available:
        return mine
    value, se, scatter = None, None, None
    if other and not is_same:
        value, se, scatter = difference(mine.replicates, other.replicates)
    notes = dict(figures.notes)
    if value is None:
        random = what == "random"
        if is_same:
            notes[name] = "these are the random tasks" if random else "this is the strategy in use"
        elif figures.pairs_correct_full is None:
            notes[name] = NO_OTHER
        else:
            of_other = "random tasks" if random else "the strategy in use"
            notes[name] = f"{of_other} have no figure to compare with"
    errors = dict(figures.se) | ({name: se} if figures.se else {})
    spread = dict(figures.spread) | ({name: scatter} if scatter is not None else {})
    changed: dict[str, Any] = {name: value, "se": errors, "spread": spread, "notes": notes}
    return replace(mine, figures=replace(figures, **changed))


def is_enough(n_used: int, n_folds: int) -> bool:
    """At least 80% of the folds, and one."""
    return n_used > 0 and 5 * n_used >= 4 * n_folds


def _pool_names(protocol: str, folds: Sequence[Fold]) -> tuple[list[Pool], list[str]]:
    """Pools that are averaged, and scaffolds that are shown one by one."""
    if protocol == "within_scaffold":
        scaffolds = sorted({fold.pool for fold in folds})
        return [*scaffolds], scaffolds
    if protocol == "random_80_20":
        return [fold.name for fold in folds], []
    large = [fold.name for fold in folds if fold.held_out.size >= N_AGENTS_PER_SCAFFOLD]
    return [None], large if protocol == "loso" else []


def _pools(study: NestedStudy, protocol: str, strategy: str, subsets: Subsets) -> dict[Pool, _Pooled]:
    records = hold_out(study.agents, subsets, study.of(strategy))
    hits = np.full(records.n, np.nan)
    if strategy == study.coverage_of and not study.no_coverage:
        hits = covered(
            study.agents, subsets, records, strategy, study.rule, study.base_seed, study.estimators[0]
        )
    averaged, apart = _pool_names(protocol, subsets.folds)
    labels = [fold.pool if protocol == "within_scaffold" else fold.name for fold in subsets.folds]
    pools = dict[Pool, _Pooled]()
    for name in [*averaged, *apart]:
        in_pool = np.array([name is None or label == name for label in labels], dtype=np.bool_)
        rows = in_pool[records.folds]
        pool, is_seed = records.take(rows), protocol == "random_80_20"
        values = figures(pool, study.clear)
        if is_seed and np.isnan(values[: FIGURES.index("r2") + 1]).any():
            values = np.full(values.shape, np.nan)
        with_errors = study.with_errors and not is_seed
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
        pools[name] = _Pooled(
            values=values,
            without=figures_without(pool, study.clear, study.groups) if with_errors else None,
            has_record=np.bincount(study.groups[pool.agents], minlength=study.groups.max() + 1) > 0,
            covered=hits[rows],
            n_folds=np.unique(pool.folds).size,
            n_left_out=int(records.n_left_out[in_pool].sum()),
            reasons={
                name: reasons[name] for name, value in zip(FIGURES, values, strict=True) if np.isnan(value)
            },
            shares=share_table(pool, study.clear, study.groups) if protocol == "temporal" else None,
        )
    return pools


def _concluded(
    study: NestedStudy, strategy: str, protocol: str, draws: list[list[_Pooled]]
) -> StrategyResult:
    """Average over pools and draws; `draws` holds the pools of every draw."""
    is_seeds, has_drift = protocol == "random_80_20", protocol == "temporal"
    values = np.array([[pool.values for pool in pools] for pools in draws])
    few, n_agents = dict[str, str](), sum(pool.covered.size for pool in draws[0])
    n_folds = sum(pool.n_folds for pool in draws[0])
    if n_agents < N_AGENTS_R2 or n_folds < N_FOLDS_R2:
        needed = f"R² needs {N_AGENTS_R2} held-out agents in {N_FOLDS_R2} folds"
        few["r2"] = f"{needed}; there are {n_agents} in {n_folds}"
        values[:, :, R2] = np.nan
    runs = _mean_known(values, ~np.isnan(values), axis=0 if is_seeds else 1)
    null = Null() if has_drift else study.null(strategy)
    means = _mean_known(runs, ~np.isnan(runs), axis=0)
    estimates: dict[str, Any] = _with_derived(means, null)
    hits = np.concatenate([pool.covered for pool in draws[0]])
    n_intervals = int(np.count_nonzero(~np.isnan(hits)))
    without = _without(draws, values)
    errors, error_note = _errors(draws, values, without, null, is_seeds)
    scatter = _scatter(runs if is_seeds or len(draws) > 1 else runs[:0], null)
    result = ValidationFigures(
        **estimates,
        rho_null=study.null(strategy).rho,
        pairs_null=study.null(strategy).pairs,
        n=min(sum(pool.covered.size for pool in pools) for pools in draws),
        n_left_out=max(sum(pool.n_left_out for pool in pools) for pools in draws),
        coverage=float(np.nanmean(hits)) if n_intervals else None,
        n_intervals=n_intervals,
        se=errors,
        spread=scatter[0],
        worst=scatter[1],
        best=scatter[2],
    )
    n_constant = int(np.count_nonzero(np.isnan(runs[:, FIGURES.index("rho")]))) if is_seeds else 0
    constant = f"{n_constant} of {len(runs)} left out: constant full scores or predictions"
    known = {"seeds": constant} if n_constant else {}
    known |= {**error_note, **draws[0][0].reasons, **few}
    drift = dict.fromkeys(DERIVED, DRIFT) if has_drift else {}
    notes = _missing(study, strategy, result, known | drift)
    shares = [pools[0].shares for pools in draws if pools[0].shares is not None]
    replicates = Replicates(
        estimate=float(means[PAIRS_FULL]),
        without=None if without is None or not _enough(draws[0]) else without[:, PAIRS_FULL],
        runs=runs[:, PAIRS_FULL] if is_seeds else None,
        shares=mean_known(np.array(shares)) if shares else None,
    )
    return StrategyResult(replace(result, notes=notes), replicates)


def _mean_known(values: FloatArray, known: Mask, axis: int) -> FloatArray:
    """Mean over what is known along an axis; NaN where nothing is, or where what is known holds a NaN."""
    return ratio(np.sum(np.where(known, values, 0.0), axis=axis), np.count_nonzero(known, axis=axis))


def _with_derived(values: FloatArray, null: Null) -> dict[str, float | None]:
    named = _named(values)
    return named | {name: skill(named[of], null.of(name)) for name, of in DERIVED.items()}


def _named(values: FloatArray) -> dict[str, float | None]:
    return {
        name: None if np.isnan(value) else value for name, value in zip(FIGURES, values.tolist(), strict=True)
    }


def _scaled(values: dict[str, float | None], null: Null) -> dict[str, float | None]:
    """Add the errors or spreads of skill and kappa: those of rho and pairs_correct over 1 − their null."""
    added = dict[str, float | None]()
    for name, of in DERIVED.items():
        value, without_effects = values[of], null.of(name)
        unknown = value is None or without_effects is None or without_effects >= 1.0
        added[name] = None if unknown else value / (1.0 - without_effects)  # type: ignore[operator]
    return values | added


def _scatter(runs: FloatArray, null: Null) -> tuple[dict[str, float | None], ...]:
    """Take standard deviation, worst and best over the draws or seeds that are defined."""
    if not len(runs):
        return {}, {}, {}
    columns = [column[~np.isnan(column)] for column in runs.T]
    spread = np.array([np.std(column, ddof=1) if column.size > 1 else np.nan for column in columns])
    least, most = (
        np.array([extreme(column) if column.size else np.nan for column in columns])
        for extreme in (np.min, np.max)
    )
    is_error = np.isin(FIGURES, ERROR_FIGURES)
    worst, best = np.where(is_error, most, least), np.where(is_error, least, most)
    return _scaled(_named(spread), null), _with_derived(worst, null), _with_derived(best, null)


def _without(draws: list[list[_Pooled]], values: FloatArray) -> FloatArray | None:
    """θ_(g) averaged over pools and draws, (n_groups, n_figures); None where no jackknife is wanted."""
    if draws[0][0].without is None:
        return None
    known = ~np.isnan(values)
    without = np.array([[pool.without for pool in pools] for pools in draws], dtype=np.float64)
    by_draw = _mean_known(without, np.broadcast_to(known[:, :, None, :], without.shape), axis=1)
    in_draw = np.broadcast_to(np.any(known, axis=1, keepdims=True), by_draw.shape)
    return _mean_known(by_draw, in_draw, axis=0)


def _has_record(pools: list[_Pooled]) -> Mask:
    return np.asarray(np.any([pool.has_record for pool in pools], axis=0), dtype=np.bool_)


def _enough(pools: list[_Pooled]) -> bool:
    return int(np.count_nonzero(_has_record(pools))) >= N_GROUPS_JACKKNIFE


def _errors(
    draws: list[list[_Pooled]], values: FloatArray, without: FloatArray | None, null: Null, is_seeds: bool
) -> tuple[dict[str, float | None], dict[str, str]]:
    if is_seeds:
        return {}, {"se": "no jackknife over random splits; the spread over seeds is shown instead"}
    if without is None:
        return {}, {"se": "not asked for"}
    has_record = _has_record(draws[0])
    errors = _scaled(_named(standard_errors(without, has_record)), null)
    if not _enough(draws[0]):
        n_groups = int(np.count_nonzero(has_record))
        groups = f"{counted(n_groups, 'group')} of agents"
        return errors, {"se": f"{groups}; a jackknife needs {N_GROUPS_JACKKNIFE}"}
    known = np.flatnonzero((~np.isnan(values)).any(axis=(0, 1)))
    unknown = [FIGURES[f] for f in known if errors[FIGURES[f]] is None]
    return errors, {"se": f"{', '.join(unknown)}: undefined without some group"} if unknown else {}


def _missing(
    study: NestedStudy, strategy: str, result: ValidationFigures, known: Mapping[str, str]
) -> dict[str, str]:
    notes = {name: text for name, text in known.items() if name in ("se", "seeds")}
    for name in FIGURES:
        if getattr(result, name) is None:
            notes[name] = known.get(name, "undefined in every seed")
    for name in set(ERROR_FIGURES) & set(notes):
        estimator = name.removeprefix("rmse_")
        many = notes[name] if estimator in study.of(strategy) else "not measured on every draw"
        notes[name] = study.not_estimated.get(estimator, many)
    null_reason = study.null(strategy).reason
    for derived, null, of in (("skill", "rho_null", "rho"), ("kappa", "pairs_null", "pairs_correct")):
        if getattr(result, null) is None:
            notes[null] = null_reason
        if getattr(result, derived) is None:
            already = f"{of} is 1 without agent effects already"
            notes[derived] = known.get(derived) or notes.get(of) or notes.get(null) or already
    if result.coverage is None and strategy != study.coverage_of:
        notes["coverage"] = "measured only for the strategy in use"
    elif result.coverage is None:
        why = study.no_coverage
        notes["coverage"] = f"not measured: {why}" if why else "no fold has an interval"
    return notes
