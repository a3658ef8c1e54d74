"""Intervals of a calibrated score: what a full run would show, given the outcomes on the subset.

Model
-----
ŷ is the Ridge prediction of `selection.ridge`; the interval is about the score y of a full run, trial noise
included, nominal level 95%. It rests on residuals of agents whose full score is known, from one of four
sources, the first that applies:

================  =======================================  ================================================
source            when                                     interval
================  =======================================  ================================================
new scaffold      scaffold unseen in training, G ≥ 5       ŷ ± t_{G−1}·√(σ_s²(1 + 1/G) + σ_e²)
post-selection    at least 19 post-selection residuals     ŷ ± the ⌈.95(n_p + 1)⌉-th smallest |y − ŷ|
jackknife+        n ≥ 19                                   [⌊.05(n + 1)⌋-th smallest of μ₋ᵢ(x) − R_i,
                                                           ⌈.95(n + 1)⌉-th smallest of μ₋ᵢ(x) + R_i]
normal            10 ≤ n < 19                              ŷ ± t_{n−1}·s_loo·√(1 + 1/n)
================  =======================================  ================================================

t is the 97.5% quantile. R_i = |y_i − ŷ_i| comes from the fold that holds agent i out and selects its own
subset; μ₋ᵢ(x) from the Ridge without i on the active subset, since a new agent has no outcomes elsewhere; n
counts the R_i. s_loo = √(Σ R_i²/n). With 19 residuals the order statistics are the smallest and the largest.

No interval: n < 10; an unseen scaffold with G < 5; more than a tenth of the subset missing. Wider than the
scores themselves, a half-width above 1.96·sd(y), ŷ is not shown either.

All n refits at once. With C the centred matrix, e the residuals of the fit to all agents and
h_i = 1/n + c_iᵀ(CᵀC + αI)⁻¹c_i their leverages::

    β₋ᵢ = β − (CᵀC + αI)⁻¹c_i·e_i/(1 − h_i),    (CᵀC + αI)⁻¹Cᵀ = Cᵀ(CCᵀ + αI)⁻¹        one n × n system
    x̄₋ᵢ = x̄ − c_i/(n − 1),    b₀₋ᵢ = ȳ − e_i/(n(1 − h_i)) − x̄·β₋ᵢ

Where a training cell is missing, what completes it changes with the agents left, and the n refits are made.

New scaffold. The residuals r of folds that hold a whole scaffold out, in G scaffolds of n_g agents, N in all,
have one-way components by the method of moments for unequal groups, the first truncated at 0::

    σ_e² = MSW,    σ_s² = max(0, (MSB − MSW)/n₀),    n₀ = (N − Σn_g²/N)/(G − 1)

With one agent in every scaffold (N = G) the two cannot be told apart, and σ_s² = MSB stands for both.

Symbols
-------
===========  ==========================  ==========================  ==================
symbol       code                        shape                       unit
===========  ==========================  ==========================  ==================
X, y         ``outcomes``, ``scores``    (n_agents, k), (n_agents,)  0 to 1
R            ``residuals``               (n_agents,), NaN: left out  score
μ₋ᵢ(x)       ``without.predictions(x)``  (q, n_agents)               score
s_loo        ``s_loo``                   scalar                      score
n            ``n``                       scalar                      agents
σ_s², σ_e²   ``scaffold_components``     scalars                     score²
===========  ==========================  ==========================  ==================

Guarantees: split conformal covers at least 95% if the agent and those behind the residuals are exchangeable.
Jackknife+ covers at least 90% under the same condition if R and μ come from the same fits; here only R
selects anew, so that 90% is a reference and coverage is measured. The other two rest on normal residuals.

Not done here
-------------
No interval for an agent with a full run: its score is measured. Clipping to [0, 1] is for display
(`Interval.shown`). Coverage is measured by `selection.validation`.

Source
------
Barber, Candès, Ramdas & Tibshirani, *Annals of Statistics* 49 (2021) 486-507, §1.2 and Theorem 1. Vovk,
Gammerman & Shafer, *Algorithmic Learning in a Random World*, 2005 (split conformal). Dunn, Wasserman &
Ramdas, *JASA* 118 (2023) 2491-2502 (new groups). Searle, Casella & McCulloch, *Variance Components*, 1992,
ch. 3 (unequal groups). Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1, Phase 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.linalg
from scipy.special import stdtrit

from analytics.arrays import FloatArray, read_only
from selection import ridge
from selection.errors import ScoreMissing, SelectionError, ShapeMismatch, TooFewAgents

Source = Literal["post-selection", "jackknife+", "normal", "new scaffold"]
LEVEL = 0.95
ONE_IN = 20
FEWEST_FOR_QUANTILE = ONE_IN - 1
FEWEST_FOR_NORMAL = 10
FEWEST_SCAFFOLDS = 5
WIDEST = 1.96


class TooFewResiduals(SelectionError):
    """An order statistic at 95% exists from 19 residuals on; below, the interval would be infinite."""


class ResidualRefused(SelectionError):
    """A residual is a finite number, or missing."""


class ScaffoldsMissing(SelectionError):
    """Residuals by scaffold need each agent's scaffold."""


@dataclass(frozen=True)
class Interval:
    """A prediction interval for the score of a full run.

    Attributes
    ----------
    lower, upper : float
        Not clipped; score.
    point : float
        ŷ.
    source : {"post-selection", "jackknife+", "normal", "new scaffold"}
    level : float
        Nominal, 0.95.
    note : str
        What it rests on, with the numbers.
    """

    lower: float
    upper: float
    point: float
    source: Source
    level: float
    note: str

    @property
    def half_width(self) -> float:
        """(upper − lower)/2, in the unit of the score."""
        return (self.upper - self.lower) / 2

    @property
    def shown(self) -> tuple[float, float]:
        """Ends clipped to [0, 1], for display alone."""
        return min(max(self.lower, 0.0), 1.0), min(max(self.upper, 0.0), 1.0)


@dataclass(frozen=True)
class NoInterval:
    """Why there is no interval.

    Attributes
    ----------
    reason : str
    point : float or None
        ŷ where it may be shown without an interval; None where it may not.
    """

    reason: str
    point: float | None


@dataclass(frozen=True)
class ScaffoldComponents:
    """One-way components of the leave-one-scaffold-out residuals, score².

    Attributes
    ----------
    between, within : float
        σ_s², truncated at 0, and σ_e².
    n_scaffolds : int
        G.
    separated : bool
        False with one agent in every scaffold: `between` stands for both and `within` is 0.
    """

    between: float
    within: float
    n_scaffolds: int
    separated: bool

    @property
    def half_width(self) -> float:
        """t_{G−1}·√(σ_s²(1 + 1/G) + σ_e²); score."""
        n = self.n_scaffolds
        return _t(n - 1) * float(np.sqrt(self.between * (1 + 1 / n) + self.within))


@dataclass(frozen=True, eq=False)
class RefitsWithout:
    """The n Ridge fits that each leave one training agent out.

    Attributes
    ----------
    intercepts : float array, shape (n_agents,)
    coefficients, column_means : float array, shape (n_agents, k)
    """

    intercepts: FloatArray
    coefficients: FloatArray
    column_means: FloatArray

    def predictions(self, outcomes: FloatArray) -> FloatArray:
        """μ₋ᵢ(x) for every x and every i, shape (q, n_agents); a missing cell takes x̄₋ᵢ.

        Parameters
        ----------
        outcomes : float array, shape (q, k)
            NaN where missing.
        """
        missing = np.isnan(outcomes)
        observed = np.where(missing, 0.0, outcomes) @ self.coefficients.T
        completed = missing @ (self.column_means * self.coefficients).T
        return np.asarray(self.intercepts + observed + completed, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Calibrator:
    """What intervals of one board, or of one fold, are made from. Made by `calibrate`.

    Attributes
    ----------
    outcomes : float array, shape (n_agents, k)
    scores : float array, shape (n_agents,)
    residuals : float array, shape (n_agents,)
        R_i; NaN for an agent no fold could predict.
    scaffolds : frozenset of str or None
        Those of the training agents; None where scaffolds play no part.
    scaffold_components : ScaffoldComponents or None
        None under 5 scaffolds.
    n_scaffolds : int
        Scaffolds with a leave-one-scaffold-out residual, G.
    post_selection : float array, shape (n_post_selection,)
        Absolute residuals of the agents sampled after activation.
    """

    outcomes: FloatArray
    scores: FloatArray
    residuals: FloatArray
    scaffolds: frozenset[str] | None
    scaffold_components: ScaffoldComponents | None
    n_scaffolds: int
    post_selection: FloatArray

    @property
    def n(self) -> int:
        """Number of residuals R_i."""
        return int(np.count_nonzero(~np.isnan(self.residuals)))

    @property
    def s_loo(self) -> float | None:
        """√(Σ R_i²/n), score; None without a residual. A difference of two agents takes t_{n−1}·√2·s_loo."""
        return _root_mean_square(self.residuals) if self.n else None

    @property
    def sd_scores(self) -> float:
        """sd(y), divisor n_agents − 1; score."""
        return float(np.std(self.scores, ddof=1))

    @cached_property
    def fitted(self) -> ridge.RidgeFit:
        """Ridge on all training agents."""
        return ridge.fit(self.outcomes, self.scores)

    @cached_property
    def without(self) -> RefitsWithout:
        """Ridge without each training agent in turn."""
        return refits_without(self.outcomes, self.scores)

    def is_new(self, scaffold: str | None) -> bool:
        """Whether no training agent has this scaffold; an agent of unknown scaffold is not new."""
        return self.scaffolds is not None and scaffold is not None and scaffold not in self.scaffolds

    def source(self, scaffold: str | None = None) -> Source | None:
        """Which source an agent's interval takes; None where there is none.

        Parameters
        ----------
        scaffold : str, optional
            The agent's.
        """
        if self.is_new(scaffold):
            return "new scaffold" if self.scaffold_components is not None else None
        if self.post_selection.size >= FEWEST_FOR_QUANTILE:
            return "post-selection"
        if self.n >= FEWEST_FOR_QUANTILE:
            return "jackknife+"
        return "normal" if self.n >= FEWEST_FOR_NORMAL else None


def calibrate(
    outcomes: FloatArray,
    scores: FloatArray,
    residuals: FloatArray,
    *,
    scaffolds: Sequence[str] | None = None,
    scaffold_residuals: FloatArray | None = None,
    post_selection: FloatArray | None = None,
) -> Calibrator:
    """Gather what intervals are made from.

    Parameters
    ----------
    outcomes : float array, shape (n_agents, k)
        Mean outcomes of the training agents on the active subset; NaN where missing.
    scores : float array, shape (n_agents,)
        Their full scores.
    residuals : float array, shape (n_agents,)
        y_i − ŷ_i, or its absolute value, from the fold that holds agent i out and selects its own subset; NaN
        where no fold could predict the agent.
    scaffolds : sequence of str, length n_agents, optional
        Without it no agent's scaffold counts as new.
    scaffold_residuals : float array, shape (n_agents,), optional
        y_i − ŷ_i, signed, from the fold that holds agent i's whole scaffold out; NaN where there is none.
    post_selection : float array, shape (n_post_selection,), optional
        y − ŷ of agents drawn at random from those submitted after activation.

    Raises
    ------
    ShapeMismatch, ScoreMissing, TooFewAgents, ResidualRefused, ScaffoldsMissing
        Here; what `selection.ridge.fit` refuses, when the first prediction is made.
    """
    outcomes, scores = _checked_training(outcomes, scores)
    by_scaffold = _checked_residuals("scaffold_residuals", scaffold_residuals, scores.size)
    if scaffold_residuals is not None and scaffolds is None:
        raise ScaffoldsMissing("leave-one-scaffold-out residuals, but no scaffolds")
    if scaffolds is not None and len(scaffolds) != scores.size:
        raise ShapeMismatch(f"{len(scaffolds)} scaffolds for {scores.size} agents")
    held_out = [name for name, r in zip(scaffolds or (), by_scaffold, strict=False) if not np.isnan(r)]
    n_scaffolds = len(set(held_out))
    return Calibrator(
        outcomes=read_only(outcomes),
        scores=read_only(scores),
        residuals=read_only(np.abs(_checked_residuals("residuals", residuals, scores.size))),
        scaffolds=None if scaffolds is None else frozenset(scaffolds),
        scaffold_components=_components(by_scaffold, held_out) if n_scaffolds >= FEWEST_SCAFFOLDS else None,
        n_scaffolds=n_scaffolds,
        post_selection=read_only(_checked_post_selection(post_selection)),
    )


def intervals(
    calibrator: Calibrator, outcomes: FloatArray, scaffolds: Sequence[str | None] | None = None
) -> tuple[Interval | NoInterval, ...]:
    """Give each agent its interval, or the reason why it has none.

    Parameters
    ----------
    calibrator : Calibrator
    outcomes : float array, shape (q, k)
        Mean outcomes on the active subset; NaN where missing.
    scaffolds : sequence of str or None, length q, optional
        None: not known, so not new.

    Raises
    ------
    ShapeMismatch, OutcomeRefused, and what `selection.ridge.fit` refuses
    """
    outcomes = np.asarray(outcomes, dtype=np.float64)
    predictable = ridge.predictable(outcomes)
    scaffolds = [None] * len(outcomes) if scaffolds is None else scaffolds
    if len(scaffolds) != len(outcomes):
        raise ShapeMismatch(f"{len(scaffolds)} scaffolds for {len(outcomes)} agents")
    points = np.full(len(outcomes), np.nan)
    points[predictable] = ridge.predict(calibrator.fitted, outcomes[predictable])
    sources = [calibrator.source(scaffold) for scaffold in scaffolds]
    lower, upper = _ends(calibrator, outcomes, points, sources)
    answers: list[Interval | NoInterval] = []
    for i, source in enumerate(sources):
        if not predictable[i]:
            answers.append(_unpredictable(outcomes[i]))
        elif source is None:
            answers.append(NoInterval(_why_none(calibrator, scaffolds[i]), float(points[i])))
        else:
            ends = (float(lower[i]), float(upper[i]))
            answers.append(_concluded(calibrator, ends, float(points[i]), source))
    return tuple(answers)


def interval(
    calibrator: Calibrator, outcomes: FloatArray, scaffold: str | None = None
) -> Interval | NoInterval:
    """Give one agent its interval, as `intervals` does.

    Parameters
    ----------
    calibrator : Calibrator
    outcomes : float array, shape (k,)
    scaffold : str, optional
    """
    return intervals(calibrator, np.asarray(outcomes, dtype=np.float64)[None, :], [scaffold])[0]


def split_conformal(residuals: FloatArray) -> float:
    """Half-width of split conformal prediction: the ⌈.95(n + 1)⌉-th smallest absolute residual.

    Parameters
    ----------
    residuals : float array, shape (n,)
        n ≥ 19; with n = 19 the answer is the largest.

    Raises
    ------
    TooFewResiduals
    """
    residuals = np.abs(np.asarray(residuals, dtype=np.float64))
    return float(np.sort(residuals)[_upper_rank(residuals.size) - 1])


def jackknife_plus(predictions: FloatArray, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give the ends of the jackknife+ interval at nominal 95% (Barber et al. 2021, §1.2, α = .05).

    Parameters
    ----------
    predictions : float array, shape (q, n)
        μ₋ᵢ(x), n ≥ 19.
    residuals : float array, shape (n,)
        R_i ≥ 0.

    Returns
    -------
    lower : float array, shape (q,)
        ⌊.05(n + 1)⌋-th smallest of μ₋ᵢ(x) − R_i.
    upper : float array, shape (q,)
        ⌈.95(n + 1)⌉-th smallest of μ₋ᵢ(x) + R_i.

    Raises
    ------
    TooFewResiduals
    """
    rank = _upper_rank(residuals.size)
    lower = np.sort(predictions - residuals, axis=1)[:, residuals.size - rank]
    return lower, np.sort(predictions + residuals, axis=1)[:, rank - 1]


def refits_without(outcomes: FloatArray, scores: FloatArray) -> RefitsWithout:
    """Fit the Ridge without each agent in turn: all at once where no cell is missing, one by one elsewhere.

    Parameters
    ----------
    outcomes : float array, shape (n_agents, k)
        NaN where missing; n_agents ≥ 3.
    scores : float array, shape (n_agents,)

    Raises
    ------
    As `selection.ridge.fit`.
    """
    if np.isnan(outcomes).any() or len(scores) < 3:
        return _refits_one_by_one(outcomes, scores)
    return _refits_at_once(outcomes, scores)


# ---------------------------------------------------------------------------------------------- arithmetic


def _t(degrees: int) -> float:
    """97.5% quantile of Student's t."""
    return float(stdtrit(degrees, (1 + LEVEL) / 2))


def _upper_rank(n: int) -> int:
    """⌈.95(n + 1)⌉ = n + 1 − ⌊(n + 1)/20⌋, in whole numbers."""
    if n < FEWEST_FOR_QUANTILE:
        raise TooFewResiduals(
            f"{n} residuals; a 95% quantile of them is finite from {FEWEST_FOR_QUANTILE} on"
        )
    return n + 1 - (n + 1) // ONE_IN


def _refits_at_once(outcomes: FloatArray, scores: FloatArray) -> RefitsWithout:
    n = scores.size
    fitted = ridge.fit(outcomes, scores)
    centred = outcomes - fitted.column_means
    inverse = scipy.linalg.inv(centred @ centred.T + ridge.ALPHA * np.eye(n), assume_a="pos")
    directions = inverse @ centred
    leverages = 1.0 / n + np.sum(directions * centred, axis=1)
    steps = (scores - ridge.predict(fitted, outcomes)) / (1.0 - leverages)
    coefficients = fitted.coefficients - directions * steps[:, None]
    return RefitsWithout(
        intercepts=read_only(np.mean(scores) - steps / n - coefficients @ fitted.column_means),
        coefficients=read_only(coefficients),
        column_means=read_only(fitted.column_means - centred / (n - 1)),
    )


def _refits_one_by_one(outcomes: FloatArray, scores: FloatArray) -> RefitsWithout:
    kept = [np.arange(scores.size) != i for i in range(scores.size)]
    fits = [ridge.fit(outcomes[others], scores[others]) for others in kept]
    return RefitsWithout(
        intercepts=read_only(np.array([fitted.intercept for fitted in fits])),
        coefficients=read_only(np.array([fitted.coefficients for fitted in fits])),
        column_means=read_only(np.array([fitted.column_means for fitted in fits])),
    )


def _components(residuals: FloatArray, scaffolds: Sequence[str]) -> ScaffoldComponents:
    """One-way components by the method of moments, groups of unequal size, `between` truncated at 0."""
    residuals = residuals[~np.isnan(residuals)]
    group = np.unique(np.asarray(scaffolds), return_inverse=True)[1]
    sizes = np.bincount(group)
    n_groups, n = sizes.size, residuals.size
    means = np.bincount(group, weights=residuals) / sizes
    between_square = np.sum(sizes * (means - np.mean(residuals)) ** 2) / (n_groups - 1)
    if n == n_groups:
        return ScaffoldComponents(float(between_square), 0.0, n_groups, separated=False)
    within = np.sum((residuals - means[group]) ** 2) / (n - n_groups)
    per_group = (n - np.sum(sizes**2) / n) / (n_groups - 1)
    between = max(0.0, (between_square - within) / per_group)
    return ScaffoldComponents(float(between), float(within), n_groups, separated=True)


def _half_width(calibrator: Calibrator, source: Source) -> float:
    """Half-width of the sources that give every agent the same."""
    if source == "post-selection":
        return split_conformal(calibrator.post_selection)
    if source == "new scaffold" and calibrator.scaffold_components is not None:
        return calibrator.scaffold_components.half_width
    n = calibrator.n
    return _t(n - 1) * _root_mean_square(calibrator.residuals) * float(np.sqrt(1 + 1 / n))


def _root_mean_square(residuals: FloatArray) -> float:
    return float(np.sqrt(np.nanmean(residuals**2)))


def _jackknife_ends(calibrator: Calibrator, outcomes: FloatArray) -> tuple[FloatArray, FloatArray]:
    counted = ~np.isnan(calibrator.residuals)
    predictions = calibrator.without.predictions(outcomes)
    return jackknife_plus(predictions[:, counted], calibrator.residuals[counted])


def _ends(
    calibrator: Calibrator, outcomes: FloatArray, points: FloatArray, sources: Sequence[Source | None]
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends, shape (q,) each; NaN where an agent has no source or no ŷ."""
    lower, upper = np.full(points.size, np.nan), np.full(points.size, np.nan)
    for source in {source for source in sources if source is not None}:
        rows = np.array([source == other for other in sources]) & ~np.isnan(points)
        if source == "jackknife+":
            lower[rows], upper[rows] = _jackknife_ends(calibrator, outcomes[rows])
        else:
            half_width = _half_width(calibrator, source)
            lower[rows], upper[rows] = points[rows] - half_width, points[rows] + half_width
    return lower, upper


# ------------------------------------------------------------------------------------------------- reasons


def _note(calibrator: Calibrator, source: Source) -> str:
    n, parts = calibrator.n, calibrator.scaffold_components
    if source == "post-selection":
        return f"residuals of {calibrator.post_selection.size} agents drawn after activation"
    if source == "new scaffold" and parts is not None:
        alone = "" if parts.separated else ", one agent in each"
        return f"scaffold unseen in training; residuals of {parts.n_scaffolds} scaffolds held out{alone}"
    return f"leave-one-agent-out residuals of {n} agents"


def _why_none(calibrator: Calibrator, scaffold: str | None) -> str:
    if calibrator.is_new(scaffold):
        return (
            f"new scaffold, cannot be calibrated: residuals from {calibrator.n_scaffolds} scaffolds, "
            f"at least {FEWEST_SCAFFOLDS} are needed"
        )
    return f"residuals of {calibrator.n} agents; an interval needs at least {FEWEST_FOR_NORMAL}"


def _unpredictable(outcomes: FloatArray) -> NoInterval:
    n_missing, k = int(np.count_nonzero(np.isnan(outcomes))), outcomes.size
    return NoInterval(f"{n_missing} of {k} tasks of the subset are missing; at most {k // 10} may be", None)


def _concluded(
    calibrator: Calibrator, ends: tuple[float, float], point: float, source: Source
) -> Interval | NoInterval:
    """Return the interval, unless it is wider than the scores themselves."""
    answer = Interval(*ends, point, source, LEVEL, _note(calibrator, source))
    widest = WIDEST * calibrator.sd_scores
    if answer.half_width > widest:
        return NoInterval(
            f"{source}: a half-width of {answer.half_width:.4f} exceeds 1.96 standard deviations of the "
            f"training scores, {widest:.4f}",
            None,
        )
    return answer


# -------------------------------------------------------------------------------------------------- checks


def _checked_training(outcomes: FloatArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    outcomes, scores = np.array(outcomes, dtype=np.float64), np.array(scores, dtype=np.float64)
    if outcomes.ndim != 2 or scores.shape != outcomes.shape[:1]:
        raise ShapeMismatch(f"scores {scores.shape} for outcomes {outcomes.shape}")
    if not np.isfinite(scores).all():
        raise ScoreMissing(f"agent {int(np.argmin(np.isfinite(scores)))} has no full score")
    if scores.size < 2:
        raise TooFewAgents(f"a calibration needs at least 2 agents; there are {scores.size}")
    return outcomes, scores


def _checked_residuals(name: str, residuals: FloatArray | None, n_agents: int) -> FloatArray:
    """Residuals in agent order, all missing where none are given."""
    if residuals is None:
        return np.full(n_agents, np.nan)
    residuals = np.array(residuals, dtype=np.float64)
    if residuals.shape != (n_agents,):
        raise ShapeMismatch(f"{name} {residuals.shape} for {n_agents} agents")
    if np.isinf(residuals).any():
        raise ResidualRefused(f"{name}: agent {int(np.argmax(np.isinf(residuals)))} has an infinite residual")
    return residuals


def _checked_post_selection(residuals: FloatArray | None) -> FloatArray:
    residuals = np.abs(np.array([] if residuals is None else residuals, dtype=np.float64))
    if residuals.ndim != 1 or not np.isfinite(residuals).all():
        raise ResidualRefused("post_selection: every residual is a finite number")
    return residuals
