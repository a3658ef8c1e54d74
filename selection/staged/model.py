"""One Rasch model of everything that the teaching agents ran, and what it says of each agent's full score.

The theory is in ``selection/README.md``, “Staged assignment”: outcomes x (n, m), NaN not run; ``abilities``
θ (n,), ``means`` μ (n,), ``difficulties`` b (m,), logits; ``spread`` τ², logits²; ``dispersion`` φ;
``difficulty_variances`` v_b (m,), logits². Where agents get better fast, those that stopped are estimated 2
to 3 points too low.

Source: Rasch, *Probabilistic Models for Some Intelligence and Attainment Tests*, 1960; missing at random:
Rubin, *Biometrika* 63 (1976) 581-592. The priors are this project's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from selection.errors import SelectionError
from selection.rasch import alike, passing_of, solver, summed

DIFFICULTY_VARIANCE, FIRST_VARIANCE = 4.0, 100.0
N_BEFORE = 10
PSEUDO_AGENTS, MIN_SPREAD, MAX_DISPERSION = 5, 0.09, 1.2
LARGEST_DERIVATIVE, NEAR = 1e-10, 1.0
MAX_STEPS = 500
GRADED_FROM = 0.05  # of the cells: means of a few repeated passes and failures lie between 0 and 1, too
STEEPEST = 0.95  # what one more τ² may add to the next one


@dataclass(frozen=True, eq=False)
class StagedModel:
    """The fit to the teaching agents, in their order.

    difficulty_variances: (m,); means: (n,), μ of each.
    """

    abilities: FloatArray
    difficulties: FloatArray
    difficulty_variances: FloatArray
    means: FloatArray
    spread: float
    dispersion: float

    @property
    def next_mean(self) -> float:
        """μ of an agent that comes after all of these."""
        return float(self.abilities[-N_BEFORE:].mean())

    def mean_after(self, n: int) -> float:
        """Return μ of an agent that came after the first `n` of these; 0: where the order is not known."""
        return float(self.abilities[max(n - N_BEFORE, 0) : n or None].mean())

    @property
    def precision(self) -> float:
        """φ/τ², of the prior of an ability."""
        return self.dispersion / self.spread


@dataclass(frozen=True, eq=False)
class ModelEstimate:
    """What the model says of one agent's full score.

    se: before it is scaled by c.
    passing: (m,); P of each task.
    """

    score: float
    se: float
    passing: FloatArray


def fit(
    outcomes: FloatArray, first: IndexArray | None = None, start: StagedModel | None = None
) -> StagedModel:
    """Fit the model to what the teaching agents ran.

    outcomes: (n, m); in the order in which they came; 0 to 1, NaN where not run. Each agent ran a task.
    first: (n,); how many agents came before each; agents with the same number share one μ. By default 0, 1,
        2, ….
    start: a fit to all of these but the last ones. It does not show in the result beyond 1e-8.
    Raises SelectionError (model_unfinished).
    """
    ran = ~np.isnan(outcomes)
    x = outcomes if ran.all() else np.where(ran, outcomes, 0.0)
    first = np.arange(len(x)) if first is None else first
    is_graded = _is_graded(x, ran)
    abilities, difficulties = _begin(x, ran, start)
    task, group, size = alike(x, ran)
    difficulties, n_run = difficulties[task], np.asarray(size if ran.all() else ran[:, task] * size)
    of_agents, of_groups = x.sum(axis=1), x.sum(axis=0)[task] * size
    squares, passed = (float((x * x).sum()), summed(x, group, size.size)) if is_graded else (0.0, x)
    window, n_first = window_of(first), int(np.count_nonzero(first == 0))
    pull = (first == 0) / (FIRST_VARIANCE * max(n_first, 1))
    spread, dispersion = (1.0, 1.0) if start is None else (start.spread, start.dispersion)
    for _ in range(MAX_STEPS):
        passing = passing_of(abilities, difficulties)
        expected = n_run * passing
        left_over = squares - float((passing * (2.0 * passed - expected)).sum()) if is_graded else 0.0
        curvature = np.multiply(expected, np.subtract(1.0, passing, out=passing), out=passing)
        precision = dispersion / spread
        of_abilities = curvature.sum(axis=1) + precision
        of_difficulties = curvature.sum(axis=0) + size / DIFFICULTY_VARIANCE
        means = means_before(abilities, *window)
        apart, variances = abilities - means, dispersion / of_abilities
        for_abilities = of_agents - expected.sum(axis=1) - apart * precision - pull * means
        for_difficulties = expected.sum(axis=0) - of_groups - size * difficulties / DIFFICULTY_VARIANCE
        new_spread = _spread(apart, variances)
        new_dispersion = min(left_over / float(curvature.sum()), MAX_DISPERSION) if is_graded else 1.0
        slope = max(np.abs(for_abilities).max(), np.abs(for_difficulties / size).max())
        left = max(slope, abs(new_spread - spread), abs(new_dispersion - dispersion))
        if left < LARGEST_DERIVATIVE:
            of_tasks = dispersion / (curvature.sum(axis=0) / size + dispersion / DIFFICULTY_VARIANCE)
            ends = read_only(abilities), read_only(difficulties[group])
            return StagedModel(*ends, read_only(of_tasks[group]), read_only(means), spread, dispersion)
        complement = partial(_complement, of_abilities, of_difficulties, curvature, pull - precision, window)
        shared = for_difficulties / of_difficulties
        solved = solver(complement, of_abilities)
        up, step = solved(for_abilities + curvature @ shared), 0.0
        if slope < NEAR:  # far off both at once may go round in circles
            by_spread = solved(apart * precision / spread)
            ends = up - means_before(up, *window), by_spread - means_before(by_spread, *window)
            step = _spread_step(spread, new_spread, variances, apart, *ends)
            step = min(max(step, -spread / 2.0), spread)  # far beyond, it may go to and fro for ever
            up = up + step * by_spread
        harder = shared + up @ curvature / of_difficulties
        largest = max(float(up.max() - harder.min()), float(harder.max() - up.min()), 1e-300)
        length = np.log1p(largest) / largest
        abilities, difficulties = abilities + length * up, difficulties + length * harder
        spread, dispersion = max(spread + length * step, MIN_SPREAD), new_dispersion
    raise SelectionError(f"{left:.1e} is left after {MAX_STEPS} steps", code="model_unfinished")


def _begin(x: FloatArray, ran: Mask, start: StagedModel | None) -> tuple[FloatArray, FloatArray]:
    """Abilities and difficulties to begin with: logits of shares, or those of the fit to fewer agents."""
    if start is None:
        return _logits(x, ran, 1), -_logits(x, ran, 0)
    more = np.full(len(x) - start.abilities.size, start.next_mean)
    return np.concatenate([start.abilities, more]), start.difficulties


def _complement(
    of_abilities: FloatArray,
    of_difficulties: FloatArray,
    curvature: FloatArray,
    of_means: FloatArray,
    window: tuple[IndexArray, IndexArray],
    up: FloatArray,
) -> FloatArray:
    """Return what derivatives of abilities that go `up`, (..., n), fall by, as difficulties go along."""
    by_difficulties = (up @ curvature / of_difficulties) @ curvature.T
    return of_abilities * up + of_means * means_before(up, *window) - by_difficulties


def window_of(first: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return which abilities make each μ, as places from and before: of the ten before; of the first, all.

    first: (n,); as in `fit`.
    """
    n_first = np.count_nonzero(first == 0)
    return np.where(first == 0, 0, np.maximum(first - N_BEFORE, 0)), np.where(first == 0, n_first, first)


def means_before(abilities: FloatArray, begin: IndexArray, end: IndexArray) -> FloatArray:
    """Return μ of each agent, (..., n), by its window, (n,)."""
    sums = np.zeros((*abilities.shape[:-1], begin.size + 1))
    np.cumsum(abilities, axis=-1, out=sums[..., 1:])
    return np.asarray((sums[..., end] - sums[..., begin]) / (end - begin), dtype=np.float64)


def in_order(dates: Sequence[date | None], names: Sequence[str]) -> tuple[IndexArray, IndexArray]:
    """Return agents in order of (date, name), and how many came before each, as `fit` takes it.

    Where a date is missing they stay as they are, and share one μ.
    """
    n = len(names)
    if None in dates:
        return np.arange(n), np.zeros(n, dtype=np.intp)
    return np.array(sorted(range(n), key=lambda i: (dates[i], names[i])), dtype=np.intp), np.arange(n)


def estimate(
    model: StagedModel, outcomes: FloatArray, mean: float, of: Mask | slice = slice(None)
) -> ModelEstimate:
    """Score one agent on the fit, from whatever it ran, (m,), NaN where not run; `of` as in `estimates`."""
    scores, errors, passing = estimates(model, outcomes[None], np.array([mean]), of)
    return ModelEstimate(float(scores[0]), float(errors[0]), read_only(passing[0]))


def estimates(
    model: StagedModel, outcomes: FloatArray, means: FloatArray, of: Mask | slice = slice(None)
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Score agents on the fit, each by itself.

    outcomes: (q, m).
    means: (q,).
    of: (m,); the tasks whose mean is the score; the ability comes from all that was run.
    Returns: scores and their standard errors, (q,); P of each task, (q, m).
    """
    ran = ~np.isnan(outcomes)
    x = np.where(ran, outcomes, 0.0)
    abilities = _abilities(model, x, ran, means)
    passing = passing_of(abilities, model.difficulties)
    curvature = passing * (1.0 - passing)
    v_abilities = model.dispersion / ((curvature * ran).sum(axis=1) + model.precision)
    rest = (curvature * ~ran)[:, of]
    total = rest.sum(axis=1)
    own, of_tasks = model.dispersion * total, rest**2 @ model.difficulty_variances[of]
    filled = np.where(ran, x, passing)[:, of]
    se = np.sqrt(own + total**2 * v_abilities + of_tasks) / filled.shape[1]
    return np.asarray(filled.mean(axis=1)), se, passing


def noisier(model: StagedModel, outcomes: FloatArray, noise: FloatArray) -> StagedModel:
    """Return the fit for agents with fewer trials than those fitted: φ is theirs, where it is fitted.

    outcomes: (n, m); as fitted.
    noise: (n, m); what each outcome would vary by more with their number of trials, 0 where not run.
    """
    ran = ~np.isnan(outcomes)
    if not _is_graded(outcomes, ran):
        return model
    passing = passing_of(model.abilities, model.difficulties)
    more = float(noise.sum()) / float((passing * (1.0 - passing))[ran].sum())
    return replace(model, dispersion=min(model.dispersion + more, MAX_DISPERSION))


def added_variances(
    model: StagedModel,
    outcomes: FloatArray,
    passing: FloatArray,
    noise: FloatArray,
    of: Mask | slice = slice(None),
) -> FloatArray:
    """Return what the squared errors of `estimates`, which gave `passing`, grow by with this noise, (q,).

    outcomes, passing, noise: (q, m); the full run holds the same trials of the tasks that were run.
    """
    ran = ~np.isnan(outcomes)
    curvature = passing * (1.0 - passing)
    left, noise_left = (curvature * ~ran)[:, of], (noise * ~ran)[:, of]
    by_ability = left.sum(axis=1) / ((curvature * ran).sum(axis=1) + model.precision)
    added = noise_left.sum(axis=1) + by_ability**2 * (noise * ran).sum(axis=1)
    return np.asarray(added / left.shape[1] ** 2, dtype=np.float64)


def completed(model: StagedModel, outcomes: FloatArray) -> FloatArray:
    """Fill what the teaching agents did not run with the model's probabilities, (n, m)."""
    passing = passing_of(model.abilities, model.difficulties)
    return np.where(np.isnan(outcomes), passing, outcomes)


def _abilities(model: StagedModel, x: FloatArray, ran: Mask, means: FloatArray) -> FloatArray:
    some = ran.any(axis=0)
    x, ran, levels = x[:, some], ran[:, some], means
    for _ in range(MAX_STEPS):
        passing = passing_of(levels, model.difficulties[some]) * ran
        slopes = (x - passing).sum(axis=1) - (levels - means) * model.precision
        if np.abs(slopes).max(initial=0.0) < LARGEST_DERIVATIVE:
            return levels
        steps = slopes / ((passing * (1.0 - passing)).sum(axis=1) + model.precision)
        levels = levels + np.sign(steps) * np.log1p(np.abs(steps))
    raise SelectionError(
        f"a derivative of {np.abs(slopes).max():.1e} is left after {MAX_STEPS} steps", code="model_unfinished"
    )


def _is_graded(x: FloatArray, ran: Mask) -> bool:
    return bool(np.count_nonzero((x > 0.0) & (x < 1.0)) > GRADED_FROM * np.count_nonzero(ran))


def _logits(x: FloatArray, ran: Mask, axis: int) -> FloatArray:
    n, passed = np.count_nonzero(ran, axis=axis), x.sum(axis=axis)
    return np.asarray(np.log((passed + 1.0) / (n - passed + 1.0)), dtype=np.float64)


def _spread(apart: FloatArray, variances: FloatArray) -> float:
    variance = (float(apart @ apart) + float(variances.sum()) + PSEUDO_AGENTS) / (apart.size + PSEUDO_AGENTS)
    return max(variance, MIN_SPREAD)


def _spread_step(
    spread: float,
    updated: float,
    variances: FloatArray,
    apart: FloatArray,
    up: FloatArray,
    by_spread: FloatArray,
) -> float:
    """Return Newton's step of τ²: where it is what abilities that go `up`, and on with τ², make of it.

    up, by_spread: (n,); of abilities less their μ.
    """
    n = apart.size + PSEUDO_AGENTS
    change = updated - spread + 2.0 * float(apart @ up) / n
    slope = 2.0 * float(apart @ by_spread) / n
    slope += float(variances @ variances) / spread**2 / n
    return change / (1.0 - min(slope, STEEPEST))
