"""The names of the estimators, and what is refused. None is chosen by its error: that gains nothing."""

from selection.errors import SelectionError
from selection.rules import ESTIMATORS, EstimatorName

__all__ = ["ESTIMATORS", "EstimatorName", "checked_name"]


def checked_name(estimator: str) -> EstimatorName:
    """Return the name of an estimator.

    Raises SelectionError: name_unknown: there is none of this name.
    """
    for name in ESTIMATORS:
        if name == estimator:
            return name
    known = ", ".join(ESTIMATORS)
    raise SelectionError(f"no estimator is called {estimator!r}; there are {known}", code="name_unknown")
