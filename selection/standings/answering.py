"""From a record to its standings: the steps in their order, and the line of each agent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np

from analytics.arrays import FloatArray, IndexArray, Mask
from analytics.errors import CoreError
from analytics.programs import one_blas_thread
from analytics.record import TRUST, Record, Trust, offer
from analytics.trials.flags import identical_agents, parts
from selection.full_scores import FitCache
from selection.intervals import NOT_CALIBRATED, prequential
from selection.prior import PriorDecisions
from selection.rules import BY_CALIBRATION, Rules, Target
from selection.schema.board import AtTarget, Conditions, CoverageLine, How, Line, Phase, Range, Standings
from selection.standings import full_scores, placing, targets, terms, words
from selection.standings.choice import Choice, choice, n_complete, shift_variance, training
from selection.standings.savings import run_costs, savings, trials, trusted
from selection.standings.verdict import no_subset, shortfall_text, verdict
from selection.standings.versions import target_by_version

BY_STAGE = {"none": "cold_start", "provisional": "provisional", "stable": "ongoing"}


@dataclass(frozen=True, eq=False)
class Basis:
    """What every target rests on.

    tasks, subset: all tasks that somebody complete has run, and those of them in the subset.
    on_all, on_subset: length n_agents; `on_subset` is `on_all` where there is no subset.
    """

    record: Record
    chosen: Choice
    tasks: IndexArray
    subset: IndexArray
    on_all: tuple[placing.AgentOnTasks, ...]
    on_subset: tuple[placing.AgentOnTasks, ...]
    completing: full_scores.Completing

    @property
    def scores(self) -> FloatArray:
        """Full scores of agents placed on all tasks, shape (n_agents,); NaN for the others."""
        return placing.scores_of(self.on_all)

    @property
    def newcomers(self) -> IndexArray:
        """Positions of agents that ran the subset, not all tasks: placed on it directly or completed.

        An agent that ran all tasks and lost too many outcomes is incomplete: it is never estimated.
        """
        on_it = np.array([one.outcomes is not None for one in self.on_subset])
        measured = np.array([one.outcomes is not None for one in self.on_all])
        return np.flatnonzero(on_it & ~measured & ~placing.ran_all(self.record))

    @property
    def of_earlier(self) -> Mapping[int, int]:
        """The version of the subset, from 0, of agents that ran it, neither the present nor all tasks."""
        record, on_it = self.record, np.array([one.outcomes is not None for one in self.on_subset])
        rest, versions = ~on_it & ~placing.ran_all(record), dict[int, int]()
        for number, tasks in enumerate(self.chosen.earlier):
            ran = rest & record.is_direct(tasks) & (record.n_places[:, tasks] > 0).all(axis=1)
            versions |= dict.fromkeys(np.flatnonzero(ran).tolist(), number)
        return {i: number for i, number in versions.items() if not placing.barred_by(record, i)}


def basis_of(record: Record, rules: Rules, prior: PriorDecisions) -> Basis:
    """Choose the subset and place every agent."""
    record = placing.marked(record, prior.staged)
    chosen, tasks = choice(record, rules, prior), placing.rated_tasks(record)
    completing = full_scores.Completing(record, prior.fits)
    on_all = placing.place_on_all(record, completing)
    subset = np.intersect1d(chosen.tasks, tasks)
    on_subset = placing.place(record, subset, completing, of="ranking tasks") if subset.size else on_all
    return Basis(record, chosen, tasks, subset, on_all, on_subset, completing)


def error_model_of(
    record: Record, rules: Rules, prior: PriorDecisions, in_headlines: Mask | None = None
) -> targets.ErrorModel:
    """Return what every target reads; `in_headlines`: agents that headlines are made from, None: all."""
    return targets.ErrorModel(
        record=record,
        facets=prior.facets,
        seed=rules.seed,
        draws=prior.draws,
        in_headlines=in_headlines,
        borrowed=targets.borrowed_by(record, rules),
        grouping=targets.grouping(record, rules),
    )


def answered(record: Record, rules: Rules, prior: PriorDecisions) -> Standings:
    """Tell where every agent stands; see `selection.standings.answer`.

    The products of the resampling are small: with one thread of BLAS they are several times faster.
    """
    with one_blas_thread():
        base = basis_of(record, rules, prior)
        record = base.record
        level = headline_from(record, rules)
        in_headlines = trusted(record, level) & ~np.array([one.recalled for one in record.about])
        error_model = error_model_of(record, rules, prior, in_headlines)
        estimated, measured = estimates_of(base, rules, prior)
        results = {
            "subset": _subset(error_model, base, rules, prior),
            "full": target_by_version(error_model, "full", base.tasks, base.on_all, estimated=estimated),
            "domain": target_by_version(error_model, "domain", base.tasks, base.on_all),
        }
        if few := _too_few(record, results):
            places = {name: base.on_subset if name == "subset" else base.on_all for name in results}
            results = {name: targets.unranked(one, few, places[name]) for name, one in results.items()}
    chosen, facets = base.chosen, prior.facets
    phase, why = _phase(chosen, rules, prior)
    target, why_target = default_target(base, estimated, rules, prior)
    ended = [i for i in np.flatnonzero(placing.is_chosen_for(record)).tolist() if i in estimated]
    absent = () if targets.has_repeats(record) else (terms.UNMEASURED["trials"],)
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
        verdict=verdict(prior.validation, chosen.line.strategy) if chosen.line else no_subset(why),
        trials=trials(record, base.subset, facets, level),
        targets={name: one.line for name, one in results.items()},
        agents=_lines(base, results, target),
        not_measured=(
            *absent,
            *(terms.UNMEASURED[facet.name] for facet in facets if facet.with_agent is None),
        ),
        measured=tuple(terms.MEASURED[facet.name] for facet in facets if facet.with_agent is not None),
        savings=savings(record, base.subset, base.on_subset, ended, level) if base.subset.size else None,
        coverage=measured,
        trial_noise=targets.borrowed_by(record, rules),
        n_missing_failed=record.n_missing_failed,
        n_left_out=record.n_left_out,
        next_step="" if any(one.line.n_ranked for one in results.values()) else _next_step(record),
    )
    notices = words.notices(
        board,
        offer=offer(record),
        universe=record.universe,
        uneven=record.uneven,
        zero=record.counting.missing in ("zero", "zero_loaded"),
        not_revalidated=prior.not_revalidated,
        n_unheard=int(np.count_nonzero(record.ran_all & ~record.voice)),
        trial_noise=rules.trial_noise,
        podium=placing.podium_text(board, prior.podium) if prior.podium else "",
    )
    return replace(board, notices=notices)


def _too_few(record: Record, results: Mapping[str, targets.TargetResult]) -> str:
    """Why nobody is ranked: under every target fewer than half of the agents loaded by an operator could be.

    What submitters deliver does not enter, so that incomplete deliveries cannot empty a board; an agent that
    ran under other conditions or waits for an operator is not counted either.
    """
    loaded = [i for i in np.flatnonzero(record.operator).tolist() if not placing.barred_by(record, i)]
    n_ranked = {name: sum(one.at[i].rank is not None for i in loaded) for name, one in results.items()}
    most = max(n_ranked.values())
    if 2 * most >= len(loaded):
        return ""
    agents = words.counted(len(loaded), "loaded agent")
    where = "" if n_ranked["full"] == most else " on the ranking tasks"
    return f"nobody is ranked: {most} of {agents} could be{where}, fewer than half"


def _next_step(record: Record) -> str:
    """Return the setting by which agents could be ranked that an operator loaded; empty where none helps."""
    if offer(record):
        return "universe=common"
    lacks = record.operator & ~record.fails & ~record.table.valid().all(axis=1)
    return "missing=zero_loaded" if lacks.any() else ""


def _subset(
    error_model: targets.ErrorModel, base: Basis, rules: Rules, prior: PriorDecisions
) -> targets.TargetResult:
    if not base.subset.size:
        return targets.empty_target_result(error_model, "subset", 0, terms.NO_SUBSET)
    variance = shift_of(base, rules, prior.fits)
    shift = (base.chosen.incumbents, variance) if variance else None
    return target_by_version(error_model, "subset", base.subset, base.on_subset, shift=shift)


def shift_of(base: Basis, rules: Rules, fits: FitCache | None = None) -> float:
    """Return the variance of the incumbent shift; 0 where no newcomer stands against an incumbent."""
    ranked = np.array([one.outcomes is not None for one in base.on_subset])
    old, new = ranked & base.chosen.incumbents, ranked & ~base.chosen.incumbents
    return shift_variance(base.record, base.chosen, rules, fits) if old.any() and new.any() else 0.0


def estimates_of(
    base: Basis, rules: Rules, prior: PriorDecisions, wanted: Collection[int] | None = None
) -> tuple[Mapping[int, full_scores.FullScoreEstimate], CoverageLine | None]:
    """Estimate the full scores of agents that ran a version of the subset, by position; empty without any.

    wanted: the agents that are needed at least; all where not given.
    The coverage is that of intervals by `ridge` or `line`. The estimates of agents whose tasks were chosen
    for them are given.
    """
    estimated, measured = dict[int, full_scores.FullScoreEstimate](), None
    record, subset, earlier = base.record, base.subset, base.chosen.earlier
    asked = dict[int, tuple[IndexArray, int]]()
    if rules.estimator not in BY_CALIBRATION:
        asked = dict.fromkeys(base.newcomers.tolist(), (subset, len(earlier)))
    elif base.newcomers.size:
        names = tuple(record.table.tasks[j] for j in subset)
        agents = training(record, base.scores)
        try:
            fitted = full_scores.calibration_on(prior.fitted, agents, names, rules)
            made = full_scores.calibrator(agents, subset, fitted, prior.sampled, prior.fits)
            estimated = full_scores.estimates(record, subset, base.newcomers, made)
            if any(one.lower is not None for one in estimated.values()):
                measured = prequential(np.array(fitted.in_time, float), fitted.dates, fitted.estimator)
        except CoreError as refusal:
            estimated = dict.fromkeys(
                base.newcomers.tolist(), full_scores.FullScoreEstimate(None, reason=str(refusal))
            )
    asked |= {i: (earlier[number], number) for i, number in base.of_earlier.items()}
    for i in asked if wanted is None else asked.keys() & wanted:
        batch, number = asked[i]
        try:
            estimated[i] = base.completing.estimated(i, batch, base.tasks, number)
        except CoreError as refusal:
            estimated[i] = full_scores.FullScoreEstimate(None, reason=str(refusal))
    return estimated | placing.adaptive_estimates(record, prior.staged), measured


def _phase(chosen: Choice, rules: Rules, prior: PriorDecisions) -> tuple[Phase, str]:
    """Return the phase and a sentence that says why; ``saturated`` is for a monitor to say."""
    phase, why = cast("Phase", BY_STAGE[chosen.stage]), chosen.reason
    if prior.full_runs_only:
        why = f"an operator asked for full runs: {prior.full_runs_only}"
    elif chosen.line is None:
        phase = phase if chosen.is_suited or chosen.stage == "none" else "unsuited"
    elif prior.revalidating:
        phase, why = "revalidating", prior.revalidating
    elif chosen.line.provisional:
        phase = "provisional"
        why += (
            f"; this choice is a preview until {rules.subset_from} agents have run all tasks or been stopped"
        )
    return phase, words.sentence(why)


def default_target(
    base: Basis, estimated: Mapping[int, full_scores.FullScoreEstimate], rules: Rules, prior: PriorDecisions
) -> tuple[Target, str]:
    """Return the target of the rules where it ranks anybody, else the default and why it is not `full`.

    The default is `full`; `subset` where it ranks agents and most that ran it alone have no full score with
    an error, or estimated ones put fewer pairs in order than its means (`selection.standings.verdict`).
    """
    n_full = sum(one.outcomes is not None for one in base.on_all)
    n_full += sum(one.se2 is not None for one in estimated.values())
    n_subset = sum(one.outcomes is not None for one in base.on_subset) if base.subset.size else 0
    ranked = {"full": n_full, "subset": n_subset, "domain": n_full}
    if rules.target and ranked[rules.target]:
        return rules.target, ""
    why = _why_subset(base, estimated, rules, prior) if n_subset else ""
    return ("subset" if why else "full"), why


def headline_from(record: Record, rules: Rules) -> Trust:
    """Return the least trust of an agent that headlines are made from."""
    n_verified = sum(one.trust == "verified" for one in record.about)
    return cast("Trust", rules.headline_from) or ("verified" if n_verified >= terms.N_VERIFIED else TRUST[0])


def _why_subset(
    base: Basis, estimated: Mapping[int, full_scores.FullScoreEstimate], rules: Rules, prior: PriorDecisions
) -> str:
    """Say why the full score is nothing to rank by; empty where it is."""
    estimated = {i: one for i, one in estimated.items() if not base.record.about[i].adaptive_reason}
    refused = [one.reason for one in estimated.values() if one.se2 is None]
    if 2 * len(refused) > len(estimated):
        return f"most agents that ran only these have no full score with an interval: {refused[0]}"
    if not estimated and not any(one.outcomes is not None for one in base.on_all):
        return terms.NOBODY_RANKED.replace("these", "all")
    strategy = base.chosen.line.strategy if base.chosen.line else rules.strategy
    return shortfall_text(prior.validation, strategy)


def _lines(base: Basis, results: Mapping[str, targets.TargetResult], target: str) -> tuple[Line, ...]:
    """Return the agents by rank for the target, names inside ties, unranked last by condition and name."""
    record = base.record
    elsewhere = record.condition or ("",) * record.n_agents
    n_elsewhere = record.n_elsewhere or (0,) * record.n_agents
    ranks = [at.rank for at in results[target].at]
    order = sorted(range(record.n_agents), key=lambda i: (ranks[i] is None, ranks[i] or 0, elsewhere[i], i))
    ties = {name: tied_ranges(one.tied, np.array(order, dtype=np.intp)) for name, one in results.items()}
    costs, all_flags, whole = run_costs(record), _flags(record), placing.ran_all(record)
    n_again = record.n_judged_again or (0,) * record.n_agents
    lines = []
    for place_, i in enumerate(order):
        about, flags = record.about[i], all_flags[i]
        at = {name: replace(one.at[i], tied_with=ties[name][place_]) for name, one in results.items()}
        how = _how(base.on_all[i], base.on_subset[i], estimated=at["full"].estimated, whole=bool(whole[i]))
        icc = record.repeats[i].as_plain()
        compared = record.compared if icc["by_condition"] else ()
        by_condition = [
            {"condition": name, **one} for name, one in zip(compared, icc["by_condition"], strict=True)
        ]
        lines.append(
            Line(
                agent=about.name,
                scaffold=about.scaffold,
                model=about.model,
                version=about.version,
                organisation=about.organisation,
                weights=about.weights,
                links=dict(about.links),
                run_by=about.run_by,
                trust=about.trust,
                submitted_at=about.submitted_at,
                how=how,
                condition=elsewhere[i],
                n_tasks=n_elsewhere[i] or int(np.count_nonzero(record.table.n_valid[i])),
                n_trials=int(record.table.n_valid[i].sum()) - n_again[i],
                n_invalid=int(record.n_invalid[i].sum()),
                n_submissions=int(record.n_deliveries[i]),
                cost_usd=costs[i][0],
                cost_basis=costs[i][1],
                n_tokens=record.n_tokens[i],
                seconds=record.seconds[i],
                icc=icc | {"by_condition": by_condition},
                marks=_marks(base, i, how, elsewhere[i], flags, at, target),
                flags=flags,
                at=at,
            )
        )
    return tuple(lines)


def _how(
    on_all: placing.AgentOnTasks, on_subset: placing.AgentOnTasks, *, estimated: bool, whole: bool
) -> How:
    """Return how an agent comes to its score on all tasks; `whole`: it was to be measured on all."""
    if on_all.outcomes is not None:
        return "measured" if on_all.how == "direct" else "completed"
    return "estimated" if estimated or (on_subset.outcomes is not None and not whole) else "incomplete"


def tied_ranges(tied: Mask, order: IndexArray) -> list[tuple[Range, ...]]:
    """Return by place on the board the places each is tied with, as ranges with both ends included.

    tied: (n_agents, n_agents).
    order: (n_agents,); the agents as they stand on the board.
    """
    row, column = np.nonzero(np.diff(tied[np.ix_(order, order)], axis=1, prepend=False, append=False))
    ranges = list(zip(column[::2].tolist(), (column[1::2] - 1).tolist(), strict=True))
    ends = np.searchsorted(row[::2], np.arange(order.size + 1)).tolist()
    return [tuple(ranges[first:last]) for first, last in pairwise(ends)]


def _marks(
    base: Basis,
    i: int,
    how: How,
    elsewhere: str,
    flags: Sequence[str],
    at: Mapping[str, AtTarget],
    target: str,
) -> tuple[str, ...]:
    about = base.record.about[i]
    marks = {
        "estimated": how == "estimated" and not about.adaptive_reason,
        "chosen tasks": bool(about.adaptive_reason),
        "recalled": about.recalled,
        "completed": how == "completed" or base.on_subset[i].how == "completed",
        "new scaffold": at["full"].source.endswith(NOT_CALIBRATED),
        "incomplete": how == "incomplete" and not elsewhere,
        "elsewhere": bool(elsewhere),
        "withheld": bool(about.withheld),
        "versions": at[target].correction > 0,
        "folded": bool(at[target].folded_under),
        "flagged": bool(flags),
        "backdated": about.backdated,
        "imprecise": about.imprecise,
    }
    return tuple(mark for mark, holds in marks.items() if holds)


def _flags(record: Record) -> list[tuple[str, ...]]:
    """Say what an operator should look at, for each agent."""
    flags = [[one for one in (repeats.copies, repeats.gains) if one] for repeats in record.repeats]
    for i, about in enumerate(record.about):
        if record.retried and record.retried[i]:
            flags[i].append(
                "retried: ran some tasks more often than others, then scored lower on them; the lower score "
                "counts"
            )
        if about.resubmitted:
            flags[i].append("submitted more results for its tasks after a board had shown it")
        if about.same_owner_as_withheld:
            flags[i].append(
                "another agent of its account, of the same scaffold and model, took outcomes back and waits "
                "for an operator"
            )
    graded, loaded = np.array(record.n_graded or (0,) * record.n_agents) > 0, record.operator
    alone = graded & ~loaded & loaded.any() & ~graded[loaded].any()
    for i in np.flatnonzero(alone).tolist():
        flags[i].append("outcomes between 0 and 1, where all agents that an operator loaded have 0 or 1")
    names = record.table.agents
    order = record.precedence
    for group in identical_agents(record.table.means):
        for i in group:  # who came first is not to blame
            others = ", ".join(names[j] for j in group if j != i and order[j] <= order[i])
            if not others:
                continue
            left_out = "; pass rates and calibration leave it out until an operator approves it"
            copied = bool(record.copy_of and record.copy_of[i])
            flags[i].append(f"the same outcome as {others} on every task{left_out * copied}")
    came = np.where(record.operator, -1, record.arrival)  # whoever is asked batch by batch ends last
    for i, j, n_tasks in parts(record.table.means, came, np.flatnonzero(~record.operator)):
        flags[i].append(f"the same outcome as {names[j]} on all {n_tasks:,} tasks that both ran")
    return [tuple(one) for one in flags]
