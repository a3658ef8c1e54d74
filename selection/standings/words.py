"""Sentences: what a board says of itself, worded once for every page, table, file and message.

Nothing is computed here but counts of what stands in `Standings`, and nothing heavy is imported. Numbers are
rounded for display. Agents' names are data: who shows them escapes them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from selection.standings.lines import AtTarget, Line, Standings

TARGETS = {
    "subset": "the {n} tasks of the subset",
    "full": "all {n} tasks",
    "domain": "tasks like these {n}",
}
COVERS = {
    "subset": "the agent's expected mean on the tasks of the subset; order and ties on these tasks alone",
    "full": "the agent's expected mean on all tasks, measured or estimated",
    "domain": "the agent's expected mean on tasks like these, of which the benchmark is taken for a sample",
}
MIXED_NOTE = "estimated scores share one calibration, and their errors count as independent"
NOBODY_RANKED = "no agent is ranked on these tasks"
NO_SUBSET = "every agent runs all tasks, so there is no subset to speak of"
MARKS = {
    "estimated": "has run the subset alone: its score on all tasks is estimated from it",
    "completed": "at most 5% of its outcomes were lost by the harness; what is missing is completed from the "
    "others, and the error of that is in its intervals",
    "linked": "ranked under an earlier subset: what entered since is completed from what it has run, and the "
    "error of that is in its intervals",
    "incomplete": "listed without a rank",
    "withheld": "not ranked until an operator approves",
    "flagged": "an operator should look at something",
    "backdated": "dated long before its delivery; an operator let it in",
    "imprecise": "dated to the month or the year alone",
}
METHODS = {
    "repeated trials": "from repeated trials of each task",
    "variance function": "from how much the trials of agents with repeats vary; assumes that this agent's "
    "vary as much",
    "upper bound": "one trial a task: an upper bound",
    "neyman": "from the spread of differences over tasks: an upper bound",
    "domain": "from the spread over tasks, which count as a sample",
    "calibration": "from how far estimates are off for agents whose full score is known",
    "resampled tasks": "tasks are drawn anew, the same ones for all pairs",
    "errors of all scores": "errors of measured and of estimated scores, all pairs at once",
}
UNMEASURED = {
    "trials": "how much the trials of one task vary: every agent has one trial per task and setting",
    "run": "how much an agent varies from run to run beyond its trials",
    "prompt": "how much agents depend on the wording of the prompt",
    "judge": "how much agents depend on the judge",
}
LEGEND = {
    "Rank": "1 + the number of agents with a better score.",
    "May hold": "The ranks that an agent may hold, all of them right at once with 95% confidence.",
    "95%": "The interval of the score.",
    "± SE": "Standard error of the score in points.",
    "naive": "√(p(1 − p)/n), as most boards print it. It takes each task for one toss of a coin and answers "
    "another question, so that it may be larger or smaller.",
    "Ties": "Agents that it is neither better nor worse than, at 95% for all pairs at once. Ties form no "
    "groups: A may be tied with B, and B with C, while A is better than C.",
    "~": "Estimated from the subset; the other scores are measured.",
    "≤": "The standard error is an upper bound: one trial a task.",
    "ICC": "How alike repeated trials of a task are, from 0 to 1, over the tasks that the agent repeated.",
}


def counted(n: int, noun: str) -> str:
    """1 agent, 2 agents, 21,600 tasks."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def first_names(names: Sequence[str], n: int = 3) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - n} more" if len(names) > n else ""
    return f"{', '.join(names[:n])}{more}"


def sentence(text: str) -> str:
    """A capital first, a full stop last."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else ""


def percent(value: float) -> str:
    """0.8659 is 86.6."""
    return f"{round(100 * value, 1) + 0.0:.1f}".replace("-", "−")


def money(amount: float) -> str:
    """0.294 is $0.29, 10.42 is $10.4, 1686.2 is $1,686."""
    if abs(amount) >= 100:
        return f"${amount:,.0f}"
    return f"${amount:.1f}" if abs(amount) >= 10 else f"${amount:.2f}"


def notices(board: Standings) -> tuple[str, ...]:
    """What the reader must know before the ranks."""
    return ()
