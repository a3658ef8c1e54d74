"""How far a board agrees with full evaluation, for those who may not ask the core."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from leaderboard.studies.answers import Standings


def ranked_scores(board: Standings) -> dict[str, float]:
    """By agent, what the board ranks by."""
    told = ((line.agent, line.at[board.target]) for line in board.agents)
    return {agent: at.score for agent, at in told if at.rank is not None and at.score is not None}


def measured_scores(board: Standings) -> dict[str, float]:
    """By agent, the full score of those that ran all tasks."""
    told = ((line.agent, line.at["full"]) for line in board.agents)
    return {agent: at.score for agent, at in told if at.score is not None and not at.estimated}


def agreement_of(board: Standings, truth: Mapping[str, float]) -> dict[str, Any]:
    """n, pairs_correct, rho and top5_overlap of the ranked agents whose full score is known."""
    from selection.agreement import agreement

    said = {agent: score for agent, score in ranked_scores(board).items() if agent in truth}
    return asdict(agreement(said, truth))
