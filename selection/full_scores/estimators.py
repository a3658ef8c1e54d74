"""The names of the estimators, and what is refused. None is chosen by its error: that gains nothing."""

from selection.errors import SelectionError
from selection.rules import ESTIMATORS, EstimatorName

__all__ = ["ESTIMATORS", "EstimatorName", "FullScoreRefused", "checked_name"]


class FullScoreRefused(SelectionError):
    """A full score cannot be estimated so: name_unknown, no_fit, cells_missing."""


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
