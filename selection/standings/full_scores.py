"""The score on all tasks of an agent that ran the subset alone: an estimate, its interval and its error.

Model
-----
ŷ is the Ridge of `selection.ridge` on S, fitted to the complete agents; its interval is that of
`selection.intervals`. What the agent has already shown bounds what a full run can show (Manski)::

    ŷ ≤ (Σ_j X_aj + n_missing)/m

For comparisons ŷ has the error of its calibration: s_loo² of the leave-one-agent-out residuals, n − 1 degrees
of freedom, one estimate for all; for a scaffold that no complete agent has σ_s²(1 + 1/G) + σ_e² of the
leave-one-scaffold-out residuals, G − 1 degrees.

Symbols: ŷ ``score``, s² ``se2`` score², ν ``df``.

Not done here
-------------
Only agents that are ranked on S directly or completed have an estimate: a linked agent's S is itself partly
an expectation. No estimator is chosen.

Source
------
As in `selection.ridge` and `selection.intervals`. Manski, *Partial Identification of Probability
Distributions*, 2003.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analytics.arrays import IndexArray
from analytics.errors import CoreError
from analytics.record import Record
from selection.folds import CompleteAgents
from selection.given import FittedOn
from selection.held_out import Residuals, nested_residuals
from selection.intervals import Calibrator, Interval, NoInterval, calibrate, intervals
from selection.rules import Rules
from selection.standings.choice import rule_of

BY_AGENT, BY_SCAFFOLD = 0, 1


@dataclass(frozen=True)
class Estimated:
    """The full score of one agent, predicted from the subset.

    Attributes
    ----------
    score : float or None
        ŷ; None where it may not be shown.
    lower, upper : float or None
        95% interval, in [0, 1] and not above what the agent's outcomes leave open.
    se2, df : float or None
        Error for comparisons, score²; None where it is not known.
    calibration : {0, 1}
        Which estimate `se2` is: agents left out, or scaffolds.
    source : str
        Where the interval comes from.
    note : str
        What it rests on, with the numbers.
    reason : str
        Why there is no score, or no interval; else empty.
    """

    score: float | None
    lower: float | None = None
    upper: float | None = None
    se2: float | None = None
    df: float | None = None
    calibration: int = BY_AGENT
    source: str = ""
    note: str = ""
    reason: str = ""


def fitted_on(agents: CompleteAgents, tasks: tuple[str, ...], rules: Rules) -> FittedOn:
    """Leave each complete agent, and each scaffold, out, the selection repeated by the strategy of the rules.

    Parameters
    ----------
    agents : CompleteAgents
        Whom to calibrate on.
    tasks : tuple of str
        The subset in use; the residuals come from folds that choose their own.
    rules : Rules

    Raises
    ------
    SelectionError
    """
    by_agent, by_scaffold = (
        nested_residuals(agents, by, strategy=rules.strategy, rule=rule_of(rules), base_seed=rules.seed)
        for by in ("agent", "scaffold")
    )
    return FittedOn(tasks, agents.names, _residuals(by_agent), _residuals(by_scaffold))


def is_current(fitted: FittedOn | None, agents: CompleteAgents, tasks: tuple[str, ...]) -> bool:
    """Whether a calibration is of these tasks, and all of its agents are still complete."""
    return fitted is not None and fitted.tasks == tasks and set(fitted.agents) <= set(agents.names)


def calibrator(agents: CompleteAgents, tasks: IndexArray, fitted: FittedOn) -> Calibrator:
    """Gather what intervals of estimated scores are made from.

    Parameters
    ----------
    agents : CompleteAgents
        All that are complete; those that `fitted` names are used.
    tasks : int array, shape (k,)
    fitted : FittedOn

    Raises
    ------
    As `selection.intervals.calibrate`.
    """
    used = agents.take(np.flatnonzero(np.isin(agents.names, fitted.agents)))
    return calibrate(
        used.outcomes[:, tasks],
        used.scores,
        np.array(fitted.residuals, dtype=np.float64),
        scaffolds=used.scaffolds,
        scaffold_residuals=np.array(fitted.scaffold_residuals, dtype=np.float64),
    )


def estimates(
    record: Record, tasks: IndexArray, rows: IndexArray, made: Calibrator
) -> Mapping[int, Estimated]:
    """Estimate the full score of some agents.

    Parameters
    ----------
    record : Record
    tasks : int array, shape (k,)
    rows : int array
        Positions of agents that are ranked on them directly or completed.
    made : Calibrator
    """
    scaffolds = [record.table.scaffolds[i] for i in rows]
    try:
        answers = intervals(made, record.table.means[np.ix_(rows, tasks)], scaffolds)
    except CoreError as refusal:
        return {int(i): Estimated(None, reason=str(refusal)) for i in rows}
    _, highest, _ = record.bounds(np.arange(record.n_tasks))
    return {
        int(i): _estimated(made, answer, float(highest[i])) for i, answer in zip(rows, answers, strict=True)
    }


# ---------------------------------------------------------------------------------------------- arithmetic


def _residuals(left_out: Residuals) -> tuple[float | None, ...]:
    residuals = (left_out.scores - left_out.predictions).tolist()
    return tuple(value if usable else None for value, usable in zip(residuals, left_out.usable, strict=True))


def _estimated(made: Calibrator, answer: Interval | NoInterval, highest: float) -> Estimated:
    if isinstance(answer, NoInterval):
        score = None if answer.point is None else _within(answer.point, highest)
        return Estimated(score, reason=answer.reason)
    calibration, se2, df = _error(made, answer)
    return Estimated(
        score=_within(answer.point, highest),
        lower=_within(answer.lower, highest),
        upper=_within(answer.upper, highest),
        se2=se2,
        df=df,
        calibration=calibration,
        source=answer.source,
        note=answer.note,
    )


def _within(value: float, highest: float) -> float:
    return min(max(value, 0.0), highest)


def _error(made: Calibrator, answer: Interval) -> tuple[int, float | None, float | None]:
    """σ_s²(1 + 1/G) + σ_e² with G − 1, or s_loo² with n − 1."""
    parts = made.scaffold_components
    if answer.source == "new scaffold" and parts is not None:
        n = parts.n_scaffolds
        return BY_SCAFFOLD, parts.between * (1 + 1 / n) + parts.within, n - 1.0
    se2 = None if made.s_loo is None else made.s_loo**2
    return BY_AGENT, se2, made.n - 1.0
