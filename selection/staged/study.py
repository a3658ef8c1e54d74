"""What staged assignments of a board rest on: the fit to the agents that teach, and a replay of the rule.

Both as plain values; `selection.staged.walks.Fit` reads the fit. Teaching agents are those that ran all tasks
and those that the rule stopped, in order of (date, name); agents without a date share one μ. Of agents that
ran all tasks as the rule let them go on, nothing is replayed: they are the good ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from analytics.command_line import plain
from analytics.errors import CoreError
from analytics.record import Record
from selection.errors import SelectionError
from selection.folds import CompleteAgents
from selection.full_scores import FitCache
from selection.prior import OVER, Staged
from selection.staged.replay import histories_of, replay, sentence, summary, verdict
from selection.staged.teaching import Teaching
from selection.staged.walks import Fit, Staging, WalkEstimate, estimated
from selection.standings.choice import n_complete, n_teaching, training
from selection.standings.full_scores import WalkResult as WalkResult
from selection.standings.full_scores import for_trials, n_before, n_trials_of, taught_by
from selection.standings.placing import ran_all

MORE_PODIUM = 2

Progress = Callable[[int, int], None]


def walked(decisions: Sequence[Mapping[str, Any]], fit: Mapping[str, Any]) -> WalkResult:
    """Return how an agent went by what was decided of it, in order, and the fit that this was by."""
    c = float(fit["scale"]["c"])  # decisions keep c·se
    estimates = [(float(one["score"]), float(one["se"]) / c) for one in decisions]
    drawn = [at for at, one in zip(estimates, decisions, strict=True) if one["stage"] == "drawn"]
    return WalkResult(next(iter(estimates), None), next(iter(drawn), None), Fit.from_plain(fit).share_drawn)


def staged_fit(
    record: Record,
    staging: Staging,
    walks: Mapping[str, WalkResult] | None = None,
    subset: Sequence[str] | None = None,
    fits: FitCache | None = None,
    n_trials: int | None = None,
) -> dict[str, Any]:
    """Fit to the agents that teach.

    walks: those asked batch by batch, by name; the others ran all tasks or do not teach.
    subset: the version of S in use; without it the band of the teaching agents is taken.
    fits: earlier ones, of which the same is not made again.
    n_trials: asked of newcomers, as in `taught_by`.
    Returns: ``available``, ``reason``, ``agents`` (that teach); where available also ``tasks`` by name,
        ``fit`` (of `Fit`), and ``estimates`` (of `WalkEstimate`) of agents that were stopped, by name.
    """
    n = n_teaching(record)
    if n < staging.staged_from:
        reason = f"staged assignment needs {staging.staged_from} agents that teach; there are {n}"
        return {"available": False, "reason": reason, "agents": n}
    tasks = record.table.tasks
    fixed = None if subset is None else np.flatnonzero(np.isin(tasks, list(subset)))
    try:
        teaching = taught_by(record, staging, walks or {}, fixed, fits, n_trials)
        estimates = {name: asdict(one) for name, one in _estimates(record, teaching)}
    except CoreError as refusal:
        return {"available": False, "reason": str(refusal), "agents": n}
    return _plain_fit(n, teaching.fit, tasks, estimates)


def _plain_fit(n: int, fit: Fit, tasks: Sequence[str], estimates: dict[str, Any]) -> dict[str, Any]:
    known = {"available": True, "reason": "", "agents": n, "tasks": list(tasks)}
    return known | {"fit": fit.as_plain(), "estimates": estimates}


def staged_in(record: Record, staging: Staging) -> dict[str, Staged]:
    """Estimate the agents of a file that ran some tasks alone, as those that the rule stopped.

    Returns: by name; empty where fewer than `staged_from` agents ran all tasks.
    """
    n = n_complete(record)
    rows = [i for i in np.flatnonzero(~ran_all(record)).tolist() if not np.isnan(record.table.means[i]).all()]
    if n < staging.staged_from or not rows:
        return {}
    about = list(record.about)
    for i in rows:
        about[i] = replace(about[i], adaptive_reason=OVER, stopped=True)
    record = replace(record, about=tuple(about))
    teaching = taught_by(record, staging, {}, None)
    n_run = np.count_nonzero(record.n_places > 0, axis=1)
    return {
        name: Staged(
            study=(0, 0),
            n=len(teaching.outcomes),
            reason=OVER,
            k=int(n_run[record.table.agents.index(name)]),
            score=one.score,
            lower=one.lower,
            upper=one.upper,
            se=one.se,
            degrees=teaching.scale.degrees,
        )
        for name, one in _estimates(record, teaching)
    }


@dataclass(frozen=True)
class AssignmentRule:
    """What is replayed.

    subset: S from the outset; None: the band of those that have come.
    """

    staging: Staging
    assignment: str = "staged"
    subset: tuple[str, ...] | None = None
    reselected: bool = False

    @property
    def words(self) -> str:
        """The rule in a few words."""
        if self.assignment == "full":
            return "full runs"
        assignment = f"podium {self.staging.podium}" if self.assignment == "staged" else "ranking tasks only"
        return f"{assignment}, ranking tasks chosen again after each agent" if self.reselected else assignment


def replayed(
    record: Record,
    rule: AssignmentRule,
    walks: Mapping[str, WalkResult] | None = None,
    *,
    base_seed: int = 0,
    **how: Any,
) -> dict[str, Any]:
    """Replay a rule on the agents that it did not choose.

    **how: ``n_seeds`` and ``progress``, as of `selection.staged.replay.histories_of`.
    Returns: ``rule`` in words; ``figures`` and ``verdict``, None where there are too few agents, with
        ``reason``.
    """
    agents = _replayable(training(record), walks or {})
    tasks = None if rule.subset is None else np.flatnonzero(np.isin(record.table.tasks, rule.subset))
    try:
        result = replay(
            agents,
            rule.staging,
            assignment=rule.assignment,
            subset=tasks,
            reselected=rule.reselected,
            seed=base_seed,
            **how,
        )
    except CoreError as refusal:
        return {"rule": rule.words, "figures": None, "verdict": None, "reason": str(refusal)}
    return {"rule": rule.words, "figures": _known(plain(result)), "verdict": verdict(result), "reason": ""}


def side_by_side(
    record: Record,
    rules: Sequence[AssignmentRule],
    walks: Mapping[str, WalkResult] | None = None,
    base_seed: int = 0,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Replay each of these rules on the same agents, as `replayed` does."""
    results = []
    for rule in rules:
        results.append(replayed(record, rule, walks, base_seed=base_seed))
        if progress:
            progress(len(results), len(rules))
    return results


def of_subsets(
    record: Record,
    rule: AssignmentRule,
    subsets: Mapping[str, Sequence[str]],
    walks: Mapping[str, WalkResult] | None = None,
    base_seed: int = 0,
) -> dict[str, Any]:
    """Replay a rule on each of these subsets from the outset, and, as ``anew``, on one chosen as agents come.

    A subset that was chosen from the agents replayed has seen their outcomes, which flatters it; what is
    chosen as they come has not.
    """
    rules = {name: replace(rule, subset=tuple(tasks)) for name, tasks in subsets.items()}
    rules["anew"] = replace(rule, reselected=True)
    results = side_by_side(record, list(rules.values()), walks, base_seed)
    return dict(zip(rules, results, strict=True))


def others(rule: AssignmentRule) -> tuple[AssignmentRule, ...]:
    """Return what to put in the place of a rule that does not hold: S anew, more that run on, full runs."""
    more = replace(rule.staging, podium=rule.staging.podium + MORE_PODIUM)
    return (
        replace(rule, subset=None, reselected=True),
        AssignmentRule(more if rule.assignment == "staged" else rule.staging),
        AssignmentRule(rule.staging, "full"),
    )


@dataclass(frozen=True)
class Course:
    """What a replay asked an agent to run.

    batches: tasks by name, in the order in which they were asked for.
    decisions: what was decided once a batch was there, as `leaderboard` keeps it.
    fit: what `staged_fit` would have returned; None: it was asked for everything at once.
    is_recalled: whether the last batch was asked for because the agent was recalled.
    """

    agent: str
    batches: tuple[tuple[str, ...], ...]
    decisions: tuple[dict[str, Any], ...]
    fit: dict[str, Any] | None
    is_recalled: bool


def courses(
    record: Record,
    rule: AssignmentRule,
    walks: Mapping[str, WalkResult] | None = None,
    *,
    base_seed: int = 0,
    progress: Progress | None = None,
) -> tuple[dict[str, Any], list[Course]]:
    """Replay staged assignment by date with one seed; return its figures, and each agent's course in order.

    One replay has no verdict: only its sentence is there.

    Raises SelectionError (no_replay): too few agents, or one without a date.
    """
    agents = _replayable(training(record), walks or {})
    if None in agents.dates:
        undated = agents.names[agents.dates.index(None)]
        raise SelectionError(
            f"{undated} has no date; state submitted_at of every agent that ran all tasks", code="no_replay"
        )
    (order,), (history,) = histories_of(agents, rule.staging, seed=base_seed, n_seeds=1, progress=progress)
    result = summary(agents, [order], [history], rule.staging, base_seed)
    judged: dict[str, Any] = {"word": None, "reasons": [], "text": sentence(result)}
    figures = {"rule": rule.words, "figures": _known(plain(result)), "verdict": judged, "reason": ""}
    tasks, found = record.table.tasks, list[Course]()
    for walk in history.walks:
        agent, fit = agents.names[walk.agent], walk.fit
        batches = tuple(tuple(tasks[j] for j in batch) for batch in walk.batches)
        if fit is None:
            found.append(Course(agent, batches, (), None, False))
            continue
        n_run = np.cumsum([batch.size for batch in walk.batches]).tolist()
        decisions = tuple(
            {
                "stage": str(one.stage),
                "n_run": n_run[k],
                "score": one.estimate.score,
                "lower": one.estimate.lower,
                "upper": one.estimate.upper,
                "se": one.estimate.se,
                "podium": fit.podium,
                "best": fit.best,
                "reason": one.reason,
            }
            for k, one in enumerate(walk.steps[1:])
            if one.estimate
        )
        n_batches = sum(bool(one.batch) for one in walk.steps)
        plain_fit = _plain_fit(fit.n_teaching, fit, tasks, {})
        found.append(Course(agent, batches, decisions, plain_fit, len(batches) > n_batches))
    return figures, found


def _estimates(record: Record, teaching: Teaching) -> Iterator[tuple[str, WalkEstimate]]:
    by_trials = cache(partial(for_trials, record, teaching))
    for i, about in enumerate(record.about):
        if not about.stopped:
            continue
        own = by_trials(n_trials_of(record, i))
        mean = teaching.model.mean_after(n_before(record, teaching, i))
        yield about.name, estimated(own.of_newcomers, record.table.means[i], mean, own.scale)


def _replayable(complete: CompleteAgents, walks: Mapping[str, WalkResult]) -> CompleteAgents:
    rows = [i for i, name in enumerate(complete.names) if name not in walks or walks[name].drawn]
    return complete.take(np.array(rows, dtype=np.intp))


def _known(value: Any) -> Any:
    """Put None in the place of what is not a number: JSON has no word for it."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    return None if isinstance(value, float) and value != value else value
