"""E-values for a share that may not exceed what was promised, looked at as often as one likes.

Source: Ville, *Étude critique de la notion de collectif*, 1939. Robbins, *Statistical methods related to the
law of the iterated logarithm*, 1970 (mixtures). Clopper & Pearson, Biometrika 1934 (`upper_share`).
"""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, logsumexp, xlog1py, xlogy

from analytics.arrays import FloatArray
from analytics.errors import CoreError

WARN, ALERT = 20.0, 100.0
MEAN_EXCESS = 0.1
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
DOUBLINGS = np.concatenate([-(2.0 ** np.arange(31, -1, -1)), [0.0], 2.0 ** np.arange(32)])


def log_e_values(n_missed: npt.ArrayLike, n: npt.ArrayLike, promised: float) -> FloatArray:
    """Natural logarithm of E after each look.

    n_missed, n: (n_looks,); misses and events so far; 0 ≤ n_missed ≤ n.
    promised: p₀, strictly between 0 and 1.
    """
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
    """Clopper-Pearson upper limit of a share at a one-sided level: I⁻¹(level; s + 1, n − s).

    Raises CoreError: without events, or when all of them are misses: then no share below 1 is an upper limit.
    """
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


def e_state(value: float) -> Literal["ok", "warn", "alert"]:
    """Read an E against the thresholds 20 and 100."""
    return "alert" if value >= ALERT else "warn" if value >= WARN else "ok"
