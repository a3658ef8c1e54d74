"""The five phases of an evaluation of a harness: baseline, search, full evaluation, ablation, stability.

1. h₀ on all tasks, `full_runs` runs.
2. The search (`search`).
3. The five best configurations of the search, and h₀, on all tasks in **new runs**: the values that a search
   chose by are never its result. ΔR against h₀ with its parametric interval, p-values by Benjamini–Hochberg.
4. F with one part left out, or without the limit of cost (Table 28.4), the other weights in proportion: the
   trials are weighed anew. With new searches instead, at least 8 seeds each.
5. Stability of the best one's order of models (`analytics.harness`, §28.10.5).

Guards. A configuration that orders the models otherwise than h₀ (τ_b < .8) measures something else, and is
not the best. One that changes what is measured needs a scorer that tells right reference solutions from
wrong ones (ScorerAUC ≥ `tau_min`), where the harness answers references.

With fewer than 5 models, 100 tasks, 5 full runs, 50 trials or 3 runs a trial, or a subsample outside of 20 to
50%, a study is *below protocol*, and every report says so.

Source: *Toward Meta-Harness Optimization*, §28.10; ΔR: `figures`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from analytics.differences.estimates import benjamini_hochberg
from analytics.drift.rank_correlation import kendall
from analytics.errors import CoreError
from analytics.harness import (
    ScoreTensor,
    fitness,
    mdes,
    rank_stability,
    scorer_auc,
    split_half,
    variance_components,
)
from analytics.harness.quality import WEIGHTS
from analytics.research.tuning.cells import RunCells, RunRequest
from analytics.research.tuning.figures import HarnessFigures, figures, reliability_difference
from analytics.research.tuning.search import SearchTrial, best, cells_up_to, evaluate_stored, search, trial_of
from analytics.research.tuning.space import Configuration, fingerprint
from analytics.research.tuning.store import Store
from analytics.research.tuning.study import HarnessStudy

N_BEST = 5
SAME_ORDER = 0.8
MIN_SEEDS = 8
ABLATIONS: Mapping[str, Mapping[str, float]] = {
    "full F": WEIGHTS,
    "without R": {"R": 0.0, "D": 0.35 / 0.60, "C": 0.25 / 0.60},
    "without D": {"R": 0.40 / 0.65, "D": 0.0, "C": 0.25 / 0.65},
    "without C": {"R": 0.40 / 0.75, "D": 0.35 / 0.75, "C": 0.0},
    "without a limit of cost": WEIGHTS,
}
NO_LIMIT = "without a limit of cost"

Progress = Callable[[str, int, int], None]
"""Given what is done, how much of it, and of how much."""


def full(study: HarnessStudy) -> RunRequest:
    """All models and tasks, as often as a full evaluation asks."""
    return RunRequest(study.models, study.tasks, 1, study.full_runs)


def below_protocol(study: HarnessStudy) -> tuple[str, ...]:
    """Say what of the protocol's numbers the study falls short of."""
    search_ = study.search
    short = (
        (len(study.models) < 5, f"{len(study.models)} models, not 5"),
        (len(study.tasks) < 100, f"{len(study.tasks)} tasks, not 100"),
        (study.full_runs < 5, f"{study.full_runs} runs of a full evaluation, not 5"),
        (search_.n_trials < 50, f"{search_.n_trials} trials, not 50"),
        (search_.rungs[0] < 3, f"{search_.rungs[0]} runs of a trial, not 3"),
        (
            not 0.2 <= search_.fraction <= 0.5,
            f"{search_.fraction:.0%} of the tasks in a trial, not 20 to 50%",
        ),
    )
    return tuple(words for is_short, words in short if is_short)


def run(store: Store, progress: Progress) -> str:
    """Do phases 1 to 3, or what of them is left; return why the search ended."""
    study = store.study
    progress("baseline", 0, 1)
    first = store.cells(study.baseline, full(study), "full")
    if first.failure:
        raise CoreError(
            f"h₀ was not measured: {first.failure}; see what it printed in {store.runs}, mend the harness, "
            "delete the files of the run there, and run again",
            code="baseline_failed",
        )
    progress("baseline", 1, 1)
    searched = partial(progress, "search")
    why = search(
        study, evaluate_stored(store), store.trials(), keep=store.add, spent=store.cost_usd, progress=searched
    )
    chosen = chosen_of(trials_of(store))
    for place, configuration in enumerate(chosen):
        progress("full evaluation", place, len(chosen))
        store.cells(configuration, full(study), "full")
    progress("full evaluation", len(chosen), len(chosen))
    return why


def trials_of(store: Store) -> list[SearchTrial]:
    """Return the finished trials of a search."""
    return [trial_of(store.study, one) for one in store.trials()]


def chosen_of(trials: Sequence[SearchTrial]) -> list[Configuration]:
    """Return the configurations of the best trials, at most five and none twice."""
    able = [one for one in trials if one.counts and one.figures.F is not None]
    able.sort(key=lambda one: (-(one.figures.F or 0.0), one.number))
    return list({one.fingerprint: one.configuration for one in reversed(able)}.values())[::-1][:N_BEST]


def baseline(store: Store) -> dict[str, Any] | None:
    """Return the full evaluation of h₀; None until it was run."""
    study = store.study
    cells = store.stored(study.baseline, full(study), "full")
    return None if cells is None else _evaluation(study.baseline, figures(cells, full(study)))


def _evaluation(configuration: Configuration, of_runs: HarnessFigures) -> dict[str, Any]:
    """Return a full evaluation as plain values; what only a candidate has is None.

    ci, difference, p_adjusted: of ΔR.
    order: τ_b of the models' scores with those under h₀.
    scorer_auc: where references were answered.
    refused: why it cannot be the best.
    note: what could not be said.
    """
    unknown = ("ci", "difference", "p_adjusted", "order", "scorer_auc", "refused")
    return {
        "fingerprint": fingerprint(configuration),
        "configuration": dict(configuration),
        **of_runs.shown(),
        **dict.fromkeys(unknown),
        "note": of_runs.why or None,
    }


def candidates(store: Store) -> list[dict[str, Any]]:
    """Return the full evaluations of the best configurations, with what they gain over h₀."""
    study, request = store.study, full(store.study)
    first = store.stored(study.baseline, request, "full")
    if first is None:
        return []
    measured, tested = [], []
    for configuration in chosen_of(trials_of(store)):
        cells = store.stored(configuration, request, "full")
        if cells is None:
            continue
        of_runs, tensors = figures(cells, request), (first.tensor(request), cells.tensor(request))
        one = _evaluation(configuration, of_runs)
        one |= {"order": _order(*tensors), "scorer_auc": _scorer(cells)}
        one["refused"] = _refused(study, one, of_runs.why) or None
        try:
            difference, interval, p_value = reliability_difference(*tensors, study.seed)
            one |= {"ci": [interval.lower, interval.upper], "difference": difference}
            tested.append((one, p_value))
        except CoreError as refusal:
            one["note"] = str(refusal) or one["note"]
        measured.append(one)
    adjusted = benjamini_hochberg([p for _, p in tested]).tolist()
    for (one, _), p in zip(tested, adjusted, strict=True):
        one["p_adjusted"] = p
    return measured


def _refused(study: HarnessStudy, one: Mapping[str, Any], why: str) -> str:
    if one["F"] is None:
        return why
    if one["order"] is None or one["order"] < SAME_ORDER:
        known = one["order"] is not None
        order = f"agrees with that of h₀ at τ_b = {one['order']:.2f}" if known else "cannot be compared"
        return f"measures something else: its order of the models {order}"
    changes = any(
        parameter.role == "measurement" and one["configuration"][name] != study.baseline[name]
        for name, parameter in study.space.items()
    )
    auc = one["scorer_auc"]
    if changes and auc is not None and auc < study.tau_min:
        return f"its scorer tells right solutions from wrong ones with an AUC of {auc:.2f} only"
    return ""


def _order(first: ScoreTensor, second: ScoreTensor) -> float | None:
    means = []
    for tensor in (first, second):
        there = tensor.valid
        if not there.any(axis=(1, 2)).all():
            return None
        means.append(np.nansum(tensor.scores, axis=(1, 2)) / there.sum(axis=(1, 2)))
    return kendall(*means)


def _scorer(cells: RunCells) -> float | None:
    references = cells.references.to_pylist()
    if not references:
        return None
    try:
        task, score, is_right = ([one[name] for one in references] for name in ("task", "score", "is_right"))
        return scorer_auc(task, score, is_right).auc
    except CoreError:
        return None


def winner(measured: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the candidate with the largest F in new runs, of those that the guards let pass."""
    able = [one for one in measured if not one["refused"]]
    return max(able, key=lambda one: one["F"] or 0.0) if able else None


def ablations(store: Store) -> list[dict[str, Any]]:
    """Say what each condition of Table 28.4 would have chosen among the trials of the search."""
    trials = trials_of(store)
    if best(trials) is None:
        raise CoreError("no trial of the search has figures yet", code="not_yet")
    tops = []
    for condition, weights in ABLATIONS.items():
        able = [one for one in trials if one.is_feasible or condition == NO_LIMIT]
        tops.append((condition, _top([one for one in able if one.state == "complete"], weights)))
    return [_ablated(store, condition, top) for condition, top in tops if top]


def searched_ablations(store: Store, n_seeds: int, progress: Progress) -> list[dict[str, Any]]:
    """Search anew under each condition and seed, while the budget lasts.

    Configurations that were run before take the runs that are stored.

    n_seeds: at least 8.
    """
    if n_seeds < MIN_SEEDS:
        raise CoreError(
            f"an ablation by search needs at least {MIN_SEEDS} seeds: one search says little", code="not_yet"
        )
    study, ablated = store.study, []
    for place, (condition, weights) in enumerate(ABLATIONS.items()):
        for seed in range(n_seeds):
            progress(condition, place * n_seeds + seed, len(ABLATIONS) * n_seeds)
            limit = None if condition == NO_LIMIT else study.usd_per_evaluation
            anew = replace(study, usd_per_evaluation=limit)
            other = Store(study, f"{condition.replace(' ', '-')}-{seed}")
            search(
                replace(anew, name=f"{study.name} {seed}", seed=study.seed + 1 + seed),
                evaluate_stored(store),
                other.trials(),
                keep=other.add,
                weights=weights,
                spent=store.cost_usd,
            )
            if top := _top([one for one in trials_of(other) if one.counts], weights):
                ablated.append(_ablated(store, f"{condition}, seed {seed}", top))
    return ablated


def _top(trials: Sequence[SearchTrial], weights: Mapping[str, float]) -> SearchTrial | None:
    def by_weights(trial: SearchTrial) -> tuple[float, int]:
        of_run = trial.figures
        return fitness(of_run.R or 0.0, of_run.D or 0.0, of_run.C, weights), -trial.number

    return max((one for one in trials if one.figures.R is not None), key=by_weights, default=None)


def _ablated(store: Store, condition: str, trial: SearchTrial) -> dict[str, Any]:
    """Return a row of Table 28.4: what a condition would have chosen, and its figures."""
    cells, request = cells_up_to(store, trial.configuration, trial.figures.n_runs)  # stored: nothing is run
    tensor = cells.tensor(request)
    k, n, n_runs = tensor.scores.shape
    return {
        "condition": condition,
        "configuration": dict(trial.configuration),
        **trial.figures.shown(),
        "split_half": _or_none(lambda: split_half(tensor, store.study.seed).tau),
        "mdes": _or_none(lambda: mdes(variance_components(tensor), k, n, n_runs).finite),
    }


def _or_none(figure: Callable[[], float]) -> float | None:
    try:
        return figure()
    except CoreError:
        return None


def stability(store: Store, configuration: Configuration) -> dict[str, Any]:
    """Stability of the order of models under a configuration's full evaluation (phase 5)."""
    request = full(store.study)
    cells = store.stored(configuration, request, "full")
    if cells is None:
        raise CoreError("the configuration was not evaluated in full yet", code="not_yet")
    tensor = cells.tensor(request)
    tasks, runs = rank_stability(tensor, store.study.seed), split_half(tensor, store.study.seed)
    return {
        "tau": tasks.tau,
        "lower": tasks.interval.lower,
        "upper": tasks.interval.upper,
        "top_3_change": tasks.top_3_change,
        "n_draws": tasks.n_draws,
        "split_half": runs.tau,
        "split_half_sd": runs.sd,
    }
