"""Linking: ranking an agent that has not run all of the subset, and what that adds to its error.

Model
-----
An agent a with valid outcomes on all k tasks of S is ranked directly, on its mean. One that lacks some is
completed: on the missing tasks its outcome is what the Rasch model of `selection.rasch` expects::

    r̂_a = (Σ_{j ∈ S observed} X_aj + Σ_{j ∈ S missing} σ(θ̂_a − b̂_j)) / k

with b̂ fitted to the complete agents on all their tasks, and θ̂_a from every task a has, in S or not. The error
of that is measured on agents for whom the truth is known: each complete agent c in turn is cut down to the
tasks that a has and completed by b̂ fitted without c, and ::

    e_c = r̂_c − r_c,    v_link = mean of e_c² over the n_complete agents,    t with n_complete − 1 degrees

so that bias is part of v_link. Completion draws agents towards what is expected of them; the mean e_c of the
quarter of complete agents with the highest r_c shows what that costs the best.

==================  =====================================================  ==========================
how                 when                                                   needs
==================  =====================================================  ==========================
ranked directly     all of S valid
completed           20·n_missing ≤ k, every one a harness failure          10 complete agents
linked              anyone else with 2·n_valid ≥ k                         10 complete agents
unranked            the rest, with the reason
==================  =====================================================  ==========================

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
S, k      ``tasks``, ``k``                (k,) task indices                 tasks
b̂         ``difficulties``                (m,), NaN: nobody has run it      logits
b̂ − c     ``difficulties_without``        (n_complete, m)                   logits
r̂_a       ``Ranked.mean``                 scalar                            0 to 1
v_link    ``v_link``                      scalar                            score²
d         ``shifts``                      (n,), NaN: skipped                score
========  ==============================  ================================  ==========

Limits: nothing missing gives r̂ = r and no v_link. A cell that a complete agent itself lacks, or that nobody
else has run, is left out of its r̂_c and r_c alike.

Not done here
-------------
No linked agent feeds pass rates, validation or monitors: the caller passes complete agents. Ridge is not used
to link: it shrinks the best agents.

Source
------
Rasch, *Probabilistic Models for Some Intelligence and Attainment Tests*, 1960. Kolen & Brennan, *Test
Equating, Scaling, and Linking*, 3rd ed. 2014, ch. 6 (item response theory). The rest is this project's
own.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit

from analytics.arrays import FloatArray, IndexArray, Mask, read_only
from selection import rasch
from selection.errors import NoTasks, OutcomeRefused, SelectionError, ShapeMismatch

How = Literal["ranked directly", "completed", "linked"]
FEWEST_COMPLETE = 10
N_DECIMALS = 9


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
        Tasks of S completed.
    """

    v_link: float
    degrees: int
    top_quartile_error: float
    n_completed: int


@dataclass(frozen=True, eq=False)
class Ranked:
    """An agent's mean over S, and how it came about.

    Attributes
    ----------
    how : {"ranked directly", "completed", "linked"}
    outcomes : float array, shape (k,)
        On the tasks of S in ascending order, missing ones completed; 0 to 1.
    completion : Completion or None
        None when ranked directly.
    """

    how: How
    outcomes: FloatArray
    completion: Completion | None

    @property
    def mean(self) -> float:
        """r̂_a, the mean over all k tasks; 0 to 1."""
        return float(np.mean(self.outcomes))


@dataclass(frozen=True)
class Unranked:
    """An agent that is listed without a rank.

    Attributes
    ----------
    reason : str
    """

    reason: str


@dataclass(frozen=True, eq=False)
class Reference:
    """The complete agents that others are linked to. Made by `reference`; fits are made when first needed.

    Attributes
    ----------
    outcomes : float array, shape (n_complete, m)
    tasks : int array, shape (k,)
        The subset, ascending.
    """

    outcomes: FloatArray
    tasks: IndexArray

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
        """b̂ from all complete agents but one, shape (n_complete, m)."""
        without = [_difficulties(np.delete(self.outcomes, c, axis=0)) for c in range(self.n_complete)]
        return read_only(np.array(without))


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


def reference(outcomes: FloatArray, tasks: IndexArray) -> Reference:
    """Take complete agents as those that others are linked to.

    Parameters
    ----------
    outcomes : float array, shape (n_complete, m)
        Mean outcomes of *complete* agents on the active tasks, 0 to 1; NaN where missing.
    tasks : int array, shape (k,)
        The subset.

    Raises
    ------
    ShapeMismatch, NoTasks, SubsetRefused
    """
    outcomes, tasks = np.array(outcomes, dtype=np.float64), np.asarray(tasks, dtype=np.intp)
    if outcomes.ndim != 2:
        raise ShapeMismatch(f"outcomes have shape {outcomes.shape}, not (n_complete, m)")
    if not tasks.size:
        raise NoTasks("no task in the subset")
    _check_subset(outcomes, tasks)
    return Reference(read_only(outcomes), read_only(np.sort(tasks)))


def ranked(agents: Reference, outcomes: FloatArray, failed: Mask | None = None) -> Ranked | Unranked:
    """Rank an agent on S: directly, completed, linked, or not at all.

    Parameters
    ----------
    agents : Reference
    outcomes : float array, shape (m,)
        The agent's mean outcomes on the active tasks, 0 to 1; NaN where missing.
    failed : bool array, shape (m,), optional
        Missing tasks that the agent did run, but whose every trial the harness failed; none when not given.

    Raises
    ------
    ShapeMismatch, OutcomeRefused, LinkUnknown
    """
    outcomes, failed = _checked_agent(agents, outcomes, failed)
    missing = np.isnan(outcomes[agents.tasks])
    how = _how(missing, failed[agents.tasks])
    if how is None:
        n_valid, k = missing.size - np.count_nonzero(missing), missing.size
        return Unranked(
            f"{n_valid} of {k} tasks of the subset are valid; at least {-(-k // 2)} (50%) are needed"
        )
    if how == "ranked directly":
        return Ranked(how, read_only(outcomes[agents.tasks]), None)
    if agents.n_complete < FEWEST_COMPLETE:
        return Unranked(
            f"{np.count_nonzero(missing)} of {missing.size} tasks of the subset are missing; completing them "
            f"needs {FEWEST_COMPLETE} complete agents and there are {agents.n_complete}"
        )
    return Ranked(how, *complete(agents, outcomes))


def complete(agents: Reference, outcomes: FloatArray) -> tuple[FloatArray, Completion]:
    """Complete an agent's outcomes on S from all tasks that it has, and tell how far off that is.

    Parameters
    ----------
    agents : Reference
    outcomes : float array, shape (m,)
        The agent's mean outcomes on the active tasks, 0 to 1; NaN where missing.

    Returns
    -------
    outcomes : float array, shape (k,)
        On the tasks of S, none missing.
    completion : Completion

    Raises
    ------
    ShapeMismatch, OutcomeRefused, LinkUnknown
    """
    outcomes, _ = _checked_agent(agents, outcomes, None)
    observed = ~np.isnan(outcomes)
    completed = _completed(outcomes, observed, agents.tasks, agents.difficulties)
    return read_only(completed), completion(agents, observed)


def completion(agents: Reference, observed: Mask) -> Completion:
    """Measure the error of completing S from the tasks observed, on each complete agent in turn.

    Parameters
    ----------
    agents : Reference
    observed : bool array, shape (m,)
        Tasks the agent to be linked has a valid outcome for, in S or not.

    Raises
    ------
    ShapeMismatch, LinkUnknown
    """
    observed = np.asarray(observed, dtype=np.bool_)
    if observed.shape != agents.outcomes.shape[1:]:
        raise ShapeMismatch(f"observed {observed.shape} for {agents.outcomes.shape[1]} tasks")
    pairs = [pair for c in range(agents.n_complete) if (pair := _completed_pair(agents, observed, c))]
    if len(pairs) < 2:
        raise LinkUnknown(f"{len(pairs)} complete agents have any of the tasks observed; 2 are needed")
    completed, means = np.array(pairs).T
    errors = completed - means
    best = np.argsort(-np.round(means, N_DECIMALS), kind="stable")[: -(-means.size // 4)]
    return Completion(
        v_link=float(np.mean(errors**2)),
        degrees=means.size - 1,
        top_quartile_error=float(np.mean(errors[best])),
        n_completed=int(np.count_nonzero(~observed[agents.tasks])),
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


class _Pair(NamedTuple):
    """A complete agent's mean as completed, and as it is."""

    completed: float
    mean: float


def _difficulties(outcomes: FloatArray) -> FloatArray:
    """b̂ of the tasks that some agent has run; NaN for the others."""
    difficulties = np.full(outcomes.shape[1], np.nan)
    rated = ~np.isnan(outcomes).all(axis=0)
    difficulties[rated] = rasch.fit(outcomes[:, rated]).difficulties
    return difficulties


def _completed(
    outcomes: FloatArray, observed: Mask, tasks: IndexArray, difficulties: FloatArray
) -> FloatArray:
    """Outcomes on S where observed, σ(θ̂ − b̂_j) elsewhere, θ̂ from all that is observed."""
    told = observed & ~np.isnan(difficulties)
    ability = rasch.ability(outcomes[told], difficulties[told])
    return np.where(observed[tasks], outcomes[tasks], expit(ability - difficulties[tasks]))


def _completed_pair(agents: Reference, observed: Mask, c: int) -> _Pair | None:
    """Complete agent c from the tasks observed, by b̂ fitted without c; None where it has none of them."""
    row, difficulties, tasks = agents.outcomes[c], agents.difficulties_without[c], agents.tasks
    counted = ~np.isnan(row[tasks]) & (observed[tasks] | ~np.isnan(difficulties[tasks]))
    seen = observed & ~np.isnan(row)
    if not (seen & ~np.isnan(difficulties)).any() or not counted.any():
        return None
    completed = _completed(row, seen, tasks, difficulties)[counted]
    return _Pair(float(np.mean(completed)), float(np.mean(row[tasks][counted])))


def _median_gap(means: FloatArray) -> float | None:
    """Median difference of neighbouring distinct means."""
    distinct = np.unique(np.round(means[~np.isnan(means)], N_DECIMALS))
    return float(np.median(np.diff(distinct))) if distinct.size > 1 else None


def _how(missing: Mask, failed: Mask) -> How | None:
    n_missing, k = int(np.count_nonzero(missing)), missing.size
    if not n_missing:
        return "ranked directly"
    if 20 * n_missing <= k and failed[missing].all():
        return "completed"
    return "linked" if 2 * (k - n_missing) >= k else None


# -------------------------------------------------------------------------------------------------- checks


def _check_subset(outcomes: FloatArray, tasks: IndexArray) -> None:
    m = outcomes.shape[1]
    if tasks.min() < 0 or tasks.max() >= m or np.unique(tasks).size != tasks.size:
        raise SubsetRefused(f"a subset of {tasks.size} tasks that are not positions of {m} active tasks")
    unrated = np.isnan(outcomes[:, tasks]).all(axis=0)
    if outcomes.size and unrated.any():
        raise SubsetRefused(f"task {tasks[np.argmax(unrated)]} of the subset: no complete agent has run it")


def _checked_agent(agents: Reference, outcomes: FloatArray, failed: Mask | None) -> tuple[FloatArray, Mask]:
    outcomes = np.asarray(outcomes, dtype=np.float64)
    failed = (
        np.zeros(outcomes.shape, dtype=np.bool_) if failed is None else np.asarray(failed, dtype=np.bool_)
    )
    if outcomes.shape != agents.outcomes.shape[1:] or failed.shape != outcomes.shape:
        m = agents.outcomes.shape[1]
        raise ShapeMismatch(f"outcomes {outcomes.shape} and failures {failed.shape} for {m} tasks")
    wrong = ~np.isnan(outcomes) & ~((outcomes >= 0.0) & (outcomes <= 1.0))
    if wrong.any():
        raise OutcomeRefused(f"task {np.argmax(wrong)}: {outcomes[np.argmax(wrong)]} is not from 0 to 1")
    return outcomes, failed
