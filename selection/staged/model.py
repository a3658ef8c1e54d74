"""One Rasch model of everything that the teaching agents ran, and what it says of each agent's full score.

Model
-----
logit P_aj = θ_a − b_j, fractional outcomes as weights, cells that were not run left out: which tasks an agent
ran depends on its earlier outcomes alone, so that what is missing is missing at random given these. Priors
b_j ~ N(0, 2²) and θ_a ~ N(μ_a, τ²/φ); at the maximum::

    Σ_j (x_aj − P_aj) = φ(θ_a − μ_a)/τ²,          Σ_a (x_aj − P_aj) = −b_j/4

    μ_a = mean θ̂ of the ten teaching agents before a; of the first ones their own mean
    τ²  = max([Σ_a ((θ̂_a − μ_a)² + v_a) + 5·1²]/(n + 5), .3²)
    φ   = Σ (x − P)²/Σ P(1 − P), at most 1.2, and 1 where all outcomes are 0 or 1

Newton steps solve the equations of θ and b with μ as a function of θ; τ² and φ follow after each, until all
hold to 1e-10. With K_a the tasks that a ran and M_a the others::

    est_a = (Σ_K x_aj + Σ_M P_aj)/m
    se_a² = c²·[φ Σ_M P(1 − P) + (Σ_M P(1 − P))²·v_a + Σ_M (P(1 − P))²·v_bj]/m²
    v_a   = φ/(Σ_K P(1 − P) + φ/τ²),              v_bj = φ/(Σ_a P(1 − P) + φ/4)

c² makes the errors those that earlier agents had (`selection.staged.walks`).

Symbols
-------
======  =========================  ==================  ============
symbol  code                       shape               unit
======  =========================  ==================  ============
x       ``outcomes``               (n, m), NaN         0 to 1
θ, b    ``abilities``,             (n,), (m,)          logits
        ``difficulties``
μ       ``means``                  (n,)                logits
τ², φ   ``spread``,                scalars             logits², 1
        ``dispersion``
v_b     ``difficulty_variances``   (m,)                logits²
======  =========================  ==================  ============

Not done here
-------------
One slope for all tasks. Where agents get better fast, those that stopped are estimated 2 to 3 points too low.

Source
------
Rasch, *Probabilistic Models for Some Intelligence and Attainment Tests*, 1960; missing at random: Rubin,
*Biometrika* 63 (1976) 581-592. The priors are this project's own.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from selection.errors import SelectionError

DIFFICULTY_VARIANCE = 4.0
N_BEFORE = 10
PSEUDO_AGENTS, LEAST_SPREAD, MOST_DISPERSION = 5, 0.09, 1.2
LARGEST_DERIVATIVE = 1e-10
MOST_STEPS = 500


class ModelUnfinished(SelectionError):
    """The equations did not come to hold."""


@dataclass(frozen=True, eq=False)
class Model:
    """The fit to the teaching agents, in their order.

    Attributes
    ----------
    abilities : float array, shape (n,)
    difficulties, difficulty_variances : float array, shape (m,)
    means : float array, shape (n,)
        μ of each.
    spread, dispersion : float
        τ² and φ.
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
class Estimate:
    """What the model says of one agent's full score.

    Attributes
    ----------
    score, se : float
        est, and se with c = 1.
    ability : float
    passing : float array, shape (m,)
        P of each task.
    """

    score: float
    se: float
    ability: float
    passing: FloatArray


def fit(outcomes: FloatArray, first: IndexArray | None = None, start: Model | None = None) -> Model:
    """Fit the model to what the teaching agents ran.

    Parameters
    ----------
    outcomes : float array, shape (n, m)
        In the order in which they came; 0 to 1, NaN where not run. Each agent ran a task.
    first : int array, shape (n,), optional
        How many agents came before each; agents with the same number share one μ. By default 0, 1, 2, ….
    start : Model, optional
        A fit to all of these but the last ones. It does not show in the result beyond 1e-8.

    Raises
    ------
    ModelUnfinished
    """
    ran = ~np.isnan(outcomes)
    x = np.where(ran, outcomes, 0.0)
    first = np.arange(len(x)) if first is None else first
    is_graded = bool(((x > 0.0) & (x < 1.0)).any())
    abilities, difficulties = _started(x, ran, start)
    before = before_each(first)
    spread, dispersion = (1.0, 1.0) if start is None else (start.spread, start.dispersion)
    for _ in range(MOST_STEPS):
        passing = expit(abilities[:, None] - difficulties)
        passing *= ran
        curvature = passing * (1.0 - passing)
        of_abilities = curvature.sum(axis=1) + dispersion / spread
        means = before @ abilities
        for_abilities = (x - passing).sum(axis=1) - (abilities - means) * dispersion / spread
        for_difficulties = (passing - x).sum(axis=0) - difficulties / DIFFICULTY_VARIANCE
        new_spread = _spread(abilities - means, dispersion / of_abilities)
        new_dispersion = _dispersion(x, passing, curvature, ran) if is_graded else 1.0
        left = max(np.abs(for_abilities).max(), np.abs(for_difficulties).max())
        left = max(left, abs(new_spread - spread), abs(new_dispersion - dispersion))
        if left < LARGEST_DERIVATIVE:
            variances = dispersion / (curvature.sum(axis=0) + dispersion / DIFFICULTY_VARIANCE)
            return Model(
                read_only(abilities),
                read_only(difficulties),
                read_only(variances),
                read_only(means),
                spread,
                dispersion,
            )
        of_difficulties = curvature.sum(axis=0) + 1.0 / DIFFICULTY_VARIANCE
        shared = curvature / of_difficulties
        complement = np.diag(of_abilities) - shared @ curvature.T - before * dispersion / spread
        up = np.asarray(np.linalg.solve(complement, for_abilities + shared @ for_difficulties))
        harder = (for_difficulties + curvature.T @ up) / of_difficulties
        largest = max(float(up.max() - harder.min()), float(harder.max() - up.min()), 1e-300)
        length = np.log1p(largest) / largest
        abilities, difficulties = abilities + length * up, difficulties + length * harder
        spread, dispersion = new_spread, new_dispersion
    raise ModelUnfinished(f"{left:.1e} is left after {MOST_STEPS} steps")


def before_each(first: IndexArray) -> FloatArray:
    """Return the weights of abilities in each μ, (n, n): the ten agents before; of the first ones themselves.

    Parameters
    ----------
    first : int array, shape (n,)
        As in `fit`.
    """
    end = np.where(first == 0, np.count_nonzero(first == 0), first)[:, None]
    begin = np.where(first == 0, 0, np.maximum(first - N_BEFORE, 0))[:, None]
    place = np.arange(first.size)
    return np.asarray(((place >= begin) & (place < end)) / (end - begin), dtype=np.float64)


def estimate(model: Model, outcomes: FloatArray, mean: float) -> Estimate:
    """Score one agent on the fit, from whatever it ran.

    Parameters
    ----------
    model : Model
    outcomes : float array, shape (m,)
        NaN where not run.
    mean : float
        μ of the agent.
    """
    ran = ~np.isnan(outcomes)
    ability = _ability(model, outcomes[ran], model.difficulties[ran], mean)
    passing = expit(ability - model.difficulties)
    curvature = passing * (1.0 - passing)
    score = (float(outcomes[ran].sum()) + float(passing[~ran].sum())) / outcomes.size
    return Estimate(score, _error(model, curvature, ran), ability, read_only(passing))


def completed(model: Model, outcomes: FloatArray) -> FloatArray:
    """Fill what the teaching agents did not run with the model's probabilities, (n, m)."""
    passing = expit(model.abilities[:, None] - model.difficulties)
    return np.where(np.isnan(outcomes), passing, outcomes)


def _error(model: Model, curvature: FloatArray, ran: Mask) -> float:
    rest = curvature[~ran]
    v_ability = model.dispersion / (float(curvature[ran].sum()) + model.precision)
    total = float(rest.sum())
    own, of_tasks = model.dispersion * total, float(rest**2 @ model.difficulty_variances[~ran])
    return float(np.sqrt(own + total**2 * v_ability + of_tasks)) / curvature.size


def _ability(model: Model, outcomes: FloatArray, difficulties: FloatArray, mean: float) -> float:
    level = mean
    for _ in range(MOST_STEPS):
        passing = expit(level - difficulties)
        slope = float((outcomes - passing).sum()) - (level - mean) * model.precision
        if abs(slope) < LARGEST_DERIVATIVE:
            return level
        step = slope / (float((passing * (1.0 - passing)).sum()) + model.precision)
        level += float(np.sign(step) * np.log1p(abs(step)))
    raise ModelUnfinished(f"a derivative of {slope:.1e} is left after {MOST_STEPS} steps")


def _started(x: FloatArray, ran: Mask, start: Model | None) -> tuple[FloatArray, FloatArray]:
    def logits(axis: int) -> FloatArray:
        n, passed = np.count_nonzero(ran, axis=axis), x.sum(axis=axis)
        return np.asarray(np.log((passed + 1.0) / (n - passed + 1.0)), dtype=np.float64)

    if start is None:
        return logits(1), -logits(0)
    more = np.full(len(x) - start.abilities.size, start.next_mean)
    return np.concatenate([start.abilities, more]), start.difficulties


def _spread(apart: FloatArray, variances: FloatArray) -> float:
    found = (float(apart @ apart) + float(variances.sum()) + PSEUDO_AGENTS) / (apart.size + PSEUDO_AGENTS)
    return max(found, LEAST_SPREAD)


def _dispersion(x: FloatArray, passing: FloatArray, curvature: FloatArray, ran: Mask) -> float:
    squares = float((((x - passing) * ran) ** 2).sum())
    return min(squares / float(curvature.sum()), MOST_DISPERSION)
