"""E-values for shares that may not exceed what was promised, looked at as often as one likes.

Missed intervals are events; invalid trials of one agent fail together and are bet on agent by agent.

Source: Ville, *Étude critique de la notion de collectif*, 1939. Robbins, *Statistical methods related to the
law of the iterated logarithm*, 1970 (mixtures). Clopper & Pearson, Biometrika 1934 (`upper_share`).
Waudby-Smith & Ramdas, *Estimating means of bounded random variables by betting*, JRSS B 2024.
"""

import math
from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, logsumexp, stdtrit, xlog1py, xlogy

from analytics.arrays import FloatArray, Mask
from analytics.drift.monitor import MIN_AGENTS, Monitor, State, at, declare, insufficient, same_length
from analytics.errors import CoreError
from analytics.text import counted

WARN, ALERT = 20.0, 100.0
MEAN_EXCESS = 0.1
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
DOUBLINGS = np.concatenate([-(2.0 ** np.arange(31, -1, -1)), [0.0], 2.0 ** np.arange(32)])


def log_e_values(n_missed: npt.ArrayLike, n: npt.ArrayLike, promised: float) -> FloatArray:
    """Natural logarithm of E after each look, from misses and events so far, (n_looks,), and p₀."""
    missed, events = np.asarray(n_missed, np.float64), np.asarray(n, np.float64)
    if not 0.0 < promised < 1.0:
        raise CoreError(
            f"a promised share lies strictly between 0 and 1, not at {promised}", code="share_malformed"
        )
    if (missed < 0).any() or (missed > events).any():
        raise CoreError("misses are counted from 0 to the number of events", code="share_malformed")
    within = events - missed
    shares, log_widths = _nodes(missed[:, None], within[:, None], promised)
    ratio = xlogy(missed[:, None], shares / promised) + xlog1py(within[:, None], -shares)
    ratio -= xlog1py(within[:, None], -promised) + (shares - promised) / MEAN_EXCESS
    total = MEAN_EXCESS * -math.expm1(-(1.0 - promised) / MEAN_EXCESS)
    return np.asarray(logsumexp(ratio + log_widths, axis=1) - math.log(total), dtype=np.float64)


def _nodes(missed: FloatArray, within: FloatArray, promised: float) -> tuple[FloatArray, FloatArray]:
    """Shares at which the integrand is taken, and the logarithms of their weights, (n_looks, n_nodes)."""
    # Maximum of ℓ on [p₀, 1]: p²/.1 − p·(n + 1/.1) + s = 0, the smaller root
    rate = 1.0 / MEAN_EXCESS
    b = missed + within + rate
    root = 2.0 * missed / (b + np.sqrt(np.maximum(b * b - 4.0 * rate * missed, 0.0)))
    best = np.asarray(np.clip(root, promised, 1.0), dtype=np.float64)
    inner = np.clip(best, 1e-12, 1.0 - 1e-12)
    slope = np.abs(missed / inner - within / (1.0 - inner) - 1.0 / MEAN_EXCESS)
    curvature = missed / inner**2 + within / (1.0 - inner) ** 2
    step = 1.0 / np.maximum(np.maximum(np.sqrt(curvature), np.where(best > promised, 0.0, slope)), 1.0)
    edges = np.clip(best + step * DOUBLINGS, promised, 1.0)
    half, middle = np.diff(edges, axis=1) / 2, (edges[:, 1:] + edges[:, :-1]) / 2
    shares = (middle[:, :, None] + half[:, :, None] * NODES).reshape(len(edges), -1)
    with np.errstate(divide="ignore"):  # panels beyond the ends have no width
        return shares, np.log(half[:, :, None] * WEIGHTS).reshape(len(edges), -1)


def upper_share(n_missed: int, n: int, *, level: float = 0.90) -> float:
    """Clopper-Pearson upper limit of a share at a one-sided level, I⁻¹(level; s + 1, n − s), for s < n."""
    if not 0 <= n_missed < n:
        raise CoreError(f"{n_missed} misses of {n} give no upper limit below 1", code="share_malformed")
    return float(betaincinv(n_missed + 1, n - n_missed, level))


def first_alert(log_values: FloatArray) -> int | None:
    """Return the position of the first E at an alert, None where there is none."""
    alerts = np.flatnonzero(log_values >= math.log(ALERT))
    return int(alerts[0]) if alerts.size else None


def largest(log_values: FloatArray) -> float:
    """Return the largest E so far, 1 before the first look; capped where a float ends."""
    return math.exp(min(max([0.0, *log_values.tolist()]), 700.0))


def e_text(log_values: FloatArray) -> str:
    """Say how large E has been, after how many of the events, and where it warns and alerts."""
    at = int(np.argmax(log_values)) + 1 if log_values.size and log_values.max() > 0.0 else 0
    after = f"after {at:,} of {log_values.size:,}" if at else "before the first"
    return (
        f"largest e-value so far {largest(log_values):.3g} ({after}), warns at {WARN:g}, alerts at {ALERT:g}"
    )


CALIBRATION = declare(
    "calibration",
    "ask 8 agents drawn at random for full runs, then recompute to fit the calibration anew",
    unseen="ask agents drawn at random for full runs",
)
MISSES_PROMISED = 0.05


def calibration(missed: Mask, agents: Sequence[str], dates: Sequence[date | None]) -> Monitor:
    """Weigh full scores outside the 95% interval that was published before they were known, by e-value.

    The bound on false alerts holds if each interval rests on every residual known before it.
    """
    same_length(missed, agents, dates)
    if not len(agents):
        return insufficient(CALIBRATION, "no full run of an agent with a published interval")
    n = np.arange(1, len(agents) + 1)
    logs = log_e_values(np.cumsum(missed), n, MISSES_PROMISED)
    evidence = {
        "missed": [agents[i] for i in np.flatnonzero(missed).tolist()],
        "first_alert": at(first_alert(logs), agents, dates),
    }
    counts = f"{int(missed.sum())} of {counted(len(agents), 'interval')} missed; at most 5% were promised"
    return _e_monitor(CALIBRATION, logs, counts, evidence)


def _e_monitor(name: str, logs: FloatArray, shown: str, evidence: dict[str, Any]) -> Monitor:
    value = largest(logs)
    state: State = "alert" if value >= ALERT else "warn" if value >= WARN else "ok"
    reason = f"{shown}; {e_text(logs)}"
    return Monitor(name, state, value, ALERT, reason, evidence, false_alerts_at_most=1 / ALERT)


FAILURES = declare(
    "harness failures",
    "look at the invalid trials of the agents named: the harness, or a task, is broken",
)
LEVEL_OF_TRIALS, LEVEL_OF_AGENTS = 0.90, 0.975
STAKES = ((np.arange(100) + 0.5) / 100) ** 2


class Invalid(NamedTuple):
    """Invalid trials and trials of agents, (n_agents,) each, in time order; every agent has a trial."""

    n_invalid: npt.NDArray[np.int64]
    n_trials: npt.NDArray[np.int64]

    @property
    def shares(self) -> FloatArray:
        """x, (n_agents,)."""
        return np.asarray(self.n_invalid / self.n_trials, dtype=np.float64)


def harness_failures(
    reference: Invalid, since: Invalid, agents: Sequence[str], dates: Sequence[date | None]
) -> Monitor:
    """Bet that agents have larger shares of invalid trials than the upper limit of the reference agents."""
    same_length(*since, agents, dates)
    same_length(*reference)
    n_before = len(reference.n_trials)
    if n_before < MIN_AGENTS or not len(agents):
        counts = f"{n_before} agents with trials before the ranking tasks were chosen and {len(agents)} since"
        return insufficient(FAILURES, f"{counts}; it takes {MIN_AGENTS} before and 1 since")
    n_invalid, n_trials = int(reference.n_invalid.sum()), int(reference.n_trials.sum())
    promised = 1.0
    if n_invalid < n_trials:
        x = reference.shares
        of_agents = x.mean() + stdtrit(n_before - 1, LEVEL_OF_AGENTS) * x.std(ddof=1) / math.sqrt(n_before)
        promised = float(max(upper_share(n_invalid, n_trials, level=LEVEL_OF_TRIALS), of_agents))
    if promised >= 1.0:
        return insufficient(FAILURES, "all trials were invalid before: no share is larger")
    logs = log_bets(since.shares, promised)
    shares = f"{since.shares.mean():.2%} of an agent's trials are invalid, before at most {promised:.2%}"
    evidence = {
        "first_alert": at(first_alert(logs), agents, dates),
        "promised": promised,
        "agents": [agents[i] for i in np.flatnonzero(since.shares > promised).tolist()],
    }
    return _e_monitor(FAILURES, logs, shares, evidence)


def log_bets(shares: FloatArray, promised: float) -> FloatArray:
    """Natural logarithm of E after each value, of shares (n,) in time order, 0 to 1, against p₀."""
    if not 0.0 < promised < 1.0:
        raise CoreError(
            f"a promised share lies strictly between 0 and 1, not at {promised}", code="share_malformed"
        )
    if not ((shares >= 0.0) & (shares <= 1.0)).all():
        raise CoreError("a share lies from 0 to 1", code="share_malformed")
    gains = np.log1p(STAKES * ((shares[:, None] - promised) / promised))
    sums = np.cumsum(gains, axis=0)
    return np.asarray(logsumexp(sums, axis=1) - math.log(STAKES.size), dtype=np.float64)
