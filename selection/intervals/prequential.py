"""Prequential coverage: how often an interval made from earlier residuals held a later full score.

Model
-----
Each residual of the temporal protocol at date t is compared with the split conformal half-width q_t of the
residuals of strictly earlier dates, once there are 19; covered when |e| ≤ q_t. Of n such residuals h are
covered; the one-sided upper 95% bound of the coverage is Wilson's::

    U = (p + z²/2n + z·√(p(1 − p)/n + z²/4n²))/(1 + z²/n),    p = h/n, z = 1.645

Where U < .95 the nominal level is refuted, and a board says p instead.

Symbols: e ``residuals`` (n,), score; t ``dates`` (n,); h ``n_covered``; U ``upper``.

Not done here: the intervals of other sources; the rule by which a wide one is not shown.

Source: Dawid, *JRSS A* 147 (1984) 278-292 (prequential). Wilson, *JASA* 22 (1927) 209-212. Brown, Cai &
DasGupta, *Statistical Science* 16 (2001) 101-133.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from analytics.arrays import DECIMALS, FloatArray
from analytics.wilson import wilson
from selection.intervals.quantiles import MIN_FOR_QUANTILE, split_conformal
from selection.intervals.scaffolds import LEVEL


@dataclass(frozen=True)
class Prequential:
    """Coverage of the intervals in time.

    n, n_covered: later scores with an interval, and those it held.
    """

    n: int
    n_covered: int

    @property
    def share(self) -> float | None:
        """p; None without a score."""
        return self.n_covered / self.n if self.n else None

    @property
    def upper(self) -> float | None:
        """U; None without a score."""
        return None if self.share is None else wilson(self.share, self.n, LEVEL)[1]

    @property
    def falls_short(self) -> bool:
        """Whether U < .95."""
        return self.upper is not None and self.upper < LEVEL


def prequential(residuals: FloatArray, dates: Sequence[date | None]) -> Prequential:
    """Count the residuals inside the interval made from those of strictly earlier dates.

    residuals: (n,); y − ŷ of the temporal protocol; NaN where there is none.
    dates: length n; None only where there is no residual.
    """
    errors = [(day, abs(e)) for e, day in zip(residuals.tolist(), dates, strict=True) if day and e == e]
    n = n_covered = 0
    for day in sorted({day for day, _ in errors}):
        earlier = np.array([e for other, e in errors if other < day])
        if earlier.size < MIN_FOR_QUANTILE:
            continue
        half_width = round(split_conformal(earlier), DECIMALS)
        inside = [round(e, DECIMALS) <= half_width for other, e in errors if other == day]
        n, n_covered = n + len(inside), n_covered + sum(inside)
    return Prequential(n, n_covered)
