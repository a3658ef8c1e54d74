"""What is known of a board: the one form in which every file, page, table and stored board has it.

Numbers are unrounded; scores lie in [0, 1]; rounding is for display. What a field says stands with it; the
data dictionary and the columns of CSV and Parquet are read from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from msgspec import convert

Trust = Literal["self_reported", "logs", "verified"]
How = Literal["measured", "completed", "estimated", "incomplete"]
Phase = Literal["cold_start", "provisional", "ongoing", "revalidating", "saturated", "unsuited"]
Range = tuple[int, int]
VALUES = (str, int, float, bool)
JSON_VALUES = (str, float, int)  # what JSON holds as it is; a truth value is an int


@dataclass(frozen=True)
class SubsetLine:
    """The tasks that new agents are asked to run, and how they were chosen."""

    number: Annotated[
        int | None,
        "Version; None where no version is stored (a file by itself, a preview). It is the one field in "
        "which a file and the service may differ for the same subset; no sentence or table shows it.",
    ]
    tasks: Annotated[tuple[str, ...], "Active tasks of the subset, by name."]
    size: Annotated[int, "k, their number."]
    lo: Annotated[float, "Edges of the band that was used."]
    hi: Annotated[float, "Edges of the band that was used."]
    widened: bool
    provisional: Annotated[bool, "A preview: chosen from fewer complete agents than the rules ask for."]
    strategy: str
    n_complete: Annotated[int, "Complete agents that it was chosen from."]
    reason: Annotated[str, "How it came about, in a sentence."]


@dataclass(frozen=True)
class SecondRun:
    """What a second run of the leader, on the same tasks, is expected to score."""

    agent: Annotated[str, "The first of the agents that headlines are made from."]
    score: Annotated[float, "Its score, and that of a second run; 0 to 1."]
    expected: Annotated[float, "Its score, and that of a second run; 0 to 1."]
    n_agents: Annotated[int, "Measured agents that its score is regressed towards, itself among them."]


@dataclass(frozen=True)
class TargetLine:
    """What a board says for one target."""

    covers: Annotated[str, "What its 95% intervals are about."]
    n_tasks: Annotated[int, "Tasks of the target."]
    n_ranked: Annotated[int, "Agents with a rank."]
    method: Annotated[str, "How ties and rank ranges were found; empty without them."] = ""
    critical: Annotated[
        float | None, "Critical value c of the pair comparisons; None without rank ranges."
    ] = None
    n_draws: int | None = None
    note: Annotated[str, "What the method takes for granted, in words."] = ""
    may_be_first: Annotated[
        tuple[str, ...],
        "Agents that may be the best of those that headlines are made from, by name: the set holds the "
        "truly best one with 95% (multiple comparisons with the best).",
    ] = ()
    reason: Annotated[str, "Why the target says nothing, or why there are no rank ranges; else empty."] = ""
    second_run: Annotated[
        SecondRun | None,
        "None where the leader's score is estimated, under five measured agents, and for the target domain.",
    ] = None


@dataclass(frozen=True)
class AtTarget:
    """One agent at one target."""

    rank: Annotated[
        int | None,
        "1 + the number of agents with a strictly better score (rounded to 1e-9); None: listed, not ranked.",
    ] = None
    rank_lower: Annotated[int | None, "Best rank of the 95% rank range."] = None
    rank_upper: Annotated[int | None, "Worst rank of the 95% rank range."] = None
    score: Annotated[float | None, "On the tasks of the target, measured or estimated."] = None
    lower: Annotated[float | None, "Lower end of the 95% interval of the score, clipped to [0, 1]."] = None
    upper: Annotated[float | None, "Its upper end."] = None
    se: Annotated[float | None, "Standard error of the score."] = None
    naive_se: Annotated[float | None, "√(p̄(1 − p̄)/k), k the tasks of the target."] = None
    upper_bound: Annotated[bool, "Whether `se` is an upper bound (one trial a task)."] = False
    method: Annotated[str, "Where the standard error comes from."] = ""
    source: Annotated[
        str,
        'Where the interval of an estimated score comes from ("jackknife+", …), and whether it allows for '
        'a new scaffold; or "tasks chosen for the agent"; of a measured one the noise of trials where it '
        'is borrowed ("0.118 from Terminal-Bench"), else empty.',
    ] = ""
    estimated: Annotated[
        bool, "Whether `score` is predicted, from the subset or from tasks chosen for the agent."
    ] = False
    n_valid: Annotated[int, "Tasks with an outcome, as in n_tasks."] = 0
    n_missing: Annotated[int, "Places (task × trial) without one."] = 0
    bounds: Annotated[
        tuple[float, float] | None,
        "What the missing outcomes could make of the score, as `Record.bounds`; for unranked agents.",
    ] = None
    tied_with: Annotated[
        tuple[Range, ...], "Ranges of positions in `Standings.agents`, both ends included."
    ] = ()
    reason: Annotated[str, "Why there is no rank, or no interval; else empty."] = ""
    folded_under: Annotated[
        str, "Another version of it, by the same account, under which it stands unranked; else empty."
    ] = ""
    correction: Annotated[
        float, "What was taken from the score, for it is that of the best of several versions; else 0."
    ] = 0.0
    n_taken_back: Annotated[int, "Versions of it that its owner took back, where they count in that."] = 0


@dataclass(frozen=True)
class Line:
    """One agent."""

    agent: Annotated[str, "Name of the agent."]
    scaffold: Annotated[str, "Program around the model."]
    model: Annotated[str, "Model that the scaffold calls."]
    version: Annotated[str, "Version of the agent; empty: not stated."]
    organisation: Annotated[str, "Who made the agent; empty: not stated."]
    weights: Annotated[str, "Weights of its model: open or closed; empty: not stated."]
    links: Annotated[Mapping[str, str], "Commit, logs, report."]
    run_by: Annotated[str, "Who submitted the results."]
    trust: Annotated[
        Trust,
        "How far its outcomes can be checked: self_reported; logs, where every submission links logs or "
        "trajectories; verified, where an operator loaded or confirmed every one.",
    ]
    submitted_at: Annotated[str | None, "The earliest date stated, ISO 8601."]
    how: Annotated[
        How, "How it comes to its score for the full suite; `incomplete` is listed without a rank."
    ]
    condition: Annotated[
        str, "The conditions it ran under, where it lacks those that are compared; else empty."
    ]
    n_tasks: Annotated[
        int,
        "Active tasks with an outcome, which a missing or invalid one has where it counts as a failure; of "
        "an agent with a `condition`, the most under one of those.",
    ]
    n_trials: Annotated[
        int,
        "Counted trials with an outcome, which a missing or invalid one has where it counts as a failure.",
    ]
    n_invalid: Annotated[int, "Counted trials that were delivered as invalid."]
    n_submissions: Annotated[int, "Submissions that count."]
    cost_usd: Annotated[
        float | None, "Of a run of all active tasks, one trial each, at the mean of its trials; US dollars."
    ]
    cost_basis: Annotated[
        str, "How the cost was found: per task, linear, in part, not stated; or hidden by the policy."
    ]
    n_tokens: Annotated[
        float | None,
        "Of one trial of each active task that states them, at the mean of its trials; never scaled up.",
    ]
    seconds: Annotated[
        float | None,
        "Of one trial of each active task that states them, at the mean of its trials; never scaled up.",
    ]
    icc: Annotated[
        Mapping[str, Any],
        "Intraclass correlation of repeated trials with its interval and task set, or why none; see "
        "`analytics.record.alike.Repeats.as_plain`.",
    ]
    marks: Annotated[
        tuple[str, ...],
        "Words for its state, separated by blanks; chosen tasks: it was asked for tasks chosen for it; "
        "recalled: it was asked for the rest.",
    ]
    flags: Annotated[tuple[str, ...], "What an operator should look at, separated by semicolons."]
    at: Mapping[str, AtTarget]


@dataclass(frozen=True)
class Conditions:
    """Under which conditions agents are compared."""

    compared: Annotated[
        tuple[str, ...],
        'Conditions in words ("judge j1", "prompt p2, judge j1"); empty where no facet has two levels.',
    ] = ()
    left_out: Annotated[
        tuple[tuple[str, int], ...],
        "Other conditions with outcomes, and the number of agents that have them.",
    ] = ()


@dataclass(frozen=True)
class Better:
    """A strategy that puts more pairs in order than the one in use."""

    strategy: str
    difference: Annotated[float, "Of pairs_correct_full, paired, under the protocol of the verdict; shares."]
    se: Annotated[float, "Of pairs_correct_full, paired, under the protocol of the verdict; shares."]


@dataclass(frozen=True)
class Verdict:
    """Whether the board may be trusted."""

    word: str
    sentence: str
    pairs: Annotated[
        float | None,
        "Pairs of a new agent and an older one that the estimated full score puts in the order of all tasks.",
    ] = None
    clear: Annotated[float | None, "The same of pairs that all tasks can tell apart."] = None
    random_difference: Annotated[
        float | None,
        "By how much `pairs` exceeds that of as many tasks drawn at random, and the standard error of that.",
    ] = None
    se: Annotated[
        float | None,
        "By how much `pairs` exceeds that of as many tasks drawn at random, and the standard error of that.",
    ] = None
    pairs_se: float | None = None
    protocol: Annotated[
        str,
        'Which agents count as new: "temporal" or "loao"; "replay", where all figures are of a replay '
        "of staged assignment; empty where there are none.",
    ] = ""
    strategy: str = ""
    chosen: Annotated[str, "How the choice of a strategy other than the default enters `pairs`."] = ""
    n: Annotated[int, "Agents taken for new."] = 0
    better: Annotated[Better | None, "A strategy that does better, for the operator."] = None
    reason: Annotated[str, "Why there is no subset."] = ""


@dataclass(frozen=True)
class TrialsLine:
    """The standard error and the cost of a run of the subset with so many trials a task."""

    n_trials: Annotated[int, "Of each task under each compared condition."]
    se: Annotated[float, "Of an agent's mean on the subset; root mean square over the complete agents."]
    cost_usd: Annotated[
        float | None, "The median run of the subset, US dollars; None where costs were not stated."
    ]


@dataclass(frozen=True)
class TrialsAdvice:
    """How many trials of each task of the subset a run should have."""

    recommended: Annotated[int, "R = max(1, ⌊m/k⌋): the saving, spent on repeats."]
    omega: Annotated[
        float | None,
        "How much trials vary, over p(1 − p) of the agent's mean; None where no agent has repeats to tell "
        "it.",
    ]
    upper_bound: Annotated[bool, "Whether the errors take ω̂ for 1, its largest value."]
    options: Annotated[tuple[TrialsLine, ...], "At 1, 2 and R trials."]
    n_conditions: Annotated[
        int, "Compared conditions, each of which has so many trials; 1 where none varies."
    ] = 1
    why_upper_bound: Annotated[str, "Why ω̂ is not known, in words; else empty."] = ""


@dataclass(frozen=True)
class CoverageLine:
    """How often the intervals of estimated scores held, measured in time."""

    estimator: Annotated[str, "How the full score is estimated."]
    n: Annotated[
        int,
        "Later full scores with an interval made from the residuals of strictly earlier dates, and those "
        "that lay inside.",
    ]
    n_covered: Annotated[
        int,
        "Later full scores with an interval made from the residuals of strictly earlier dates, and those "
        "that lay inside.",
    ]
    share: Annotated[float | None, "n_covered/n; None where n is 0."]
    upper: Annotated[float | None, "One-sided upper 95% bound of the coverage (Wilson)."]
    falls_short: Annotated[bool, "Whether it is under .95, so that `share` stands in the place of 95%."]


@dataclass(frozen=True)
class Standings:
    """Where every agent stands, for every target."""

    n_tasks: Annotated[int, "Active tasks, m."]
    n_complete: Annotated[int, "Agents that have run all tasks."]
    phase: str
    why: Annotated[str, "The phase in a sentence."]
    target: Annotated[str, "The default target: what `agents` is ordered by."]
    subset: SubsetLine | None
    conditions: Conditions
    verdict: Annotated[
        Verdict | None, "Whether the subset ranks like the whole; None where it was not validated."
    ]
    targets: Mapping[str, TargetLine]
    agents: Annotated[
        tuple[Line, ...],
        "By rank for the default target, names inside ties, unranked last by condition and name.",
    ]
    not_measured: Annotated[
        tuple[str, ...],
        "Sources of error without an estimate, in words; of trials intervals hold an upper bound.",
    ]
    savings: Annotated[
        Mapping[str, Any] | None,
        "What the subset, and tasks chosen for agents, saved; see `selection.standings.savings`. None "
        "under full runs.",
    ]
    coverage: Annotated[
        CoverageLine | None, "Of the intervals of estimated scores; None where there is none."
    ] = None
    notices: Annotated[
        tuple[str, ...],
        "What the reader must know before the ranks: agents that lack tasks, fewer than half ranked, ….",
    ] = field(default=())
    measured: Annotated[
        tuple[str, ...], "Sources of error that a variance study measured, in words; the intervals hold them."
    ] = field(default=())
    why_target: Annotated[
        str, "Why it is not the full suite, where nobody asked for another; else empty."
    ] = ""
    headline_from: Annotated[Trust, "The least trust of an agent that headlines are made from."] = (
        "self_reported"
    )
    trials: Annotated[
        TrialsAdvice | None, "How many trials a run of the subset should have; None under full runs."
    ] = None
    trial_noise: Annotated[
        str, "The noise of trials that intervals borrow, ω and its source; else empty."
    ] = ""
    n_missing_failed: Annotated[int, "Missing results that count as failures, of all agents."] = 0
    n_left_out: Annotated[int, "Tasks that the policy leaves out of the active ones."] = 0
    next_step: Annotated[
        str, "The setting that lets agents be ranked, where none is (missing=zero_loaded); else empty."
    ] = ""

    def as_plain(self) -> dict[str, Any]:
        """Return the same as objects of JSON: dictionaries, lists, texts, numbers, true, false and null."""
        return dict(_plain(self))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each agent, in the columns of the CSV of a board."""
        from analytics.frames import pandas_there

        return pandas_there().DataFrame([flat(line) for line in self.agents])

    def plot(self, kind: Literal["ranks", "cost"] = "ranks", *, target: str = "", ax: Any = None) -> Any:
        """Draw ranks with their 95% ranges, or score against cost; return the matplotlib Axes.

        target: the default one where not given.
        ax: the Axes to draw on; those of a new figure where not given.
        Raises PlotRefused: without matplotlib, or where there is nothing to draw.
        """
        from selection.plots import plot_standings

        return plot_standings(self, kind, target or self.target, ax)

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> "Standings":
        """Return what `as_plain` was made from; what a published board adds is left out."""
        return convert(plain, cls)


def descriptions(kind: type) -> dict[str, str]:
    """Return what each field of a class of this module says, by name."""
    hints = get_type_hints(kind, include_extras=True).items()
    return {name: get_args(hint)[1] for name, hint in hints if get_origin(hint) is Annotated}


def value_types(kind: type) -> dict[str, type]:
    """Return the fields that hold one plain value, by name: str, int, float or bool, which may be None."""
    kinds_of = {}
    for name, hint in get_type_hints(kind).items():
        kinds = [str if get_origin(one) is Literal else one for one in (get_args(hint) or (hint,))]
        kinds = [str] if get_origin(hint) is Literal else [one for one in kinds if one is not type(None)]
        if len(kinds) == 1 and kinds[0] in VALUES and get_origin(hint) is not tuple:
            kinds_of[name] = kinds[0]
    return kinds_of


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


LINE_FIELDS, TARGET_FIELDS = value_types(Line), value_types(AtTarget)
