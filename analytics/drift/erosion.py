"""Whether tasks left the band that they were chosen by.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §6.
"""

from collections.abc import Sequence

import numpy as np

from analytics.arrays import FloatArray
from analytics.drift.monitor import Monitor, State, insufficient, same_length
from analytics.text import counted

EROSION_WARN, EROSION_ALERT = 0.25, 0.50
EDGE_TOLERANCE = 1e-9


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
    same_length(pass_rates, tasks)
    rated = ~np.isnan(pass_rates)
    if not rated.any():
        return insufficient(name, "no task of the subset has a pass rate")
    out = rated & ((pass_rates < lo - EDGE_TOLERANCE) | (pass_rates > hi + EDGE_TOLERANCE))
    share = float(out.sum() / rated.sum())
    state: State = "alert" if share > EROSION_ALERT else "warn" if share > EROSION_WARN else "ok"
    left = [tasks[j] for j in np.flatnonzero(out).tolist()]
    has = "has" if len(left) == 1 else "have"
    reason = (
        f"{len(left)} of {counted(int(rated.sum()), 'task')} {has} left the band from {lo:.0%} to {hi:.0%}"
    )
    return Monitor(name, state, share, EROSION_WARN, reason, {"tasks": left})
