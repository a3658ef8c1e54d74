"""E-values for a share that may not exceed what was promised, looked at as often as one likes.

Model
-----
Of n events s are misses; promised are at most p₀. Against a Beta mixture of larger and smaller shares the
likelihood ratio is::

    E_n = B(a + s, b + n − s) / (B(a, b)·p₀^s·(1 − p₀)^(n − s)),      a = 20·p₀,  b = 20·(1 − p₀)

Under independent misses with share p₀ it is a martingale that starts at 1, so that P(E ever reaches 1/α) ≤ α
(Ville): 100 is reached by chance in at most 1% of all histories, however often one looks. What was once
reached stays reached, so the largest value so far decides.

Symbols: s ``n_missed``, n ``n``, p₀ ``promised``, E ``log_e_values`` (natural logarithms).

Not done here
-------------
The direction is not part of the value: a share far below p₀ makes E large too; callers ask in which
direction it went. Misses of one agent's trials are not independent, which makes E too large.

Source
------
Ville, *Étude critique de la notion de collectif*, 1939. Robbins, *Statistical methods related to the law of
the iterated logarithm*, 1970 (mixtures).
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, betaln

from analytics.arrays import FloatArray
from analytics.errors import CoreError

WARN, ALERT = 20.0, 100.0
PRIOR_WEIGHT = 20.0


class ShareMalformed(CoreError):
    """Counts or a promised share that no series of events can have."""


def log_e_values(n_missed: npt.ArrayLike, n: npt.ArrayLike, promised: float) -> FloatArray:
    """Natural logarithm of E after each look.

    Parameters
    ----------
    n_missed, n : int arrays, (n_looks,)
        Misses and events so far; 0 ≤ n_missed ≤ n.
    promised : float
        p₀, strictly between 0 and 1.

    Raises
    ------
    ShareMalformed
    """
    missed, events = np.asarray(n_missed, np.float64), np.asarray(n, np.float64)
    if not 0.0 < promised < 1.0:
        raise ShareMalformed(f"a promised share lies strictly between 0 and 1, not at {promised}")
    if (missed < 0).any() or (missed > events).any():
        raise ShareMalformed("misses are counted from 0 to the number of events")
    a, b = PRIOR_WEIGHT * promised, PRIOR_WEIGHT * (1.0 - promised)
    mixture = betaln(a + missed, b + events - missed) - betaln(a, b)
    null = missed * math.log(promised) + (events - missed) * math.log1p(-promised)
    return np.asarray(mixture - null, dtype=np.float64)


def upper_share(n_missed: int, n: int, *, level: float = 0.90) -> float:
    """Clopper-Pearson upper limit of a share at a one-sided level: I⁻¹(level; s + 1, n − s).

    Raises
    ------
    ShareMalformed
        Without events, or when all of them are misses: then no share below 1 is an upper limit.
    """
    if not 0 <= n_missed < n:
        raise ShareMalformed(f"{n_missed} misses of {n} give no upper limit below 1")
    return float(betaincinv(n_missed + 1, n - n_missed, level))


def largest(log_values: Sequence[float] | FloatArray) -> float:
    """Return the largest E so far, 1 before the first look; capped where a float ends."""
    return math.exp(min(max(0.0, *map(float, log_values)), 700.0)) if len(log_values) else 1.0


def excess(
    missed: npt.NDArray[np.integer], n: npt.NDArray[np.integer], promised: float
) -> tuple[float, int | None]:
    """Return the largest E where the share lay above the promised one, and the first look at an alert."""
    above = missed > promised * n
    logs = np.where(above, log_e_values(missed, n, promised), 0.0)
    alerts = np.flatnonzero(logs >= math.log(ALERT))
    return largest(logs), int(alerts[0]) if alerts.size else None


def e_state(value: float) -> Literal["ok", "warn", "alert"]:
    """Read an E against the thresholds 20 and 100."""
    return "alert" if value >= ALERT else "warn" if value >= WARN else "ok"
