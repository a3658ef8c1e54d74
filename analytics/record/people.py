"""What people said of some of an agent's trials, and the mean that they would have given of all its tasks.

The estimate is that of `analytics.human_labels`, with the agent's counted valid outcomes as those of the
judge. It stands beside the agent and never orders a board.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from analytics.human_labels import CENSUS, Labelled, SurrogateRefused, correct
from analytics.record.rows import Rows, Setting

JUDGE = 1  # of a setting
IMPOSSIBLE = (
    "its labels put the mean beyond what outcomes can be: they were not drawn with the probabilities stated"
)


@dataclass(frozen=True)
class People:
    """What people said of one agent.

    judge_mean, corrected_mean: the mean outcome over the tasks, and that which people would have given; None:
        `reason` says why.
    se, lower, upper: of the corrected mean, the 95% interval cut at 0 and 1; None too where all tasks have a
        label.
    n_labels, n_tasks: tasks with a label, and all with a valid outcome.
    worth: labels that would do as well without the judge.
    design: how labels were drawn.
    """

    n_labels: int
    n_tasks: int
    judge_mean: float | None = None
    corrected_mean: float | None = None
    se: float | None = None
    lower: float | None = None
    upper: float | None = None
    worth: float | None = None
    design: str = ""
    reason: str = ""

    def as_plain(self) -> dict[str, Any]:
        """Return the fields as objects of JSON."""
        return asdict(self)

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "People":
        """Return what `as_plain` was made from."""
        return cls(**plain)


def people(counted: Rows, *, n_agents: int, settings: Sequence[Setting]) -> tuple[People | None, ...]:
    """Correct each agent's mean by what people said; None where they said nothing of it.

    counted: that count for the board.
    """
    of_agents: list[People | None] = [None] * n_agents
    if counted.human is None:
        return tuple(of_agents)
    labelled = counted.valid & ~np.isnan(counted.human)
    for agent in np.unique(counted.agent[labelled]).tolist():
        of_agents[agent] = _of_agent(counted.where(counted.valid & (counted.agent == agent)), settings)
    return tuple(of_agents)


def _of_agent(rows: Rows, settings: Sequence[Setting]) -> People:
    assert rows.human is not None
    tasks, task = np.unique(rows.task, return_inverse=True)
    n_labels = np.unique(task[~np.isnan(rows.human)]).size
    n_judges = len({settings[setting][JUDGE] for setting in np.unique(rows.setting).tolist()})
    if n_judges > 1:
        return People(n_labels, tasks.size, reason=f"its outcomes are of {n_judges} judges")
    probability = rows.human_probability
    likely = np.full(rows.n_rows, np.nan) if probability is None else probability
    try:
        corrected = correct(Labelled.of_trials(task, rows.outcome, rows.human, likely))
    except SurrogateRefused as refusal:
        return People(n_labels, tasks.size, reason=str(refusal))
    has_interval = corrected.design != CENSUS
    if has_interval and (corrected.corrected.lower > 1 or corrected.corrected.upper < 0):
        return People(n_labels, tasks.size, reason=IMPOSSIBLE)
    return People(
        n_labels,
        tasks.size,
        judge_mean=corrected.judge_mean,
        corrected_mean=corrected.corrected.value,
        se=corrected.corrected.se if has_interval else None,
        lower=max(corrected.corrected.lower, 0.0) if has_interval else None,
        upper=min(corrected.corrected.upper, 1.0) if has_interval else None,
        worth=corrected.worth,
        design=corrected.design,
    )
