"""Evidence that the mean of bounded values lies above a limit, whatever their distribution.

Model
-----
Values x_i in [0, 1] come one after the other, each with an expectation of at most p₀ given the earlier ones.
A bet of the share u of one's stake on larger values pays 1 + u·(x_i − p₀)/p₀ ≥ 1 − u ≥ 0, so that ::

    E_n = mean over v of Π_{i ≤ n} (1 + v²·(x_i − p₀)/p₀),       v = .005, .015, …, .995

is a supermartingale that starts at 1: P(E ever reaches 1/α) ≤ α (Ville). Nothing is assumed of how values
vary, which counts of trials that fail together would need.

Symbols: x ``shares`` (n,), p₀ ``promised``, E ``log_bets`` (n,), natural logarithms.

Not done here
-------------
Bets are not adapted to what was seen; the mixture pays for that with a factor of less than 20.

Source
------
Waudby-Smith & Ramdas, *Estimating means of bounded random variables by betting*, JRSS B 2024.
"""

import math

import numpy as np
from scipy.special import logsumexp

from analytics.arrays import FloatArray
from analytics.drift.e_value import ShareMalformed

STAKES = ((np.arange(100) + 0.5) / 100) ** 2


def log_bets(shares: FloatArray, promised: float) -> FloatArray:
    """Natural logarithm of E after each value.

    Parameters
    ----------
    shares : float array, (n,)
        0 to 1, in time order.
    promised : float
        p₀, strictly between 0 and 1.

    Raises
    ------
    ShareMalformed
    """
    if not 0.0 < promised < 1.0:
        raise ShareMalformed(f"a promised share lies strictly between 0 and 1, not at {promised}")
    if not ((shares >= 0.0) & (shares <= 1.0)).all():
        raise ShareMalformed("a share lies from 0 to 1")
    gains = np.log1p(STAKES * ((shares[:, None] - promised) / promised))
    sums = np.cumsum(gains, axis=0)
    return np.asarray(logsumexp(sums, axis=1) - math.log(STAKES.size), dtype=np.float64)
