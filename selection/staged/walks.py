"""Which tasks an agent runs next, and whether it goes on: contenders run everything, the others stop early.

The theory is in ``selection/README.md``, “Staged assignment”.

Source: Tasks by information: Lord, *Applications of Item Response Theory*, 1980. The rule and its constants
are this project's own, tried on 17 histories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask, read_only
from selection.bands import HI, LO
from selection.errors import check_ranges
from selection.folds import generator
from selection.staged.model import ModelEstimate, StagedModel, estimate

NEXT, DRAWN, AUDITED = 0.15, 0.1, 0.1
KNOWN, PRECISE = 0.03, 0.01
N_REPLAYABLE, EARLY_SHARE, LATE_SHARE = 30, 0.25, 0.1
PLAIN = ("podium", "best", "n_teaching", "n_replayable")
NO_TASKS = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Staging:
    """The policy of staged assignment.

    podium: P, the first places. Who may reach them runs on, unless se < `precise` and it cannot lead.
    staged_from: teaching agents from which on newcomers are asked in batches.
    draw_share: q; None: .25 until 30 full runs can be replayed, then .10.
    subset_from, lo, hi, widening: when S is fixed, and which band it is.
    window: how many of the latest agents the first batch looks at.
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
        ranges = {
            "podium": (self.podium >= 1, "at least 1"),
            "staged_from": (self.staged_from >= 5, "at least 5"),
            "draw_share": (self.draw_share is None or 0.0 <= self.draw_share <= 1.0, "from 0 to 1"),
            "reach": (self.reach > 0.0, "above 0"),
            "precise": (0.0 <= self.precise < 1.0, "from 0 to 1"),
            "window": (self.window >= 1, "at least 1"),
        }
        check_ranges(self, "staging_range", **ranges)


@dataclass(frozen=True)
class Scale:
    """c, ν, and the number of residuals behind them."""

    c: float
    degrees: int

    @property
    def quantile(self) -> float:
        """t_{ν,.975}."""
        return float(stdtrit(self.degrees, 0.975))


@dataclass(frozen=True, eq=False)
class Fit:
    """The fit and the rules by which a newcomer is judged.

    model: to the teaching agents; of these the last ten are enough.
    first_batch, ranking_tasks: tasks that every newcomer runs first, but for the audit tasks; and S.
        Ascending.
    n_teaching, n_replayable: teaching agents; those of them whose full runs the rule did not choose.
    """

    model: StagedModel
    first_batch: IndexArray
    ranking_tasks: IndexArray
    podium: float
    best: float
    scale: Scale
    staging: Staging
    n_teaching: int
    n_replayable: int

    @property
    def n_tasks(self) -> int:
        """All tasks of the fit."""
        return self.model.difficulties.size

    @property
    def share_drawn(self) -> float:
        """The probability that an agent which stops is drawn."""
        if self.staging.draw_share is not None:
            return self.staging.draw_share
        return EARLY_SHARE if self.n_replayable < N_REPLAYABLE else LATE_SHARE

    def as_plain(self) -> dict[str, Any]:
        """Return what `from_plain` reads: numbers, lists and texts."""
        model = self.model
        return {
            "difficulties": model.difficulties.tolist(),
            "difficulty_variances": model.difficulty_variances.tolist(),
            "mean": model.next_mean,
            "spread": model.spread,
            "dispersion": model.dispersion,
            "first_batch": self.first_batch.tolist(),
            "ranking_tasks": self.ranking_tasks.tolist(),
            "scale": asdict(self.scale),
            "staging": asdict(self.staging),
            **{name: getattr(self, name) for name in PLAIN},
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Fit":
        """Read it again; of the teaching agents the mean of the last ten is left."""
        latest = np.array([plain["mean"]])
        model = StagedModel(
            abilities=latest,
            difficulties=read_only(np.array(plain["difficulties"])),
            difficulty_variances=read_only(np.array(plain["difficulty_variances"])),
            means=latest,
            spread=plain["spread"],
            dispersion=plain["dispersion"],
        )
        return cls(
            model=model,
            first_batch=np.array(plain["first_batch"], dtype=np.intp),
            ranking_tasks=np.array(plain["ranking_tasks"], dtype=np.intp),
            scale=Scale(**plain["scale"]),
            staging=Staging(**plain["staging"]),
            **{name: plain[name] for name in PLAIN},
        )


class Stage(StrEnum):
    """Where a walk stands."""

    RUNNING = "running"
    STOPPED = "stopped"
    DRAWN = "drawn"
    COMPLETE = "complete"


@dataclass(frozen=True)
class WalkEstimate:
    """A full score as it was estimated: est, its 95% interval, c·se, and se of the model alone."""

    score: float
    lower: float
    upper: float
    se: float
    model_se: float


@dataclass(frozen=True)
class Step:
    """Where a walk stands, and what comes next.

    stage: stopped and complete walks are over; a drawn one has an estimate, and runs the rest.
    waiting: tasks that were asked for and are not there yet, in the order asked.
    batch: tasks to ask for next, ascending; empty while some are waiting.
    estimate: None before the first batch is there, while tasks are waiting, and where all ran.
    """

    stage: Stage
    waiting: tuple[int, ...]
    batch: tuple[int, ...]
    reason: str
    estimate: WalkEstimate | None = None


def step(
    fit: Fit,
    *,
    assigned_tasks: Sequence[int],
    outcomes: FloatArray,
    delivered: Mask,
    active: Mask,
    seed: int,
    agent: str,
) -> Step:
    """Say what an agent runs next, and what its outcomes show so far.

    assigned_tasks: tasks that it was asked for, in that order; empty at first.
    outcomes: (m,); 0 to 1; NaN where there is none. Of tasks that were not asked for they are not looked at.
    delivered, active: (m,); tasks that the agent has delivered; tasks that may be asked for.
    seed: of draws, together with `agent`; who knows it knows them.
    """
    order = np.array(assigned_tasks, dtype=np.intp)
    if not order.size:
        first = np.union1d(fit.first_batch, audit_tasks(fit, seed, agent))
        return Step(Stage.RUNNING, (), _active_tasks(first, active), "the first batch")
    if (waiting := order[(active & ~delivered)[order]]).size:
        return Step(Stage.RUNNING, tuple(waiting.tolist()), (), f"{waiting.size} tasks are waiting")
    done = ~active
    done[order] = True
    here = np.where(done & delivered, outcomes, np.nan)[active]
    if done.all():
        return Step(Stage.COMPLETE, (), (), "it ran all tasks")
    model = replace(
        fit.model,
        difficulties=fit.model.difficulties[active],
        difficulty_variances=fit.model.difficulty_variances[active],
    )
    result = estimate(model, here, model.next_mean)
    goes_on, reason = decide(fit, result, int(np.count_nonzero(~done)))
    if goes_on:
        passing = np.zeros(fit.n_tasks)
        passing[active] = result.passing
        stage, batch = Stage.RUNNING, next_batch(passing, done, seed, agent)
    else:
        is_so = is_drawn(seed, agent, fit.share_drawn)
        stage, batch = (Stage.DRAWN, np.flatnonzero(~done)) if is_so else (Stage.STOPPED, NO_TASKS)
    return Step(
        stage=stage,
        waiting=(),
        batch=_active_tasks(batch, active),
        reason=reason,
        estimate=_with_interval(result, fit.scale),
    )


def estimated(model: StagedModel, outcomes: FloatArray, mean: float, scale: Scale) -> WalkEstimate:
    """Score one agent on a fit, from whatever it ran; see `selection.staged.model.estimate`."""
    return _with_interval(estimate(model, outcomes, mean), scale)


def _with_interval(result: ModelEstimate, scale: Scale) -> WalkEstimate:
    se = scale.c * result.se
    half = scale.quantile * se
    lower, upper = max(result.score - half, 0.0), min(result.score + half, 1.0)
    return WalkEstimate(result.score, lower, upper, se, result.se)


def _active_tasks(tasks: IndexArray, active: Mask) -> tuple[int, ...]:
    return tuple(tasks[active[tasks]].tolist())


def audit_tasks(fit: Fit, seed: int, agent: str) -> IndexArray:
    """Draw tasks from outside of S and of the first batch, ascending."""
    batch = fit.first_batch
    left = np.setdiff1d(np.arange(fit.n_tasks), np.union1d(batch, fit.ranking_tasks))
    n = min(left.size, max(2, round(AUDITED * batch.size)))
    return np.sort(generator(seed, "staged audit", agent).choice(left, n, replace=False))


def next_batch(passing: FloatArray, is_assigned: Mask, seed: int, agent: str) -> IndexArray:
    """Return the tasks to run next, ascending: the most informative ones, and some that are drawn."""
    m, left = is_assigned.size, np.flatnonzero(~is_assigned)
    size = min(max(3, round(NEXT * m)), left.size)
    n_drawn = round(DRAWN * size) if size < left.size else 0
    telling = np.round(passing[left] * (1.0 - passing[left]), DECIMALS)
    order = left[np.argsort(-telling, kind="stable")]
    chosen, rest = order[: size - n_drawn], order[size - n_drawn :]
    rng = generator(seed, "staged batch", agent, int(is_assigned.sum()))
    return np.sort(np.concatenate([chosen, rng.choice(rest, n_drawn, replace=False)]))


def decide(fit: Fit, result: ModelEstimate, n_left: int) -> tuple[bool, str]:
    """Say whether an agent with this estimate and so many tasks left goes on, and why."""
    staging, se = fit.staging, fit.scale.c * result.se
    most = round(result.score + staging.reach * se, DECIMALS)
    podium, best = fit.podium, fit.best
    least, digits = round(se, DECIMALS), _digits(most, podium, best)
    error = f"{100 * least:.{_digits(least, KNOWN, staging.precise)}f}"
    known = f"its standard error is {'under 0.05' if error == '0.0' else error} points"
    reach = f"its score plus {staging.reach:g} standard errors is {most:.{digits}%}"
    third = f"place {staging.podium} has {podium:.{digits}%}"
    if not n_left:
        return False, "it ran all tasks"
    if least > KNOWN:
        return True, f"{known}; at most {100 * KNOWN:g} are allowed"
    if most < podium:
        return False, f"{reach}, and {third}"
    if least < staging.precise:
        leads = most >= best
        may = "may" if leads else "is unlikely to"
        return leads, f"{known}, and it {may} lead: {reach}, and the best has {best:.{digits}%}"
    return True, f"it may reach the podium: {reach}, and {third}"


def _digits(share: float, *bars: float) -> int:
    """Return how many digits of a percentage tell a share from the bars that differ from it."""
    others = [bar for bar in bars if bar != share]
    digits = (n for n in range(1, DECIMALS - 1) if all(f"{share:.{n}%}" != f"{bar:.{n}%}" for bar in others))
    return next(digits, 1)


def recalled(scores: FloatArray, errors: FloatArray, staging: Staging) -> IndexArray:
    """Say who stands on the podium by an estimate and has to run the rest, ascending.

    scores: (n,); of all that are ranked, measured or estimated.
    errors: (n,); c·se of those that were estimated; NaN for the others.
    """
    shown = np.round(scores, DECIMALS)
    place = 1 + shown.size - np.searchsorted(np.sort(shown), shown, side="right")
    most, se = np.round(scores + staging.reach * errors, DECIMALS), np.round(errors, DECIMALS)
    beaten = (se < staging.precise) & (most < shown.max(initial=0.0))
    return np.flatnonzero(~np.isnan(errors) & (place <= staging.podium) & ~beaten)


def is_drawn(seed: int, agent: str, share: float) -> bool:
    """Whether an agent is drawn, once and for all, whatever it does."""
    return bool(generator(seed, "staged draw", agent).random() < share)


def beyond_first_batch(fit: Fit, outcomes: FloatArray, is_assigned: Mask) -> float | None:
    """Return (mean outcome − its expectation)/(c·se) over the tasks asked for later; None where none has one.

    The expectation is that of the model given the outcomes of the first batch without its audit tasks, so
    that whether an agent went on does not bias it. Both arrays are (m,); outcomes NaN where there is none.
    """
    is_first = np.isin(np.arange(fit.n_tasks), fit.first_batch)
    later = is_assigned & ~is_first & ~np.isnan(outcomes)
    if not later.any():
        return None
    rest = estimate(fit.model, np.where(is_first, outcomes, np.nan), fit.model.next_mean, later)
    return float((outcomes[later].mean() - rest.score) / (fit.scale.c * rest.se))
