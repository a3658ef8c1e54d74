"""What is known of a board: the one form in which every file, page, table and stored board has it.

`Standings.as_plain` is the schema: the command lines, the API, the stored board and webhooks carry these
names and nothing else. Numbers are unrounded; scores lie in [0, 1]; rounding is for display. No face computes
or rewords what stands here: sentences are in `words`, tables in `table`. This module imports nothing heavy.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

How = Literal["measured", "completed", "estimated", "linked", "incomplete"]
Phase = Literal["cold_start", "provisional", "ongoing", "revalidating", "saturated", "unsuited"]
Range = tuple[int, int]


@dataclass(frozen=True)
class SubsetLine:
    """The tasks that new agents are asked to run, and how they were chosen.

    Attributes
    ----------
    number : int or None
        Version; None where no version is stored (a file by itself, a preview). It is the one field in which a
        file and the service may differ for the same subset; no sentence or table shows it.
    tasks : tuple of str
        Active tasks of the subset, by name.
    size : int
        k, their number.
    lo, hi : float
        Edges of the band that was used.
    widened : bool
    provisional : bool
        A preview: chosen from fewer complete agents than the rules ask for.
    strategy : str
    n_complete : int
        Complete agents that it was chosen from.
    reason : str
        How it came about, in a sentence.
    """

    number: int | None
    tasks: tuple[str, ...]
    size: int
    lo: float
    hi: float
    widened: bool
    provisional: bool
    strategy: str
    n_complete: int
    reason: str


@dataclass(frozen=True)
class TargetLine:
    """What a board says for one target.

    Attributes
    ----------
    covers : str
        What its 95% intervals are about.
    n_tasks : int
        Tasks of the target.
    n_ranked : int
        Agents with a rank.
    method : str
        How ties and rank intervals were found; empty without them.
    critical : float or None
        Critical value c of the pair comparisons; None without rank intervals.
    n_draws : int or None
    note : str
        What the method takes for granted, in words.
    may_be_first : tuple of str
        Agents that no other agent is shown to be better than (95%, all pairs at once), by name.
    reason : str
        Why the target says nothing, or why there are no rank intervals; else empty.
    """

    covers: str
    n_tasks: int
    n_ranked: int
    method: str = ""
    critical: float | None = None
    n_draws: int | None = None
    note: str = ""
    may_be_first: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class AtTarget:
    """One agent at one target.

    Attributes
    ----------
    rank : int or None
        1 + the number of agents with a strictly better score (rounded to 1e-9); None: listed, not ranked.
    rank_lower, rank_upper : int or None
        Best and worst rank it may hold; 95%, all agents at once.
    score : float or None
        On the tasks of the target, measured or estimated.
    lower, upper : float or None
        95% interval of the score, clipped to [0, 1].
    se : float or None
        Standard error of the score.
    naive_se : float or None
        √(p̄(1 − p̄)/k), k the tasks of the target.
    upper_bound : bool
        Whether `se` is an upper bound (one trial a task).
    method : str
        Where the standard error comes from.
    source : str
        Where the interval of an estimated score comes from ("jackknife+", …); empty for a measured one.
    estimated : bool
        Whether `score` is predicted from the subset.
    n_valid, n_missing : int
        Tasks of the target with a valid outcome; places (task × trial) without one.
    bounds : (float, float) or None
        What the missing outcomes could make of the score, as `Record.bounds`; for unranked agents.
    tied_with : tuple of (int, int)
        Ranges of positions in `Standings.agents`, both ends included.
    reason : str
        Why there is no rank, or no interval; else empty.
    """

    rank: int | None = None
    rank_lower: int | None = None
    rank_upper: int | None = None
    score: float | None = None
    lower: float | None = None
    upper: float | None = None
    se: float | None = None
    naive_se: float | None = None
    upper_bound: bool = False
    method: str = ""
    source: str = ""
    estimated: bool = False
    n_valid: int = 0
    n_missing: int = 0
    bounds: tuple[float, float] | None = None
    tied_with: tuple[Range, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Line:
    """One agent.

    Attributes
    ----------
    agent, scaffold, model : str
    version, organisation : str
        Empty: not stated.
    links : mapping of str to str
        Commit, logs, report.
    run_by : {"self", "operator"}
        Who delivered its outcomes.
    submitted_at : str or None
        The earliest date stated, ISO 8601.
    how : {"measured", "completed", "estimated", "linked", "incomplete"}
        How it comes to its score for the full suite; `incomplete` is listed without a rank.
    condition : str
        The conditions it ran under, where it lacks those that are compared; else empty.
    n_tasks : int
        Active tasks with a valid outcome; of an agent with a `condition`, the most under one of those.
    n_trials, n_invalid : int
        Counted valid trials; counted trials that the harness failed.
    n_submissions : int
    cost_usd : float or None
        Of a run of all active tasks, mean over runs, US dollars.
    cost_basis : {"per task", "linear", "not stated", "hidden"}
        Hidden: from visitors, by the operator's policy.
    n_tokens, seconds : float or None
        Sum over the active tasks that state them, mean over runs; never scaled up to all tasks.
    icc : mapping
        Intraclass correlation of repeated trials with its interval and task set, or why none; see
        `analytics.repeats.Repeats.as_plain`.
    marks : tuple of str
        Words of `words.MARKS`.
    flags : tuple of str
        What an operator should look at, in words.
    at : mapping of target to AtTarget
    """

    agent: str
    scaffold: str
    model: str
    version: str
    organisation: str
    links: Mapping[str, str]
    run_by: str
    submitted_at: str | None
    how: How
    condition: str
    n_tasks: int
    n_trials: int
    n_invalid: int
    n_submissions: int
    cost_usd: float | None
    cost_basis: str
    n_tokens: float | None
    seconds: float | None
    icc: Mapping[str, Any]
    marks: tuple[str, ...]
    flags: tuple[str, ...]
    at: Mapping[str, AtTarget]


@dataclass(frozen=True)
class Conditions:
    """Under which conditions agents are compared.

    Attributes
    ----------
    compared : tuple of str
        Conditions in words ("judge j1", "prompt p2, judge j1"); empty where no facet has two levels.
    left_out : tuple of (str, int)
        Other conditions with outcomes, and the number of agents that have them.
    """

    compared: tuple[str, ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Standings:
    """Where every agent stands, for every target.

    Attributes
    ----------
    n_tasks : int
        Active tasks, m.
    n_complete : int
        Agents that have run all tasks.
    phase : str
    why : str
        The phase in a sentence.
    target : {"subset", "full", "domain"}
        The default target: what `agents` is ordered by.
    subset : SubsetLine or None
    conditions : Conditions
    verdict : mapping or None
        Whether the subset ranks like the whole; None where it was not validated.
    targets : mapping of target to TargetLine
    agents : tuple of Line
        By rank for the default target, names inside ties, unranked last by condition and name.
    not_measured : tuple of str
        Sources of error without an estimate, in words.
    savings : mapping or None
        What the subset spared; see `selection.cost`. None under full runs.
    notices : tuple of str
        What the reader must know before the ranks: agents that lack tasks, fewer than half ranked, ….
    measured : tuple of str
        Sources of error that a variance study measured, in words; the intervals hold them.
    """

    n_tasks: int
    n_complete: int
    phase: str
    why: str
    target: str
    subset: SubsetLine | None
    conditions: Conditions
    verdict: Mapping[str, Any] | None
    targets: Mapping[str, TargetLine]
    agents: tuple[Line, ...]
    not_measured: tuple[str, ...]
    savings: Mapping[str, Any] | None
    notices: tuple[str, ...] = field(default=())
    measured: tuple[str, ...] = field(default=())

    def as_plain(self) -> dict[str, Any]:
        """Return the same as objects of JSON: dictionaries, lists, texts, numbers, true, false and null."""
        return dict(_plain(asdict(self)))

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "Standings":
        """Return what `as_plain` was made from; what a published board adds is left out."""
        own = {name: value for name, value in plain.items() if name in _names(cls)}
        subset = plain["subset"]
        return cls(
            **own
            | {
                "subset": SubsetLine(**subset | {"tasks": tuple(subset["tasks"])}) if subset else None,
                "conditions": Conditions(
                    tuple(plain["conditions"]["compared"]),
                    tuple((name, n) for name, n in plain["conditions"]["left_out"]),
                ),
                "targets": {
                    name: TargetLine(**told | {"may_be_first": tuple(told["may_be_first"])})
                    for name, told in plain["targets"].items()
                },
                "agents": tuple(_line(one) for one in plain["agents"]),
                "not_measured": tuple(plain["not_measured"]),
                "notices": tuple(plain["notices"]),
                "measured": tuple(plain.get("measured", ())),
            }
        )


def _line(plain: Mapping[str, Any]) -> Line:
    at = {target: _at(told) for target, told in plain["at"].items()}
    return Line(**{**plain, "marks": tuple(plain["marks"]), "flags": tuple(plain["flags"]), "at": at})


def _at(plain: Mapping[str, Any]) -> AtTarget:
    bounds, tied = plain["bounds"], plain["tied_with"]
    return AtTarget(
        **{
            **plain,
            "bounds": tuple(bounds) if bounds else None,
            "tied_with": tuple((first, last) for first, last in tied),
        }
    )


def _names(kind: type) -> set[str]:
    return {one.name for one in fields(kind)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value
