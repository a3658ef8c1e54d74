"""Where every agent stands, from one snapshot. Nothing is read or written here."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from analytics.outcome_table import OutcomeTable, naive_standard_error
from leaderboard.catalog.models import Agent
from leaderboard.studies.calibrations import columns_of, ridge_fit
from leaderboard.studies.models import Calibration, TaskSubset
from leaderboard.studies.tables import Snapshot, earliest
from leaderboard.submissions.models import Submission
from selection.ridge import predict, predictable

N_DIGITS = 9  # scores are rounded before they are compared, so that no platform breaks a tie


@dataclass(frozen=True)
class Standing:
    """One agent's line; the fields are those of `boards.Entry`."""

    agent: Agent
    submitted_at: datetime | None
    rank: int | None
    unranked: str
    score: float | None
    naive_se: float | None
    n_scored: int
    full_score: float | None
    full_score_source: str
    full_naive_se: float | None
    n_full: int
    n_valid_trials: int
    n_submissions: int
    marks: list[str]


def standings(
    *, snapshot: Snapshot, subset: TaskSubset | None, calibration: Calibration | None
) -> list[Standing]:
    """Rank the agents on the mean over the ranked tasks; equal scores share a rank, names in order.

    For now an agent with a valid outcome on at least 95% of the ranked tasks is ranked on those; the others
    are listed.
    """
    columns = columns_of(snapshot, subset)
    mask = np.zeros(snapshot.table.n_tasks, bool)
    mask[columns] = True
    ranked = snapshot.table.restrict(tasks=mask)
    scores, ranks = _scores(ranked), _ranks(ranked)
    full = _full_scores(snapshot.table, columns, calibration)
    n_scored, n_full = ranked.n_valid_tasks().tolist(), snapshot.table.n_valid_tasks().tolist()
    n_valid_trials = snapshot.table.n_valid.sum(axis=1).tolist()
    lines = []
    for i, agent in enumerate(snapshot.agents):
        submissions = snapshot.submissions[agent.pk]
        score, rank = scores[i], ranks[i]
        lines.append(
            Standing(
                agent=agent,
                submitted_at=earliest(submissions),
                rank=rank,
                unranked="" if rank else _unranked(n_scored[i], ranked.n_tasks, subset is not None),
                score=score,
                naive_se=None if score is None else naive_standard_error(score, n_scored[i]),
                n_scored=n_scored[i],
                full_score=full[i].score,
                full_score_source=full[i].source,
                full_naive_se=full[i].naive_se,
                n_full=n_full[i],
                n_valid_trials=n_valid_trials[i],
                n_submissions=len(submissions),
                marks=_marks(rank, full[i], n_scored[i] < ranked.n_tasks, submissions),
            )
        )
    return sorted(lines, key=lambda line: (line.rank is None, line.rank, line.agent.name))


@dataclass(frozen=True)
class _FullScore:
    score: float | None = None
    source: str = ""
    naive_se: float | None = None


def _scores(table: OutcomeTable) -> list[float | None]:
    """The mean over each agent's valid tasks; none where it has none."""
    measured = table.n_valid_tasks() > 0
    scores = iter(table.restrict(agents=measured).scores().tolist())
    return [next(scores) if has_any else None for has_any in measured]


def _ranks(table: OutcomeTable) -> list[int | None]:
    """1 + the number of strictly better scores among those with at least 95% of the tasks."""
    eligible = table.complete()
    rounded = np.round(table.restrict(agents=eligible).scores(), N_DIGITS)
    n_not_better = np.searchsorted(np.sort(rounded), rounded, side="right")
    ranks = iter((1 + len(rounded) - n_not_better).tolist())
    return [next(ranks) if is_eligible else None for is_eligible in eligible]


def _full_scores(
    table: OutcomeTable, columns: np.ndarray, calibration: Calibration | None
) -> list[_FullScore]:
    """Measured for complete agents; calibrated for those with at least 90% of the subset; else none."""
    full = [_FullScore()] * table.n_agents
    if calibration:
        on_subset = table.means[:, columns]
        which = np.flatnonzero(predictable(on_subset))
        predicted = predict(ridge_fit(calibration), on_subset[which])
        for i, score in zip(which.tolist(), predicted.tolist(), strict=True):
            full[i] = _FullScore(score, "calibrated")
    measured = table.restrict(agents=table.complete())
    where, n_valid = np.flatnonzero(table.complete()).tolist(), measured.n_valid_tasks().tolist()
    for i, score, n in zip(where, measured.scores().tolist(), n_valid, strict=True):
        full[i] = _FullScore(score, "measured", naive_standard_error(score, n))
    return full


def _unranked(n_scored: int, n_ranked_tasks: int, on_subset: bool) -> str:
    needed = -(-19 * n_ranked_tasks // 20)
    tasks = "tasks of the subset" if on_subset else "tasks"
    return f"{n_scored} of {n_ranked_tasks} {tasks} have a valid outcome; {needed} (95%) are needed"


def _marks(rank: int | None, full: _FullScore, lacks_tasks: bool, submissions: list[Submission]) -> list[str]:
    marks = {
        "full": full.source == "measured",
        "subset": rank is not None and full.source != "measured",
        "incomplete": rank is not None and lacks_tasks,
        "backdated": any(submission.backdated for submission in submissions),
    }
    return [mark for mark, holds in marks.items() if holds]
