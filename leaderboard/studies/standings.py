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
    ranked = _restricted(snapshot.table, columns)
    scores = [_score(row) for row in ranked.means]
    eligible = ranked.complete()
    ranks = _ranks([score if ok else None for score, ok in zip(scores, eligible, strict=True)])
    full = _full_scores(snapshot, columns, calibration)
    lines = [
        _standing(i, snapshot, ranked, scores[i], ranks[i], full[i], subset is not None)
        for i in range(ranked.n_agents)
    ]
    return sorted(lines, key=lambda line: (line.rank is None, line.rank, line.agent.name))


@dataclass(frozen=True)
class _FullScore:
    score: float | None = None
    source: str = ""
    naive_se: float | None = None


def _restricted(table: OutcomeTable, columns: np.ndarray) -> OutcomeTable:
    mask = np.zeros(table.n_tasks, bool)
    mask[columns] = True
    return table.restrict(tasks=mask)


def _score(row: np.ndarray) -> float | None:
    valid = row[~np.isnan(row)]
    return float(np.mean(valid)) if len(valid) else None


def _ranks(scores: list[float | None]) -> list[int | None]:
    """1 + the number of strictly better scores."""
    rounded = [None if score is None else round(score, N_DIGITS) for score in scores]
    return [
        None if mine is None else 1 + sum(other is not None and other > mine for other in rounded)
        for mine in rounded
    ]


def _full_scores(
    snapshot: Snapshot, columns: np.ndarray, calibration: Calibration | None
) -> list[_FullScore]:
    """Measured for complete agents; calibrated for those with at least 90% of the subset; else none."""
    table = snapshot.table
    on_subset = table.means[:, columns]
    full = [_FullScore()] * table.n_agents
    if calibration:
        which = np.flatnonzero(predictable(on_subset))
        predicted = predict(ridge_fit(calibration), on_subset[which])
        for i, score in zip(which.tolist(), predicted.tolist(), strict=True):
            full[i] = _FullScore(score, "calibrated")
    for i in np.flatnonzero(table.complete()).tolist():
        full[i] = _measured(table.means[i])
    return full


def _measured(row: np.ndarray) -> _FullScore:
    valid = row[~np.isnan(row)]
    score = float(np.mean(valid))
    return _FullScore(score, "measured", naive_standard_error(score, len(valid)))


def _standing(
    i: int,
    snapshot: Snapshot,
    ranked: OutcomeTable,
    score: float | None,
    rank: int | None,
    full: _FullScore,
    on_subset: bool,
) -> Standing:
    submissions = snapshot.submissions[snapshot.agents[i].pk]
    n_scored = int(ranked.n_valid_tasks()[i])
    return Standing(
        agent=snapshot.agents[i],
        submitted_at=earliest(submissions),
        rank=rank,
        unranked="" if rank else _unranked(n_scored, ranked.n_tasks, on_subset),
        score=score,
        naive_se=None if score is None else naive_standard_error(score, n_scored),
        n_scored=n_scored,
        full_score=full.score,
        full_score_source=full.source,
        full_naive_se=full.naive_se,
        n_full=int(snapshot.table.n_valid_tasks()[i]),
        n_valid_trials=int(snapshot.table.n_valid[i].sum()),
        n_submissions=len(submissions),
        marks=_marks(rank, full, n_scored < ranked.n_tasks, submissions),
    )


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
