"""What is said for one target: each agent's score with its error, its rank and the ranks it may hold.

==========  =================  ==========================================================================
target      tasks              rank intervals
==========  =================  ==========================================================================
``subset``  the k of S         tasks resampled; a newcomer against an agent that S was chosen from counts
                               the variance of the incumbent shift too
``full``    all                tasks resampled where all are measured; where some are estimated, from the
                               errors of all
``domain``  all, as a sample   tasks resampled
==========  =================  ==========================================================================

A rank is 1 + the number of agents with a strictly better score, rounded to 1e-9. Of equal outcomes the tasks
are resampled once, whatever the targets. *May be first* are the agents that no other agent beats.

Symbols: v ``v`` (n_ranked,) score², ω̂ ``omega``; the others as in `analytics.differences`.

Source
------
As in `analytics.differences`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.differences.domain_ranks import (
    FINITE_NOTE,
    RankIntervals,
    Resamples,
    but_for,
    rank_intervals,
    resample,
)
from analytics.differences.normal_ranks import normal_rank_intervals
from analytics.differences.pairs import (
    Estimate,
    Facet,
    Row,
    Target,
    agent_variance,
    score,
    trial_variance_ratio,
)
from analytics.errors import CoreError
from analytics.outcome_table import naive_standard_error
from analytics.record import Record
from analytics.trials.flags import unclaimed_orders
from selection.standings import words
from selection.standings.full_scores import BY_AGENT, BY_SCAFFOLD, Estimated
from selection.standings.lines import AtTarget, TargetLine
from selection.standings.placing import Placed

N_DECIMALS = 9
RESAMPLED, BY_ERRORS = "resampled tasks", "errors of all scores"


@dataclass(frozen=True, eq=False)
class Bench:
    """What every target reads: the record, how its trials vary, and the resamples made so far.

    Attributes
    ----------
    record : Record
    facets : tuple of Facet
    seed : int
    """

    record: Record
    facets: tuple[Facet, ...]
    seed: int
    resamples: dict[bytes, Resamples] = field(default_factory=dict)
    omega: float | None = None

    @classmethod
    def of(cls, record: Record, facets: tuple[Facet, ...], seed: int) -> "Bench":
        """Return it for a record; ω̂ is that of all tasks."""
        table = record.table
        moments = table.means, table.trial_variances, table.n_trials
        return cls(record, facets, seed, omega=trial_variance_ratio(*moments, one_trial=one_trial(record)))

    def row(self, i: int, tasks: IndexArray, placed: Placed) -> Row:
        """Return the cells of agent i on these tasks; those that were completed stay missing."""
        table = self.record.table
        return Row(
            means=table.means[i, tasks],
            trial_variances=None if table.trial_variances is None else table.trial_variances[i, tasks],
            n_trials=None if table.n_trials is None else table.n_trials[i, tasks],
            one_trial=bool(self.record.repeats[i].copies),
            levels=self.record.repeats[i].levels,
            v_link=placed.v_link,
            df_link=placed.df_link,
        )

    def resampled(self, outcomes: FloatArray, rows: Sequence[int], v: FloatArray) -> Resamples:
        """Resample the tasks; once for the same agents with the same outcomes.

        Raises
        ------
        RanksRefused
        """
        key = b"|".join([np.array(rows).tobytes(), outcomes.tobytes(), v.tobytes()])
        if key not in self.resamples:
            names = [self.record.table.agents[i] for i in rows]
            self.resamples[key] = resample(outcomes, names, seed=self.seed, v=v)
        return self.resamples[key]


@dataclass(frozen=True, eq=False)
class Told:
    """What one target says.

    Attributes
    ----------
    line : TargetLine
    at : tuple of AtTarget, length n_agents
        In the order of the record; `tied_with` is left empty.
    ties : tuple of (tuple of int), length n_agents
        Positions of the agents each is tied with, in the record.
    """

    line: TargetLine
    at: tuple[AtTarget, ...]
    ties: tuple[tuple[int, ...], ...]


def one_trial(record: Record) -> Mask:
    """Agents whose trials are copies of one another, so that they count as one, shape (n_agents,)."""
    return np.array([bool(repeats.copies) for repeats in record.repeats], dtype=np.bool_)


def nothing(bench: Bench, target: Target, n_tasks: int, reason: str) -> Told:
    """Return a target that says nothing, and why."""
    n = bench.record.n_agents
    line = TargetLine(covers=words.COVERS[target], n_tasks=n_tasks, n_ranked=0, reason=reason)
    return Told(line, (AtTarget(reason=reason),) * n, ((),) * n)


def unranked(told: Told, reason: str) -> Told:
    """Take every rank out of what a target says; bounds and counts stay."""
    at = tuple(
        one if one.rank is None else AtTarget(n_valid=one.n_valid, n_missing=one.n_missing, reason=reason)
        for one in told.at
    )
    line = TargetLine(covers=told.line.covers, n_tasks=told.line.n_tasks, n_ranked=0, reason=reason)
    return Told(line, at, ((),) * len(at))


def tell(
    bench: Bench,
    target: Target,
    tasks: IndexArray,
    placed: Sequence[Placed],
    *,
    shift: tuple[Mask, float] | None = None,
    estimated: Mapping[int, Estimated] = MappingProxyType({}),
) -> Told:
    """Say what a target says.

    Parameters
    ----------
    bench : Bench
    target : {"subset", "full", "domain"}
    tasks : int array, shape (k,)
    placed : sequence of Placed, length n_agents
        On these tasks.
    shift : (bool array, shape (n_agents,), float), optional
        The incumbents, and the variance of a pair of one of them with another agent, score².
    estimated : mapping of int to Estimated
        By position, for agents that are not placed on these tasks; target full alone.
    """
    at = [at_target(bench, target, tasks, i, one, estimated.get(i)) for i, one in enumerate(placed)]
    rows = [i for i, one in enumerate(placed) if one.outcomes is not None or _has_error(estimated.get(i))]
    line = TargetLine(covers=words.COVERS[target], n_tasks=tasks.size, n_ranked=len(rows))
    if not rows:
        return _concluded(bench, replace(line, reason=words.NOBODY_RANKED), at, rows, None)
    is_mixed = any(i in estimated for i in rows)
    try:
        if is_mixed:
            found = _by_errors(bench, tasks, at, placed, rows, estimated)
        else:
            found = _by_tasks(bench, tasks, placed, rows, shift)
    except CoreError as refusal:
        return _concluded(bench, replace(line, reason=f"no rank intervals: {refusal}"), at, rows, None)
    note = words.MIXED_NOTE if is_mixed else "" if target == "domain" else FINITE_NOTE
    line = replace(line, method=BY_ERRORS if is_mixed else RESAMPLED, note=note)
    return _concluded(bench, line, at, rows, found)


def _has_error(told: Estimated | None) -> bool:
    return told is not None and told.se2 is not None


# ------------------------------------------------------------------------------------------------- one agent


def at_target(
    bench: Bench, target: Target, tasks: IndexArray, i: int, placed: Placed, estimated: Estimated | None
) -> AtTarget:
    """Return one agent at one target, without rank and ties."""
    if estimated is not None:
        return _estimated(estimated, placed)
    return _measured(bench, target, tasks, i, placed)


def _measured(bench: Bench, target: Target, tasks: IndexArray, i: int, placed: Placed) -> AtTarget:
    """One agent by its outcomes; the interval stands around the score that is shown."""
    told = AtTarget(n_valid=placed.n_valid, n_missing=placed.n_missing)
    if placed.score is None:
        return replace(told, bounds=placed.bounds, reason=placed.reason)
    estimate = estimate_of(bench, target, tasks, i, placed)
    interval, moved = estimate.interval, placed.score - estimate.value
    return replace(
        told,
        score=placed.score,
        lower=_clipped(interval.lower + moved) if interval else None,
        upper=_clipped(interval.upper + moved) if interval else None,
        se=interval.se if interval else None,
        naive_se=naive_standard_error(placed.score, tasks.size),
        upper_bound=estimate.method == "upper bound" and interval is not None,
        method=estimate.method,
        reason=estimate.reason,
    )


def estimate_of(bench: Bench, target: Target, tasks: IndexArray, i: int, placed: Placed) -> Estimate:
    """Return the mean of agent i over its valid tasks with its absolute interval."""
    row, selected = bench.row(i, tasks, placed), target == "subset"
    return score(row, target, selected=selected, omega=bench.omega, facets=bench.facets)


def _estimated(told: Estimated, placed: Placed) -> AtTarget:
    return AtTarget(
        score=told.score,
        lower=told.lower,
        upper=told.upper,
        se=None if told.se2 is None else told.se2**0.5,
        method="calibration",
        source=told.source,
        estimated=told.score is not None,
        n_valid=placed.n_valid,
        n_missing=placed.n_missing,
        bounds=placed.bounds if told.se2 is None else None,
        reason=told.reason,
    )


def relative_error(bench: Bench, tasks: IndexArray, i: int, placed: Placed) -> tuple[float, float]:
    """Return the variance of a measured full score against another agent, and its degrees of freedom.

    Main effects of facets are left out: both agents share them. Where the outcomes show no spread,
    p̃(1 − p̃)/k with p̃ = (Σ + 2)/(k + 4) and k − 1 degrees stand for it (Agresti and Coull).
    """
    estimate = estimate_of(bench, "full", tasks, i, placed)
    shared = {facet.name for facet in bench.facets}
    if estimate.interval is not None:
        variance = sum(term.variance for term in estimate.terms if term.name not in shared)
        return variance, max(estimate.interval.df, 1.0)
    k = tasks.size
    rate = (estimate.value * k + 2) / (k + 4)
    return rate * (1 - rate) / k + _beyond_tasks(bench, tasks, i, placed), max(k - 1.0, 1.0)


def _beyond_tasks(bench: Bench, tasks: IndexArray, i: int, placed: Placed) -> float:
    """v_a: how the agent varies from run to run, prompt to prompt, judge to judge, and by completing it."""
    return sum(term.variance for term in agent_variance(bench.row(i, tasks, placed), bench.facets))


def _clipped(end: float) -> float:
    return min(max(end, 0.0), 1.0)


# ---------------------------------------------------------------------------------------------- all of them


def _by_tasks(
    bench: Bench,
    tasks: IndexArray,
    placed: Sequence[Placed],
    rows: Sequence[int],
    shift: tuple[Mask, float] | None,
) -> RankIntervals:
    outcomes = np.array([placed[i].outcomes for i in rows])
    v = np.array([_beyond_tasks(bench, tasks, i, placed[i]) for i in rows])
    found = rank_intervals(bench.resampled(outcomes, rows, v), _added(shift, rows))
    return but_for(found, unclaimed_orders(bench.record.table.means[np.ix_(np.array(rows), tasks)]))


def _added(shift: tuple[Mask, float] | None, rows: Sequence[int]) -> FloatArray | None:
    """Variance of the incumbent shift for pairs of an incumbent with another agent."""
    if shift is None:
        return None
    incumbent = shift[0][list(rows)]
    return np.asarray(shift[1] * (incumbent[:, None] != incumbent), dtype=np.float64)


def _by_errors(
    bench: Bench,
    tasks: IndexArray,
    at: Sequence[AtTarget],
    placed: Sequence[Placed],
    rows: Sequence[int],
    estimated: Mapping[int, Estimated],
) -> RankIntervals:
    table = bench.record.table
    errors = [
        estimated[i].se2 if i in estimated else relative_error(bench, tasks, i, placed[i])[0] for i in rows
    ]
    degrees = {one.calibration: one.df for one in estimated.values() if one.df is not None}
    found = normal_rank_intervals(
        np.array([at[i].score for i in rows], dtype=np.float64),
        np.array(errors, dtype=np.float64),
        [table.agents[i] for i in rows],
        calibration=[estimated[i].calibration if i in estimated else -1 for i in rows],
        df=[degrees.get(one, 1.0) for one in (BY_AGENT, BY_SCAFFOLD)],
        seed=bench.seed,
    )
    run_all = np.array([i not in estimated for i in rows])
    unclaimed = np.zeros((len(rows), len(rows)), dtype=np.bool_)
    unclaimed[np.ix_(run_all, run_all)] = unclaimed_orders(
        table.means[np.ix_(np.array(rows)[run_all], tasks)]
    )
    return but_for(found, unclaimed)


def _concluded(
    bench: Bench, line: TargetLine, at: list[AtTarget], rows: Sequence[int], found: RankIntervals | None
) -> Told:
    """Add ranks, rank intervals and ties."""
    names, tied = bench.record.table.agents, list[tuple[int, ...]]([()] * len(at))
    for i, rank in zip(rows, _ranks([at[i].score for i in rows]), strict=True):
        at[i] = replace(at[i], rank=rank)
    if found is not None:
        for position, i in enumerate(rows):
            lower, upper = int(found.lower[position]), int(found.upper[position])
            at[i] = replace(at[i], rank_lower=lower, rank_upper=upper)
            tied[i] = tuple(rows[j] for j in found.tied_with(position))
        first = tuple(names[i] for i in rows if at[i].rank_lower == 1)
        line = replace(line, critical=found.critical, n_draws=found.n_draws, may_be_first=first)
    return Told(line, tuple(at), tuple(tied))


def _ranks(scores: Sequence[float | None]) -> list[int]:
    """1 + the number of strictly better scores."""
    known = np.round(np.array(scores, dtype=np.float64), N_DECIMALS)
    n_not_better = np.searchsorted(np.sort(known), known, side="right")
    return [1 + known.size - int(n) for n in n_not_better]
