"""The full score of an agent that ran only the subset: three estimators behind one interface.

Model
-----
From the outcomes X_aS of an agent on the k tasks of S, out of m, and complete agents with full scores y::

    completion    ŷ = (Σ_{j∈S} X_aj + Σ_{j∉S} P_aj)/m        P of `selection.staged.model`
    ridge         ŷ = b₀ + X_aS·β                            α = 1, intercept not penalised
    line          ŷ = a + c·r_a                              least squares of y on r

Symbols
-------
=========  ================  ============================  ======
symbol     code              shape                         unit
=========  ================  ============================  ======
X, y       ``outcomes``,     (n, m), NaN: missing; (n,)    0 to 1
           ``scores``
S, k       ``subsets``       (k,) for each fold            tasks
r          ``means``         (n,)                          0 to 1
ŷ          returned          (n_held_out,) for each fold   score
=========  ================  ============================  ======

By `ridge` and `line` a missing training cell takes the mean of its column over the training agents, and so
does a cell of an agent to be predicted. An agent that lacks over a tenth of S is refused by all three.

Not done here: ŷ is neither rounded nor clipped. No estimator is chosen by its error. Intervals are
`selection.intervals`'.

Source: As in `selection.ridge` and `selection.rasch`. Ndzomga, *Efficient Benchmarking of AI Agents*, §3.1
(Ridge). The mean of two predictions is this project's own.
"""

from selection.full_scores.estimators import ESTIMATORS, EstimatorName
from selection.full_scores.fitted import FullScores, fit
from selection.full_scores.left_out import fold_predictions, predictions

__all__ = [
    "ESTIMATORS",
    "EstimatorName",
    "FullScores",
    "fit",
    "fold_predictions",
    "predictions",
]
