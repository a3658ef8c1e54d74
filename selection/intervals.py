"""Intervals of an estimated score: what a full run would show, given the outcomes on the subset.

The theory is in ``selection/README.md``, “Intervals of an estimated score”. A prequential interval is the
split conformal one of the residuals of strictly earlier dates, from 19 on; Wilson's one-sided upper 95% bound
of their coverage decides whether the nominal level is refuted.

===========  ====================================  ==========================  ==========
symbol       code                                  shape                       unit
===========  ====================================  ==========================  ==========
R            ``residuals``                         (n,), NaN: no fold          score
e            ``in_time``, ``post_selection``       (n_in_time,), (n_sampled,)  score
μ₋ᵢ(x)       ``fitted.predict_without(x)``         (q, n)                      score
s_cal        ``ScoreInterval.s_cal``               scalar                      score
σ_s², σ_e²   ``ScaffoldComponents``                scalars                     score²
===========  ====================================  ==========================  ==========

An agent with a full run has none: its score is measured. What an agent's own outcomes leave open bounds its
interval further, in `selection.standings.full_scores`.

Source: Barber, Candès, Ramdas & Tibshirani, *Annals of Statistics* 49 (2021) 486-507, §1.2 and Theorem 1.
Vovk, Gammerman & Shafer, *Algorithmic Learning in a Random World*, 2005 (split conformal). Dunn, Wasserman &
Ramdas, *JASA* 118 (2023) 2491-2502 (new groups). Searle, Casella & McCulloch, *Variance Components*, 1992,
ch. 3 (unequal groups). Dawid, *JRSS A* 147 (1984) 278-292 (prequential). Ndzomga, *Efficient Benchmarking of
AI Agents*, §5.1, Phase 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import DECIMALS, FloatArray, read_only
from analytics.differences.estimates import wilson
from selection import ridge
from selection.errors import SelectionError
from selection.full_scores import FullScores
from selection.schema.board import CoverageLine

Source = Literal["post-selection", "in time", "jackknife+", "normal", "new scaffold"]
LEVEL = 0.95
ONE_IN = 20
MIN_FOR_QUANTILE = ONE_IN - 1
MIN_FOR_NORMAL = 10
MIN_SCAFFOLDS = 5
WIDEST = 1.96
NOT_CALIBRATED = "new scaffold: not calibrated for it"


# ----------------------------------------------------------------------------------------------- residuals


def split_conformal(residuals: FloatArray) -> float:
    """Half-width of split conformal prediction: the ⌈.95(n + 1)⌉-th smallest absolute residual, n ≥ 19."""
    residuals = np.abs(np.asarray(residuals, dtype=np.float64))
    return float(np.sort(residuals)[_upper_rank(residuals.size) - 1])


def jackknife_plus(predictions: FloatArray, residuals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Give the ends of the jackknife+ interval at nominal 95% (Barber et al. 2021, §1.2, α = .05), (q,) each.

    The ⌊.05(n + 1)⌋-th smallest of μ₋ᵢ(x) − R_i and the ⌈.95(n + 1)⌉-th smallest of μ₋ᵢ(x) + R_i.

    predictions: (q, n); μ₋ᵢ(x), n ≥ 19.
    residuals: (n,); R_i ≥ 0.
    """
    rank = _upper_rank(residuals.size)
    lower = np.sort(predictions - residuals, axis=1)[:, residuals.size - rank]
    return lower, np.sort(predictions + residuals, axis=1)[:, rank - 1]


def _upper_rank(n: int) -> int:
    """⌈.95(n + 1)⌉ = n + 1 − ⌊(n + 1)/20⌋, in whole numbers."""
    if n < MIN_FOR_QUANTILE:
        raise SelectionError(
            f"{n} residuals; a 95% quantile of them is finite from {MIN_FOR_QUANTILE} on",
            code="too_few_residuals",
        )
    return n + 1 - (n + 1) // ONE_IN


def root_mean_square(residuals: FloatArray) -> float:
    """√(Σe²/n), score."""
    return float(np.sqrt(np.mean(residuals**2)))


def t(degrees: int) -> float:
    """97.5% quantile of Student's t."""
    return float(stdtrit(degrees, (1 + LEVEL) / 2))


@dataclass(frozen=True)
class ScaffoldComponents:
    """One-way components of the leave-one-scaffold-out residuals, score².

    between, within: σ_s², truncated at 0, and σ_e².
    n_scaffolds: G.
    separated: False with one agent in every scaffold: `between` stands for both and `within` is 0.
    """

    between: float
    within: float
    n_scaffolds: int
    separated: bool

    @property
    def s_cal(self) -> float:
        """√(σ_s²(1 + 1/G) + σ_e²); score."""
        return float(np.sqrt(self.between * (1 + 1 / self.n_scaffolds) + self.within))

    @property
    def half_width(self) -> float:
        """t_{G−1}·s_cal; score."""
        return t(self.n_scaffolds - 1) * self.s_cal


def components(residuals: FloatArray, scaffolds: Sequence[str]) -> ScaffoldComponents:
    """One-way components by the method of moments, groups of unequal size, `between` truncated at 0.

    residuals: (n_agents,); NaN where there is none.
    scaffolds: of those that have one, in order; G ≥ 2.
    """
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


@dataclass(frozen=True, eq=False)
class Calibrator:
    """A fitted estimator and its residuals. Made by `calibrate`.

    residuals: (n_agents,); R_i; NaN for an agent no fold could predict.
    in_time, post_selection: absolute residuals of the temporal protocol, and of the agents sampled after
        activation.
    scaffolds: those of the training agents; None where scaffolds play no part.
    n_scaffolds: scaffolds with a leave-one-scaffold-out residual, G.
    """

    fitted: FullScores
    residuals: FloatArray
    in_time: FloatArray
    post_selection: FloatArray
    scaffolds: frozenset[str] | None
    scaffold_components: ScaffoldComponents | None
    n_scaffolds: int

    @property
    def left_out(self) -> FloatArray:
        """R_i that are known, shape (n_left_out,)."""
        return self.residuals[~np.isnan(self.residuals)]

    @property
    def source(self) -> Source | None:
        """What the interval of an agent of a known scaffold comes from; None where there is none."""
        if self.post_selection.size >= MIN_FOR_QUANTILE:
            return "post-selection"
        if self.in_time.size >= MIN_FOR_QUANTILE:
            return "in time"
        if self.left_out.size >= MIN_FOR_QUANTILE:
            return "jackknife+"
        return "normal" if self.left_out.size >= MIN_FOR_NORMAL else None

    def residuals_of(self, source: Source) -> FloatArray:
        """Absolute residuals that a source uses, but for a new scaffold."""
        return {"post-selection": self.post_selection, "in time": self.in_time}.get(source, self.left_out)

    def is_new(self, scaffold: str | None) -> bool:
        """Whether no training agent has this scaffold; an agent of unknown scaffold is not new."""
        return self.scaffolds is not None and scaffold is not None and scaffold not in self.scaffolds

    def error(self, source: Source) -> tuple[float, float]:
        """s_cal and its degrees of freedom."""
        if source == "new scaffold" and self.scaffold_components is not None:
            return self.scaffold_components.s_cal, self.n_scaffolds - 1.0
        residuals = self.residuals_of(source)
        return root_mean_square(residuals), residuals.size - 1.0


def calibrate(
    fitted: FullScores,
    residuals: FloatArray,
    *,
    in_time: FloatArray | None = None,
    post_selection: FloatArray | None = None,
    scaffolds: Sequence[str] | None = None,
    scaffold_residuals: FloatArray | None = None,
) -> Calibrator:
    """Gather what intervals are made from, y − ŷ of agents that the fit did not see; NaN where there is none.

    residuals: (n_agents,); or its absolute value, from the fold that holds agent i out and selects its own
        subset.
    in_time: of the temporal protocol.
    post_selection: of agents drawn at random from those submitted after activation.
    scaffolds: length n_agents; without it no agent's scaffold counts as new.
    scaffold_residuals: (n_agents,); from the fold that holds agent i's whole scaffold out.
    Raises SelectionError (no_scaffolds, shape, infinite).
    """
    n = fitted.agents.n
    by_scaffold = _for_each_agent("scaffold_residuals", scaffold_residuals, n)
    if scaffold_residuals is not None and scaffolds is None:
        raise SelectionError("leave-one-scaffold-out residuals, but no scaffolds", code="no_scaffolds")
    if scaffolds is not None and len(scaffolds) != n:
        raise SelectionError(f"{len(scaffolds)} scaffolds for {n} agents", code="shape")
    held_out = [name for name, r in zip(scaffolds or (), by_scaffold, strict=False) if not np.isnan(r)]
    n_scaffolds = len(set(held_out))
    return Calibrator(
        fitted=fitted,
        residuals=read_only(np.abs(_for_each_agent("residuals", residuals, n))),
        in_time=read_only(_known("in_time", in_time)),
        post_selection=read_only(_known("post_selection", post_selection)),
        scaffolds=None if scaffolds is None else frozenset(scaffolds),
        scaffold_components=components(by_scaffold, held_out) if n_scaffolds >= MIN_SCAFFOLDS else None,
        n_scaffolds=n_scaffolds,
    )


def _for_each_agent(name: str, residuals: FloatArray | None, n_agents: int) -> FloatArray:
    """Residuals in agent order, all missing where none are given."""
    if residuals is None:
        return np.full(n_agents, np.nan)
    residuals = np.array(residuals, dtype=np.float64)
    if residuals.shape != (n_agents,):
        raise SelectionError(f"{name} {residuals.shape} for {n_agents} agents", code="shape")
    if np.isinf(residuals).any():
        i = int(np.argmax(np.isinf(residuals)))
        raise SelectionError(f"{name}: agent {i} has an infinite residual", code="infinite")
    return residuals


def _known(name: str, residuals: FloatArray | None) -> FloatArray:
    sizes = np.abs(np.array([] if residuals is None else residuals, dtype=np.float64))
    if sizes.ndim != 1:
        raise SelectionError(f"{name} {sizes.shape}; it is a list", code="shape")
    if np.isinf(sizes).any():
        raise SelectionError(f"{name}: an infinite residual", code="infinite")
    return np.asarray(sizes[~np.isnan(sizes)])


# ----------------------------------------------------------------------------------------------- intervals


@dataclass(frozen=True)
class ScoreInterval:
    """A prediction interval for the score of a full run, nominal 95%.

    lower, upper: clipped to [0, 1]; score.
    point: ŷ, not clipped.
    half_width: before clipping; score.
    s_cal, df: standard error for comparisons, score, and its degrees of freedom.
    note: what it rests on, with the numbers.
    """

    lower: float
    upper: float
    point: float
    half_width: float
    source: Source
    s_cal: float
    df: float
    note: str


@dataclass(frozen=True)
class NoInterval:
    """Why there is no interval.

    point: ŷ where it may be shown without an interval; None where it may not.
    """

    reason: str
    point: float | None


def intervals(
    calibrator: Calibrator, outcomes: FloatArray, scaffolds: Sequence[str | None] | None = None
) -> tuple[ScoreInterval | NoInterval, ...]:
    """Give each agent its interval by the first source that applies, or the reason why it has none.

    outcomes: (q, k); mean outcomes on the active subset; NaN where missing.
    scaffolds: length q; None: not known, so not new.
    Raises SelectionError (shape, outcome_range), and what the estimator refuses.
    """
    outcomes = np.asarray(outcomes, dtype=np.float64)
    predictable = ridge.predictable(outcomes)
    scaffolds = [None] * len(outcomes) if scaffolds is None else scaffolds
    if len(scaffolds) != len(outcomes):
        raise SelectionError(f"{len(scaffolds)} scaffolds for {len(outcomes)} agents", code="shape")
    points, ends = np.full(len(outcomes), np.nan), np.full((2, len(outcomes)), np.nan)
    points[predictable] = calibrator.fitted.predict(outcomes[predictable])
    ends[:, predictable] = _ends(calibrator, outcomes[predictable], points[predictable])
    answers: list[ScoreInterval | NoInterval] = []
    for i, (row, scaffold) in enumerate(zip(outcomes, scaffolds, strict=True)):
        if predictable[i]:
            of_known = (float(ends[0, i]), float(ends[1, i]))
            answers.append(_answer(calibrator, float(points[i]), of_known, scaffold))
            continue
        n_missing, k = int(np.count_nonzero(np.isnan(row))), row.size
        missing = f"{n_missing} of {k} tasks of the subset are missing; at most {k // 10} may be"
        answers.append(NoInterval(missing, None))
    return tuple(answers)


def _ends(calibrator: Calibrator, outcomes: FloatArray, points: FloatArray) -> FloatArray:
    """Lower and upper ends by the source of known scaffolds, shape (2, q); NaN where there is none."""
    source = calibrator.source
    if source is None or not points.size:
        return np.full((2, points.size), np.nan)
    if source == "jackknife+":
        predictions = calibrator.fitted.predict_without(outcomes)[:, ~np.isnan(calibrator.residuals)]
        return np.array(jackknife_plus(predictions, calibrator.left_out))
    residuals = calibrator.residuals_of(source)
    n = residuals.size
    if source == "normal":
        half_width = t(n - 1) * root_mean_square(residuals) * float(np.sqrt(1 + 1 / n))
    else:
        half_width = split_conformal(residuals)
    return np.array([points - half_width, points + half_width])


def _answer(
    calibrator: Calibrator, point: float, ends: tuple[float, float], scaffold: str | None
) -> ScoreInterval | NoInterval:
    """Return the interval, that of a new scaffold where it is wider, unless it is wider than the scores."""
    source, is_new, parts = calibrator.source, calibrator.is_new(scaffold), calibrator.scaffold_components
    if source is None:
        n = calibrator.left_out.size
        return NoInterval(f"residuals of {n} agents; an interval needs at least {MIN_FOR_NORMAL}", point)
    half_width = (ends[1] - ends[0]) / 2
    if is_new and parts is not None and parts.half_width > half_width:
        source, half_width = "new scaffold", parts.half_width
        ends = (point - half_width, point + half_width)
    widest = WIDEST * float(np.std(calibrator.fitted.agents.scores, ddof=1))
    if half_width > widest:
        return NoInterval(
            f"{source}: a half-width of {half_width:.4f} exceeds 1.96 standard deviations of the training "
            f"scores, {widest:.4f}",
            None,
        )
    lower, upper = (min(max(end, 0.0), 1.0) for end in ends)
    n = calibrator.residuals_of(source).size
    if source == "new scaffold" and parts is not None:
        alone = "" if parts.separated else ", one agent in each"
        note = f"scaffold unseen in training; residuals of {parts.n_scaffolds} scaffolds held out{alone}"
    elif source == "post-selection":
        note = f"residuals of {n} agents drawn after activation"
    elif source == "in time":
        note = f"residuals of {n} agents, each predicted from those that came before it"
    else:
        note = f"leave-one-agent-out residuals of {n} agents"
    if is_new and parts is None:
        few = f"residuals from {calibrator.n_scaffolds} scaffolds, at least {MIN_SCAFFOLDS} are needed"
        note += f"; {NOT_CALIBRATED} ({few})"
    return ScoreInterval(lower, upper, point, half_width, source, *calibrator.error(source), note)


# ---------------------------------------------------------------------------------------------- prequential


def prequential(residuals: FloatArray, dates: Sequence[date | None], estimator: str = "") -> CoverageLine:
    """Count the residuals inside the interval made from those of strictly earlier dates.

    residuals: (n,); y − ŷ of the temporal protocol; NaN where there is none.
    dates: length n; None only where there is no residual.
    """
    errors = [(day, abs(e)) for e, day in zip(residuals.tolist(), dates, strict=True) if day and e == e]
    n = n_covered = 0
    for day in sorted({day for day, _ in errors}):
        earlier = np.array([e for other, e in errors if other < day])
        if earlier.size < MIN_FOR_QUANTILE:
            continue
        half_width = round(split_conformal(earlier), DECIMALS)
        inside = [round(e, DECIMALS) <= half_width for other, e in errors if other == day]
        n, n_covered = n + len(inside), n_covered + sum(inside)
    if not n:
        return CoverageLine(estimator, 0, 0, None, None, falls_short=False)
    share = n_covered / n
    upper = wilson(share, n, LEVEL)[1]
    return CoverageLine(estimator, n, n_covered, share, upper, upper < LEVEL)
