"""What words of a board mean, and how its figures are set, rounded for display. Nothing heavy is imported."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar, get_args

from selection.schema.board import AtTarget, Line, Standings, Trust

TARGETS = {"full": "all {n} tasks", "subset": "the {n} ranking tasks", "domain": "tasks like these {n}"}
ONE_TASK = {"subset": "the one ranking task", "full": "the one task", "domain": "tasks like this one"}
OF_ESTIMATES = "; for an estimated score, the score of one full run"
COVERS = {
    "subset": "the agent's mean score on the ranking tasks over many runs; ranks and ties are for these "
    "tasks only",
    "full": f"the agent's mean score over many full runs{OF_ESTIMATES}",
    "domain": "the agent's mean score on tasks like these; the benchmark counts as a sample of them",
}
NOBODY_RANKED = "no agent is ranked on these tasks"
NO_SUBSET = "no ranking tasks are in use"
MARKS = {
    "estimated": "did not run all tasks; the score on all tasks is estimated",
    "chosen tasks": "ran batches of tasks chosen for this agent; the score on all tasks is estimated, and "
    "the agent is not ranked on other tasks",
    "recalled": "is in the top places by an estimate and must run the remaining tasks. Until then it is not "
    "called the best; after the deadline it loses its rank",
    "completed": "a few of its results are missing and are estimated from the others; the intervals include "
    "this error",
    "new scaffold": "its scaffold is new; too few others are known, so the interval does not include this",
    "incomplete": "has too few results to be ranked on all tasks",
    "elsewhere": "ran under conditions that this board does not compare, or too few tasks under those that "
    "it compares",
    "withheld": "not ranked until an operator approves",
    "versions": "best of several versions that do not clearly differ; the score is corrected for picking the "
    "best",
    "folded": "shares another version's row: not clearly better (95%)",
    "flagged": "an operator should check something",
    "backdated": "dated long before it was submitted; an operator accepted the date",
    "imprecise": "only the month or the year of its date is known",
}
BORROWED = "borrowed noise"
BORROWED_NOTE = "run-to-run noise is borrowed: {}"
METHODS = {
    BORROWED: "uses the run-to-run noise of another benchmark; assumes that it is as large here",
    "repeated trials": "computed from repeated trials of each task",
    "variance function": "for agents without repeated trials: computed from the others; assumes that they "
    "vary as much",
    "upper bound": "with one trial per task, this counts all variation as trial noise; the true "
    "error is probably smaller",
    "neyman": "computed from the spread of differences over tasks; this is an upper bound",
    "domain": "computed from the spread over tasks, treated as a sample",
    "clusters": "computed from the spread over groups of tasks, treated as a sample",
    "strata": "computed from the spread over tasks within groups, treated as a sample",
    "calibration": "for estimated agents (~): computed from how far estimates of known full scores were off",
    "resampled tasks": "a bootstrap over tasks, for all pairs at once",
    "errors of scores": "simulated errors of all scores, for all pairs at once",
    "errors of scores and resampled tasks": "simulated errors of scores, and a bootstrap over tasks for "
    "agents without repeated trials, for all pairs at once",
}
METHOD_NAMES = {  # others are words already
    "neyman": "spread over tasks",
    "domain": "tasks as a sample",
    "clusters": "groups of tasks as a sample",
    "strata": "tasks within groups as a sample",
}
MEASURED = {
    "run": "How much an agent varies from run to run was measured",
    "prompt": "The effect of prompts was measured",
    "judge": "The effect of judges was measured",
}
VARIES = {
    MEASURED["run"]: "from run to run",
    MEASURED["prompt"]: "with the wording of the prompt",
    MEASURED["judge"]: "with the judge",
}
UNMEASURED = {
    "trials": "how much the trials of one task vary: no agent has two valid trials of a task in one setting",
    "run": "how much full runs of an agent differ beyond trial noise",
    "prompt": "how much agents depend on the wording of the prompt",
    "judge": "how much agents depend on the judge",
}
SHORT_UNMEASURED = {
    UNMEASURED["prompt"]: "prompts",
    UNMEASURED["judge"]: "judges",
    UNMEASURED["run"]: "dates",
}
PHASES = {
    "cold_start": "Too few agents have run all tasks to choose ranking tasks, so every agent runs all tasks.",
    "provisional": "The ranking tasks are a preview. They are chosen again as more agents finish.",
    "ongoing": "The ranking tasks are fixed.",
    "revalidating": "Agents run all tasks until it is clear that the ranking tasks still work.",
    "saturated": "The best agents pass nearly every task, so ranks say little.",
    "unsuited": "No ranking tasks are in use: agents are ranked on all tasks.",
}
EVERYTHING = "Every agent runs all tasks."
TASKS_OF_NEW_AGENT = {  # what a new agent runs, by assignment and phase; in other phases the phase says it
    "staged": {
        **dict.fromkeys(
            ("provisional", "ongoing"),
            "A new agent first runs some ranking tasks, then more tasks in batches.",
        ),
        "unsuited": "A new agent first runs tasks with a pass rate near 50%, then more tasks in batches.",
    },
    "subset": {
        "provisional": "Until they are fixed, every agent runs all tasks.",
        "ongoing": "A new agent runs only the ranking tasks. Its score on all tasks is estimated from them.",
        "unsuited": EVERYTHING,
    },
    "full": dict.fromkeys(("provisional", "ongoing", "unsuited"), EVERYTHING),
}
UNBELIEVED = "?"  # in the place of a cost
TIED = (
    "neither clearly better nor clearly worse (95%, for all pairs at once). Two agents can be tied with a "
    "third and still differ clearly."
)
LEGEND = {
    "Rank": "One plus the number of agents with a better score.",
    "95% rank range": "The ranks that an agent can have (95%).",
    "95% interval": "95% interval of the score.",
    "SE": "Standard error of the score, in points.",
    "naive": "√(p(1 − p)/n), p the score and n the number of tasks. Many leaderboards print it. It ignores "
    "repeated trials; with one trial per task, SE is at most about this.",
    "Could be the best": "The best agent is one of these (95%).",
    "Tied with": f"Rows that are {TIED}",
    "Ties": f"Number of agents that are {TIED}",
    "~": "Estimated from a part of the tasks or trials. A number without ~ is measured.",
    "Possible score %": "The score if all missing results failed, and if all passed.",
    "≤": "Upper bound, because each task has one trial.",
    UNBELIEVED: "Implausible cost, not used. It is 0 or below a fiftieth of the median. The median is that "
    "of verified agents if five state a cost. Costs of other agents are also implausible below one cent per "
    "full run.",
    "ICC": "Intraclass correlation: how alike repeated trials of a task are, from 0 to 1.",
}
HIDDEN, IN_PART = "hidden", "in part"
BASIS = {
    "per task": "the sum over its tasks",
    "linear": "assuming that every task costs the same",
    IN_PART: "from the trials that state a cost, not all",
    "not stated": "not stated",
    HIDDEN: "hidden by the operator's policy",
}
CHOSEN_TASKS = "tasks chosen for the agent"  # the source of an interval
ESTIMATE_NEEDS = "an estimate needs"  # full runs, as a reason why few missing results are not estimated
CALIBRATED = "full runs cut down to the same tasks"  # that of an estimate from all tasks that the agent ran
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
ZERO = "missing and invalid results count as failures"
Key = TypeVar("Key")


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


def error_text(error: float) -> str:
    """Return 4.2 for 0.042, in points; under 0.05 where that would be 0.0."""
    text = percent(error)
    return "under 0.05" if text == "0.0" else text


def rank_text(rank: int, n_at: Mapping[int | None, int]) -> str:
    """Return 6, 6= where several agents have this rank; `n_at`: how many have each."""
    return f"{rank:,}{'=' if n_at[rank] > 1 else ''}"


def money(amount: float) -> str:
    """Return $0.29 for 0.294, $10.42 for 10.42, $1,686 for 1686.2, under $0.01 for 0.004."""
    if 0 < abs(amount) < 0.005:
        return "under $0.01"
    return f"${amount:,.0f}" if abs(amount) >= 100 else f"${amount:.2f}"


def tasks_of(board: Standings, target: str) -> str:
    """Return the task set of a target, as it follows every score; 13 of 20 tasks where tasks are left out."""
    n = board.targets[target].n_tasks
    if target == "full" and board.n_left_out:
        return f"{n:,} of {n + board.n_left_out:,} tasks"
    return task_set(target, n)


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
        f"Best of {n} versions that do not clearly differ. The score is lowered by {points} points to "
        f"correct for picking {best}.{others}"
    )


def _span(values: Sequence[Any], text: Callable[[Any], str]) -> str:
    """4, 2 to 6."""
    return " to ".join(dict.fromkeys(text(end(values)) for end in (min, max)))


def half_width(at: AtTarget) -> float | None:
    """Return the longer side of the 95% interval of a score, as 0% or 100% may cut one; None without any."""
    if at.score is None or at.lower is None or at.upper is None:
        return None
    return max(at.upper - at.score, at.score - at.lower)


def leaves_open(at: AtTarget) -> bool:
    """Whether some of its outcomes are missing, and not all."""
    return at.n_missing > 0 and at.n_valid > 0


def cost_text(line: Line) -> str:
    """Return $12.40, ~$12.40 where a run of all tasks is reckoned from a part of them."""
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
