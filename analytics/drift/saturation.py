"""Whether the subset is solved, and the benchmark with it.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §6. Wilson, *Probable inference*, JASA 1927.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from analytics.arrays import DECIMALS, FloatArray
from analytics.differences.estimates import wilson
from analytics.drift.monitor import MIN_AGENTS, Monitor, State, declare, insufficient, same_length
from analytics.text import counted

NAME = declare("saturation", "add harder tasks, or close the benchmark", runs_help="never")
MORE_TRIALS = "repeat trials: run the best agents again on the ranking tasks"
SATURATED, SOLVED, HALF = 0.90, 0.95, 0.5
N_SURE = 50
WARN_LEVEL, ALERT_LEVEL = 0.05, 0.01
ANOTHER_SUBSET = "choose new ranking tasks from the latest full runs"


@dataclass(frozen=True)
class FullRunScore:
    """The score of one agent over all tasks.

    lower: of a measured score Wilson's limit at 99%, one-sided; of an estimated one that of its 95% interval.
    """

    score: float
    lower: float
    n_tasks: int
    is_estimated: bool = False

    @classmethod
    def measured(cls, score: float, n_tasks: int, n_trials: float, omega: float | None) -> "FullRunScore":
        """Return that of an agent with R trials of each of the tasks; ω̂ is over all of them."""
        lower = wilson(score, _events(n_tasks, n_trials, omega), 1 - ALERT_LEVEL)[0]
        return cls(score, lower, n_tasks)


def saturation(
    subset_means: FloatArray,
    n_trials: FloatArray,
    k: int,
    omega: float | None,
    agents: Sequence[str],
    latest: FloatArray,
) -> Monitor:
    """Lower Wilson bounds of the best agent's mean over S, and the share of S that the latest agents solve.

    n_trials, latest: R of a task, (n_agents,); mean outcomes, (n_latest, k), of 20 agents at most.
    """
    same_length(subset_means, n_trials, agents)
    if not len(agents) or k < 1:
        return insufficient(NAME, "no agent has run the ranking tasks")
    best = int(np.argmax(np.round(subset_means, DECIMALS)))
    p, n = float(subset_means[best]), _events(k, float(n_trials[best]), omega)
    solved = None
    if len(latest) >= MIN_AGENTS and latest.size:
        counts = np.count_nonzero(~np.isnan(latest), axis=0)
        above = np.nansum(latest, axis=0) > SOLVED * counts + 1e-9
        solved = float(np.mean(above[counts > 0])) if counts.any() else None
    evidence = {"agent": agents[best], "mean": p, "n": n, "omega": omega, "share_of_tasks_above_95": solved}
    shown = ""
    if solved is not None:
        solved_tasks = f"{solved:.1%} of the tasks are" if solved else "no task is"
        shown = f"; {solved_tasks} passed by more than {SOLVED:.0%} of the latest {len(latest)} agents"
    half = solved is not None and solved >= HALF
    if n < N_SURE:
        reason = f"{counted(k, 'task')} give {n:.0f} independent outcomes; {N_SURE} are needed{shown}"
        if half:
            return Monitor(NAME, "warn", solved, HALF, reason, evidence)
        return insufficient(NAME, reason, evidence, to_do=MORE_TRIALS)
    warned, alerted = (wilson(p, n, 1 - level)[0] for level in (WARN_LEVEL, ALERT_LEVEL))
    state: State = "alert" if alerted >= SATURATED else "warn" if warned >= SATURATED or half else "ok"
    bounded = f"at least {alerted:.1%} with 99% confidence"
    if warned >= SATURATED > alerted:
        bounded = f"at least {warned:.1%} with 95% confidence, {alerted:.1%} with 99%"
    evidence |= {"lower_95": warned, "lower_99": alerted}
    reason = f"{agents[best]} scores {p:.1%} on {counted(k, 'task')}, {bounded}{shown}"
    return Monitor(NAME, state, alerted, SATURATED, reason, evidence)


def of_benchmark(monitor: Monitor, full: FullRunScore) -> Monitor:
    """Return what is left of a saturated subset where the full score of its best agent is known."""
    if monitor.state not in ("warn", "alert") or full.lower >= SATURATED:
        return monitor
    estimated = "an estimated " if full.is_estimated else ""
    reason = (
        f"{monitor.reason}; on all {full.n_tasks:,} tasks {monitor.evidence['agent']} has {estimated}"
        f"{full.score:.1%}, at least {full.lower:.1%}, so the benchmark is not solved"
    )
    evidence = {**monitor.evidence, "full_score": full.score, "full_lower": full.lower}
    evidence["subset_alone"] = monitor.state == "alert"
    return replace(monitor, state="warn", reason=reason, evidence=evidence, to_do=ANOTHER_SUBSET)


def _events(k: int, n_trials: float, omega: float | None) -> float:
    """k·R/ω̂, at most 10⁹: without any noise the mean is exact."""
    return k * n_trials / max(1.0 if omega is None else omega, 1e-9 * k * n_trials)
