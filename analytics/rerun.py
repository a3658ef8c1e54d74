"""Whether a second run of the same agent agrees with the first within chance, from tasks that both ran.

Source: McNemar, Psychometrika 1947; Student, Biometrika 1908.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, stdtr

from analytics.arrays import FloatArray
from analytics.errors import CoreError

LEVEL = 0.01


class RunAgreement(NamedTuple):
    """Two runs of the same tasks. `n_first`, `n_second`: tasks on which that run alone did better."""

    n_tasks: int
    first_mean: float
    second_mean: float
    n_first: int
    n_second: int
    test: str
    p: float

    @property
    def agrees(self) -> bool:
        """Whether the difference may be chance, at 1%."""
        return self.p >= LEVEL


def agreement(first: FloatArray, second: FloatArray) -> RunAgreement:
    """Test whether two runs of the same tasks differ by more than chance.

    first, second: (n_tasks,); outcomes from 0 to 1 in the same order of tasks; at least two.
    """
    if first.shape != second.shape or first.ndim != 1 or len(first) < 2:
        raise CoreError("two runs are compared on the same tasks, at least two")
    both = np.concatenate([first, second])
    if not ((both >= 0) & (both <= 1)).all():
        raise CoreError("outcomes are from 0 to 1")
    n_first, n_second = int((first > second).sum()), int((second > first).sum())
    if np.isin(both, (0.0, 1.0)).all():
        test = "McNemar"
        p = min(1.0, 2 * float(bdtr(min(n_first, n_second), n_first + n_second, 0.5)))
    else:
        test, p = "paired t", _t(second - first)
    return RunAgreement(len(first), float(first.mean()), float(second.mean()), n_first, n_second, test, p)


def task_means(tasks: npt.NDArray[np.str_], outcomes: FloatArray) -> dict[str, float]:
    """Return the mean outcome of each task, from one row for each trial."""
    names, at = np.unique(tasks, return_inverse=True)
    means = np.bincount(at, outcomes) / np.bincount(at)
    return dict(zip(names.tolist(), means.tolist(), strict=True))


def _t(differences: FloatArray) -> float:
    """Differences that are all alike leave no chance, unless they are 0."""
    n, mean = len(differences), float(differences.mean())
    if np.ptp(differences) < 1e-12:
        return 1.0 if abs(mean) < 1e-12 else 0.0
    t = mean / float(differences.std(ddof=1)) * np.sqrt(n)
    return 2 * float(stdtr(n - 1, -abs(t)))
