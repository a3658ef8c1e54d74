"""Drift: signs that world, harness or agents have moved since the subset was chosen.

Each monitor is a function of arrays in time order; it looks at the past only and answers a `Monitor`: a
statistic, its threshold, evidence in names and dates, and a state. `insufficient` is a state of its own: too
little was seen to say `ok`.

Monitors
--------
====================  =============================================  =====================================
monitor               statistic                                      warn, alert
====================  =============================================  =====================================
rank fidelity         ρ and skill of the latest 20 sampled full runs  alert ρ < .75 or skill < .5, from 12
                                                                     runs; warn lower bound < .75, from 20
capability jump       CUSUM of normal scores of in-band pass rates   alert above 3.5
band erosion          share of the subset that left the band         warn > 25%, alert > 50%
calibration           e-value of missed 95% intervals, p₀ = .05      warn 20, alert 100
calibration residuals CUSUM of y − ŷ, both sides                     alert above 4.17
saturation            lower Wilson bound of the best mean over S     alert ≥ 95%
scaffold novelty      share of the latest 20 agents with a new one   warn > 50%, from 10 agents
harness failures      e-value of the invalid share                   warn 20, alert 100
run-to-run variance   permutation test at looks 10, 20, 40, …        alert p ≤ .01·2^−j
cost per task         CUSUM, both sides                              alert above 4.17
====================  =============================================  =====================================

Without any change a CUSUM of normal scores alarms once in about 200 agents, each e-value at most once in 100
benchmarks, however often it is looked at, and the permutation test in at most 1%, all looks together.

Not done here
-------------
Nothing is chosen, fitted or drawn from a database: S, ŷ and intervals are arguments. No alert is opened.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §5.1 and §6 (fidelity .75, erosion, saturation). `cusum.py`,
`e_value.py` and `fidelity.py` give theirs. Wilson, *Probable inference*, JASA 1927.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from analytics.arrays import FloatArray, Mask
from analytics.drift.cusum import RUN_LENGTH, Cusum, cusum
from analytics.drift.e_value import ALERT, WARN, largest, log_e_values, upper_share
from analytics.drift.fidelity import rank_fidelity
from analytics.errors import CoreError

State = Literal["ok", "warn", "alert", "insufficient"]

N_LATEST = 20
N_FIDELITY_ALERT, N_FIDELITY_WARN = 12, 20
RHO_LIMIT, SKILL_LIMIT = 0.75, 0.5
EROSION_WARN, EROSION_ALERT = 0.25, 0.50
EDGE_TOLERANCE = 1e-9
MISSES_PROMISED = 0.05
SATURATED = 0.95
NOVELTY_WARN = 0.5
FIRST_LOOK, LOOK_LEVEL = 10, 0.01
N_PERMUTATIONS = 20_000
N_RERUNS = 8


class SeriesMismatch(CoreError):
    """Series of one monitor differ in length."""


@dataclass(frozen=True)
class Monitor:
    """What one monitor says.

    Attributes
    ----------
    name : str
    state : {"ok", "warn", "alert", "insufficient"}
    statistic, threshold : float or None
        What was computed, and what it may not pass; None with `insufficient`.
    reason : str
        The state as a sentence with its numbers.
    evidence : mapping
        Plain values: agents, tasks, dates, counts.
    false_alerts_per_agent : float
        Expected false alerts for each new agent without any change; 0 where the bound holds over all time.
    """

    name: str
    state: State
    statistic: float | None
    threshold: float | None
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    false_alerts_per_agent: float = 0.0


def insufficient(name: str, reason: str) -> Monitor:
    """Return the monitor that has seen too little to say more."""
    return Monitor(name, "insufficient", None, None, reason)


def fidelity(
    subset_means: FloatArray, full_scores: FloatArray, rho_null: float | None, agents: Sequence[str]
) -> Monitor:
    """Rank fidelity on full runs of agents drawn at random, or complete when they came, in time order.

    Parameters
    ----------
    subset_means, full_scores : float arrays, (n_runs,)
        0 to 1.
    rho_null : float or None
        ρ₀ of the subset.
    agents : sequence of str, (n_runs,)

    Raises
    ------
    SeriesMismatch
    """
    name = "rank fidelity"
    _same_length(subset_means, full_scores, agents)
    means, scores, seen = subset_means[-N_LATEST:], full_scores[-N_LATEST:], list(agents[-N_LATEST:])
    if len(seen) < N_FIDELITY_ALERT:
        return insufficient(
            name, f"{len(seen)} full runs since the subset was chosen; {N_FIDELITY_ALERT} are needed"
        )
    found = rank_fidelity(means, scores, rho_null)
    evidence = {"agents": seen, "skill": found.skill, "lower": found.lower, "rho_null": rho_null}
    if found.rho is None:
        return Monitor(name, "insufficient", None, None, dict(found.notes)["rho"], evidence)
    state = _fidelity_state(found.rho, found.skill, found.lower, len(seen))
    shown = f"rho {found.rho:.3f}" + (f", skill {found.skill:.3f}" if found.skill is not None else "")
    return Monitor(name, state, found.rho, RHO_LIMIT, f"{shown} on {len(seen)} full runs", evidence)


def _fidelity_state(rho: float, skill: float | None, lower: float | None, n: int) -> State:
    if rho < RHO_LIMIT or (skill is not None and skill < SKILL_LIMIT):
        return "alert"
    unsure = n >= N_FIDELITY_WARN and lower is not None and lower < RHO_LIMIT
    return "warn" if unsure else "ok"


def capability_jump(subset_means: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """CUSUM of the agents' means over S, rising side; steady progress alarms too, and should.

    Parameters
    ----------
    subset_means : float array, (n_agents,)
        In time order.
    agents, dates : sequences, (n_agents,)

    Raises
    ------
    SeriesMismatch, SeriesMalformed
    """
    _same_length(subset_means, agents, dates)
    return _chart(
        "capability jump", cusum(subset_means.tolist()), agents, dates, "pass rates in the band rose"
    )


def residuals(values: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """CUSUM of y − ŷ on both sides, of agents calibrated before their full run, in time order."""
    _same_length(values, agents, dates)
    chart = cusum(values.tolist(), two_sided=True)
    return _chart(
        "calibration residuals", chart, agents, dates, "full scores moved against their calibration"
    )


def cost_per_task(costs: FloatArray, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """CUSUM of mean cost per task on both sides, (n_agents,), in time order."""
    _same_length(costs, agents, dates)
    return _chart(
        "cost per task", cusum(costs.tolist(), two_sided=True), agents, dates, "cost per task moved"
    )


def _chart(
    name: str, chart: Cusum, agents: Sequence[str], dates: Sequence[date | None], what: str
) -> Monitor:
    if not chart.alarms and chart.n_reference <= FIRST_LOOK:
        return insufficient(name, f"{len(agents)} agents in time order; more than {FIRST_LOOK} are needed")
    alarms = [
        {
            "agent": agents[alarm.at],
            "date": _iso(dates[alarm.at]),
            "since": agents[alarm.since],
            "rising": alarm.rising,
        }
        for alarm in chart.alarms
    ]
    # An alarm stands until agents have come to see whether the chart is quiet again.
    standing = bool(alarms) and chart.n_reference <= FIRST_LOOK
    last = f"; last alarm at {alarms[-1]['agent']}" if alarms else ""
    reason = (
        f"{what}: see {alarms[-1]['agent']}" if standing else f"the chart stands at {chart.level:.2f}{last}"
    )
    return Monitor(
        name,
        "alert" if standing else "ok",
        chart.level,
        chart.threshold,
        reason,
        {"alarms": alarms, "n_agents": len(agents)},
        1 / RUN_LENGTH,
    )


def band_erosion(pass_rates: FloatArray, tasks: Sequence[str], lo: float, hi: float) -> Monitor:
    """Share of the subset's active tasks whose windowed pass rate has left the band it was chosen by.

    Parameters
    ----------
    pass_rates : float array, (k,)
        Of the latest complete agents; NaN where none has a valid outcome.
    tasks : sequence of str, (k,)
    lo, hi : float
        Edges, both inside.

    Raises
    ------
    SeriesMismatch
    """
    name = "band erosion"
    _same_length(pass_rates, tasks)
    rated = ~np.isnan(pass_rates)
    if not rated.any():
        return insufficient(name, "no task of the subset has a pass rate")
    out = rated & ((pass_rates < lo - EDGE_TOLERANCE) | (pass_rates > hi + EDGE_TOLERANCE))
    share = float(out.sum() / rated.sum())
    state: State = "alert" if share > EROSION_ALERT else "warn" if share > EROSION_WARN else "ok"
    left = [tasks[j] for j in np.flatnonzero(out).tolist()]
    reason = f"{len(left)} of {int(rated.sum())} tasks have left {lo:.0%} to {hi:.0%}"
    return Monitor(name, state, share, EROSION_WARN, reason, {"tasks": left})


def calibration(missed: Mask, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """Weigh full scores outside the 95% interval that was published before they were known, by e-value.

    Parameters
    ----------
    missed : bool array, (n_agents,)
        In time order.
    agents, dates : sequences, (n_agents,)

    Raises
    ------
    SeriesMismatch
    """
    _same_length(missed, agents, dates)
    if not len(agents):
        return insufficient("calibration", "no full run of an agent with a published interval")
    n = np.arange(1, len(agents) + 1)
    value, first = _excess(np.cumsum(missed), n, MISSES_PROMISED)
    evidence = {
        "missed": [agents[i] for i in np.flatnonzero(missed).tolist()],
        "first_alert": _at(first, agents, dates),
    }
    reason = f"{int(missed.sum())} of {len(agents)} intervals missed; 5% promised"
    return Monitor("calibration", _e_state(value), value, WARN, reason, evidence)


def harness_failures(
    n_invalid: npt.NDArray[np.int64],
    n_trials: npt.NDArray[np.int64],
    reference: tuple[int, int],
    agents: Sequence[str],
    dates: Sequence[date | None],
) -> Monitor:
    """Weigh invalid trials against the upper 90% limit of their share among reference agents, by e-value.

    Parameters
    ----------
    n_invalid, n_trials : int arrays, (n_agents,)
        Of each agent after the reference, in time order.
    reference : (int, int)
        Invalid trials and trials of the reference agents.
    agents, dates : sequences, (n_agents,)

    Raises
    ------
    SeriesMismatch, ShareMalformed
    """
    name = "harness failures"
    _same_length(n_invalid, n_trials, agents, dates)
    if reference[1] == 0 or not len(agents):
        return insufficient(name, "no trials before, or none since, the subset was chosen")
    promised = upper_share(*reference)
    value, first = _excess(np.cumsum(n_invalid), np.cumsum(n_trials), promised)
    reason = f"{int(n_invalid.sum())} of {int(n_trials.sum())} trials invalid; up to {promised:.2%} before"
    return Monitor(name, _e_state(value), value, WARN, reason, {"first_alert": _at(first, agents, dates)})


def _excess(missed: npt.NDArray[Any], n: npt.NDArray[Any], promised: float) -> tuple[float, int | None]:
    """Return the largest E where the share lay above the promised one, and the first look at an alert."""
    above = missed > promised * n
    logs = np.where(above, log_e_values(missed, n, promised), 0.0)
    alerts = np.flatnonzero(logs >= math.log(ALERT))
    return largest(logs), int(alerts[0]) if alerts.size else None


def _e_state(value: float) -> State:
    return "alert" if value >= ALERT else "warn" if value >= WARN else "ok"


def saturation(subset_means: FloatArray, k: int, agents: Sequence[str], pass_rates: FloatArray) -> Monitor:
    """Lower Wilson bound of the best agent's mean over S, at a one-sided level of .05/n.

    Parameters
    ----------
    subset_means : float array, (n_agents,)
        Of the ranked agents.
    k : int
        Tasks of S; repeated trials are not counted, since tasks are what saturates.
    agents : sequence of str, (n_agents,)
    pass_rates : float array, (k,)
        For the share of tasks above 95%, told as evidence.

    Raises
    ------
    SeriesMismatch
    """
    _same_length(subset_means, agents)
    if not len(agents) or k < 1:
        return insufficient("saturation", "no agent is ranked")
    best = int(np.argmax(subset_means))
    bound = wilson_lower(float(subset_means[best]), k, 0.05 / len(agents))
    easy = float(np.mean(pass_rates[~np.isnan(pass_rates)] > SATURATED)) if pass_rates.size else None
    reason = f"{agents[best]} has {subset_means[best]:.1%}, at least {bound:.1%}, of {k} tasks"
    evidence = {"agent": agents[best], "share_of_tasks_above_95": easy}
    return Monitor("saturation", "alert" if bound >= SATURATED else "ok", bound, SATURATED, reason, evidence)


def wilson_lower(p: float, n: int, alpha: float) -> float:
    """Lower Wilson bound (p + z²/2n − z·√(p(1−p)/n + z²/4n²))/(1 + z²/n), one-sided at `alpha`."""
    z = float(-ndtri(alpha))
    centre, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (centre - spread) / (1 + z * z / n)


def scaffold_novelty(scaffolds: Sequence[str], known: frozenset[str], agents: Sequence[str]) -> Monitor:
    """Share of the latest 20 agents, at least 10, with a scaffold unseen when S was chosen."""
    _same_length(scaffolds, agents)
    latest = list(zip(agents[-N_LATEST:], scaffolds[-N_LATEST:], strict=True))
    if len(latest) < FIRST_LOOK:
        reason = f"{len(latest)} agents since the subset was chosen; {FIRST_LOOK} are needed"
        return insufficient("scaffold novelty", reason)
    new = [agent for agent, scaffold in latest if scaffold not in known]
    share = len(new) / len(latest)
    reason = f"{len(new)} of the latest {len(latest)} agents have a new scaffold"
    return Monitor(
        "scaffold novelty",
        "warn" if share > NOVELTY_WARN else "ok",
        share,
        NOVELTY_WARN,
        reason,
        {"agents": new},
    )


def run_variance(
    reference: FloatArray, since: FloatArray, agents: Sequence[str], rng: np.random.Generator
) -> Monitor:
    """Test by permutation whether trials of one task vary as they do among the reference agents.

    It is looked at after 10, 20, 40, … agents, look j at the level .01·2^−j, so that all looks together
    alarm in at most 1% of histories. The statistic is the difference of the agents' mean variance of a trial.

    Parameters
    ----------
    reference, since : float arrays, (n_reference,), (n_agents,)
        Each agent's variance of trials, averaged over its tasks, before and since, in time order.
    agents : sequence of str, (n_agents,)
    rng : numpy.random.Generator
    """
    name = "run-to-run variance"
    _same_length(since, agents)
    if len(reference) < FIRST_LOOK or len(since) < FIRST_LOOK:
        counts = f"{len(reference)} agents with repeated trials before and {len(since)} since"
        return insufficient(name, f"{counts}; {FIRST_LOOK} each are needed")
    looks = [FIRST_LOOK * 2**j for j in range(int(math.log2(len(since) / FIRST_LOOK)) + 1)]
    tests = [
        (_permutation_p(reference, since[:n], rng), LOOK_LEVEL * 0.5 ** (j + 1)) for j, n in enumerate(looks)
    ]
    p, level = min(tests, key=lambda test: test[0] / test[1])
    alerts = [n for n, (at, limit) in zip(looks, tests, strict=True) if at <= limit]
    reason = f"variance of a trial {np.mean(since):.3f} since, {np.mean(reference):.3f} before; p {p:.2g}"
    evidence = {"first_alert": agents[alerts[0] - 1] if alerts else None, "looks": looks}
    return Monitor(name, "alert" if alerts else "ok", p, level, reason, evidence)


def _permutation_p(reference: FloatArray, since: FloatArray, rng: np.random.Generator) -> float:
    """(1 + #{|difference| ≥ observed}) / (1 + draws)."""
    both, n = np.concatenate([since, reference]), len(since)
    order = rng.permuted(np.tile(np.arange(both.size), (N_PERMUTATIONS, 1)), axis=1)[:, :n]
    sums = both[order].sum(axis=1)
    differences = np.abs(sums / n - (both.sum() - sums) / (both.size - n))
    observed = abs(float(since.mean() - reference.mean()))
    return float(1 + np.count_nonzero(differences >= observed - 1e-12)) / (1 + N_PERMUTATIONS)


def false_alerts_a_year(monitors: Sequence[Monitor], agents_a_year: float) -> float:
    """Add up the false alerts expected in a year of `agents_a_year` new agents, if nothing changes."""
    return sum(m.false_alerts_per_agent for m in monitors) * agents_a_year


@dataclass(frozen=True)
class Rerun:
    """One agent asked for a full run.

    Attributes
    ----------
    agent : int
        Position.
    sampled : bool
        Drawn uniformly at random; only these feed rank fidelity.
    inclusion : float
        π, the probability of being drawn; 1 for the others.
    why : str
    """

    agent: int
    sampled: bool
    inclusion: float
    why: str


def rerun_set(
    since: npt.NDArray[np.intp],
    ties: npt.NDArray[np.intp],
    new_scaffolds: npt.NDArray[np.intp],
    rng: np.random.Generator,
    *,
    n: int = N_RERUNS,
) -> list[Rerun]:
    """Choose the agents of a rerun request: `n` at random, the top ties, one for each new scaffold.

    Parameters
    ----------
    since : int array
        Positions of the agents submitted since activation, of which is drawn.
    ties, new_scaffolds : int arrays
        Positions of agents tied at the top, and of one agent for each new scaffold; asked on top, with π = 1.
    rng : numpy.random.Generator
    n : int
        Drawn, or all of `since` where there are fewer.
    """
    drawn = np.sort(rng.choice(since, min(n, since.size), replace=False)) if since.size else since
    chosen = {int(i): Rerun(int(i), True, min(1.0, n / since.size), "drawn at random") for i in drawn}
    for positions, why in ((ties, "tied at the top"), (new_scaffolds, "the first of its scaffold")):
        for i in positions.tolist():
            chosen.setdefault(i, Rerun(i, False, 1.0, why))
    return [chosen[i] for i in sorted(chosen)]


def _same_length(*series: Any) -> None:
    lengths = sorted({len(one) for one in series})
    if len(lengths) > 1:
        raise SeriesMismatch(f"series of one monitor have lengths {', '.join(map(str, lengths))}")


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _at(position: int | None, agents: Sequence[str], dates: Sequence[date | None]) -> dict[str, Any] | None:
    return None if position is None else {"agent": agents[position], "date": _iso(dates[position])}
