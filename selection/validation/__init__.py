"""Nested validation: whether a subset chosen without an agent would have put that agent in its place.

`validate` runs every strategy under every protocol of `selection.folds` on the complete agents of a table.
Selection, k and calibration happen inside each fold, on its training agents only.

Symbols
-------
============  =====================  ==============================  ======
symbol        code                   shape                           unit
============  =====================  ==============================  ======
X, y          ``table``              (n_agents, n_tasks)             0 to 1
w             ``weights``            (n_agents,)                     agents
rho_null      ``Study.rho_null``     one for each strategy           −1 to 1
============  =====================  ==============================  ======

Not done here
-------------
No strategy is recommended. Choosing the best one on these figures is optimistic.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §3.4.
"""

from selection.held_out import Residuals, loao_residuals, nested_residuals
from selection.validation.nested import Protocol, Validation, validate
from selection.validation.plain import as_json
from selection.validation.study import ValidationFigures

__all__ = [
    "Protocol",
    "Residuals",
    "Validation",
    "ValidationFigures",
    "as_json",
    "loao_residuals",
    "nested_residuals",
    "validate",
]
