"""What repeated trials tell: consistency and accuracy of every agent of a flat file, and what looks odd.

Agents are compared on common tasks and conditions only.

Source: The estimators in `analytics.trials.icc`; the rules are this project's own. David & Nagaraja, *Order
Statistics*, 2003, §3.1 (`expected_maximum`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import log_ndtr, ndtri

from analytics.arrays import CodeArray, FloatArray, IndexArray, Mask
from analytics.differences.estimates import NamedInterval
from analytics.errors import CoreError
from analytics.flat_file import FlatFile
from analytics.trials.flags import Improvement, only_improving, run_order
from analytics.trials.icc import (
    MIN_TASKS,
    AccuracyRefused,
    IccRefused,
    IntraclassCorrelation,
    accuracy_interval,
    convergence,
    intraclass_correlation,
    task_trials,
)

__all__ = [
    "AccuracyRefused",
    "Consistency",
    "IccRefused",
    "RepeatedTrials",
    "accuracy_interval",
    "consistency",
    "convergence",
    "intraclass_correlation",
    "repeated_trials",
    "task_trials",
]


N_NODES = 400


@cache
def expected_maximum(n_submissions: int) -> float:
    """E[max(Z_1 … Z_K)] of K independent standard normals, 0 for K = 1, 1.539 for 10, 1.998 for 27.

    1 − Φ(x)^K = −expm1(K·log Φ(x)) keeps its digits where Φ(x)^K is near 1. The integral ends where K times
    the upper tail is 1e-17.
    """
    check_n_submissions("best of K", n_submissions)
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    nodes, weights = (nodes + 1.0) / 2.0, weights / 2.0  # on [0, 1]
    end = -float(ndtri(1e-17 / n_submissions))
    x = end * nodes
    integrand = -np.expm1(n_submissions * log_ndtr(x)) - np.exp(n_submissions * log_ndtr(-x))
    return float(end * (weights @ integrand)) if n_submissions > 1 else 0.0


def check_n_submissions(team: str, n_submissions: int) -> None:
    """Refuse a K that is no whole number from 1 on, in the name of whose it is."""
    if isinstance(n_submissions, bool) or not isinstance(n_submissions, int) or n_submissions < 1:
        raise CoreError(f"{team}: {n_submissions!r} submissions; a whole number from 1 on is needed")


FACETS = {"prompt": "prompt_variant", "judge": "judge", "temperature": "temperature"}


@dataclass(frozen=True, eq=False)
class RepeatedTrials:
    """Valid trials of an agent under a condition, (n_rows,), on tasks that all with it have, or its own."""

    agent: str
    condition: str
    compared: bool
    task: CodeArray
    outcome: FloatArray


@dataclass(frozen=True)
class Consistency:
    """One line of the table: an agent under a condition, on all its tasks (category None) or on one category.

    mean, n_tasks: A, over the tasks with a valid trial.
    notes: for each figure that is None, its name and the reason.
    """

    agent: str
    condition: str
    compared: bool
    category: str | None
    mean: float
    n_tasks: int
    icc: IntraclassCorrelation | None
    accuracy: NamedInterval | None
    notes: tuple[tuple[str, str], ...]


def repeated_trials(file: FlatFile) -> tuple[RepeatedTrials, ...]:
    """Return the trials of every agent under every condition, in name order of agents, then of conditions."""
    names, condition = _conditions(file)
    trials = []
    for code, name in enumerate(names):
        rows = np.flatnonzero(file.valid & (condition == code))
        agent, task = file.agent[rows], file.task[rows]
        seen = np.zeros((len(file.agents), len(file.tasks)), dtype=np.bool_)
        seen[agent, task] = True
        n_tasks = int(np.count_nonzero(seen.any(axis=0)))
        has = 20 * np.count_nonzero(seen, axis=1) >= 19 * n_tasks
        shared = seen[has].all(axis=0)
        has &= bool(has.any()) and np.count_nonzero(shared) >= MIN_TASKS
        common = np.where(has[:, None], seen[has].all(axis=0), seen)
        for i in np.flatnonzero(seen.any(axis=1)).tolist():
            mine = rows[(agent == i) & common[i, task]]
            tasks, outcomes = file.task[mine].astype(np.int64), file.outcome[mine]
            trials.append(RepeatedTrials(file.agents[i], name, bool(has[i]), tasks, outcomes))
    return tuple(sorted(trials, key=lambda one: one.agent))


def improving_trials(file: FlatFile) -> dict[str, Improvement]:
    """Find the agents whose trials under some condition only improve (`analytics.trials.flags`)."""
    runs = run_order([setting.run for setting in file.settings])
    condition = _conditions(file)[1]
    rows = np.lexsort((file.trial, runs[file.setting]))
    rows = rows[file.valid[rows]]
    improvements: dict[str, Improvement] = {}
    for agent, code in np.unique(np.stack([file.agent[rows], condition[rows]]), axis=1).T.tolist():
        mine = rows[(file.agent[rows] == agent) & (condition[rows] == code)]
        if (one := only_improving(file.task[mine], file.outcome[mine])) is not None:
            improvements[file.agents[agent]] = one
    return improvements


def consistency(
    trials: Sequence[RepeatedTrials], categories: Sequence[str | None], copied: Collection[str] = ()
) -> tuple[Consistency, ...]:
    """ICC and accuracy on all tasks and each category; trials of agents that are copied count as one."""
    names = sorted({name for name in categories if name is not None}) if len(set(categories)) > 1 else []
    parts = [(name, np.array([other == name for other in categories])) for name in names]
    return tuple(
        _line(one, category, mask, copied)
        for one in trials
        for category, mask in [(None, np.ones(len(categories), dtype=np.bool_)), *parts]
        if mask[one.task].any()
    )


def _conditions(file: FlatFile) -> tuple[list[str], IndexArray]:
    """Conditions in words, in ascending order, and the code of each row's, shape (n_rows,)."""
    facets = []  # with two levels in the file, temperature with two of one agent
    pairs = np.unique(np.stack([file.agent, file.setting]), axis=1).T.tolist()
    for word, name in FACETS.items():
        levels = [getattr(setting, name) for setting in file.settings]
        of_agent = {(agent if word == "temperature" else 0, levels[setting]) for agent, setting in pairs}
        if len(of_agent) > len({agent for agent, _ in of_agent}):
            facets.append(word)
    keys = [tuple(getattr(setting, FACETS[word]) for word in facets) for setting in file.settings]
    order = sorted(set(keys), key=lambda key: tuple((level is not None, level) for level in key))
    words = [
        ", ".join(
            f"{facet} {'not stated' if level is None else level}"
            for facet, level in zip(facets, key, strict=True)
        )
        for key in order
    ]
    code = {key: place for place, key in enumerate(order)}
    return words, np.array([code[key] for key in keys], dtype=np.intp)[file.setting]


def _line(one: RepeatedTrials, category: str | None, mask: Mask, copied: Collection[str]) -> Consistency:
    rows = mask[one.task]
    trials = task_trials(one.task[rows], one.outcome[rows])
    notes: list[tuple[str, str]] = []
    icc = accuracy = None
    try:
        if one.agent in copied:
            why = "not measured: one trial per task (the trials are not independent)"
            raise IccRefused(why, code="one_trial")
        icc = intraclass_correlation(trials)
    except IccRefused as refusal:
        notes.append(("icc", str(refusal)))
    try:
        accuracy = accuracy_interval(trials)
    except AccuracyRefused as refusal:
        notes.append(("accuracy", str(refusal)))
    named = one.agent, one.condition, one.compared, category
    return Consistency(*named, trials.mean, trials.n_tasks, icc, accuracy, tuple(notes))
