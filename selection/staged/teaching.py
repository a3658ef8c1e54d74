"""The agents that teach: the fit to them, S and the first batch, and how far estimates err.

Scale
-----
Errors of estimates from the first batch, y_i the full score of an agent that ran everything and π_i the
probability that it did::

    c² = (4·1² + Σ_i [(y_i − est_i)/se_i]²/π_i)/(4 + Σ_i 1/π_i)

over the 19 or more drawn agents' own estimates; else over the full runs as they came, each by those before
it, where there are 19; else over all full runs, each left out in turn. ν = 4 + the number of residuals.

Source
------
As in `selection.staged.walks`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask
from selection.bands import tasks_in_band
from selection.staged.model import Model, completed, estimate, fit
from selection.staged.walks import Fit, Scale, Staging

FIRST = 0.2
N_RESIDUALS, PSEUDO_RESIDUALS = 19, 4


@dataclass(frozen=True)
class FullRun:
    """A teaching agent that ran everything.

    Attributes
    ----------
    row : int
        Its place among the teaching agents.
    score : float
    probability : float
        π, that it ran everything.
    first, stopped : (float, float) or None
        est and se, c = 1, after its first batch; and where the rule would have stopped it, had it not been
        drawn.
    """

    row: int
    score: float
    probability: float = 1.0
    first: tuple[float, float] | None = None
    stopped: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Teaching:
    """The teaching agents in the order in which they came, and the fit to them.

    Attributes
    ----------
    outcomes : float array, shape (n, m)
        NaN where not run.
    scores : float array, shape (n,)
        Full scores of those that ran everything; NaN for the others.
    first : int array, shape (n,)
        As in `fit`.
    full_runs : tuple of FullRun
    subset : int array or None
        S once it is fixed.
    model : Model
    staging : Staging
    """

    outcomes: FloatArray
    scores: FloatArray
    first: IndexArray
    full_runs: tuple[FullRun, ...]
    subset: IndexArray | None
    model: Model
    staging: Staging

    @cached_property
    def completed(self) -> FloatArray:
        """Outcomes, and the model's probabilities where not run, (n, m)."""
        return completed(self.model, self.outcomes)

    @cached_property
    def estimates(self) -> FloatArray:
        """Measured or estimated full scores, (n,)."""
        return np.where(np.isnan(self.scores), self.completed.mean(axis=1), self.scores)

    @cached_property
    def bars(self) -> FloatArray:
        """Scores from the best down, (n,)."""
        return np.sort(np.round(self.estimates, DECIMALS))[::-1]

    @cached_property
    def ranking_tasks(self) -> IndexArray:
        """S: where it is not fixed, the band of the completed pass rates; empty where that is unsuited."""
        if self.subset is not None:
            return self.subset
        rule, rates = self.staging, self.completed.mean(axis=0)
        return tasks_in_band(rates, len(self.outcomes), lo=rule.lo, hi=rule.hi, widening=rule.widening)

    @cached_property
    def first_batch(self) -> IndexArray:
        """Tasks that every newcomer runs first, but for the audit tasks, ascending."""
        m = self.outcomes.shape[1]
        away = np.round(np.abs(self.completed[-self.staging.window :].mean(axis=0) - 0.5), DECIMALS)
        outside = ~np.isin(np.arange(m), self.ranking_tasks)
        return np.sort(np.lexsort((away, outside))[: first_size(m)])

    @cached_property
    def fit(self) -> Fit:
        """What a newcomer is asked and judged by."""
        bars, staging = self.bars, self.staging
        return Fit(
            model=self.model,
            first_batch=self.first_batch,
            ranking_tasks=self.ranking_tasks,
            podium=float(bars[min(staging.podium, bars.size) - 1]),
            best=float(bars[0]),
            scale=self.scale,
            staging=staging,
            n_teaching=len(self.outcomes),
            n_replayable=sum(1 for one in self.full_runs if one.stopped or one.first is None),
        )

    @cached_property
    def scale(self) -> Scale:
        """The factor of errors, c, and their degrees of freedom, ν."""
        drawn = [(one, one.stopped) for one in self.full_runs if one.stopped]
        as_they_came = [(one, one.first) for one in self.full_runs if one.first]
        for found in (drawn, as_they_came):
            if len(found) >= N_RESIDUALS:
                return scale_of(found)
        return scale_of([(one, self._left_out(one)) for one in self.full_runs])

    def _left_out(self, one: FullRun) -> tuple[float, float]:
        """Estimate a full run from the present first batch, by a fit without it."""
        kept = np.arange(len(self.outcomes)) != one.row
        first = self.first - (self.first > one.row)
        without = fit(self.outcomes[kept], first[kept], start=self._without(kept))
        seen = np.full(self.outcomes.shape[1], np.nan)
        seen[self.first_batch] = self.outcomes[one.row, self.first_batch]
        mean = float(self.model.means[one.row])
        found = estimate(without, seen, mean)
        return found.score, found.se

    def _without(self, kept: Mask) -> Model:
        return replace(self.model, abilities=self.model.abilities[kept])


def scale_of(found: Sequence[tuple[FullRun, tuple[float, float]]]) -> Scale:
    """Return c and ν from full runs and their estimates."""
    z2 = np.array([((one.score - score) / se) ** 2 for one, (score, se) in found])
    weights = np.array([1.0 / one.probability for one, _ in found])
    c2 = (PSEUDO_RESIDUALS + float(weights @ z2)) / (PSEUDO_RESIDUALS + float(weights.sum()))
    return Scale(float(np.sqrt(c2)), PSEUDO_RESIDUALS + len(found))


def taught(
    outcomes: FloatArray,
    scores: FloatArray,
    full_runs: Sequence[FullRun],
    staging: Staging,
    *,
    before: Teaching | None = None,
    first: IndexArray | None = None,
    subset: IndexArray | None = None,
) -> Teaching:
    """Fit the model anew, from the fit before; fix S with the agent that reaches `subset_from`.

    `subset` is S where it was fixed otherwise.
    """
    first = np.arange(len(outcomes)) if first is None else first
    model = fit(outcomes, first, start=before.model if before else None)
    subset = before.subset if before and subset is None else subset
    found = Teaching(outcomes, scores, first, tuple(full_runs), subset, model, staging)
    if found.subset is None and len(outcomes) >= staging.subset_from and found.ranking_tasks.size:
        return replace(found, subset=found.ranking_tasks)
    return found


def in_order(dates: Sequence[date | None], names: Sequence[str]) -> tuple[IndexArray, IndexArray]:
    """Return agents in order of (date, name), and how many came before each, as `fit` takes it.

    Where a date is missing they stay as they are, and share one μ.
    """
    n = len(names)
    if None in dates:
        return np.arange(n), np.zeros(n, dtype=np.intp)
    return np.array(sorted(range(n), key=lambda i: (dates[i], names[i])), dtype=np.intp), np.arange(n)


def first_size(m: int) -> int:
    """Return k₁, the tasks of a first batch."""
    return min(m // 2, max(10, round(FIRST * m)))
