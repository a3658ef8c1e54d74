"""The names of the estimators, and what they refuse."""

from typing import Literal

from selection.errors import SelectionError

EstimatorName = Literal["completion", "ridge", "line"]
ESTIMATORS: tuple[EstimatorName, ...] = ("completion", "ridge", "line")


class FullScoreRefused(SelectionError):
    """A full score cannot be estimated so: name_unknown, graded, cells_missing."""


def checked_name(estimator: str) -> EstimatorName:
    """Return the name of an estimator.

    Raises
    ------
    FullScoreRefused
        When there is none of this name (name_unknown).
    """
    for name in ESTIMATORS:
        if name == estimator:
            return name
    known = ", ".join(ESTIMATORS)
    raise FullScoreRefused(f"no estimator is called {estimator!r}; there are {known}", code="name_unknown")
