"""What to try next, and when to stop.

The configuration of trial n follows from the trials before it: the sampler is made anew for each trial with a
seed from the study's seed and n, and sees the finished trials alone. So an interrupted search goes on as if
it had not been. Every trial runs the same stratified subsample of the tasks.

- ``tpe``, ``random``: the largest F (Eq. 28.2), by the tree-structured Parzen estimator, or at random. Under
  ``hyperband`` the number of runs grows from rung to rung, and trials that fall behind end early; an earlier
  rung's runs are part of the next one's.
- ``nsga2``: the front of (R, D, C, −cost) (Eq. 28.1); no trial ends early.

A trial whose cells are all invalid, or tell no R or D, fails: it has no value, and its cost is kept. What a
full evaluation would cost, cost · (models × tasks × runs of it)/(cells of the trial), is a constraint where
the study has a limit.

The search ends with the budget, with its number of trials, or after `patience` trials without a gain of F
above max(.01, standard error of the best trial's F). A front has no single best, so that patience is not
asked there.

Source: *Toward Meta-Harness Optimization*, §28.6. Akiba et al., *Optuna*, KDD 2019; Li et al., *Hyperband*,
JMLR 18 (2018).
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from analytics.errors import CoreError
from analytics.harness.quality import WEIGHTS, fitness
from analytics.resampling import generator
from analytics.research.tuning.cells import RunCells, RunRequest, joined
from analytics.research.tuning.figures import HarnessFigures, figures
from analytics.research.tuning.space import Configuration, checked, fingerprint
from analytics.research.tuning.store import Store
from analytics.research.tuning.study import HarnessStudy

GAIN = 0.01
LIMIT = "full evaluation"

Evaluate = Callable[[Configuration, int], HarnessFigures]
"""From a configuration and a number of runs to the figures of the subsample."""


@dataclass(frozen=True)
class SearchTrial:
    """A trial that is "complete", "pruned" or "failed", and whether a full evaluation is within limits."""

    number: int
    configuration: Configuration
    figures: HarnessFigures
    state: str
    is_feasible: bool

    @property
    def fingerprint(self) -> str:
        """Name of the configuration."""
        return fingerprint(self.configuration)

    @property
    def counts(self) -> bool:
        """Whether it may be the best: finished in full, and within the limit."""
        return self.state == "complete" and self.is_feasible


def evaluate_stored(store: Store) -> Evaluate:
    """Evaluate by the study's harness, keeping every run."""
    return lambda configuration, n_runs: figures(*cells_up_to(store, configuration, n_runs))


def cells_up_to(store: Store, configuration: Configuration, n_runs: int) -> tuple[RunCells, RunRequest]:
    """Return the first runs of a configuration on the subsample, rung by rung: read, or run and stored."""
    study, parts, first = store.study, [], 1
    for rung in study.search.rungs:
        if rung > n_runs:
            break
        request = RunRequest(study.models, study.subsample, first, rung)
        parts.append(store.cells(configuration, request, "search"))
        first = rung + 1
    return joined(parts), RunRequest(study.models, study.subsample, 1, n_runs)


def search(
    study: HarnessStudy,
    evaluate: Evaluate,
    history: Sequence[Any],
    *,
    keep: Callable[[Any], None],
    weights: Mapping[str, float] = WEIGHTS,
    spent: Callable[[], float] = lambda: 0.0,
    progress: Callable[[int, int], None] = lambda done, n: None,
) -> str:
    """Run trials until the search ends; return why it did.

    history: finished before.
    keep: given each finished trial, once.
    weights: of R, D and C in what is searched for.
    spent: gives the US dollars that were paid so far; what is stored already is paid once.
    progress: given the number of finished trials and the most there may be.
    """
    done = list(history)
    while not (why := _why_end(study, [trial_of(study, one) for one in done], spent())):
        frozen = _next(study, evaluate, done, weights)
        keep(frozen)
        done.append(frozen)
        progress(len(done), study.search.n_trials)
    return why


def trial_of(study: HarnessStudy, frozen: Any) -> SearchTrial:
    """Read a finished trial of Optuna's."""
    figures = HarnessFigures(**frozen.user_attrs["figures"])
    state = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}[frozen.state.name]
    over = frozen.user_attrs.get("over_limit", 0.0)
    return SearchTrial(
        frozen.number, checked(study.space, frozen.params, "trial"), figures, state, over <= 0.0
    )


def best(trials: Sequence[SearchTrial]) -> SearchTrial | None:
    """Return the trial with the largest F of those that count, the first of equal ones."""
    able = [one for one in trials if one.counts and one.figures.F is not None]
    return max(able, key=lambda one: (one.figures.F or 0.0, -one.number)) if able else None


def _why_end(study: HarnessStudy, trials: Sequence[SearchTrial], spent: float) -> str:
    if study.usd is not None and spent >= study.usd:
        return f"the budget of ${study.usd:,.2f} is spent"
    if len(trials) >= study.search.n_trials:
        return f"{study.search.n_trials} trials were run"
    return f"{study.search.patience} trials brought no gain" if converged(study, trials) else ""


def converged(study: HarnessStudy, trials: Sequence[SearchTrial]) -> bool:
    """Whether the search ended for want of gain."""
    top: SearchTrial | None = None
    n = 0
    for one in trials:
        f = one.figures.F if one.counts else None
        if f is not None and (top is None or f > (top.figures.F or 0.0) + max(GAIN, top.figures.F_se or 0.0)):
            top, n = one, 0
        else:
            n += 1
    return not study.search.has_front and n >= study.search.patience


def _next(study: HarnessStudy, evaluate: Evaluate, done: Sequence[Any], weights: Mapping[str, float]) -> Any:
    try:
        import optuna
    except ModuleNotFoundError:
        raise CoreError("a search needs Optuna: pip install '.[tuning]'", code="search") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    number = len(done)
    pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
    if study.search.hyperband is not None:
        fewest, most, factor = study.search.hyperband
        pruner = optuna.pruners.HyperbandPruner(
            min_resource=fewest, max_resource=most, reduction_factor=factor
        )
    inner = optuna.create_study(
        study_name=study.name,
        directions=["maximize"] * (4 if study.search.has_front else 1),
        sampler=_sampler(optuna, study, number),
        pruner=pruner,
    )
    inner.add_trials(done)
    trial = inner.ask()
    configuration = checked(
        study.space, {name: one.suggested(trial) for name, one in study.space.items()}, "trial"
    )
    state, values, figures = _evaluated(optuna, study, evaluate, trial, configuration, weights)
    trial.set_user_attr("figures", asdict(figures))
    if study.usd_per_evaluation is not None:
        n_cells = len(study.models) * len(study.subsample) * figures.n_runs
        full = figures.cost_usd / n_cells * len(study.models) * len(study.tasks) * study.full_runs
        over = full - study.usd_per_evaluation
        trial.set_user_attr("over_limit", over)
        trial.set_constraint(LIMIT, over)
    inner.tell(trial, values, state=state)
    return inner.trials[-1]


def _evaluated(
    optuna: Any,
    study: HarnessStudy,
    evaluate: Evaluate,
    trial: Any,
    configuration: Configuration,
    weights: Mapping[str, float],
) -> tuple[Any, Any, HarnessFigures]:
    state = optuna.trial.TrialState
    for rung in study.search.rungs:
        figures = evaluate(configuration, rung)
        if figures.R is None or figures.D is None:
            return state.FAIL, None, figures
        value = fitness(figures.R, figures.D, figures.C, weights)
        if study.search.hyperband:
            trial.report(value, rung)
            if rung < study.search.rungs[-1] and trial.should_prune():
                return state.PRUNED, None, figures
    if study.search.has_front:
        return state.COMPLETE, [figures.R, figures.D, figures.C, -figures.cost_usd], figures
    return state.COMPLETE, value, figures


def _sampler(optuna: Any, study: HarnessStudy, number: int) -> Any:
    seed = int(generator(study.seed, "sampler", number).integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if study.search.sampler == "nsga2":
            return optuna.samplers.NSGAIISampler(
                seed=seed, population_size=max(4, study.search.n_trials // 5)
            )
        if study.search.sampler == "random":
            return optuna.samplers.RandomSampler(seed=seed)
        return optuna.samplers.TPESampler(seed=seed)
