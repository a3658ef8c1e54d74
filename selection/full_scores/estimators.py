"""The names of the estimators, which one a board uses, and what is refused.

A board is *graded* where over 5% of the valid trials lie strictly between 0 and 1. `ridge` is the default
there, `completion` elsewhere; asked for there with a band subset, `completion` is refused: outside the band
the model extrapolates badly.

Not done here: no estimator is chosen by its error.

Source: this project's own (STATISTICS §3).
"""

from selection.errors import SelectionError
from selection.rules import ESTIMATORS, EstimatorName

__all__ = ["ESTIMATORS", "EstimatorName", "FullScoreRefused", "checked_name", "estimator_of"]

MOST_GRADED = 0.05
BAND = "mid_range"


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


def estimator_of(asked: str, graded_share: float, strategy: str) -> EstimatorName:
    """Return the estimator of a board.

    Parameters
    ----------
    asked : str
        That of the rules; "" leaves the choice to the data.
    graded_share : float
        Valid trials strictly between 0 and 1, as a share of all.
    strategy : str
        How the subset is chosen.

    Raises
    ------
    FullScoreRefused
        name_unknown; graded: `completion` was asked for on graded outcomes with a band subset.
    """
    is_graded = graded_share > MOST_GRADED
    if not asked:
        return "ridge" if is_graded else "completion"
    if asked == "completion" and is_graded and strategy == BAND:
        raise FullScoreRefused(
            f"completion is refused with a band subset where more than {MOST_GRADED:.0%} of the trials lie "
            f"between 0 and 1; here {graded_share:.1%} do",
            code="graded",
        )
    return checked_name(asked)
