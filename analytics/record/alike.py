"""What is read off an agent's counted rows: how alike its repeated trials are, and what people said of them.

Trials repeat within one condition; runs and trials are repeats. Where several conditions are compared each
has an estimate of its own and the agent none: which of them is shown would decide it. Trials that are copies,
or only improve, under one condition count as one under all. Gains are looked for between the agent's last two
deliveries, whatever counts. An agent two of whose trials are copies, or whose trials only improve, has no
consistency. What people said is corrected by `analytics.human_labels`, with the agent's
counted valid outcomes as those of the judge; it stands beside the agent and never orders a board.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from analytics.arrays import CodeArray, FloatArray, Mask
from analytics.human_labels import CENSUS, Labelled, SurrogateRefused, correct
from analytics.record.rows import Rows, Setting, distinct
from analytics.text import counted
from analytics.trials.flags import dependent_trials, only_gains, only_improving, run_order
from analytics.trials.icc import MIN_TASKS, IccRefused, convergence, intraclass_correlation, task_trials

MIN_PARTED = 4  # trials of a task: two, and two to compare them with
SEED = 0  # of the subsets of trials; `python -m analytics icc` takes it by default
WHERE = "the agent's page, or python -m analytics icc"
FIGURES = (
    *("icc", "lower", "upper", "sigma_w2", "trials_per_task", "n_tasks"),
    *("trials_needed", "needed", "note", "reason"),
)
FACETS = {"run": 3, "prompt": 0, "judge": 1}  # places in a setting


@dataclass(frozen=True)
class Repeats:
    """What an agent's repeated trials tell; see `analytics.trials`.

    icc, lower, upper: intraclass correlation with its 95% interval; None: `reason` says why.
    trials_per_task: n₀.
    n_tasks: tasks with two or more valid trials under some condition.
    trials_needed, needed: trials of each task from which on the estimate settles, or None, and the same in
        words.
    copies: why its trials count as one, in words; else empty.
    cumulative: whether they count as one since hardly any task gets worse from one to a later one.
    gains: a latest delivery that is better on some tasks and worse on none, in words; else empty.
    levels: levels of "run", "prompt" and "judge" that the agent's mean is over.
    by_condition: where several conditions are compared, the fields up to `reason` under each.
    """

    icc: float | None = None
    lower: float | None = None
    upper: float | None = None
    sigma_w2: float | None = None
    trials_per_task: float | None = None
    n_tasks: int = 0
    trials_needed: int | None = None
    needed: str = ""
    note: str = ""
    reason: str = ""
    copies: str = ""
    cumulative: bool = False
    gains: str = ""
    levels: Mapping[str, int] = field(default_factory=dict)
    by_condition: tuple[Mapping[str, Any], ...] = ()

    def as_plain(self) -> dict[str, Any]:
        """Return the fields as objects of JSON."""
        parts = [dict(one) for one in self.by_condition]
        return vars(self) | {"levels": dict(self.levels), "by_condition": parts}

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "Repeats":
        """Return what `as_plain` was made from."""
        return cls(**{**plain, "by_condition": tuple(plain.get("by_condition", ()))})


class ComparedTrials(NamedTuple):
    """Outcomes, and places among the compared conditions, (n_rows,) each, in canonical order."""

    rows: Rows
    outcome: FloatArray
    condition: CodeArray


def repeats(
    counted: ComparedTrials,
    delivered: ComparedTrials,
    *,
    n_agents: int,
    n_conditions: int,
    settings: Sequence[Setting],
    order: CodeArray,
) -> list[Repeats]:
    """Return what repeated trials of each agent tell, by what counts and what was delivered."""
    # over how many runs, prompts and judges each mean is taken; not stated counts as a level
    ran: list[list[Setting]] = [[] for _ in range(n_agents)]
    for pair in distinct(counted.rows.agent * len(settings) + counted.rows.setting).tolist():
        ran[pair // len(settings)].append(settings[pair % len(settings)])
    gains = _gains(delivered, order, n_agents)
    runs = run_order([run for *_, run in settings])
    return [
        replace(
            _of_agent(part, n_conditions, runs),
            levels={facet: max(1, len({one[at] for one in mine})) for facet, at in FACETS.items()},
            gains=gain,
        )
        for part, mine, gain in zip(_by_agent(counted, n_agents), ran, gains, strict=True)
    ]


def _of_agent(part: ComparedTrials, n_conditions: int, runs: CodeArray) -> Repeats:
    parts = [_where(part, np.flatnonzero(part.condition == c)) for c in range(n_conditions)]
    cumulative = _cumulative(parts, runs)
    copies = cumulative or _copies(parts)
    repeats = [replace(_repeats_of(one, copies), cumulative=bool(cumulative)) for one in parts]
    if len(repeats) == 1:
        return repeats[0]
    reasons = {one.reason for one in repeats}
    each = f"not measured: each of the {n_conditions} conditions has its own; see {WHERE}"
    repeated = [one.rows.task[_repeated(one)] for one in parts]
    return Repeats(
        n_tasks=len(distinct(np.concatenate(repeated))),
        reason=reasons.pop() if len(reasons) == 1 and "" not in reasons else each,
        copies=copies,
        cumulative=bool(cumulative),
        by_condition=tuple({name: getattr(one, name) for name in FIGURES} for one in repeats),
    )


def _repeats_of(part: ComparedTrials, copies: str) -> Repeats:
    rows = part.rows
    if not rows.n_rows:
        return Repeats(reason="not measured: no valid trial")
    trials = task_trials(rows.task, part.outcome)
    n_tasks = int((trials.n_trials > 1).sum())
    if copies:
        return Repeats(n_tasks=n_tasks, reason=f"not measured: {copies}", copies=copies)
    try:
        icc = intraclass_correlation(trials)
    except IccRefused as refusal:
        return Repeats(n_tasks=n_tasks, reason=str(refusal))
    trials_needed, needed = _needed(part)
    return Repeats(
        icc=icc.icc,
        lower=icc.interval.lower if icc.interval else None,
        upper=icc.interval.upper if icc.interval else None,
        sigma_w2=icc.sigma_w2,
        trials_per_task=icc.n_0,
        n_tasks=n_tasks,
        trials_needed=trials_needed,
        needed=needed,
        note=icc.note,
    )


def _repeated(part: ComparedTrials) -> Mask:
    """Rows of tasks with two or more, (n_rows,)."""
    return np.asarray(np.bincount(part.rows.task)[part.rows.task] > 1, dtype=np.bool_)


def _needed(part: ComparedTrials) -> tuple[int | None, str]:
    """From how many trials of a task on the estimate settles, and in words; None with why nobody can say.

    It is estimated over the tasks that can be parted in two: with four valid trials or more.
    """
    n_trials = np.bincount(part.rows.task)
    enough = n_trials[part.rows.task] >= MIN_PARTED
    n_tasks, n_all = (int(np.count_nonzero(n_trials >= least)) for least in (MIN_PARTED, 1))
    if not n_tasks:
        return None, f"not measured: no task has {MIN_PARTED} valid trials"
    if n_tasks < MIN_TASKS:
        have = f"{counted(n_tasks, 'task')} {'has' if n_tasks == 1 else 'have'}"
        return (
            None,
            f"not measured: {have} {MIN_PARTED} valid trials or more; {MIN_TASKS} such tasks are needed",
        )
    try:
        curve = convergence(part.rows.task[enough], part.outcome[enough], SEED)
    except IccRefused as refusal:
        return None, str(refusal)
    over = f", over the {n_tasks:,} of {n_all:,} tasks with {MIN_PARTED} or more" if n_tasks < n_all else ""
    return curve.trials_needed, curve.verdict + over


def _by_agent(trials: ComparedTrials, n_agents: int) -> list[ComparedTrials]:
    ends = np.searchsorted(trials.rows.agent, np.arange(n_agents + 1))
    return [_where(trials, slice(start, end)) for start, end in pairwise(ends.tolist())]


def _where(trials: ComparedTrials, positions: CodeArray | slice) -> ComparedTrials:
    return ComparedTrials(
        trials.rows.where(positions), trials.outcome[positions], trials.condition[positions]
    )


def _cumulative(parts: Sequence[ComparedTrials], runs: CodeArray) -> str:
    several = [part for part in parts if _repeated(part).any()]
    ordered = [_where(part, np.argsort(runs[part.rows.setting], kind="stable")) for part in several]
    improving = [one for part in ordered if (one := only_improving(part.rows.task, part.outcome)) is not None]
    if not improving:
        return ""
    least = min(improving, key=lambda one: one.log_chance)
    n_worse = f"only {least.n_worse}" if least.n_worse else "none"
    get = "get" if least.n_worse > 1 else "gets"
    return (
        f"its trials are cumulative, not repeats: {n_worse} of the {least.n_tasks} tasks with different "
        f"outcomes {get} worse from any trial to the next, so its error counts them as one"
    )


def _copies(parts: Sequence[ComparedTrials]) -> str:
    """Two trials of one condition that agree too often to be two draws, in words; of several, most often."""
    alike = []
    for part in parts:
        if _repeated(part).any():
            rows = part.rows
            setting = rows.delivery * (int(rows.setting.max()) + 1) + rows.setting
            trial = setting * (int(rows.trial.max()) + 1) + rows.trial
            if (dependence := dependent_trials(rows.task, trial, part.outcome)) is not None:
                alike.append(dependence)
    if not alike:
        return ""
    dependence = max(alike, key=lambda one: (one.n_agreeing / one.n_tasks, one.n_tasks, -one.chance))
    return (
        f"two trials agree on {dependence.n_agreeing} of {dependence.n_tasks} tasks, "
        f"{dependence.chance:.0%} expected, so its trials count as one"
    )


def _gains(trials: ComparedTrials, order: CodeArray, n_agents: int) -> list[str]:
    notes = [""] * n_agents
    place, n_deliveries = order[trials.rows.delivery], len(order)
    pairs = distinct(trials.rows.agent * n_deliveries + place)
    several = np.bincount(pairs // n_deliveries, minlength=n_agents) > 1
    if not several.any():
        return notes
    mine = np.flatnonzero(several[trials.rows.agent])
    for i, part in enumerate(_by_agent(_where(trials, mine), n_agents)):
        if several[i]:
            notes[i] = only_better(part.rows.task, part.outcome, order[part.rows.delivery])
    return notes


def only_better(task: CodeArray, outcome: FloatArray, place: CodeArray) -> str:
    """Say that the last of several deliveries, of valid rows, only improves on the one before."""
    places = np.unique(place)[-2:]
    if places.size < 2:
        return ""
    n_tasks, means = int(task.max()) + 1, []
    for one in (place == places[0], place == places[1]):
        n, mean = np.bincount(task[one], minlength=n_tasks), np.full(n_tasks, np.nan)
        np.divide(np.bincount(task[one], outcome[one], n_tasks), n, out=mean, where=n > 0)
        means.append(mean)
    earlier, later = means
    counts = only_gains(earlier, later)
    if counts is None:
        return ""
    return f"its latest submission is better on {counts[0]} of {counts[1]} tasks and worse on none"


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
    """Correct each agent's mean by what people said of its counted rows; None where they said nothing."""
    of_agents: list[People | None] = [None] * n_agents
    if counted.human is None:
        return tuple(of_agents)
    labelled = counted.valid & ~np.isnan(counted.human)
    for agent in np.unique(counted.agent[labelled]).tolist():
        of_agents[agent] = _corrected(counted.where(counted.valid & (counted.agent == agent)), settings)
    return tuple(of_agents)


def _corrected(rows: Rows, settings: Sequence[Setting]) -> People:
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
        **corrected.corrected.error((0.0, 1.0), known=has_interval),
        worth=corrected.worth,
        design=corrected.design,
        reason="",
    )
