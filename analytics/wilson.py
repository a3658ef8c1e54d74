"""Wilson's interval of a share.

Source: Wilson, *JASA* 22 (1927) 209-212.
"""

import math

from scipy.special import ndtri


def wilson(p: float, n: float, level: float) -> tuple[float, float]:
    """One-sided lower and upper bounds of a share p of n at a level, each by itself; n need not be whole."""
    z = float(ndtri(level))
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
