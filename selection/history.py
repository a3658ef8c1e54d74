"""A record in time order, with the version of the subset that is watched: what drift monitors read.

The *founders* are the complete agents that S was chosen from; *later* agents came after it was fixed: by a
later delivery or, in one delivery (a file), with a date after that of the version (`is_later`). Agents
without a voice (`analytics.record.conditions`) are not among them. Agents stand in the order of (later, date,
name), so that a date cannot put a newcomer among the reference; what is told of full scores is in the order
of completion.

*Sampled* agents were drawn at random for a full run and have made it; *spontaneous* ones were complete with
their first delivery. *Audit tasks* are those outside all versions that an agent which ran S was asked for
beside it: not of one that was asked for everything, nor one that lacks a task it was asked for, since such an
agent may have chosen what to deliver.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

import numpy as np
from scipy.special import expit

from analytics.arrays import CodeArray, FloatArray, IndexArray, Mask
from analytics.differences.trial_variances import trial_variance_ratio
from analytics.drift import Audit, FullRunScore, Monitor, Noise, OnAndOff, noise_of
from analytics.drift.monitor import N_LATEST
from analytics.drift.rank_correlation import rho_null
from analytics.record import Record
from selection import rasch
from selection.bands import WIDER_BANDS
from selection.folds import CompleteAgents, fold_bands, nested_plan
from selection.full_scores import rows_used
from selection.held_out import Subsets, choose, hold_out, row_means
from selection.prior import PriorDecisions, Promise, SubsetVersion
from selection.rules import Rules
from selection.standings.choice import rule_of, training
from selection.standings.placing import is_chosen_for, marked


@dataclass(frozen=True, eq=False)
class History:
    """A record in time order, with the version that is watched."""

    names: tuple[str, ...]
    days: tuple[date | None, ...]
    scaffolds: tuple[str, ...]
    outcomes: FloatArray
    trial_variances: FloatArray  # NaN where no trial was repeated, or trials are copies
    trials: FloatArray  # R of each cell; NaN without an outcome
    scores: FloatArray  # mean over the active tasks; NaN without an outcome
    on_subset: FloatArray  # mean over S; NaN for an agent without all of it
    known_on_subset: FloatArray  # mean over what an agent has of S
    off_subset: FloatArray  # mean over what it has outside S
    vouched: Mask  # verified or of a trusted account
    complete: Mask
    spontaneous: Mask  # complete with its first delivery
    sampled: Mask  # drawn at random for a full run, and complete
    completed: CodeArray  # the delivery with which it was complete; −1: none yet
    audited: Mask  # (n_agents, n_tasks)
    since: Mask
    founders: IndexArray
    tasks: IndexArray
    task_names: tuple[str, ...]
    version: SubsetVersion
    edges: tuple[tuple[float, float], ...]
    founding: CompleteAgents
    nested: Subsets  # chosen without each founder
    rho_null: float | None
    n_invalid: CodeArray
    n_unconfirmed: CodeArray  # of them
    n_trials: CodeArray
    costs: FloatArray  # of a trial, mean over the tasks of S that state it; NaN where none does
    promises: Mapping[str, Promise]
    window: int
    seed: int
    answers: dict[tuple[str, int], Monitor] = field(default_factory=dict)

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self.names)

    @cached_property
    def noise(self) -> Noise:
        """What each agent adds to ω̂ of its group: on S, a founder on the subset chosen without it."""
        counted = np.zeros(self.outcomes.shape, dtype=np.bool_)
        counted[:, self.tasks] = True
        counted[self.founders] = False
        places = {name: i for i, name in enumerate(self.names)}
        for fold, tasks in zip(self.nested.folds, self.nested.tasks, strict=True):
            for name in (self.founding.names[i] for i in fold.held_out):
                if name in places:  # not one that was asked for tasks of its own
                    counted[places[name], tasks] = True
        return noise_of(np.where(counted, self.trial_variances, np.nan), self.outcomes)

    @property
    def repeated(self) -> Mask:
        """Agents with repeated trials that can differ, (n_agents,)."""
        return np.asarray(self.noise.binomial > 0.0, dtype=np.bool_)

    def trials_on(self, tasks: IndexArray) -> FloatArray:
        """R, each agent's mean number of trials of one of these tasks, (n_agents,)."""
        return row_means(self.trials[:, tasks])

    def omega(self, n: int, tasks: IndexArray) -> float | None:
        """ω̂ over these tasks, of the complete agents among the first n; None where it is not measured."""
        part = np.ix_(self.seen(self.complete, n), tasks)
        return trial_variance_ratio(self.outcomes[part], self.trial_variances[part], self.trials[part])

    def full_score(self, name: str, n: int) -> FullRunScore | None:
        """Score over all tasks of one of the first n agents, measured or else estimated; None: neither."""
        i, every = self.names.index(name), np.arange(len(self.task_names))
        if self.complete[i]:
            trials, omega = float(self.trials_on(every)[i]), self.omega(n, every)
            return FullRunScore.measured(float(self.scores[i]), every.size, trials, omega)
        promise = self.promises.get(name)
        if promise is None or promise.interval is None:
            return None
        return FullRunScore(promise.score, promise.interval[0], every.size, is_estimated=True)

    def seen(self, mask: Mask, n: int) -> IndexArray:
        """Positions of the marked agents among the first n."""
        return np.flatnonzero(mask[:n])

    def n_before(self, rows: IndexArray) -> int:
        """How many of these agents came before the version was fixed."""
        return int(np.count_nonzero(~self.since[rows]))

    def who(self, rows: IndexArray) -> tuple[list[str], list[date | None]]:
        """Names and dates of the agents at these positions."""
        return [self.names[i] for i in rows], [self.days[i] for i in rows]

    def by_completion(self, rows: IndexArray) -> IndexArray:
        """Return these agents in the order in which their full scores became known."""
        return rows[np.argsort(self.completed[rows], kind="stable")]

    @cached_property
    def reference(self) -> OnAndOff:
        """Means of each founder on and off the subset that was chosen without it."""
        records = hold_out(self.founding, self.nested)
        known = ~np.isnan(records.rest_means)
        return OnAndOff(records.subset_means[known], records.rest_means[known])

    @cached_property
    def audit_reference(self) -> Audit:
        """Each founder on the tasks outside the subset that was chosen without it."""
        return of_founders(self.founding, self.nested)

    def audit_of(self, rows: IndexArray) -> Audit:
        """Audit tasks of these agents, and what S predicts of them."""
        return of_newcomers(
            self.outcomes[rows], self.audited[rows], self.tasks, founders_difficulties(self.founding)
        )

    def promised(self, n: int) -> list[tuple[int, Promise]]:
        """Complete agents among the first n of whom something was promised, by completion."""
        rows = self.by_completion(self.seen(self.complete, n)).tolist()
        return [(i, self.promises[self.names[i]]) for i in rows if self.names[i] in self.promises]

    def interval_misses(self, n: int) -> dict[int, bool]:
        """Whether the full score missed its interval, of those with an interval, by position."""
        return {
            i: not promise.interval[0] <= self.scores[i] <= promise.interval[1]
            for i, promise in self.promised(n)
            if promise.interval is not None
        }

    def once(self, look: tuple[str, int], ask: Callable[[], Monitor]) -> Monitor:
        """Ask a monitor once for each look: between two looks it has nothing new to say."""
        if look not in self.answers:
            self.answers[look] = ask()
        return self.answers[look]


def history_of(record: Record, rules: Rules, prior: PriorDecisions) -> History:
    """Put a record in time order, with the last version and the given promises."""
    record, version = marked(record, prior.staged), prior.subsets[-1]
    table, tasks, since = record.table, columns_of(record, version), is_later(record, version)
    watched = np.flatnonzero(record.voice & ~is_chosen_for(record)).tolist()  # all asked for the same
    order = np.array(sorted(watched, key=lambda i: (since[i], table.dates[i] or date.min, i)), np.intp)
    founders = np.isin(table.agents, version.chosen_from) & record.complete
    in_subset = np.isin(np.arange(table.n_tasks), tasks)
    variances, trials = _trials(record)
    lo, hi = (rules.lo, rules.hi) if version.widened else (version.lo, version.hi)
    wider = [edges for edges in WIDER_BANDS if edges[0] <= lo and hi <= edges[1] and edges != (lo, hi)]
    rule = rule_of(rules)
    founding = training(record).take(np.flatnonzero(founders[record.complete]))
    bands = fold_bands(founding, nested_plan(founding, "agent"), rule)
    return History(
        names=tuple(table.agents[i] for i in order),
        days=tuple(table.dates[i] for i in order),
        scaffolds=tuple(table.scaffolds[i] for i in order),
        outcomes=table.means[order],
        trial_variances=variances[order],
        trials=trials[order],
        scores=row_means(table.means)[order],
        on_subset=np.mean(table.means[order][:, tasks], axis=1),
        known_on_subset=row_means(table.means[:, in_subset])[order],
        off_subset=row_means(table.means[:, ~in_subset])[order],
        vouched=record.vouched[order],
        complete=record.complete[order],
        spontaneous=(record.complete & (record.completed == record.arrival))[order],
        sampled=(record.complete & np.isin(table.agents, list(prior.sampled)))[order],
        completed=record.completed[order],
        audited=_audited(record, tasks, prior)[order],
        since=since[order],
        founders=np.flatnonzero(founders[order]),
        tasks=tasks,
        task_names=table.tasks,
        version=version,
        edges=((lo, hi), *(wider if rules.widening else ())),
        founding=founding,
        nested=choose(founding, bands, rules.strategy, rule, rules.seed, "nested", "agent"),
        rho_null=rho_null(table.means[founders], in_subset[None], rules.seed)[0] if founders.any() else None,
        n_invalid=record.n_invalid.sum(axis=1, dtype=np.int64)[order],
        n_unconfirmed=np.array(record.n_unconfirmed or (0,) * record.n_agents, dtype=np.int64)[order],
        n_trials=record.n_places.sum(axis=1, dtype=np.int64)[order],
        costs=row_means(record.costs[:, in_subset])[order],
        promises=prior.promises,
        window=rules.history_window or N_LATEST,
        seed=rules.seed,
    )


def columns_of(record: Record, version: SubsetVersion) -> IndexArray:
    """Positions of the active tasks of the version."""
    wanted = set(version.tasks)
    return np.array([j for j, name in enumerate(record.table.tasks) if name in wanted], dtype=np.intp)


def is_later(record: Record, version: SubsetVersion) -> Mask:
    """Agents that came after the version was fixed, shape (n_agents,).

    What an operator loads again leaves its agents where they were, and so does any change of a founder. A
    submitter's agent came with its first results that still count: what was taken back proves nothing.
    """
    came = np.where(record.operator, record.first, record.arrival)
    dated = np.array([day is not None and day > version.fixed_on for day in record.table.dates])
    is_founder = np.isin(record.table.agents, version.chosen_from) & record.complete
    later = (came > version.arrival) | ((came == version.arrival) & dated)
    return np.asarray(later & ~is_founder, dtype=np.bool_)


def _trials(record: Record) -> tuple[FloatArray, FloatArray]:
    """s² and R of each cell; trials that are copies of each other count as one."""
    table, nothing = record.table, np.full(record.table.means.shape, np.nan)
    copied = np.array([bool(repeats.copies) for repeats in record.repeats], dtype=np.bool_)[:, None]
    one = np.where(table.valid(), 1.0, np.nan)
    if table.trial_variances is None or table.n_trials is None:
        return nothing, one
    return np.where(copied, nothing, table.trial_variances), np.where(copied, one, table.n_trials)


def _audited(record: Record, tasks: IndexArray, prior: PriorDecisions) -> Mask:
    public = {name for version in prior.subsets for name in version.tasks}
    secret = np.array([name not in public for name in record.table.tasks], dtype=np.bool_)
    ran = record.table.valid()
    ran_more = ~record.asked.all(axis=1) & ~record.operator & ~record.short
    ran_more &= ran[:, tasks].all(axis=1) & (record.completed != record.arrival)
    return np.asarray(record.asked & secret & ran & ran_more[:, None], dtype=np.bool_)


def founders_difficulties(founding: CompleteAgents) -> FloatArray:
    """b̂ of the founders, shape (m,); NaN where none of them has run the task."""
    return _difficulties(founding, np.arange(founding.n))


def of_newcomers(outcomes: FloatArray, audited: Mask, tasks: IndexArray, logits: FloatArray) -> Audit:
    """Audit tasks of newcomers, outcomes and audited (q, m).

    tasks: (k,); S; each newcomer has an outcome on one of its tasks that has a difficulty.
    logits: (m,); b̂; NaN where nobody ran the task, which is then not audited.
    """
    usable = audited & ~np.isnan(logits)
    expected = np.array([_expected(row, tasks, logits) for row in outcomes]).reshape(outcomes.shape)
    return Audit(np.where(usable, outcomes, np.nan), expected)


def of_founders(founding: CompleteAgents, nested: Subsets) -> Audit:
    """Each founder outside the subset that was chosen without it, predicted without it.

    nested: chosen with one founder left out at a time.
    """
    m = founding.outcomes.shape[1]
    used = rows_used(founding, [fold.training for fold in nested.folds])
    fits = [_difficulties(founding, rows) for rows in used]
    outcomes, expected = list[FloatArray](), list[FloatArray]()
    for fold, tasks, logits in zip(nested.folds, nested.tasks, fits, strict=True):
        for row in founding.outcomes[fold.held_out]:
            outside = np.where(np.isnan(logits), np.nan, row)
            outside[tasks] = np.nan
            outcomes.append(outside)
            expected.append(_expected(row, tasks, logits))
    return Audit(np.array(outcomes).reshape(-1, m), np.array(expected).reshape(-1, m))


def _difficulties(founding: CompleteAgents, rows: IndexArray) -> FloatArray:
    by_task = np.full(founding.outcomes.shape[1], np.nan)
    by_task[~np.isnan(founding.outcomes[rows]).all(axis=0)] = founding.fit_of(rows).difficulties
    return by_task


def _expected(row: FloatArray, tasks: IndexArray, logits: FloatArray) -> FloatArray:
    rated = tasks[~np.isnan(logits[tasks])]
    ability = rasch.ability(row[rated], logits[rated])
    return np.asarray(expit(ability - logits), dtype=np.float64)
