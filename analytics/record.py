"""The record of a benchmark: what every agent did, reduced from its rows by one set of rules.

Model
-----
A *row* is one trial of an agent on a task under a setting, in a delivery. A *place* is a task that the agent
was asked to run × one of its counted trials. Counted are, on each task, the first R_a trials by order of
delivery, then number::

    R_a = min(the trials asked for, the fewest delivered on any task asked for, invalid ones included)

so that more trials on some tasks move nothing; all trials count in what an operator loads. An invalid trial
counts 0 until an operator confirms that the harness failed; then its place is a *gap*, as is, in what an
operator loads, a task without a row. Rows outside what the agent was asked count once it has delivered every
task.

Order of evaluation: universe (which tasks are active) → conditions (which settings are compared) → cells. A
*condition* is a combination of prompt variant, judge and temperature (temperature only where an agent has
two; not stated is a level; `run` is a replicate). An agent has a condition when at least 95% of the tasks
that it was asked to run are valid under it. Compared are the conditions that at least 95% of the agents with
full runs have; if there is none, the one that most of them have (ties: more outcomes, then name) and those
that at least 95% of its holders have. A cell is valid only under every compared condition, and is the mean
over them.

Symbols
-------
==============  ====================  =====================================  =========
symbol          code                  shape                                  unit
==============  ====================  =====================================  =========
X, s², R        ``table``             see `analytics.outcome_table`          0 to 1
places          ``n_places``          (n_agents, n_tasks)                    trials
gaps            ``n_gaps``            (n_agents, n_tasks)                    trials
asked           ``asked``             (n_agents, n_tasks)                    bool
complete        ``complete``          (n_agents,)                            bool
==============  ====================  =====================================  =========

Not done here
-------------
No task is selected and nobody is ranked. What a missing place is completed with is `selection.linking`'s.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §3.1 (X and y). Places, counted trials and comparable
conditions are this project's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from analytics.arrays import CodeArray, CountArray, FloatArray, Mask
from analytics.errors import CoreError
from analytics.outcome_table import OutcomeTable
from analytics.repeats import Repeats


class RecordRefused(CoreError):
    """Rows from which no record can be made."""


class Condition(NamedTuple):
    """What outcomes are compared under; None where not stated, or where the facet does not vary."""

    prompt_variant: str | None
    judge: str | None
    temperature: float | None


@dataclass(frozen=True)
class Counting:
    """Which outcomes count, and as what. The record is reduced by it.

    Attributes
    ----------
    duplicates : {"mean", "latest", "first"}
        Which of an agent's deliveries count: all of them, the latest, the first.
    settings : "comparable" or tuple of Condition
        The conditions compared: by the rule of this module, or these.
    missing : {"gap", "zero"}
        A place that was asked for and has no valid outcome is a gap, or counts as a failure.
    universe : "all", "common" or tuple of str
        The active tasks: all, those with a valid outcome from at least 95% of the agents without an
        assignment, or these.
    """

    duplicates: Literal["mean", "latest", "first"] = "mean"
    settings: Literal["comparable"] | tuple[Condition, ...] = "comparable"
    missing: Literal["gap", "zero"] = "gap"
    universe: Literal["all", "common"] | tuple[str, ...] = "all"


@dataclass(frozen=True)
class About:
    """What is said of an agent, beside its outcomes.

    Attributes
    ----------
    name, scaffold, model : str
    version, organisation : str
        Empty: not stated.
    links : mapping of str to str
    run_by : {"self", "operator"}
        Who delivered.
    submitted_at : str or None
        Earliest date stated, ISO 8601.
    withheld : str
        Why it may not be ranked whatever it ran ("resubmitted: …"); else empty. Such an agent is not
        complete.
    backdated, imprecise : bool
        Dated long before its delivery; to the month or year alone.
    """

    name: str
    scaffold: str
    model: str
    version: str = ""
    organisation: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    run_by: str = "operator"
    submitted_at: str | None = None
    withheld: str = ""
    backdated: bool = False
    imprecise: bool = False


@dataclass(frozen=True)
class Delivery:
    """One delivery of an agent's outcomes: an accepted submission, or a run of a loaded file.

    Attributes
    ----------
    agent : int
        Position among the agents.
    arrival : int
        Deliveries that count together (one transaction) share it; ascending in order of acceptance.
    operator : bool
        Loaded by an operator: all its trials count, and its invalid rows are confirmed.
    asked : frozenset of str or None
        Tasks that the agent was asked to run; None: all active ones.
    n_trials : int or None
        Trials asked for; None: as many as were delivered.
    """

    agent: int
    arrival: int = 0
    operator: bool = True
    asked: frozenset[str] | None = None
    n_trials: int | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Delivered outcomes, a row for each trial, in any order.

    Attributes
    ----------
    agent, task, setting, delivery : int array, shape (n_rows,)
        Positions among agents, tasks, settings and deliveries.
    trial : int array, shape (n_rows,)
    outcome : float array, shape (n_rows,)
        0 to 1 where valid.
    valid : bool array, shape (n_rows,)
    confirmed : bool array, shape (n_rows,)
        Of an invalid row: whether it is known to be a failure of the harness.
    cost_usd, n_tokens, seconds : float array, shape (n_rows,), or None
        Of the trial; NaN where not stated.
    """

    agent: CodeArray
    task: CodeArray
    setting: CodeArray
    delivery: CodeArray
    trial: CodeArray
    outcome: FloatArray
    valid: Mask
    confirmed: Mask
    cost_usd: FloatArray | None = None
    n_tokens: FloatArray | None = None
    seconds: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class AgentRow:
    """One agent's part of the record, in task order; what a database may keep to read it only once.

    Attributes
    ----------
    means, trial_variances, n_trials, costs : float64 array, shape (n_tasks,)
        X, s² and R of `analytics.outcome_table`; US dollars of a run of the task; NaN where missing.
    n_valid, n_places, n_gaps : int32 array, shape (n_tasks,)
    asked : bool array, shape (n_tasks,)
    n_asked_trials : int
        R_a.
    operator : bool
        All its deliveries were loaded by an operator.
    arrival, completed : int
        Its first delivery; the one with which it had delivered every task (−1: none yet).
    n_deliveries : int
    n_tokens, seconds : float or None
        Of a run of all tasks that state them.
    repeats : Repeats
    """

    means: FloatArray
    trial_variances: FloatArray
    n_trials: FloatArray
    costs: FloatArray
    n_valid: CountArray
    n_places: CountArray
    n_gaps: CountArray
    asked: Mask
    n_asked_trials: int
    operator: bool
    arrival: int
    completed: int
    n_deliveries: int
    n_tokens: float | None
    seconds: float | None
    repeats: Repeats


@dataclass(frozen=True, eq=False)
class Record:
    """All that is known of a benchmark's agents, in name order.

    Attributes
    ----------
    table : OutcomeTable
        Agents with a counted outcome on the active tasks; gaps are missing (or 0 by `Counting.missing`).
    about : tuple of About, length n_agents
    counting : Counting
    n_places, n_gaps : int32 array, shape (n_agents, n_tasks)
    asked : bool array, shape (n_agents, n_tasks)
    operator : bool array, shape (n_agents,)
    arrival, completed : int array, shape (n_agents,)
        See `AgentRow`.
    complete : bool array, shape (n_agents,)
        Every place of all active tasks delivered, at most 5% of them gaps (20·n ≤ total), not withheld, under
        the compared conditions.
    costs : float array, shape (n_agents, n_tasks)
    n_tokens, seconds : tuple of (float or None), length n_agents
    n_deliveries : int array, shape (n_agents,)
    repeats : tuple of Repeats, length n_agents
    compared : tuple of str
        The conditions compared, in words; empty where no facet has two levels.
    left_out : tuple of (str, int)
        Other conditions, with the number of agents that have them.
    condition : tuple of str, length n_agents
        What an agent ran under where it lacks a compared condition; else empty.
    universe : str
        Which tasks are active and what was left out, in words; empty where all are.
    """

    table: OutcomeTable
    about: tuple[About, ...]
    counting: Counting
    n_places: CountArray
    n_gaps: CountArray
    asked: Mask
    operator: Mask
    arrival: CodeArray
    completed: CodeArray
    complete: Mask
    costs: FloatArray
    n_tokens: tuple[float | None, ...]
    seconds: tuple[float | None, ...]
    n_deliveries: CodeArray
    repeats: tuple[Repeats, ...]
    compared: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()
    condition: tuple[str, ...] = ()
    universe: str = ""

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return self.table.n_agents

    @property
    def n_tasks(self) -> int:
        """Number of active tasks, m."""
        return self.table.n_tasks

    def is_direct(self, tasks: CodeArray) -> Mask:
        """Agents that are ranked directly on these tasks: every place delivered, at most 5% of them gaps.

        In what an operator loads, a task without a row counts as R_a gaps; in a submission it was never
        delivered, and no share of it is forgiven.

        Parameters
        ----------
        tasks : int array, shape (k,)
            Positions of tasks.

        Returns
        -------
        bool array, shape (n_agents,)
        """
        absent = self.n_places[:, tasks] == 0
        n_trials = np.maximum(self.n_places[:, tasks].max(axis=1, initial=1), 1)
        gaps = self.n_gaps[:, tasks].sum(axis=1) + absent.sum(axis=1) * n_trials
        places = self.n_places[:, tasks].sum(axis=1) + absent.sum(axis=1) * n_trials
        delivered = self.operator | ~absent.any(axis=1)
        return np.asarray(delivered & (20 * gaps <= places), dtype=np.bool_)
