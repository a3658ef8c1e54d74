"""Agents that were asked for tasks chosen for them, batch by batch: ranked by their estimate alone.

Such an agent is placed on no task set: not on S, whatever of it was among its tasks, nor on all tasks before
it ran them. Once it was stopped, its score on all tasks is est of `selection.staged` with the interval est ±
t_ν·c·se. For comparisons its error is c·se, with one χ²_ν for all agents of one study. Those that were
stopped enter pass rates (`selection.standings.choice.teachers`), no calibration and no monitor.

One that stands on the podium ran all tasks, or has a standard error under 1 point and cannot lead, or is
recalled: asked for the rest (`selection.staged.walks.recalled`).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from analytics.record import Record
from selection.prior import Staged
from selection.schema.board import Line, Standings
from selection.staged.walks import Staging, recalled
from selection.standings.full_scores import FullScoreEstimate
from selection.standings.terms import CHOSEN_TASKS, first_names, is_recalled

# More than a benchmark has: those of subsets come before in `FullScoreEstimate.calibration`
N_VERSIONS = 1_000_000


def owing(board: Standings, podium: int) -> tuple[Line, ...]:
    """Return who has to run the rest, whether it was asked for that or not.

    podium: P, the first places.
    """
    ranked = [line for line in board.agents if line.at["full"].rank is not None]
    full = [line.at["full"] for line in ranked]
    errors = [
        at.se if "chosen tasks" in line.marks and at.se is not None else np.nan
        for line, at in zip(ranked, full, strict=True)
    ]
    scores = np.array([at.score for at in full], dtype=np.float64)
    owing_rows = recalled(scores, np.array(errors, dtype=np.float64), Staging(podium=podium))
    return tuple(ranked[i] for i in owing_rows.tolist())


def podium_text(board: Standings, podium: int) -> str:
    """Say that who stands on the podium ran all tasks, or who did not; empty where all agents did.

    Whoever is neither recalled nor has to be is known well enough; whoever is not recalled and had to be,
    an operator has excused.
    """
    if not any("chosen tasks" in line.marks for line in board.agents):
        return ""
    places = "first place" if podium == 1 else f"first {podium} places"
    excused = [line.agent for line in owing(board, podium) if not is_recalled(line)]
    but = f", but for {first_names(excused)}, excused by an operator" if excused else ""
    return (
        f"each agent on the {places} ran all tasks, or is recalled to run the rest, or has a standard error "
        f"under 1 point and a score at least two of these below the best{but}"
    )


def marked(record: Record, staged: Mapping[str, Staged]) -> Record:
    """Say of these agents why they are placed on no task set; not of those that ran all tasks."""
    if not staged:
        return record
    lacks = (record.n_places == 0).any(axis=1)
    about = tuple(
        one
        if (of := staged.get(one.name)) is None or (ran_all and not (of.se is not None and is_part))
        else replace(one, adaptive_reason=of.reason, stopped=of.se is not None, recalled=of.recalled)
        for one, ran_all, is_part in zip(record.about, record.ran_all.tolist(), lacks.tolist(), strict=True)
    )
    stopped = np.array([one.stopped for one in about], dtype=np.bool_)
    return replace(record, about=about, complete=record.complete & ~stopped)


def estimates(record: Record, staged: Mapping[str, Staged]) -> dict[int, FullScoreEstimate]:
    """Return the full scores of those that have come to the end, by position.

    record: as `marked` gives it.
    """
    studies = sorted({one.study for one in staged.values()})
    estimated = {}
    for i, about in enumerate(record.about):
        one = staged.get(about.name)
        # More keeps one from a rank that took outcomes back, or ran under another condition
        is_barred = about.withheld or (record.condition and record.condition[i])
        if one is None or one.se is None or not about.adaptive_reason or is_barred:
            continue
        assert one.degrees is not None
        estimated[i] = FullScoreEstimate(
            score=one.score,
            lower=one.lower,
            upper=one.upper,
            se2=one.se**2,
            df=float(one.degrees),
            calibration=N_VERSIONS + studies.index(one.study),
            source=CHOSEN_TASKS,
        )
    return estimated


def is_chosen_for(record: Record) -> np.ndarray:
    """Agents that `marked` has marked, shape (n_agents,)."""
    return np.array([bool(one.adaptive_reason) for one in record.about], dtype=np.bool_)
