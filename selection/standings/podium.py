"""The first places of a board: whether who stands there ran all tasks.

An agent on the podium whose score is estimated from tasks chosen for it ran all of them, has a
standard error under 1 point and cannot lead, or is recalled: asked for the rest
(`selection.staged.walks.recalled`).
"""

import numpy as np

from selection.schema.board import Line, Standings
from selection.staged.walks import Staging, recalled
from selection.standings.terms import first_names, is_recalled


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
