"""How far a board agrees with full evaluation, for those who may not ask the core."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from leaderboard.catalog.models import Policy
from leaderboard.studies.answers import Standings
from leaderboard.studies.rules import rules_of
from leaderboard.studies.staged_studies import rule_of
from leaderboard.submissions.parsing.flat import FlatFile


def ranked_scores(board: Standings) -> dict[str, float]:
    """By agent, what the board ranks by."""
    told = ((line.agent, line.at[board.target]) for line in board.agents)
    return {agent: at.score for agent, at in told if at.rank is not None and at.score is not None}


def scores_shown(board: Standings) -> dict[str, float]:
    """By agent, the full score, measured or estimated."""
    told = ((line.agent, line.at["full"]) for line in board.agents)
    return {agent: at.score for agent, at in told if at.score is not None}


def measured_scores(board: Standings) -> dict[str, float]:
    """By agent, the full score of those that ran all tasks."""
    told = ((line.agent, line.at["full"]) for line in board.agents)
    return {agent: at.score for agent, at in told if at.score is not None and not at.estimated}


def agreement_of(board: Standings, truth: Mapping[str, float]) -> dict[str, Any]:
    """n, pairs_correct, rho and top5_overlap of the ranked agents whose full score is known."""
    from selection.agreement import agreement

    said = {agent: score for agent, score in ranked_scores(board).items() if agent in truth}
    return asdict(agreement(said, truth))


class Came(NamedTuple):
    """What came of an agent in a replay.

    Tasks that it ran, by name and batch; its score on the last board; the (score, lower, upper) with which it
    was stopped.
    """

    batches: Sequence[Sequence[str]]
    score: float
    published: tuple[float, float, float] | None = None


def replay_of(flat: FlatFile, policy: Policy, came: Mapping[str, Came]) -> dict[str, Any]:
    """The figures and the verdict of `selection.staged`, by what the service did with full runs.

    `came` are the agents in the order in which they came. Where there are too few, ``verdict`` is None and
    ``reason`` says so.
    """
    from selection.staged.study import of_service

    return of_service(flat, rules_of(policy), rule_of(policy), came)
