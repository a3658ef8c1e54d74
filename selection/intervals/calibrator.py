"""What intervals of one board, or of one fold, are made from: a fitted estimator and its residuals.

Model and symbols: those of `selection.intervals`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from analytics.arrays import FloatArray, read_only
from selection.errors import SelectionError
from selection.full_scores import FullScores
from selection.intervals.quantiles import MIN_FOR_QUANTILE, split_conformal
from selection.intervals.scaffolds import MIN_SCAFFOLDS, ScaffoldComponents, components, t

Source = Literal["post-selection", "in time", "jackknife+", "normal", "new scaffold"]
MIN_FOR_NORMAL = 10


@dataclass(frozen=True, eq=False)
class Calibrator:
    """A fitted estimator and the residuals that tell how far off it is. Made by `calibrate`.

    residuals: (n_agents,); R_i; NaN for an agent no fold could predict.
    in_time, post_selection: (n_in_time,), (n_sampled,); absolute residuals of the temporal protocol, and of
        the agents sampled after activation.
    scaffolds: those of the training agents; None where scaffolds play no part.
    scaffold_components: None under 5 scaffolds.
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
    def sd_scores(self) -> float:
        """sd(y), divisor n_agents − 1; score."""
        return float(np.std(self.fitted.agents.scores, ddof=1))

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

    def half_width(self, source: Source) -> float:
        """Half-width of a source that gives every agent the same: all but jackknife+ and a new scaffold."""
        residuals = self.residuals_of(source)
        if source == "normal":
            n = residuals.size
            return t(n - 1) * root_mean_square(residuals) * float(np.sqrt(1 + 1 / n))
        return split_conformal(residuals)

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
    """Gather what intervals are made from.

    fitted: on the active subset.
    residuals: (n_agents,); y_i − ŷ_i, or its absolute value, from the fold that holds agent i out and selects
        its own subset; NaN where no fold could predict the agent.
    in_time: (n_in_time,); y − ŷ of the temporal protocol; NaN is left out.
    post_selection: (n_sampled,); y − ŷ of agents drawn at random from those submitted after activation.
    scaffolds: length n_agents; without it no agent's scaffold counts as new.
    scaffold_residuals: (n_agents,); y_i − ŷ_i, signed, from the fold that holds agent i's whole scaffold out;
        NaN where there is none.
    Raises SelectionError: no_scaffolds, shape, infinite; what the estimator refuses, when the first
        prediction is made.
    """
    n = fitted.n
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


def root_mean_square(residuals: FloatArray) -> float:
    """√(Σe²/n), score."""
    return float(np.sqrt(np.mean(residuals**2)))


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
