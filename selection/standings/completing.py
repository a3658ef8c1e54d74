"""What completes an agent's outcomes, and how far off that is: one fit to the agents that teach.

Model
-----
The model is that of `selection.staged.model`, fitted to all that the teaching agents ran. An agent's score on
some tasks is its outcomes on those that it ran, and the model's probabilities on the others::

    est = (Σ_ran X + Σ_other P)/k,        est ± t_ν·c·se

c and ν are those of full runs cut down to the tasks that it was asked for, each estimated without it
(`selection.staged.teaching`); of an agent whose scaffold no full run has, those of whole scaffolds left out.
est and both ends lie within what its missing outcomes leave open (Manski).

======================  ============================================  ===============================
who                     what is completed                             batch that c is of
======================  ============================================  ===============================
lost some outcomes      those, on each task set by itself             what it has
ran a version of S      all other tasks                               that version
stopped by the rule     all other tasks (`selection.staged.study`)    the first batch
======================  ============================================  ===============================

Not done here: fewer than 10 full runs complete nothing. `ridge` and `line` are
`selection.standings.full_scores`'.

Source: As in `selection.staged.model`. Manski, *Partial Identification of Probability Distributions*, 2003.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from analytics.record import Record
from selection.errors import SelectionError
from selection.full_scores import FitCache
from selection.intervals import NOT_CALIBRATED
from selection.staged.model import estimates, in_order
from selection.staged.teaching import FullRun, Teaching, taught
from selection.staged.walks import Scale, Staging
from selection.standings.choice import n_complete, teaching, training

MIN_COMPLETE = 10
CALIBRATED = "full runs cut down to the same tasks"


class TooFewComplete(SelectionError):
    """Completing needs ten agents that ran all tasks."""


@dataclass(frozen=True)
class WalkResult:
    """An agent that was asked batch by batch.

    first, drawn: est and se, c = 1, after its first batch; and where the rule would have stopped it, had it
        not been drawn.
    share: q, the probability that it was drawn.
    """

    first: tuple[float, float] | None = None
    drawn: tuple[float, float] | None = None
    share: float = 1.0

    def as_full_run(self, row: int, score: float, scaffold: str) -> FullRun:
        """Return it as an agent that ran everything."""
        return FullRun(row, score, self.share if self.drawn else 1.0, self.first, self.drawn, scaffold)


@dataclass(frozen=True)
class FullScoreEstimate:
    """The full score of one agent that ran a part of the tasks.

    score: est; None where it may not be shown.
    lower, upper: 95% interval, in what the agent's outcomes leave open.
    se2, df: error for comparisons, score²; None where it is not known.
    calibration: agents with the same number share the residuals behind `se2`.
    source: where the interval comes from.
    note: what it rests on, with the numbers.
    reason: why there is no score, or no interval; else empty.
    """

    score: float | None
    lower: float | None = None
    upper: float | None = None
    se2: float | None = None
    df: float | None = None
    calibration: int = 0
    source: str = ""
    note: str = ""
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Completing:
    """The fit of a record, made when it is first needed.

    fits: of earlier answers.
    """

    record: Record
    fits: FitCache = field(default_factory=FitCache)

    @cached_property
    def teaching(self) -> Teaching:
        """The teaching agents.

        Raises SelectionError (model_unfinished).
        Raises TooFewComplete.
        """
        n = n_complete(self.record)
        if n < MIN_COMPLETE:
            there = f"there {'is' if n == 1 else 'are'} {n}"
            raise TooFewComplete(f"completing needs {MIN_COMPLETE} complete agents and {there}")
        table, rows = self.record.table, np.flatnonzero(teaching(self.record))
        who = [(table.agents[i], table.dates[i], bool(self.record.complete[i])) for i in rows]
        return self.fits.made(
            ("completing", who), table.means[rows], make=lambda: taught_by(self.record, Staging())
        )

    def filled(self, i: int, tasks: IndexArray) -> tuple[FloatArray, Scale, float]:
        """Return agent i's outcomes on some tasks, completed, (k,), and c, ν and se of their mean.

        Raises SelectionError (model_unfinished).
        Raises TooFewComplete.
        """
        row, of = self.record.table.means[i], self._mask(tasks)
        estimate = estimates(self.teaching.model, row[None, :], self._mean(i), of)
        scale = self.teaching.scale_on(np.flatnonzero(~np.isnan(row)), of)
        completed = np.where(np.isnan(row), estimate.passing[0], row)[tasks]
        return read_only(completed), scale, float(estimate.se[0])

    def estimated(self, i: int, batch: IndexArray, tasks: IndexArray, calibration: int) -> FullScoreEstimate:
        """Estimate agent i's score on the tasks from all that it ran, asked for a batch of them.

        Raises SelectionError (model_unfinished).
        Raises TooFewComplete.
        """
        table, of = self.record.table, self._mask(tasks)
        estimate = estimates(self.teaching.model, table.means[i][None, :], self._mean(i), of)
        scale, is_new = self.teaching.scale_for(table.scaffolds[i], batch, of)
        score, se = float(estimate.scores[0]), scale.c * float(estimate.se[0])
        half = scale.quantile * se
        lowest, highest, _ = self.record.bounds(np.arange(self.record.n_tasks))
        bounds = (float(lowest[i]), float(highest[i]))
        n = len(self.teaching.full_runs)
        return FullScoreEstimate(
            score=within(score, bounds),
            lower=within(score - half, bounds),
            upper=within(score + half, bounds),
            se2=se**2,
            df=float(scale.degrees),
            calibration=2 * (calibration + 1) + (is_new is True),
            source=CALIBRATED + (f"; {NOT_CALIBRATED}" if is_new is None else ""),
            note=f"from {int(np.count_nonzero(~np.isnan(table.means[i])))} tasks, by a fit to {n} full runs",
        )

    def _mean(self, i: int) -> FloatArray:
        return np.array([self.teaching.model.mean_after(n_before(self.record, self.teaching, i))])

    def _mask(self, tasks: IndexArray) -> Mask:
        return np.isin(np.arange(self.record.n_tasks), tasks)


def taught_by(
    record: Record,
    staging: Staging,
    walks: Mapping[str, WalkResult] | None = None,
    subset: IndexArray | None = None,
) -> Teaching:
    """Fit to the agents that teach, in the order in which they came.

    walks: those asked batch by batch, by name.
    subset: the version of S in use; without it the band of the teaching agents is taken.
    Raises SelectionError (model_unfinished).
    """
    table, complete = record.table, training(record)
    scores = dict(zip(complete.names, complete.scores.tolist(), strict=True))
    rows = np.flatnonzero(teaching(record))
    order, first = in_order([table.dates[i] for i in rows], [table.agents[i] for i in rows])
    rows = rows[order]
    names = [table.agents[i] for i in rows]
    known_walks = walks or {}
    return taught(
        table.means[rows],
        np.array([scores.get(name, np.nan) for name in names]),
        [
            known_walks.get(name, WalkResult()).as_full_run(row, scores[name], table.scaffolds[i])
            for row, (i, name) in enumerate(zip(rows.tolist(), names, strict=True))
            if name in scores
        ],
        staging,
        first=first,
        subset=subset,
    )


def n_before(record: Record, teaching_agents: Teaching, i: int) -> int:
    """How many teaching agents came before agent i; 0 where the order is not known."""
    table = record.table
    own = (table.dates[i], table.agents[i])
    if own[0] is None or not teaching_agents.first.any():
        return 0
    rows = np.flatnonzero(teaching(record))
    return sum((table.dates[j], table.agents[j]) < own for j in rows)


def within(value: float, bounds: tuple[float, float]) -> float:
    """Return the value, or the bound that it lies beyond."""
    lowest, highest = bounds
    return min(max(value, lowest), highest)
