"""Who is ranked, on what: directly, with a few tasks completed, linked by the tasks it has, or not at all."""

from dataclasses import dataclass, replace

import numpy as np

from analytics.errors import CoreError
from leaderboard.studies.tables import Snapshot
from selection.linking import FEWEST_COMPLETE, Ranked, Reference, ranked, reference

N_DIGITS = 9  # scores are rounded before they are compared, so that no platform breaks a tie


@dataclass(frozen=True, eq=False)
class Placement:
    """One agent on the ranked tasks.

    `outcomes` are those the score is the mean of, none missing; None where tasks are missing and too few
    complete agents stand to complete them. `v_link` is the variance that completing them adds.
    """

    score: float | None
    rank: int | None
    unranked: str
    how: str
    n_scored: int
    outcomes: np.ndarray | None = None
    v_link: float = 0.0
    df_link: float = np.inf


def placements(*, snapshot: Snapshot, columns: np.ndarray, on_subset: bool) -> list[Placement]:
    """Place every agent; equal scores share a rank.

    With a subset, an agent that has run at least half of it is ranked: what is missing is completed from the
    tasks that it has run, and the error of that is part of its intervals. Without one, an agent is ranked on
    the tasks it has if they are at least 95%. A task that no complete agent has run ranks nobody.
    """
    table = snapshot.table
    complete = table.means[table.complete()]
    if len(complete):
        columns = columns[~np.isnan(complete[:, columns]).all(axis=0)]
    agents = reference(complete, columns) if len(complete) and columns.size else None
    placed = [_placed(i, snapshot, columns, agents, on_subset) for i in range(table.n_agents)]
    ranks = _ranks([one.score if one.how else None for one in placed])
    return [_with_rank(one, rank) for one, rank in zip(placed, ranks, strict=True)]


def _placed(
    i: int, snapshot: Snapshot, columns: np.ndarray, agents: Reference | None, on_subset: bool
) -> Placement:
    means = snapshot.table.means[i]
    here = means[columns]
    n_scored = int(np.count_nonzero(~np.isnan(here)))
    mean = float(np.nanmean(here)) if n_scored else None
    nearly_all = n_scored > 0 and 20 * n_scored >= 19 * columns.size
    answer = _linked(means, snapshot.n_delivered[i], agents) if nearly_all or on_subset else None
    if isinstance(answer, Ranked):
        error = answer.completion
        return Placement(
            score=answer.mean,
            rank=None,
            unranked="",
            how=answer.how,
            n_scored=n_scored,
            outcomes=answer.outcomes,
            v_link=error.v_link if error else 0.0,
            df_link=error.degrees if error else np.inf,
        )
    if nearly_all:
        return Placement(mean, None, "", "incomplete", n_scored)
    linkable = on_subset and agents is not None and agents.n_complete >= FEWEST_COMPLETE
    return Placement(mean, None, _unranked(n_scored, columns.size, on_subset, linkable), "", n_scored)


def _linked(means: np.ndarray, n_delivered: np.ndarray, agents: Reference | None) -> Ranked | None:
    if agents is None:
        return None
    try:
        answer = ranked(agents, means, np.isnan(means) & (n_delivered > 0))
    except CoreError:  # what the agent has run tells nothing of what it lacks
        return None
    return answer if isinstance(answer, Ranked) else None


def _ranks(scores: list[float | None]) -> list[int | None]:
    """1 + the number of strictly better scores."""
    known = np.round([score for score in scores if score is not None], N_DIGITS)
    n_not_better = np.searchsorted(np.sort(known), known, side="right")
    ranks = iter((1 + len(known) - n_not_better).tolist())
    return [None if score is None else next(ranks) for score in scores]


def _with_rank(one: Placement, rank: int | None) -> Placement:
    return replace(one, rank=rank)


def _unranked(n_scored: int, k: int, on_subset: bool, linkable: bool) -> str:
    tasks = "tasks of the subset" if on_subset else "tasks"
    needed = f"{-(-k // 2)} (50%)" if linkable else f"{-(-19 * k // 20)} (95%)"
    return f"{n_scored} of {k} {tasks} have a valid outcome; {needed} are needed"
