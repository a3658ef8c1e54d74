"""Where every agent stands, from one snapshot. Nothing is read or written here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from analytics.differences.pairs import Facet
from analytics.outcome_table import naive_standard_error
from analytics.trials.flags import identical_agents
from leaderboard.catalog.models import Agent
from leaderboard.studies.calibrations import columns_of
from leaderboard.studies.decisions import decisions
from leaderboard.studies.full_scores import FullScore, full_scores
from leaderboard.studies.models import Calibration, TaskSubset
from leaderboard.studies.placements import Placement, placements
from leaderboard.studies.tables import Snapshot, earliest
from leaderboard.submissions.models import Submission


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
    full_interval: dict[str, Any] | None
    n_full: int
    n_valid_trials: int
    n_submissions: int
    targets: dict[str, dict[str, Any]]
    icc: dict[str, Any]
    flags: list[str]
    marks: list[str]


@dataclass(frozen=True)
class Ranking:
    """The lines in the order of the board, and what their intervals cover and leave out."""

    standings: list[Standing]
    targets: dict[str, dict[str, Any]]
    not_measured: list[str]


def standings(
    *,
    snapshot: Snapshot,
    subset: TaskSubset | None,
    calibration: Calibration | None,
    facets: Sequence[Facet],
) -> Ranking:
    """Rank the agents on the mean over the ranked tasks and say which differences are real."""
    columns, on_subset = columns_of(snapshot, subset), subset is not None
    placed = placements(snapshot=snapshot, columns=columns, on_subset=on_subset)
    full = full_scores(snapshot=snapshot, columns=columns, calibration=calibration)
    decided = decisions(
        snapshot=snapshot, placed=placed, full=full, columns=columns, on_subset=on_subset, facets=facets
    )
    flags = _flags(snapshot)
    lines = [
        _standing(i, snapshot, placed[i], full[i], decided.entries[i], flags[i])
        for i in range(len(snapshot.agents))
    ]
    lines.sort(key=lambda line: (line.rank is None, line.rank, line.agent.name))
    return Ranking(lines, decided.targets, decided.not_measured)


def _standing(
    i: int,
    snapshot: Snapshot,
    placed: Placement,
    full: FullScore,
    targets: dict[str, dict[str, Any]],
    flags: list[str],
) -> Standing:
    agent, table = snapshot.agents[i], snapshot.table
    submissions = snapshot.submissions[agent.pk]
    told = snapshot.consistency[i]
    return Standing(
        agent=agent,
        submitted_at=earliest(submissions),
        rank=placed.rank,
        unranked=placed.unranked,
        score=placed.score,
        naive_se=None if placed.score is None else naive_standard_error(placed.score, placed.n_scored),
        n_scored=placed.n_scored,
        full_score=full.score,
        full_score_source=full.source,
        full_naive_se=full.naive_se,
        full_interval=full.interval,
        n_full=int(np.count_nonzero(table.n_valid[i])),
        n_valid_trials=int(table.n_valid[i].sum()),
        n_submissions=len(submissions),
        targets=targets,
        icc={key: value for key, value in told.items() if key not in ("copies", "levels", "gains")},
        flags=flags,
        marks=_marks(placed, full, submissions, flags),
    )


def _flags(snapshot: Snapshot) -> list[list[str]]:
    """What an operator should look at, for each agent, in words."""
    kinds = ("copies", "gains")
    flags: list[list[str]] = [[one[kind] for kind in kinds if one[kind]] for one in snapshot.consistency]
    names = snapshot.table.agents
    for group in identical_agents(snapshot.table.means):
        for i in group:
            others = ", ".join(names[j] for j in group if j != i)
            flags[i].append(f"the same outcome as {others} on every task")
    return flags


def _marks(placed: Placement, full: FullScore, submissions: list[Submission], flags: list[str]) -> list[str]:
    marks = {
        "full": full.source == "measured",
        "subset": placed.rank is not None and full.source != "measured" and placed.how != "linked",
        "linked": placed.how == "linked",
        "incomplete": placed.how in ("completed", "incomplete"),
        "flagged": bool(flags),
        "backdated": any(submission.backdated for submission in submissions),
    }
    return [mark for mark, holds in marks.items() if holds]
