"""Rows that are the mean of several runs of one trial, passed or failed, as the runs they stand for.

A row with n in ``n_averaged`` and mean x stands for trials 1 … n, whatever trial it names itself: nx passed
(outcome 1), which come first, and n − nx failed (outcome 0). nx has to be whole, to 1e-6 (STATISTICS §10).
What was measured beside is the mean of the runs too, and is repeated.
"""

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.flat_file.faults import Fault, Faults
from analytics.flat_file.table import RowNumbers

TOLERANCE = 1e-6
Places = npt.NDArray[np.int64]


def n_passed(outcome: FloatArray, n_runs: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Count the runs that passed, and tell where that is no whole number; (n_rows,) each.

    An empty outcome (NaN) stands for as many empty ones.
    """
    total = n_runs * outcome
    passed = np.round(total)
    return passed, np.abs(total - passed) > TOLERANCE


def tell(faults: Faults, rows: RowNumbers, outcome: FloatArray, n_runs: FloatArray, bad: Places) -> None:
    """Tell the rows at the places `bad`, whose mean is none of so many runs."""
    if len(bad):
        means = zip(rows[bad].tolist(), outcome[bad].tolist(), n_runs[bad].tolist(), strict=True)
        wrong = (
            Fault(
                row,
                "n_averaged",
                f"{n:.0f}",
                f"the mean of {n:.0f} runs that pass or fail is a whole number over {n:.0f},"
                f" and {n:.0f} × {value:.9g} = {n * value:.9g}",
            )
            for row, value, n in means
        )
        faults.extend(len(bad), int(rows[bad[0]]), wrong)


def expanded(
    trial: npt.NDArray[np.int16], outcome: FloatArray, n_runs: FloatArray
) -> tuple[Places, npt.NDArray[np.int16], FloatArray]:
    """Put n rows where one stands for n.

    trial, outcome, n_runs: (n_rows,) each; `n_runs` is 1 where a row is no mean.
    Returns: the place of the row that each trial comes from, its number, its outcome; (n_trials,) each.
    """
    n = n_runs.astype(np.int64)
    source = np.repeat(np.arange(len(n)), n)
    nth = np.arange(len(source)) - np.repeat(np.cumsum(n) - n, n)  # counts from 0 in each row
    several = n[source] > 1
    passed = np.where(nth < n_passed(outcome, n_runs)[0][source], 1.0, 0.0)
    empty = np.isnan(outcome)[source]
    new_outcome = np.where(several & ~empty, passed, outcome[source])
    return source, np.where(several, nth + 1, trial[source]).astype(np.int16), new_outcome
