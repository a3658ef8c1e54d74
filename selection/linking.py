"""Linking: completing what an agent lacks of a set of tasks, and what that adds to its error.

Model
-----
On the tasks of T that an agent a lacks its outcome is what the Rasch model of `selection.rasch` expects::

    r̂_a = (Σ_{j ∈ T observed} X_aj + Σ_{j ∈ T missing} σ(θ̂_a − b̂_j)) / k

with b̂ fitted to the complete agents on all their tasks, and θ̂_a from every task a has, in T or not. The error
of that is measured on agents for whom the truth is known: each complete agent c in turn is cut down to the
tasks that a has and completed by b̂ fitted without c (above 100 complete agents: without the tenth of them
that c is in), and ::

    e_c = r̂_c − r_c,    v_link = mean of e_c² over the n_complete agents,    t with n_complete − 1 degrees

so that bias is part of v_link. Completion draws agents towards what is expected of them; the mean e_c of the
quarter of complete agents with the highest r_c shows what that costs the best.

Incumbent shift. Agents that helped to choose S meet tasks chosen with their own outcomes in view, newcomers
do not. For the n agents S was chosen from, with S₋ᵢ chosen by the same rule without i::

    d_i = r_i on S − r_i on S₋ᵢ,    shift = mean d_i ± sd (n − 1)

It warns when abs(mean) exceeds half the median gap between neighbouring distinct r_i.

Symbols
-------
========  ==============================  ================================  ==========
symbol    code                            shape                             unit
========  ==============================  ================================  ==========
X         ``outcomes``                    (n_complete, m), NaN: missing     0 to 1
T, k      ``tasks``                       (k,) task indices                 tasks
b̂         ``difficulties``                (m,), NaN: nobody has run it      logits
b̂ − c     ``difficulties_without``        (n_complete, m)                   logits
θ̂_c       ``abilities``                   (n_complete,)                     logits
v_link    ``v_link``                      scalar                            score²
d         ``shifts``                      (n,), NaN: skipped                score
========  ==============================  ================================  ==========

Limits: nothing missing gives r̂ = r and no v_link. A cell that a complete agent itself lacks, or that nobody
else has run, is left out of its r̂_c and r_c alike.

Not done here
-------------
Who is completed: that is `selection.standings.placing`. No completed agent feeds pass rates, validation or
monitors. Ridge is not used to link: it shrinks the best agents.

Source
------
Rasch, *Probabilistic Models for Some Intelligence and Attainment Tests*, 1960. Kolen & Brennan, *Test
Equating, Scaling, and Linking*, 3rd ed. 2014, ch. 6 (item response theory). The rest is this project's
own.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import expit

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask, read_only
from selection import rasch
from selection.errors import NoTasks, OutcomeRefused, SelectionError, ShapeMismatch

FEWEST_COMPLETE = 10
MOST_ONE_BY_ONE = 100
N_TENTHS = 10


class SubsetRefused(SelectionError):
    """A subset names active tasks by their positions, each run by a complete agent, none twice."""


class LinkUnknown(SelectionError):
    """The error of linking is measured on two complete agents at least."""


class ShiftUnknown(SelectionError):
    """The incumbent shift needs two agents without whom the subset can be chosen."""


@dataclass(frozen=True)
class Completion:
    """Error of completing one set of missing tasks, measured on complete agents.

    Attributes
    ----------
    v_link : float
        Mean squared error, bias included; score².
    degrees : int
        n_complete − 1, for t.
    top_quartile_error : float
        Mean error of the quarter (rounded up) of the complete agents with the highest means; score. Negative:
        the best are drawn down.
    n_completed : int
        Tasks completed.
    """

    v_link: float
    degrees: int
    top_quartile_error: float
    n_completed: int


@dataclass(frozen=True, eq=False)
class Reference:
    """The complete agents that others are linked to. Made by `reference`; fits are made when first needed.

    Attributes
    ----------
    outcomes : float array, shape (n_complete, m)
    abilities : mapping of bytes to float array, shape (n_complete,)
        θ̂_c for each set of observed tasks asked for so far.
    """

    outcomes: FloatArray
    abilities: dict[bytes, FloatArray] = field(default_factory=dict)

    @property
    def n_complete(self) -> int:
        """Number of complete agents."""
        return int(self.outcomes.shape[0])

    @cached_property
    def difficulties(self) -> FloatArray:
        """b̂ from all complete agents, shape (m,)."""
        return read_only(_difficulties(self.outcomes))

    @cached_property
    def difficulties_without(self) -> FloatArray:
        """b̂ from all complete agents but one, or but its tenth, shape (n_complete, m)."""
        n = self.n_complete
        fold = np.arange(n) if n <= MOST_ONE_BY_ONE else np.arange(n) % N_TENTHS
        without = [_difficulties(self.outcomes[fold != f]) for f in range(int(fold.max(initial=-1)) + 1)]
        return read_only(np.array(without)[fold])

    @cached_property
    def rated(self) -> Mask:
        """Cells whose task has a difficulty without the agent, shape (n_complete, m)."""
        return ~np.isnan(self.difficulties_without)

    @cached_property
    def seen(self) -> Mask:
        """Valid cells among them, those that tell an ability."""
        return ~np.isnan(self.outcomes) & self.rated

    @cached_property
    def filled(self) -> FloatArray:
        """X with 0 where not seen."""
        return np.where(self.seen, self.outcomes, 0.0)

    @cached_property
    def logits(self) -> FloatArray:
        """b̂ without each agent, 0 where there is none."""
        return np.where(self.rated, self.difficulties_without, 0.0)

    @cached_property
    def passing(self) -> FloatArray:
        """σ(θ̂_c − b̂_j) with each agent's ability by all its tasks, 0 where not seen."""
        abilities = np.nan_to_num(self.abilities_from(np.ones(self.outcomes.shape[1], dtype=np.bool_)))
        return expit(abilities[:, None] - self.logits) * self.seen

    def abilities_from(self, observed: Mask) -> FloatArray:
        """θ̂_c of every complete agent from these tasks alone, by b̂ fitted without it, shape (n_complete,).

        NaN for an agent with none of them.
        """
        key = observed.tobytes()
        if key not in self.abilities:
            start = np.zeros(self.n_complete) if observed.all() else self._without(~observed)
            x, b, seen = self.filled[:, observed], self.logits[:, observed], self.seen[:, observed]
            self.abilities[key] = read_only(rasch.abilities(x, b, seen, start))
        return self.abilities[key]

    def _without(self, missing: Mask) -> FloatArray:
        """θ̂_c by all tasks and one Newton step towards θ̂_c without these, from where the search is short."""
        p, gone = self.passing, self.passing[:, missing]
        slope = gone.sum(axis=1) - self.filled[:, missing].sum(axis=1)
        left = p.sum(axis=1) - np.einsum("ij,ij->i", p, p)
        left -= gone.sum(axis=1) - np.einsum("ij,ij->i", gone, gone)
        abilities = np.nan_to_num(self.abilities_from(np.ones_like(missing)))
        return np.asarray(abilities + slope / (left + 1.0 / rasch.PRIOR_VARIANCE), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class IncumbentShift:
    """How differently S treats the agents that helped to choose it.

    Attributes
    ----------
    mean, sd : float
        Of the shifts, sd with divisor n − 1; score.
    shifts : float array, shape (n,)
        d_i; NaN where there is no subset without i, or i has no valid cell on one of the two.
    n_skipped : int
        Agents without a d_i.
    median_gap : float or None
        Between neighbouring distinct means on S; None where all means are equal.
    warns : bool or None
        Whether abs(mean) exceeds half the median gap; None without a gap.
    """

    mean: float
    sd: float
    shifts: FloatArray
    n_skipped: int
    median_gap: float | None
    warns: bool | None


def reference(outcomes: FloatArray) -> Reference:
    """Take complete agents as those that others are linked to.

    Parameters
    ----------
    outcomes : float array, shape (n_complete, m)
        Mean outcomes of *complete* agents on the active tasks, 0 to 1; NaN where missing.

    Raises
    ------
    ShapeMismatch
    """
    outcomes = np.array(outcomes, dtype=np.float64)
    if outcomes.ndim != 2:
        raise ShapeMismatch(f"outcomes have shape {outcomes.shape}, not (n_complete, m)")
    return Reference(read_only(outcomes))


def complete(agents: Reference, outcomes: FloatArray, tasks: IndexArray) -> tuple[FloatArray, Completion]:
    """Complete an agent's outcomes on some tasks from all that it has, and tell how far off that is.

    Parameters
    ----------
    agents : Reference
    outcomes : float array, shape (m,)
        The agent's mean outcomes on the active tasks, 0 to 1; NaN where missing.
    tasks : int array, shape (k,)

    Returns
    -------
    outcomes : float array, shape (k,)
        On the tasks in ascending order, none missing.
    completion : Completion

    Raises
    ------
    ShapeMismatch, OutcomeRefused, NoTasks, SubsetRefused, LinkUnknown
    """
    outcomes, tasks = _checked_agent(agents, outcomes), _checked_tasks(agents, tasks)
    observed = ~np.isnan(outcomes)
    told = observed & ~np.isnan(agents.difficulties)
    ability = rasch.ability(outcomes[told], agents.difficulties[told])
    expected = expit(ability - agents.difficulties[tasks])
    completed = np.where(observed[tasks], outcomes[tasks], expected)
    return read_only(completed), completion(agents, observed, tasks)


def completion(agents: Reference, observed: Mask, tasks: IndexArray) -> Completion:
    """Measure the error of completing tasks from those observed, on each complete agent in turn.

    Parameters
    ----------
    agents : Reference
    observed : bool array, shape (m,)
        Tasks the agent to be linked has a valid outcome for.
    tasks : int array, shape (k,)

    Raises
    ------
    ShapeMismatch, NoTasks, SubsetRefused, LinkUnknown
    """
    observed, tasks = np.asarray(observed, dtype=np.bool_), _checked_tasks(agents, tasks)
    if observed.shape != agents.outcomes.shape[1:]:
        raise ShapeMismatch(f"observed {observed.shape} for {agents.outcomes.shape[1]} tasks")
    means, errors = _errors(agents, observed, tasks)
    known = ~np.isnan(errors)
    means, errors = means[known], errors[known]
    if errors.size < 2:
        raise LinkUnknown(f"{errors.size} complete agents have any of the tasks observed; 2 are needed")
    best = np.argsort(-np.round(means, DECIMALS), kind="stable")[: -(-means.size // 4)]
    return Completion(
        v_link=float(np.mean(errors**2)),
        degrees=means.size - 1,
        top_quartile_error=float(np.mean(errors[best])),
        n_completed=int(np.count_nonzero(~observed[tasks])),
    )


def incumbent_shift(means: FloatArray, without: FloatArray) -> IncumbentShift:
    """Compare each agent's mean on S with its mean on the subset chosen without it.

    Parameters
    ----------
    means : float array, shape (n,)
        r_i on S of the agents that S was chosen from; NaN without a valid cell.
    without : float array, shape (n,)
        r_i on S₋ᵢ; NaN where there is no subset without i, or no valid cell in it.

    Raises
    ------
    ShiftUnknown
        When fewer than two agents have a d_i.
    """
    means, without = np.asarray(means, dtype=np.float64), np.asarray(without, dtype=np.float64)
    shifts = means - without
    known = shifts[~np.isnan(shifts)]
    if known.size < 2:
        raise ShiftUnknown(f"only {known.size} of {shifts.size} agents have a mean on a subset without them")
    mean, median_gap = float(np.mean(known)), _median_gap(means)
    return IncumbentShift(
        mean=mean,
        sd=float(np.std(known, ddof=1)),
        shifts=read_only(shifts),
        n_skipped=shifts.size - known.size,
        median_gap=median_gap,
        warns=None if median_gap is None else abs(mean) > median_gap / 2,
    )


# ---------------------------------------------------------------------------------------------- arithmetic


def _difficulties(outcomes: FloatArray) -> FloatArray:
    """b̂ of the tasks that some agent has run; NaN for the others."""
    difficulties = np.full(outcomes.shape[1], np.nan)
    rated = ~np.isnan(outcomes).all(axis=0)
    difficulties[rated] = rasch.fit(outcomes[:, rated]).difficulties
    return difficulties


def _errors(agents: Reference, observed: Mask, tasks: IndexArray) -> tuple[FloatArray, FloatArray]:
    """r_c and e_c of every complete agent, shape (n_complete,) each; NaN where it has no such cells."""
    known = ~np.isnan(agents.outcomes[:, tasks])
    counted = known & (observed[tasks] | agents.rated[:, tasks])
    n_counted = np.count_nonzero(counted, axis=1)
    abilities = agents.abilities_from(observed)
    lacking = tasks[~observed[tasks]]
    beyond = expit(abilities[:, None] - agents.logits[:, lacking]) - agents.filled[:, lacking]
    beyond = np.where(agents.seen[:, lacking], beyond, 0.0).sum(axis=1)
    means, errors = (np.full(len(counted), np.nan) for _ in range(2))
    totals = np.where(counted, agents.outcomes[:, tasks], 0.0).sum(axis=1)
    np.divide(totals, n_counted, out=means, where=n_counted > 0)
    np.divide(beyond, n_counted, out=errors, where=(n_counted > 0) & ~np.isnan(abilities))
    return means, errors


def _median_gap(means: FloatArray) -> float | None:
    """Median difference of neighbouring distinct means."""
    distinct = np.unique(np.round(means[~np.isnan(means)], DECIMALS))
    return float(np.median(np.diff(distinct))) if distinct.size > 1 else None


# -------------------------------------------------------------------------------------------------- checks


def _checked_tasks(agents: Reference, tasks: IndexArray) -> IndexArray:
    """Positions of tasks, ascending."""
    tasks, m = np.sort(np.asarray(tasks, dtype=np.intp)), agents.outcomes.shape[1]
    if not tasks.size:
        raise NoTasks("no task in the subset")
    if tasks[0] < 0 or tasks[-1] >= m or (np.diff(tasks) == 0).any():
        raise SubsetRefused(f"a subset of {tasks.size} tasks that are not positions of {m} active tasks")
    unrated = np.isnan(agents.outcomes[:, tasks]).all(axis=0)
    if agents.n_complete and unrated.any():
        raise SubsetRefused(f"task {tasks[np.argmax(unrated)]} of the subset: no complete agent has run it")
    return tasks


def _checked_agent(agents: Reference, outcomes: FloatArray) -> FloatArray:
    outcomes = np.asarray(outcomes, dtype=np.float64)
    if outcomes.shape != agents.outcomes.shape[1:]:
        raise ShapeMismatch(f"outcomes {outcomes.shape} for {agents.outcomes.shape[1]} tasks")
    wrong = ~np.isnan(outcomes) & ~((outcomes >= 0.0) & (outcomes <= 1.0))
    if wrong.any():
        raise OutcomeRefused(f"task {np.argmax(wrong)}: {outcomes[np.argmax(wrong)]} is not from 0 to 1")
    return outcomes
