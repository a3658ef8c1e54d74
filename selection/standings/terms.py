"""What words of a board mean, and how its figures are set, rounded for display. Nothing heavy is imported."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar, get_args

from selection.schema.board import AtTarget, Line, Standings, Trust

TARGETS = {"full": "all {n} tasks", "subset": "the {n} tasks of the subset", "domain": "tasks like these {n}"}
ONE_TASK = {"subset": "the one task of the subset", "full": "the one task", "domain": "tasks like this one"}
COVERS = {
    "subset": "the agent's expected mean on the tasks of the subset; order and ties on these tasks alone",
    "full": "the agent's expected mean on all tasks, or, where the score is estimated, what a full run would "
    "show",
    "domain": "the agent's expected mean on tasks like these, of which the benchmark is taken for a sample",
}
NOBODY_RANKED = "no agent is ranked on these tasks"
NO_SUBSET = "no subset is in use"
MARKS = {
    "estimated": "ran the tasks of the subset, not all: its score on all tasks is estimated from them",
    "chosen tasks": "was asked for tasks chosen for it, batch by batch: its score on all tasks is estimated "
    "from them, and on other task sets it has no rank",
    "recalled": "stands on the podium by an estimate and was asked for its remaining tasks: until they have "
    "arrived it is not called the best, and after the deadline it has no rank without them",
    "completed": "at most 5% of its outcomes were lost by the harness; what is missing is completed from the "
    "others, and the error of that is in its intervals",
    "new scaffold": "its scaffold is new, and too few others are known for an interval that allows for that",
    "incomplete": "lacks outcomes that a rank on all tasks needs; on the tasks of the subset alone it may "
    "have a rank",
    "elsewhere": "ran under other conditions than this board compares, or too little under these",
    "withheld": "not ranked until an operator approves",
    "versions": "best of several versions that do not clearly differ; the score is lowered by the luck of "
    "picking the best",
    "folded": "shares the line of another version: not clearly better (95%)",
    "flagged": "an operator should look at something",
    "backdated": "dated long before its delivery; an operator let it in",
    "imprecise": "dated to the month or the year alone",
}
BORROWED = "borrowed noise"
BORROWED_NOTE = "the noise of trials is borrowed: {}"
METHODS = {
    BORROWED: "from the noise of trials that another benchmark measured; assumes that it is as large here",
    "repeated trials": "from repeated trials of each task",
    "variance function": "from how much the trials of agents with repeats vary; assumes that this agent's "
    "vary as much",
    "upper bound": "one trial a task: an upper bound",
    "neyman": "from the spread of differences over tasks: an upper bound",
    "domain": "from the spread over tasks, which count as a sample",
    "clusters": "from the spread over groups of tasks, which count as a sample",
    "strata": "from the spread over tasks within their groups, which count as a sample",
    "calibration": "from how far estimates are off for agents whose full score is known",
    "resampled tasks": "tasks are drawn anew, the same ones for all pairs",
    "errors of scores": "the errors of all scores are drawn anew, for all pairs at once",
    "errors of scores and resampled tasks": "the errors of scores are drawn anew, and the tasks for agents "
    "whose trials tell no error, for all pairs at once",
}
METHOD_NAMES = {  # others are words already
    "neyman": "spread over tasks",
    "domain": "tasks as a sample",
    "clusters": "groups of tasks as a sample",
    "strata": "tasks within groups as a sample",
}
MEASURED = {
    "run": "How much an agent varies from run to run was measured",
    "prompt": "The wording of the prompt was measured",
    "judge": "The judge was measured",
}
VARIES = {
    MEASURED["run"]: "from run to run",
    MEASURED["prompt"]: "with the wording of the prompt",
    MEASURED["judge"]: "with the judge",
}
UNMEASURED = {
    "trials": "how much the trials of one task vary: no agent has two valid trials of a task in one setting",
    "run": "how much an agent varies from run to run beyond its trials",
    "prompt": "how much agents depend on the wording of the prompt",
    "judge": "how much agents depend on the judge",
}
SHORT_UNMEASURED = {
    UNMEASURED["run"]: "other days",
    UNMEASURED["prompt"]: "other prompts",
    UNMEASURED["judge"]: "other judges",
}
PHASES = {
    "cold_start": "Too few agents have run all tasks to choose among these, so every agent runs all of them.",
    "provisional": "The subset is a preview: it is chosen anew as more agents run all tasks or are stopped.",
    "ongoing": "The subset is fixed.",
    "revalidating": "Agents run all tasks until it is clear whether the subset still ranks like the whole.",
    "saturated": "The best agents pass nearly every task, so that ranks say little.",
    "unsuited": "No subset is in use: agents are ranked on all tasks.",
}
EVERYTHING = "Every agent runs all tasks."
TASKS_OF_NEW_AGENT = {  # what a new agent runs, by assignment and phase; in other phases the phase says it
    "staged": {
        **dict.fromkeys(
            ("provisional", "ongoing"), "A new agent begins with some of its tasks and goes on in batches."
        ),
        "unsuited": "A new agent begins with the tasks nearest to a pass rate of 50% and goes on in batches.",
    },
    "subset": {
        "provisional": "Until it is fixed every agent runs all tasks.",
        "ongoing": "A new agent runs its tasks alone, and its score on all tasks is estimated from them.",
        "unsuited": EVERYTHING,
    },
    "full": dict.fromkeys(("provisional", "ongoing", "unsuited"), EVERYTHING),
}
UNBELIEVED = "?"  # in the place of a cost
LEGEND = {
    "Rank": "1 + the number of agents with a better score.",
    "May hold": "The ranks that an agent may hold, all of them right at once with 95% confidence.",
    "95%": "The interval of the score.",
    "± SE": "Standard error of the score in points.",
    "naive": "√(p(1 − p)/n), as most boards print it. It takes each task for one toss of a coin and answers "
    "another question, so that it may be larger or smaller.",
    "Could be the best": "At 95% the best agent is one of these.",
    "Tied with": "Rows of this table with agents that it is neither better nor worse than, at 95% for all "
    "pairs at once. Ties form no groups.",
    "Ties": "Agents that it is neither better nor worse than, at 95% for all pairs at once. Ties form no "
    "groups: A may be tied with B, and B with C, while A is better than C.",
    "~": "Estimated from the tasks that the agent ran, which are not all; a cost also from the trials that "
    "state theirs. A score without it is measured.",
    "Bounds": "What the score would be if all missing outcomes were failures, and if all were successes.",
    "≤": "The standard error is an upper bound: one trial a task.",
    UNBELIEVED: "A stated cost of 0, or below a fiftieth of the median: that of verified agents, where five "
    "state a cost. Of an agent that is not verified also a cost below a cent a run. It is not used.",
    "ICC": "How alike repeated trials of a task are, from 0 to 1, over the tasks that the agent ran; "
    "those that it ran once tell only how tasks differ.",
}
HIDDEN, IN_PART = "hidden", "in part"
BASIS = {
    "per task": "the sum over its tasks",
    "linear": "every task taken to cost the same",
    IN_PART: "from the trials whose cost is stated, which are not all",
    "not stated": "not stated",
    HIDDEN: "hidden by the operator's policy",
}
CHOSEN_TASKS = "tasks chosen for the agent"  # the source of an interval
IMPLAUSIBLE = 50  # a cost below the median's 50th is not believed
MIN_COST = 0.01  # of a run that nobody verified, in US dollars
N_VERIFIED = 5  # verified agents from which on the others are judged by them
TRUST = {"self_reported": "self-reported", "logs": "logs linked", "verified": "verified"}
TRUST_MEANS = {
    "self_reported": "Stated by the submitter, without logs.",
    "logs": "Every submission links logs or trajectories. The links are stated by the submitter, not read.",
    "verified": "Loaded or confirmed by an operator.",
}
HEADING = {"logs": "agents with logs", "verified": "verified agents"}  # by the level of a headline
NOT_HEADING = {"logs": "without logs", "verified": "not verified"}
ZERO = "outcomes that are missing or invalid count as failures"
Key = TypeVar("Key")


def first_names(names: Sequence[str], n: int = 3) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - n} more" if len(names) > n else ""
    return f"{', '.join(names[:n])}{more}"


def sentence(text: str) -> str:
    """Begin with a capital and end with a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else ""


def clause(text: str) -> str:
    """Begin as after a colon, with a small letter unless the first word is an abbreviation; no full stop."""
    is_word = text[1:2].islower() or text[1:2] == " "
    return f"{text[:1].lower() if is_word else text[:1]}{text[1:].removesuffix('.')}"


def percent(value: float) -> str:
    """Return 86.6 for 0.8659; the same for all values that agree to 1e-9."""
    return f"{round(100 * round(value, 9), 1) + 0.0:.1f}".replace("-", "−")


def money(amount: float) -> str:
    """Return $0.29 for 0.294, $10.4 for 10.42, $1,686 for 1686.2."""
    if abs(amount) >= 100:
        return f"${amount:,.0f}"
    return f"${amount:.1f}" if abs(amount) >= 10 else f"${amount:.2f}"


def tasks_of(board: Standings, target: str) -> str:
    """Return the task set of a target, as it follows every score."""
    return task_set(target, board.targets[target].n_tasks)


def task_set(target: str, n_tasks: int) -> str:
    """Return the 20 tasks of the subset, all 80 tasks, tasks like these 80; the one task, where n is 1."""
    return ONE_TASK[target] if n_tasks == 1 else TARGETS[target].format(n=f"{n_tasks:,}")


def in_order(board: Standings, target: str = "") -> list[Line]:
    """Return the agents by rank for a target, names inside ties, unranked ones last by condition and name."""
    target = target or board.target
    return sorted(
        board.agents,
        key=lambda line: (
            line.at[target].rank is None,
            line.at[target].rank or 0,
            line.condition,
            line.agent,
        ),
    )


def in_headlines(board: Standings, line: Line) -> bool:
    """Whether an agent can be checked as far as headlines need, and is not recalled."""
    return at_least(line.trust, board.headline_from) and not is_recalled(line)


def is_recalled(line: Line) -> bool:
    """Whether it stands on the podium by an estimate, and its remaining tasks are awaited."""
    return "recalled" in line.marks


def headline_agents(board: Standings) -> str:
    """Name the agents that headlines are made from, where others are ranked too."""
    named = HEADING.get(board.headline_from, "agents")
    return f"{named} that are not recalled" if any(map(is_recalled, board.agents)) else named


def tells_trust(board: Standings) -> bool:
    """Whether some agent is not verified, so that every one has a mark of trust."""
    return any(line.trust != "verified" for line in board.agents)


def at_least(trust: str, level: str) -> bool:
    """Whether outcomes can be checked as far as a level asks."""
    levels: Sequence[str] = get_args(Trust)
    return levels.index(trust) >= levels.index(level)


def more_versions(board: Standings, target: str) -> dict[str, str]:
    """Return 19 more versions: −4.3 points, by the agent whose line they share for a target."""
    lowered = {line.agent: line.at[target].correction for line in board.agents}
    return {
        agent: f"{n - 1} more version{'s' * (n > 2)}"
        + f": −{percent(lowered[agent])} points" * (lowered[agent] > 0)
        for agent, n in n_versions(board, target).items()
    }


def n_versions(board: Standings, target: str) -> dict[str, int]:
    """Return how many versions share the line of an agent for a target, itself among them."""
    n_others = Counter(line.at[target].folded_under for line in board.agents)
    n_others.update({line.agent: line.at[target].n_taken_back for line in board.agents})
    return {agent: n + 1 for agent, n in n_others.items() if agent and n}


def versions_text(board: Standings, target: str) -> str:
    """Explain the lines of several versions, and by how much their scores are lowered."""
    n_of = n_versions(board, target)
    lowered = [at.correction for line in board.agents if (at := line.at[target]).correction > 0]
    if not lowered:
        return sentence(MARKS["versions"])
    n, points = _span([*n_of.values()], str), _span(lowered, percent)
    best = f"the best of {n}" if n.isdecimal() else "the best"
    others = " Scores on other tasks are lowered in the same way." if board.subset else ""
    return (
        f"Best of {n} versions that do not clearly differ. The score is lowered by {points} points, the luck "
        f"of picking {best}.{others}"
    )


def _span(values: Sequence[Any], text: Callable[[Any], str]) -> str:
    """4, 2 to 6."""
    return " to ".join(dict.fromkeys(text(end(values)) for end in (min, max)))


def leaves_open(at: AtTarget) -> bool:
    """Whether some of its outcomes are missing, and not all."""
    return at.n_missing > 0 and at.n_valid > 0


def cost_text(line: Line) -> str:
    """Return $12.4, ~$12.4 where a run of all tasks is reckoned from a part of them."""
    sign = "~" if is_reckoned(line) else ""
    return "" if line.cost_usd is None else f"{sign}{money(line.cost_usd)}"


def is_reckoned(line: Line) -> bool:
    """Whether its cost of all tasks rests on a part of them, or of its trials."""
    is_of_subset = line.cost_basis == "linear" and line.how not in ("measured", "completed")
    return is_of_subset or line.cost_basis == IN_PART


def costs(board: Standings) -> dict[str, float]:
    """Return the costs that are believed, by agent."""
    return believed(
        {line.agent: line.cost_usd for line in board.agents if line.cost_usd is not None},
        in_part=_in_part(board),
        verified={line.agent for line in board.agents if line.trust == "verified"},
    )


def believed(
    costs: Mapping[Key, float], *, in_part: Collection[Key], verified: Collection[Key]
) -> dict[Key, float]:
    """Return those of the costs of a run of all tasks that are plausible beside those of whole runs.

    costs: US dollars.
    in_part, verified: agents whose cost is stated of a part of their trials; agents that are verified.
    """
    whole = [key for key in costs if key not in in_part] or list(costs)
    of_verified = [key for key in whole if key in verified]
    usual = of_verified if len(of_verified) >= N_VERIFIED else whole
    least = median([costs[key] for key in usual] or [0.0]) / IMPLAUSIBLE
    return {
        key: cost
        for key, cost in costs.items()
        if cost > 0 and cost >= (least if key in verified else max(least, MIN_COST))
    }


def _in_part(board: Standings) -> set[str]:
    return {line.agent for line in board.agents if line.cost_basis == IN_PART}


def whole_costs(board: Standings) -> dict[str, float]:
    """Return the believed costs that agents are compared by: not those stated of some of the trials alone."""
    in_part = _in_part(board)
    return {agent: cost for agent, cost in costs(board).items() if agent not in in_part}


def method_name(method: str) -> str:
    """Return how an error was found, in two or three words."""
    return METHOD_NAMES.get(method, method)
