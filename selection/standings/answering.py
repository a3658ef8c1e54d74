"""From a record to its standings: the steps in their order."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from analytics.arrays import FloatArray, IndexArray
from analytics.errors import CoreError
from analytics.record import TRUST, Record, Trust, offer
from analytics.threads import one_blas_thread
from selection.full_scores.kept import KeptFits
from selection.given import Given
from selection.rules import BY_CALIBRATION, Rules, Target
from selection.standings import chosen_for, terms, words
from selection.standings.agents import lines
from selection.standings.choice import Choice, choice, n_complete, shift_variance, training
from selection.standings.chosen_for import is_chosen_for, marked
from selection.standings.completing import Completing, Estimated
from selection.standings.full_scores import (
    calibrator,
    coverage,
    estimates,
    fitted_on,
    is_current,
)
from selection.standings.grouping import grouping
from selection.standings.lines import Conditions, CoverageLine, Standings
from selection.standings.phase import phase_of
from selection.standings.placing import (
    Placed,
    barred_by,
    place,
    place_on_all,
    ran_all,
    rated_tasks,
    scores_of,
)
from selection.standings.podium import podium_text
from selection.standings.savings import heading, savings
from selection.standings.targets import Bench, Told, borrowed_by, has_repeats, nothing, unranked
from selection.standings.trials import trials
from selection.standings.verdict import falls_back, no_subset, verdict
from selection.standings.versions import tell


@dataclass(frozen=True, eq=False)
class Basis:
    """What every target rests on.

    Attributes
    ----------
    record : Record
    chosen : Choice
    tasks, subset : int array
        All tasks that somebody complete has run, and those of them in the subset.
    on_all, on_subset : tuple of Placed, length n_agents
        `on_subset` is `on_all` where there is no subset.
    completing : Completing
    """

    record: Record
    chosen: Choice
    tasks: IndexArray
    subset: IndexArray
    on_all: tuple[Placed, ...]
    on_subset: tuple[Placed, ...]
    completing: Completing

    @property
    def scores(self) -> FloatArray:
        """Full scores of agents placed on all tasks, shape (n_agents,); NaN for the others."""
        return scores_of(self.on_all)

    @property
    def newcomers(self) -> IndexArray:
        """Positions of agents that ran the subset, not all tasks: placed on it directly or completed.

        An agent that ran all tasks and lost too many outcomes is incomplete: it is never estimated.
        """
        placed = np.array([one.outcomes is not None for one in self.on_subset])
        measured = np.array([one.outcomes is not None for one in self.on_all])
        return np.flatnonzero(placed & ~measured & ~ran_all(self.record))

    @property
    def of_earlier(self) -> Mapping[int, int]:
        """The version of the subset, from 0, of agents that ran it, neither the present nor all tasks."""
        record, placed = self.record, np.array([one.outcomes is not None for one in self.on_subset])
        rest, found = ~placed & ~ran_all(record), dict[int, int]()
        for number, tasks in enumerate(self.chosen.earlier):
            ran = rest & record.is_direct(tasks) & (record.n_places[:, tasks] > 0).all(axis=1)
            found |= dict.fromkeys(np.flatnonzero(ran).tolist(), number)
        return {i: number for i, number in found.items() if not barred_by(record, i)}


def basis(record: Record, rules: Rules, given: Given) -> Basis:
    """Choose the subset and place every agent.

    Raises
    ------
    SelectionError
    """
    record = marked(record, given.staged)
    chosen, tasks = choice(record, rules, given), rated_tasks(record)
    completing = Completing(record, given.fits)
    on_all = place_on_all(record, completing)
    subset = np.intersect1d(chosen.tasks, tasks)
    if not subset.size:
        return Basis(record, chosen, tasks, subset, on_all, on_all, completing)
    on_subset = place(record, subset, completing, of="tasks of the subset")
    return Basis(record, chosen, tasks, subset, on_all, on_subset, completing)


def answered(record: Record, rules: Rules, given: Given) -> Standings:
    """Tell where every agent stands; see `selection.standings.answer`.

    The products of the resampling are small: with one thread of BLAS they are several times faster.
    """
    with one_blas_thread():
        found = basis(record, rules, given)
        level = headline_from(record, rules)
        heads = heading(record, level) & ~np.array([one.recalled for one in found.record.about])
        bench = Bench(
            record=found.record,
            facets=given.variances.facets,
            seed=rules.seed,
            draws=given.draws,
            heading=heads,
            borrowed=borrowed_by(found.record, rules),
            grouping=grouping(found.record, rules),
        )
        estimated, measured = estimates_of(found, rules, given)
        told = _told(bench, found, rules, given.fits, estimated)
    return _standings(found, told, rules, given, estimated, measured, level)


# --------------------------------------------------------------------------------------------------- targets


def _told(
    bench: Bench, found: Basis, rules: Rules, fits: KeptFits, estimated: Mapping[int, Estimated]
) -> dict[str, Told]:
    """Tell all targets."""
    told = {
        "subset": _subset(bench, found, rules, fits),
        "full": tell(bench, "full", found.tasks, found.on_all, estimated=estimated),
        "domain": tell(bench, "domain", found.tasks, found.on_all),
    }
    few = _too_few(found.record, told)
    return {name: unranked(one, few) if few else one for name, one in told.items()}


def _too_few(record: Record, told: Mapping[str, Told]) -> str:
    """Why nobody is ranked: under every target fewer than half of the agents loaded by an operator could be.

    What submitters deliver does not enter, so that incomplete deliveries cannot empty a board; an agent that
    ran under other conditions or waits for an operator is not counted either.
    """
    asked = [i for i in np.flatnonzero(record.operator).tolist() if not barred_by(record, i)]
    n_ranked = {name: sum(one.at[i].rank is not None for i in asked) for name, one in told.items()}
    most = max(n_ranked.values())
    if 2 * most >= len(asked):
        return ""
    agents = words.counted(len(asked), "loaded agent")
    where = "" if n_ranked["full"] == most else " on the tasks of the subset"
    return f"nobody is ranked: {most} of {agents} could be{where}, fewer than half"


def _subset(bench: Bench, found: Basis, rules: Rules, fits: KeptFits) -> Told:
    if not found.subset.size:
        return nothing(bench, "subset", 0, terms.NO_SUBSET)
    variance = shift_of(found, rules, fits)
    shift = (found.chosen.incumbents, variance) if variance else None
    return tell(bench, "subset", found.subset, found.on_subset, shift=shift)


def shift_of(found: Basis, rules: Rules, fits: KeptFits | None = None) -> float:
    """Return the variance of the incumbent shift; 0 where no newcomer stands against an incumbent."""
    ranked = np.array([one.outcomes is not None for one in found.on_subset])
    old, new = ranked & found.chosen.incumbents, ranked & ~found.chosen.incumbents
    return shift_variance(found.record, found.chosen, rules, fits) if old.any() and new.any() else 0.0


def estimates_of(
    found: Basis, rules: Rules, given: Given
) -> tuple[Mapping[int, Estimated], CoverageLine | None]:
    """Estimate the full scores of agents that ran a version of the subset, by position; empty without any.

    The coverage is that of intervals by `ridge` or `line`. The estimates of agents whose tasks were chosen
    for them are given.
    """
    rows, measured = found.newcomers, None
    if rules.estimator in BY_CALIBRATION and rows.size:
        estimated, measured = _calibrated(found, rules, given)
    else:
        estimated = {i: _completed(found, i, found.subset, len(found.chosen.earlier)) for i in rows.tolist()}
    for i, number in found.of_earlier.items():
        estimated[i] = _completed(found, i, found.chosen.earlier[number], number)
    return {**estimated, **chosen_for.estimates(found.record, given.staged)}, measured


def _completed(found: Basis, i: int, batch: IndexArray, number: int) -> Estimated:
    try:
        return found.completing.estimated(i, batch, found.tasks, number)
    except CoreError as refusal:
        return Estimated(None, reason=str(refusal))


def _calibrated(found: Basis, rules: Rules, given: Given) -> tuple[dict[int, Estimated], CoverageLine | None]:
    record, tasks, rows = found.record, found.subset, found.newcomers
    names = tuple(record.table.tasks[j] for j in tasks)
    agents = training(record, found.scores)
    try:
        fitted = given.fitted
        if fitted is None or not is_current(fitted, agents, names, rules):
            fitted = fitted_on(agents, names, rules)
        made = calibrator(agents, tasks, fitted, given.sampled, given.fits)
        estimated = estimates(record, tasks, rows, made)
        return dict(estimated), coverage(fitted, estimated)
    except CoreError as refusal:
        return {int(i): Estimated(None, reason=str(refusal)) for i in rows}, None


# ------------------------------------------------------------------------------------------------- the board


def _standings(
    found: Basis,
    told: Mapping[str, Told],
    rules: Rules,
    given: Given,
    estimated: Mapping[int, Estimated],
    measured: CoverageLine | None,
    level: Trust,
) -> Standings:
    record, chosen = found.record, found.chosen
    phase, why = phase_of(chosen, rules, given)
    target, why_target = default_target(found, estimated, rules, given)
    board = Standings(
        n_tasks=record.n_tasks,
        n_complete=n_complete(record),
        phase=phase,
        why=why,
        target=target,
        headline_from=level,
        subset=chosen.line,
        conditions=Conditions(record.compared, record.left_out),
        why_target=why_target,
        verdict=verdict(given.validation, chosen.line.strategy) if chosen.line else no_subset(why),
        trials=trials(record, found.subset, given.variances.facets, level),
        targets={name: one.line for name, one in told.items()},
        agents=lines(record, found.on_all, found.on_subset, told, target),
        not_measured=_not_measured(record, given),
        measured=_measured(given),
        savings=_savings(found, estimated, level) if found.subset.size else None,
        coverage=measured,
        trial_noise=borrowed_by(record, rules),
    )
    return replace(
        board,
        notices=words.notices(
            board,
            offer=offer(record),
            universe=record.universe,
            uneven=record.uneven,
            zero=record.counting.missing == "zero",
            not_revalidated=given.not_revalidated,
            n_unheard=int(np.count_nonzero(record.ran_all & ~record.voice)),
            trial_noise=rules.trial_noise,
            podium=podium_text(board, given.podium) if given.podium else "",
        ),
    )


def _savings(found: Basis, estimated: Mapping[int, Estimated], level: Trust) -> dict[str, Any]:
    chosen = np.flatnonzero(is_chosen_for(found.record)).tolist()
    ended = [i for i in chosen if i in estimated]
    return savings(found.record, found.subset, found.on_subset, ended, level)


def default_target(
    found: Basis, estimated: Mapping[int, Estimated], rules: Rules, given: Given
) -> tuple[Target, str]:
    """Return the target of the rules where it ranks anybody, else the default and why it is not `full`.

    The default is `full`; `subset` where it ranks agents and most that ran it alone have no full score with
    an error, or estimated ones put fewer pairs in order than its means (`selection.standings.verdict`).
    """
    n_full = sum(one.outcomes is not None for one in found.on_all)
    n_full += sum(one.se2 is not None for one in estimated.values())
    n_subset = sum(one.outcomes is not None for one in found.on_subset) if found.subset.size else 0
    ranked = {"full": n_full, "subset": n_subset, "domain": n_full}
    if rules.target and ranked[rules.target]:
        return rules.target, ""
    why = _why_subset(found, estimated, rules, given) if n_subset else ""
    return ("subset" if why else "full"), why


def headline_from(record: Record, rules: Rules) -> Trust:
    """Return the least trust of an agent that headlines are made from."""
    n_verified = sum(one.trust == "verified" for one in record.about)
    return cast("Trust", rules.headline_from) or ("verified" if n_verified >= terms.N_VERIFIED else TRUST[0])


def _why_subset(found: Basis, estimated: Mapping[int, Estimated], rules: Rules, given: Given) -> str:
    """Say why the full score is nothing to rank by; empty where it is."""
    estimated = {i: one for i, one in estimated.items() if not found.record.about[i].chosen_for}
    refused = [one.reason for one in estimated.values() if one.se2 is None]
    if 2 * len(refused) > len(estimated):
        return f"most of those that ran it alone have no full score with an interval: {refused[0]}"
    if not estimated and not any(one.outcomes is not None for one in found.on_all):
        return terms.NOBODY_RANKED.replace("these", "all")
    strategy = found.chosen.line.strategy if found.chosen.line else rules.strategy
    if short := falls_back(given.validation, strategy):
        of_full, of_subset, se = (words.percent(share) for share in short)
        return (
            f"the estimated full score puts {of_full}% of pairs in order, the mean on the subset "
            f"{of_subset}% (leaving one agent out; standard error of the difference {se} points)"
        )
    return ""


def _measured(given: Given) -> tuple[str, ...]:
    """Name the sources of error that a variance study measured."""
    return tuple(
        terms.MEASURED[facet.name] for facet in given.variances.facets if facet.with_agent is not None
    )


def _not_measured(record: Record, given: Given) -> tuple[str, ...]:
    """Name the sources of error without an estimate."""
    absent = [terms.UNMEASURED[facet.name] for facet in given.variances.facets if facet.with_agent is None]
    if not has_repeats(record):
        absent.insert(0, terms.UNMEASURED["trials"])
    return (*absent, *given.variances.not_measured)
