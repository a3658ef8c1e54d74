"""What is known of a board: the one form in which every file, page, table and stored board has it.

`Standings.as_plain` is the schema: the command lines, the API, the stored board and webhooks carry these
names and nothing else. Numbers are unrounded; scores lie in [0, 1]; rounding is for display. No face computes
or rewords what stands here: sentences are in `words`, tables in `table`. This module imports nothing heavy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Trust = Literal["self_reported", "logs", "verified"]
How = Literal["measured", "completed", "estimated", "incomplete"]
Phase = Literal["cold_start", "provisional", "ongoing", "revalidating", "saturated", "unsuited"]
Range = tuple[int, int]
JSON_VALUES = (str, float, int)  # what JSON holds as it is; a truth value is an int

LINE_FIELDS = (
    "agent",
    "scaffold",
    "model",
    "version",
    "organisation",
    "run_by",
    "trust",
    "submitted_at",
    "how",
    "condition",
    "n_tasks",
    "n_trials",
    "n_invalid",
    "n_submissions",
    "cost_usd",
    "cost_basis",
    "n_tokens",
    "seconds",
)
TARGET_FIELDS = (
    "rank",
    "rank_lower",
    "rank_upper",
    "score",
    "lower",
    "upper",
    "se",
    "naive_se",
    "upper_bound",
    "method",
    "source",
    "estimated",
    "n_valid",
    "n_missing",
    "reason",
    "folded_under",
    "correction",
)


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
class SecondRun:
    """What a second run of the leader, on the same tasks, is expected to score.

    Attributes
    ----------
    agent : str
        The first of the agents that headlines are made from.
    score, expected : float
        Its score, and that of a second run; 0 to 1.
    n_agents : int
        Measured agents that its score is regressed towards, itself among them.
    lower_bound : bool
        Whether `expected` is a lower bound, as errors are upper ones (one trial a task).
    """

    agent: str
    score: float
    expected: float
    n_agents: int
    lower_bound: bool


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
        Agents that may be the best of those that headlines are made from, by name: the set holds the truly
        best one with 95% (multiple comparisons with the best).
    reason : str
        Why the target says nothing, or why there are no rank intervals; else empty.
    second_run : SecondRun or None
        None where the leader's score is estimated, under five measured agents, and for the target domain.
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
    second_run: SecondRun | None = None


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
        Where the interval of an estimated score comes from ("jackknife+", …), and whether it allows for a new
        scaffold; or "tasks chosen for the agent"; of a measured one the noise of trials where it is borrowed
        ("0.118 from Terminal-Bench"), else empty.
    estimated : bool
        Whether `score` is predicted, from the subset or from tasks chosen for the agent.
    n_valid, n_missing : int
        Tasks of the target with an outcome, as for `Line.n_tasks`; places (task × trial) without one.
    bounds : (float, float) or None
        What the missing outcomes could make of the score, as `Record.bounds`; for unranked agents.
    tied_with : tuple of (int, int)
        Ranges of positions in `Standings.agents`, both ends included.
    reason : str
        Why there is no rank, or no interval; else empty.
    folded_under : str
        Another version of it, by the same account, under which it stands unranked; else empty.
    correction : float
        What was taken from the score, for it is that of the best of several versions; else 0.
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
    folded_under: str = ""
    correction: float = 0.0


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
    trust : {"self_reported", "logs", "verified"}
        See `analytics.record.About`.
    submitted_at : str or None
        The earliest date stated, ISO 8601.
    how : {"measured", "completed", "estimated", "incomplete"}
        How it comes to its score for the full suite; `incomplete` is listed without a rank.
    condition : str
        The conditions it ran under, where it lacks those that are compared; else empty.
    n_tasks : int
        Active tasks with an outcome, which a missing or invalid one has where it counts as a failure; of an
        agent with a `condition`, the most under one of those.
    n_trials, n_invalid : int
        Counted trials with such an outcome; counted trials that were delivered as invalid.
    n_submissions : int
    cost_usd : float or None
        Of a run of all active tasks, one trial each, at the mean of its trials; US dollars.
    cost_basis : {"per task", "linear", "in part", "not stated", "hidden"}
        In part: some of its trials state none. Hidden: from visitors, by the operator's policy.
    n_tokens, seconds : float or None
        Of one trial of each active task that states them, at the mean of its trials; never scaled up.
    icc : mapping
        Intraclass correlation of repeated trials with its interval and task set, or why none; see
        `analytics.repeats.Repeats.as_plain`.
    marks : tuple of str
        Words of `terms.MARKS`.
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
    trust: Trust
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
class Better:
    """A strategy that puts more pairs in order than the one in use.

    Attributes
    ----------
    strategy : str
    difference, se : float
        Of pairs_correct_full, paired, under the protocol of the verdict; shares.
    """

    strategy: str
    difference: float
    se: float


@dataclass(frozen=True)
class Verdict:
    """Whether the board may be trusted.

    Attributes
    ----------
    word : {"yes", "mostly", "mostly (few)", "not yet", "full runs", "too few", "no subset"}
    sentence : str
    pairs : float or None
        Pairs of a new agent and an older one that the estimated full score puts in the order of all tasks.
    clear : float or None
        The same of pairs that all tasks can tell apart.
    random_difference, se : float or None
        By how much `pairs` exceeds that of as many tasks drawn at random, and the standard error of that.
    pairs_se : float or None
    protocol : str
        Which agents count as new: "temporal" or "loao"; "replay", where all figures are of a replay of staged
        assignment; empty where there are none.
    strategy : str
    chosen : {"", "prequential", "selected on the same data"}
        How the choice of a strategy other than the default enters `pairs`.
    n : int
        Agents taken for new.
    better : Better or None
        A strategy that does better, for the operator.
    reason : str
        Why there is no subset.
    """

    word: str
    sentence: str
    pairs: float | None = None
    clear: float | None = None
    random_difference: float | None = None
    se: float | None = None
    pairs_se: float | None = None
    protocol: str = ""
    strategy: str = ""
    chosen: str = ""
    n: int = 0
    better: Better | None = None
    reason: str = ""

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "Verdict":
        """Return what `dataclasses.asdict` was made from."""
        return cls(**{**plain, "better": Better(**plain["better"]) if plain["better"] else None})


@dataclass(frozen=True)
class TrialsLine:
    """The standard error and the cost of a run of the subset with so many trials a task.

    Attributes
    ----------
    n_trials : int
        Of each task under each compared condition.
    se : float
        Of an agent's mean on the subset; root mean square over the complete agents.
    cost_usd : float or None
        The median run of the subset, US dollars; None where costs were not stated.
    """

    n_trials: int
    se: float
    cost_usd: float | None


@dataclass(frozen=True)
class TrialsAdvice:
    """How many trials of each task of the subset a run should have.

    Attributes
    ----------
    recommended : int
        R = max(1, ⌊m/k⌋): the saving, spent on repeats.
    omega : float or None
        How much trials vary, over p(1 − p) of the agent's mean; None where no agent has repeats to tell it.
    upper_bound : bool
        Whether the errors take ω̂ for 1, its largest value.
    options : tuple of TrialsLine
        At 1, 2 and R trials.
    n_conditions : int
        Compared conditions, each of which has so many trials; 1 where none varies.
    why_upper_bound : str
        Why ω̂ is not known, in words; else empty.
    """

    recommended: int
    omega: float | None
    upper_bound: bool
    options: tuple[TrialsLine, ...]
    n_conditions: int = 1
    why_upper_bound: str = ""

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "TrialsAdvice":
        """Return what `dataclasses.asdict` was made from."""
        return cls(**{**plain, "options": tuple(TrialsLine(**one) for one in plain["options"])})


@dataclass(frozen=True)
class CoverageLine:
    """How often the intervals of estimated scores held, measured in time.

    Attributes
    ----------
    estimator : {"completion", "ridge", "line"}
        How the full score is estimated.
    n, n_covered : int
        Later full scores with an interval made from the residuals of strictly earlier dates, and those that
        lay inside.
    share : float or None
        n_covered/n; None where n is 0.
    upper : float or None
        One-sided upper 95% bound of the coverage (Wilson).
    falls_short : bool
        Whether it is under .95, so that `share` stands in the place of 95%.
    """

    estimator: str
    n: int
    n_covered: int
    share: float | None
    upper: float | None
    falls_short: bool


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
    why_target : str
        Why it is not the full suite, where nobody asked for another; else empty.
    subset : SubsetLine or None
    conditions : Conditions
    verdict : Verdict or None
        Whether the subset ranks like the whole; None where it was not validated.
    trials : TrialsAdvice or None
        How many trials a run of the subset should have; None under full runs.
    targets : mapping of target to TargetLine
    agents : tuple of Line
        By rank for the default target, names inside ties, unranked last by condition and name.
    not_measured : tuple of str
        Sources of error without an estimate, in words; of trials intervals hold an upper bound.
    savings : mapping or None
        What the subset, and tasks chosen for agents, spared; see `selection.standings.savings`. None under
        full runs.
    coverage : CoverageLine or None
        Of the intervals of estimated scores; None where there is none.
    notices : tuple of str
        What the reader must know before the ranks: agents that lack tasks, fewer than half ranked, ….
    headline_from : {"self_reported", "logs", "verified"}
        The least trust of an agent that headlines are made from.
    measured : tuple of str
        Sources of error that a variance study measured, in words; the intervals hold them.
    trial_noise : str
        The noise of trials that intervals borrow, ω and its source; else empty.
    """

    n_tasks: int
    n_complete: int
    phase: str
    why: str
    target: str
    subset: SubsetLine | None
    conditions: Conditions
    verdict: Verdict | None
    targets: Mapping[str, TargetLine]
    agents: tuple[Line, ...]
    not_measured: tuple[str, ...]
    savings: Mapping[str, Any] | None
    coverage: CoverageLine | None = None
    notices: tuple[str, ...] = field(default=())
    measured: tuple[str, ...] = field(default=())
    why_target: str = ""
    headline_from: Trust = "self_reported"
    trials: TrialsAdvice | None = None
    trial_noise: str = ""

    def as_plain(self) -> dict[str, Any]:
        """Return the same as objects of JSON: dictionaries, lists, texts, numbers, true, false and null."""
        return dict(_plain(self))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each agent, in the columns of the CSV of a board.

        Raises
        ------
        FrameRefused
            Without pandas.
        """
        from analytics.frames import pandas_there

        return pandas_there().DataFrame([flat(line) for line in self.agents])

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "Standings":
        """Return what `as_plain` was made from; what a published board adds is left out."""
        own = {name: value for name, value in plain.items() if name in _names(cls)}
        subset, coverage = plain["subset"], plain["coverage"]
        return cls(
            **own
            | {
                "subset": SubsetLine(**subset | {"tasks": tuple(subset["tasks"])}) if subset else None,
                "conditions": Conditions(
                    tuple(plain["conditions"]["compared"]),
                    tuple((name, n) for name, n in plain["conditions"]["left_out"]),
                ),
                "verdict": Verdict.of_plain(plain["verdict"]) if plain["verdict"] else None,
                "trials": TrialsAdvice.of_plain(plain["trials"]) if plain["trials"] else None,
                "targets": {name: _target(target_line) for name, target_line in plain["targets"].items()},
                "agents": tuple(_line(one) for one in plain["agents"]),
                "coverage": CoverageLine(**coverage) if coverage else None,
                "not_measured": tuple(plain["not_measured"]),
                "notices": tuple(plain["notices"]),
                "measured": tuple(plain.get("measured", ())),
            }
        )


def flat(line: Line) -> dict[str, str | int | float | bool | None]:
    """Return one agent as a flat row of plain values, with every target's fields.

    ``tied_with`` holds ranges of positions among the rows, from 0, both ends included: "0-2 5-5".
    """
    row = {name: getattr(line, name) for name in LINE_FIELDS}
    row |= {f"icc_{name}": line.icc.get(name) for name in ("lower", "upper", "n_tasks")}
    row |= {"icc": line.icc.get("icc"), "marks": " ".join(line.marks), "flags": "; ".join(line.flags)}
    for target in ("full", "subset", "domain"):
        at = line.at[target]
        row |= {f"{target}_{name}": getattr(at, name) for name in TARGET_FIELDS}
        low, high = at.bounds or (None, None)
        row |= {f"{target}_bound_lower": low, f"{target}_bound_upper": high}
        row[f"{target}_tied_with"] = " ".join(f"{first}-{last}" for first, last in at.tied_with)
    return row


def _target(plain: Mapping[str, Any]) -> TargetLine:
    second = plain.get("second_run")
    values = {"may_be_first": tuple(plain["may_be_first"]), "second_run": second and SecondRun(**second)}
    return TargetLine(**{**plain, **values})


def _line(plain: Mapping[str, Any]) -> Line:
    at = {target: _at(one) for target, one in plain["at"].items()}
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
    """Return dataclasses and mappings as dictionaries, sequences as lists."""
    if value is None or isinstance(value, JSON_VALUES):
        return value
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    parts = value.items() if isinstance(value, Mapping) else vars(value).items()
    return {
        key: part if part is None or isinstance(part, JSON_VALUES) else _plain(part) for key, part in parts
    }
