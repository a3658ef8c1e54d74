"""All protocols and strategies of one table, on one or several workers.

A unit of work is one strategy under one protocol. Units share nothing but what they read, each computes with
one BLAS thread, and every draw has a generator of its own names, so that the numbers do not depend on how
many workers there are or which comes first.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from analytics.drift.rank_correlation import N_DRAWS, nulls
from analytics.frames import pandas_there
from analytics.outcome_table import OutcomeTable
from analytics.programs import one_blas_thread
from analytics.resampling import fewer_draws
from analytics.text import NOT_STATED
from selection.bands import Band, mid_range, table_band
from selection.errors import SelectionError
from selection.folds import (
    N_SEEDS,
    PROTOCOLS,
    CompleteAgents,
    Fold,
    FoldBands,
    Plan,
    Rule,
    complete_agents,
    fold_bands,
    in_fold,
    membership,
    plan,
)
from selection.full_scores import checked_name, rows_used
from selection.held_out import Subsets, choose
from selection.rules import ESTIMATORS
from selection.strategies import STRATEGIES
from selection.validation.figures import clear_pairs
from selection.validation.paired import prequential
from selection.validation.study import (
    NestedStudy,
    Null,
    StrategyResult,
    ValidationFigures,
    is_enough,
    measure,
    unavailable,
    with_differences,
)
from selection.validation.widths import (
    LEFT_OUT,
    coverage_operations,
    edges_around,
    operations,
    too_many,
    width,
)
from selection.validation.widths import bands as bands_around

ONLY_WHERE_SCATTERED = ("spread", "worst", "best")
COSTLIEST_FIRST = ("random", "greedy", "forecast", "information")

Unit = tuple[str, str]
# Takes a function and the arguments of each unit, and gives the answers in the order of the units, as they
# come; both travel by pickle, and the numbers do not depend on it.
Spread = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]


@dataclass(frozen=True)
class Protocol:
    """What a protocol shows; when it is not available, `reason` says why and there are no strategies.

    n_folds, n_skipped: all folds, and those whose training agents have no band.
    k_mean: mean size of the subset over the folds that have one; tasks.
    per_scaffold: by scaffold, then by strategy; under `within_scaffold`, and under `loso` from 5 agents on.
    """

    available: bool
    reason: str
    n_folds: int
    n_skipped: int
    k_mean: float | None
    strategies: Mapping[str, ValidationFigures]
    per_scaffold: Mapping[str, Mapping[str, ValidationFigures]]
    prequential: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Validation:
    """The validation of one table.

    n_agents: complete agents, those that are validated on.
    strategy, estimator: the policy's: what differences are taken to, and figures of the full score rest on.
    """

    n_agents: int
    n_agents_in_file: int
    n_tasks: int
    band: Band
    task_names: tuple[str, ...]
    strategy: str
    estimator: str
    protocols: Mapping[str, Protocol]
    bands: Mapping[str, Any] | None = None

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each protocol and strategy, errors as `se_…`."""
        rows = [
            {"protocol": protocol, "strategy": strategy}
            | {name: value for name, value in vars(figures).items() if not isinstance(value, Mapping)}
            | {f"se_{name}": value for name, value in figures.se.items()}
            for protocol, result in self.protocols.items()
            for strategy, figures in result.strategies.items()
        ]
        return pandas_there().DataFrame(rows)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the pairs in the right order, a row for each protocol; return the matplotlib Axes.

        The dot with its 95% interval is the strategy in use, the tick a random subset of the same size.
        Raises PlotRefused: without matplotlib, or where there is nothing to draw.
        """
        from selection.plots import plot_validation

        return plot_validation(self, ax)


def validate(
    table: OutcomeTable,
    *,
    protocols: Sequence[str] = tuple(PROTOCOLS),
    strategies: Sequence[str] | None = None,
    seeds: int = N_SEEDS,
    base_seed: int = 0,
    band_rule: Rule | None = None,
    scores: FloatArray | None = None,
    policy_strategy: str = "mid_range",
    estimator: str = "",
    other_estimators: bool = True,
    jobs: int = 1,
    spread: Spread | None = None,
    coverage: bool = True,
    standard_errors: bool = True,
    other_bands: bool = True,
    n_null_draws: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Validation:
    """Validate the strategies under the protocols.

    strategies: when not given, all but those that take more than `widths.MAX_OPERATIONS`; these are named as
        skipped. The policy's strategy always runs.
    seeds: splits of `random_80_20`, and draws of `random` in each fold.
    scores: (n_agents,); full scores y, gaps completed; the mean over the valid tasks where NaN or not given.
    policy_strategy: the one whose interval coverage is measured, and that others are compared with.
    estimator: the policy's; "" is `completion`.
    other_estimators: whether the errors of the estimators that are not the policy's are measured too.
    jobs, spread: processes of this machine, or how units are spread instead; no number depends on it.
    other_bands: whether bands of other widths are validated, and overlaps with the band given.
    n_null_draws: permuted matrices for rho_null and pairs_null; None: 500, or `fewer_draws` for many agents,
        of whom a draw scatters less; 0 leaves them, skill and kappa out.
    progress: called with the folds done of every strategy under every protocol.
    """
    names = tuple(STRATEGIES) if strategies is None else tuple(strategies)
    _check(protocols, names, policy_strategy, seeds, jobs)
    first = checked_name(estimator or ESTIMATORS[0])
    others = tuple(name for name in ESTIMATORS if name != first)
    rule = band_rule or Rule()
    band = table_band(
        table, lo=rule.lo, hi=rule.hi, widening=rule.widening, history_window=rule.history_window
    )
    agents = complete_agents(table, scores)
    plans = {name: plan(name, agents, n_seeds=seeds, base_seed=base_seed) for name in protocols}
    bands = {name: fold_bands(agents, folds, rule) for name, folds in plans.items()}
    reasons = {name: _why_not(agents, folds, bands[name], rule) for name, folds in plans.items()}
    available = {name: bands[name] for name in protocols if not reasons[name]}
    skipped = _skipped(names, available, seeds, policy_strategy) if strategies is None else {}
    run = [name for name in names if name not in skipped]
    restricted = table.restrict(agents=table.complete())
    study = NestedStudy(
        agents=agents,
        clear=clear_pairs(agents.outcomes, agents.scores, restricted.trial_variances, restricted.n_trials),
        groups=jackknife_groups(agents),
        bands=bands,
        nulls={},
        estimators=(first, *others) if other_estimators else (first,),
        not_estimated={} if other_estimators else {str(name): "not asked for" for name in others},
        rule=rule,
        base_seed=base_seed,
        n_draws=seeds,
        with_errors=standard_errors,
        coverage_of=policy_strategy if coverage else "",
        no_coverage=too_many(coverage_operations(policy_strategy, available.values(), first)),
    )
    n_null = fewer_draws(N_DRAWS, agents.n) if n_null_draws is None else n_null_draws
    with one_blas_thread():
        spread = spread or (processes(jobs) if jobs > 1 else None)
        why_not = reasons.get(LEFT_OUT, "no agent was asked to be left out")
        edges = edges_around(band) if other_bands and not why_not else []
        study = _prepared(study, available, run, n_null)
        measured, widths = _measured(study, available, run, edges, spread, progress)
        around = bands_around(study, band, run, widths, why_not) if other_bands else None
    measured |= {(name, strategy): skipped[strategy] for name in available for strategy in skipped}
    measured = {
        unit: with_differences(result, unit, measured, policy_strategy) for unit, result in measured.items()
    }
    return Validation(
        n_agents=agents.n,
        n_agents_in_file=table.n_agents,
        n_tasks=table.n_tasks,
        band=band,
        task_names=table.tasks,
        strategy=policy_strategy,
        estimator=first,
        protocols={name: _protocol(name, study, reasons[name], names, measured) for name in protocols},
        bands=around,
    )


def _prepared(
    study: NestedStudy, available: Mapping[str, FoldBands], strategies: Sequence[str], n_null_draws: int
) -> NestedStudy:
    """Compute once what all units share: the nulls, and the fits, which the agents keep."""
    if available and n_null_draws:
        study = replace(study, nulls=_nulls(study, strategies, n_null_draws))
    if "completion" in study.estimators:
        training = [fold.training for bands in available.values() for fold in bands.folds]
        for rows in rows_used(study.agents, training):
            study.agents.model_of(rows)
    return study


def jackknife_groups(agents: CompleteAgents) -> IndexArray:
    """Codes of what is left out together: models when any has two agents or more, else agents.

    An agent of unknown model is a group of its own.
    """
    models = ["" if model == NOT_STATED else model for model in agents.models]
    known = list(filter(None, models))
    if len(set(known)) == len(known):
        return np.arange(agents.n)
    labels = [(model, "" if model else name) for model, name in zip(models, agents.names, strict=True)]
    codes = {label: code for code, label in enumerate(sorted(set(labels)))}
    return np.array([codes[label] for label in labels], dtype=np.intp)


def _why_not(agents: CompleteAgents, folds: Plan, bands: FoldBands, rule: Rule) -> str:
    n_used = sum(tasks.size > 0 for tasks in bands.tasks)
    if folds.reason or is_enough(n_used, len(bands.folds)):
        return folds.reason
    first = next(f for f, tasks in enumerate(bands.tasks) if not tasks.size)
    outcomes = agents.outcomes[bands.counted[first]]
    why = mid_range(outcomes, lo=rule.lo, hi=rule.hi, widening=rule.widening).reason
    n_without = len(bands.folds) - n_used
    return (
        f"{n_without} of {len(bands.folds)} folds {'has' if n_without == 1 else 'have'} no subset; at most a "
        f"fifth may lack one; {in_fold(folds.protocol, bands.folds[first])}: {why}"
    )


def _protocol(
    protocol: str,
    study: NestedStudy,
    reason: str,
    strategies: Sequence[str],
    measured: Mapping[Unit, StrategyResult],
) -> Protocol:
    bands = study.bands[protocol]
    sizes = [tasks.size for tasks in bands.tasks if tasks.size]
    by_strategy = {name: measured[protocol, name] for name in strategies if not reason}
    scaffolds = sorted({scaffold for result in by_strategy.values() for scaffold in result.by_scaffold})
    shares = {name: result.replicates.shares for name, result in by_strategy.items()}
    known = {name: table for name in STRATEGIES if (table := shares.get(name)) is not None}
    return Protocol(
        available=not reason,
        reason=reason,
        n_folds=len(bands.folds),
        n_skipped=len(bands.folds) - len(sizes),
        k_mean=float(np.mean(sizes)) if sizes else None,
        strategies={name: result.figures for name, result in by_strategy.items()},
        per_scaffold={
            scaffold: {
                name: result.by_scaffold[scaffold].figures
                for name, result in by_strategy.items()
                if scaffold in result.by_scaffold
            }
            for scaffold in scaffolds
        },
        prequential=prequential(known, study.agents.dates, study.groups),
    )


def _skipped(
    names: Sequence[str], bands: Mapping[str, FoldBands], n_draws: int, policy_strategy: str
) -> dict[str, StrategyResult]:
    reasons = {name: too_many(operations(name, bands.values(), n_draws)) for name in names}
    return {
        name: unavailable(f"skipped: {reason}; it runs when asked for by name (--strategy {name})")
        for name, reason in reasons.items()
        if reason and name != policy_strategy
    }


def _nulls(study: NestedStudy, strategies: Sequence[str], n_null_draws: int) -> dict[str, Null]:
    """rho_null and pairs_null of each strategy: what its subset shows where agents do not differ.

    They rest on the subset that it chooses from all complete agents; those of `random` are means over its
    draws. The permuted matrices are shared by all subsets and have the same pass rates, and so one band.
    """
    everyone = Fold("all", np.empty(0, dtype=np.intp), np.arange(study.agents.n))
    bands = fold_bands(study.agents, Plan("all", (everyone,), ""), study.rule)

    def subsets_of(strategy: str) -> list[Subsets]:
        draws = range(study.n_draws if strategy == "random" else 1)
        return [
            choose(study.agents, bands, strategy, study.rule, study.base_seed, "all", draw) for draw in draws
        ]

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    chosen = {name: subsets_of(name) for name in strategies}
    tasks = {name: [s.tasks[0] for s in subsets if s.tasks] for name, subsets in chosen.items()}
    members = membership(
        [one for subsets in tasks.values() for one in subsets], study.agents.outcomes.shape[1]
    )
    rhos: tuple[float | None, ...] = ()
    shares: tuple[float | None, ...] = ()
    if len(members):
        rhos, shares = nulls(study.agents.outcomes, members, study.base_seed, n_null_draws)
    by_strategy, first = dict[str, Null](), 0
    for name, subsets in tasks.items():
        if not subsets:
            refusal = chosen[name][0].refusal or "all complete agents have no subset"
            by_strategy[name] = Null(None, None, f"without agent effects: {refusal}")
            continue
        of_strategy = slice(first, first + len(subsets))
        rho, pairs = mean(rhos[of_strategy]), mean(shares[of_strategy])
        constant = "without agent effects: every permuted matrix has constant means"
        by_strategy[name] = Null(rho, pairs, constant if None in (rho, pairs) else "")
        first += len(subsets)
    return by_strategy


def processes(n_jobs: int) -> Spread:
    """Spread over processes of this machine, at most one for each processor, with one BLAS thread each.

    Each is sent what its unit needs; nothing is mapped into files, which a kill would leave behind. Workers
    are ended with the last answer: idle ones would keep whatever the caller does next from ending.
    """

    def spread(function: Callable[..., Any], units: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        from joblib import Parallel, cpu_count, delayed, parallel_config
        from joblib.externals.loky import get_reusable_executor

        try:
            ends = {"initializer": _end_with_parent, "initargs": (os.getpid(),)}
            with parallel_config(backend="loky", inner_max_num_threads=1, max_nbytes=None, **ends):
                parallel = Parallel(min(n_jobs, cpu_count()), return_as="generator", pre_dispatch="n_jobs")
                yield from parallel(delayed(function)(*unit) for unit in units)
        finally:
            get_reusable_executor().shutdown(kill_workers=True)

    return spread


def _end_with_parent(parent: int) -> None:
    """Let a worker end as soon as its parent is killed; by itself it would wait for five minutes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # it was killed before
            os._exit(1)


def _measured(
    study: NestedStudy,
    available: Mapping[str, FoldBands],
    strategies: Sequence[str],
    edges: Sequence[tuple[float, float]],
    spread: Spread | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[dict[Unit, StrategyResult], list[dict[str, Any]]]:
    """Measure strategies under protocols, and bands of other widths.

    The costliest strategies come first, so that no worker is left with a long one.
    """

    def cost(unit: Unit) -> tuple[int, int]:
        protocol, strategy = unit
        rank = COSTLIEST_FIRST.index(strategy) if strategy in COSTLIEST_FIRST else len(COSTLIEST_FIRST)
        return rank, -len(available[protocol].folds)

    units = sorted(((protocol, strategy) for protocol in available for strategy in strategies), key=cost)
    n_all, n_done = sum(len(study.bands[protocol].folds) for protocol, _ in units), 0
    tell = progress or (lambda done, total: None)
    tell(0, n_all)
    measured = dict[Unit, StrategyResult]()
    bare, folds = replace(study, bands={}, nulls={}), available[LEFT_OUT].folds if edges else ()
    if spread is None:  # the folds within a unit are told

        def within(n_folds: int) -> None:
            tell(n_done + n_folds, n_all)

        answers: Iterator[Any] = chain(
            (measure(study, *unit, within) for unit in units), (width(bare, folds, *edge) for edge in edges)
        )
    else:
        needed = {name: replace(study, bands={name: study.bands[name]}) for name in available}
        calls: list[tuple[Any, ...]] = [(measure, needed[unit[0]], *unit) for unit in units]
        calls += [(width, bare, folds, *edge) for edge in edges]
        answers = spread(_alone, calls)
    for unit, answer in zip(units, answers, strict=False):  # behind them come the widths
        measured[unit] = answer
        n_done += len(study.bands[unit[0]].folds)
        tell(n_done, n_all)
    return measured, list(answers)


def _alone(compute: Callable[..., Any], *arguments: Any) -> Any:
    """Compute one unit on a worker, whose sums are those of one BLAS thread too."""
    with one_blas_thread():
        return compute(*arguments)


def as_json(validation: Validation) -> dict[str, Any]:
    """Return plain values in full precision under the keys of the command line: no NaN, no numpy.

    There is no ``bands`` where they were not requested.
    """
    return {
        "agents": validation.n_agents,
        "agents_in_file": validation.n_agents_in_file,
        "tasks": validation.n_tasks,
        "strategy": validation.strategy,
        "estimator": validation.estimator,
        "subset": validation.band.as_plain(validation.task_names),
        "protocols": {name: _plain_protocol(protocol) for name, protocol in validation.protocols.items()},
        **({"bands": dict(validation.bands)} if validation.bands else {}),
    }


def _plain_protocol(protocol: Protocol) -> dict[str, Any]:
    def by_strategy(strategies: Mapping[str, ValidationFigures]) -> dict[str, Any]:
        return {
            name: {
                entry.name: dict(value) if isinstance(value, Mapping) else value
                for entry in fields(figures)
                if (value := getattr(figures, entry.name)) or entry.name not in ONLY_WHERE_SCATTERED
            }
            for name, figures in strategies.items()
        }

    names = ("available", "reason", "n_folds", "n_skipped", "k_mean")
    plain: dict[str, Any] = {name: getattr(protocol, name) for name in names}
    plain["strategies"] = by_strategy(protocol.strategies)
    if protocol.per_scaffold:
        plain["per_scaffold"] = {name: by_strategy(by) for name, by in protocol.per_scaffold.items()}
    if protocol.prequential is not None:
        plain["prequential"] = dict(protocol.prequential)
    return plain


def _check(
    protocols: Sequence[str], strategies: Sequence[str], policy_strategy: str, seeds: int, jobs: int
) -> None:
    for noun, names, known in (
        ("protocol", protocols, list(PROTOCOLS)),
        ("strategy", (*strategies, policy_strategy), list(STRATEGIES)),
    ):
        unknown = [name for name in names if name not in known]
        if unknown:
            raise SelectionError(
                f"no {noun} is called {unknown[0]!r}; there are {', '.join(known)}", code="name_unknown"
            )
    if seeds < 1:
        raise SelectionError(f"{seeds} seeds; a random split or subset needs at least 1", code="seeds_range")
    if jobs < 1:
        raise SelectionError(f"{jobs} workers; at least 1 is needed", code="workers_range")
