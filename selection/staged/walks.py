"""Which tasks an agent runs next, and whether it goes on: contenders run everything, the others stop early.

Rule
----
From five teaching agents on (`staged_from`) a newcomer is asked in batches.

1. *First batch*: of S the k₁ = min(⌊m/2⌋, max(10, round(m/5))) tasks whose pass rate among the latest ten
   teaching agents, completed by the model, is nearest to ½; where S has fewer, all of S and the nearest
   others. Beside them audit tasks, drawn from outside S: a tenth of k₁, two at least.
2. *Go on* where tasks are left and se > .03; or est + z·se ≥ b_P, and se ≥ .01 or est + z·se ≥ b₁. b_P is the
   score of the P-th best teaching agent (``podium``, 3), b₁ the best, z = 2.
3. *Next batch*: max(3, round(.15 m)) of the others with the largest P(1 − P), a tenth of them drawn.
4. *Drawn*: an agent that the rule would stop runs the rest all the same with probability q, after its
   estimate was kept, so that estimates can be judged: q = .25 until 30 full runs can be replayed, then .10.

Scale
-----
Errors of estimates from the first batch, y_i the full score of an agent that ran everything and π_i the
probability that it did::

    c² = (4·1² + Σ_i [(y_i − est_i)/se_i]²/π_i)/(4 + Σ_i 1/π_i)

over the 19 or more drawn agents' own estimates; else over the full runs as they came, each by those before
it, where there are 19; else over all full runs, each left out in turn. est ± t_ν·c·se is the 95% interval, ν
= 4 + the number of residuals.

Source
------
Tasks by information: Lord, *Applications of Item Response Theory*, 1980. The rule and its constants are this
project's own, tried on 17 histories.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask
from selection.bands import HI, LO, tasks_in_band
from selection.errors import SelectionError
from selection.folds import generator
from selection.staged.model import Estimate, Model, completed, estimate, fit

FIRST, NEXT, DRAWN, AUDITED = 0.2, 0.15, 0.1, 0.1
KNOWN, PRECISE = 0.03, 0.01
N_REPLAYABLE, EARLY_SHARE, LATE_SHARE = 30, 0.25, 0.1
N_RESIDUALS, PSEUDO_RESIDUALS = 19, 4


class StagedRefused(SelectionError):
    """A setting of staged assignment is out of range."""


@dataclass(frozen=True)
class Staging:
    """The policy of staged assignment.

    Attributes
    ----------
    podium : int
        P, the places at the top that are always run in full.
    staged_from : int
        Teaching agents from which on newcomers are asked in batches.
    draw_share : float or None
        q; None: .25 until 30 full runs can be replayed, then .10.
    reach : float
        z.
    precise : float
        The standard error below which only a possible leader goes on.
    subset_from, lo, hi, widening, window : int, float, float, bool, int
        When S is fixed, which band it is, and how many of the latest agents the first batch looks at.
    """

    podium: int = 3
    staged_from: int = 5
    draw_share: float | None = None
    reach: float = 2.0
    precise: float = PRECISE
    subset_from: int = 15
    lo: float = LO
    hi: float = HI
    widening: bool = True
    window: int = 10

    def __post_init__(self) -> None:
        """Check."""
        ranges = {
            "podium": (self.podium >= 1, "at least 1"),
            "staged_from": (self.staged_from >= 5, "at least 5"),
            "draw_share": (self.draw_share is None or 0.0 <= self.draw_share <= 1.0, "from 0 to 1"),
            "reach": (self.reach > 0.0, "above 0"),
            "precise": (0.0 <= self.precise < 1.0, "from 0 to 1"),
            "window": (self.window >= 1, "at least 1"),
        }
        for name, (holds, rule) in ranges.items():
            if not holds:
                raise StagedRefused(f"{name} = {getattr(self, name)} is out of range: it has to be {rule}")


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
    def scale(self) -> "Scale":
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


@dataclass(frozen=True)
class Scale:
    """c, ν, and the number of residuals behind them."""

    c: float
    degrees: int

    @property
    def quantile(self) -> float:
        """t_{ν,.975}."""
        return float(stdtrit(self.degrees, 0.975))


@dataclass(frozen=True)
class Decision:
    """Whether an agent goes on.

    Attributes
    ----------
    goes_on : bool
    reason : str
    score, se : float
        est and c·se.
    """

    goes_on: bool
    reason: str
    score: float
    se: float


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
) -> Teaching:
    """Fit the model anew, from the fit before; fix S with the agent that reaches `subset_from`."""
    first = np.arange(len(outcomes)) if first is None else first
    model = fit(outcomes, first, start=before.model if before else None)
    subset = before.subset if before else None
    found = Teaching(outcomes, scores, first, tuple(full_runs), subset, model, staging)
    if found.subset is None and len(outcomes) >= staging.subset_from and found.ranking_tasks.size:
        return replace(found, subset=found.ranking_tasks)
    return found


def first_size(m: int) -> int:
    """Return k₁, the tasks of a first batch."""
    return min(m // 2, max(10, round(FIRST * m)))


def audit_tasks(teaching: Teaching, seed: int, agent: str) -> IndexArray:
    """Draw tasks from outside of S and of the first batch, ascending."""
    m, batch = teaching.outcomes.shape[1], teaching.first_batch
    left = np.setdiff1d(np.arange(m), np.union1d(batch, teaching.ranking_tasks))
    n = min(left.size, max(2, round(AUDITED * batch.size)))
    return np.sort(generator(seed, "staged audit", agent).choice(left, n, replace=False))


def next_batch(passing: FloatArray, asked: Mask, seed: int, agent: str) -> IndexArray:
    """Return the tasks to run next, ascending: those that tell most, and some that are drawn."""
    m, left = asked.size, np.flatnonzero(~asked)
    size = min(max(3, round(NEXT * m)), left.size)
    n_drawn = round(DRAWN * size) if size < left.size else 0
    telling = np.round(passing[left] * (1.0 - passing[left]), DECIMALS)
    order = left[np.argsort(-telling, kind="stable")]
    chosen, rest = order[: size - n_drawn], order[size - n_drawn :]
    rng = generator(seed, "staged batch", agent, int(asked.sum()))
    return np.sort(np.concatenate([chosen, rng.choice(rest, n_drawn, replace=False)]))


def decide(teaching: Teaching, found: Estimate, n_left: int) -> Decision:
    """Say whether an agent with this estimate goes on, of which so many tasks are left."""
    staging, se = teaching.staging, teaching.scale.c * found.se
    most = round(found.score + staging.reach * se, DECIMALS)
    bars = teaching.bars
    podium, best = bars[min(staging.podium, bars.size) - 1], bars[0]
    known, least = f"known to ±{100 * se:.1f} points", round(se, DECIMALS)
    if not n_left:
        goes_on, reason = False, "it ran all tasks"
    elif least > KNOWN:
        goes_on, reason = True, f"its score is {known}; {100 * KNOWN:g} are needed"
    elif most < podium:
        goes_on, reason = False, f"it reaches {most:.1%} at most; place {staging.podium} has {podium:.1%}"
    elif least < staging.precise and most < best:
        goes_on, reason = False, f"its score is {known}, and below the best one, {best:.1%}"
    else:
        goes_on, reason = True, f"it may reach place {staging.podium}, which has {podium:.1%}"
    return Decision(goes_on, reason, found.score, se)


def share_drawn(staging: Staging, n_replayable: int) -> float:
    """Return the probability q that an agent is drawn."""
    if staging.draw_share is not None:
        return staging.draw_share
    return EARLY_SHARE if n_replayable < N_REPLAYABLE else LATE_SHARE


def is_drawn(seed: int, agent: str, share: float) -> bool:
    """Whether an agent is drawn, once and for all, whatever it does."""
    return bool(generator(seed, "staged draw", agent).random() < share)
