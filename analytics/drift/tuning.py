"""Whether newcomers do worse outside the subset than their outcomes on it predict: the subset is public.

Model
-----
Each newcomer also runs a few *audit tasks* outside S, drawn by a secret seed. With θ̂_S its ability from its
outcomes on S and b̂ the difficulties, P = σ(θ̂_S − b̂) is expected of a task and x observed. Over an agent's
audit tasks, or those of several agents::

    z = Σ(x − P)/√(Σ P(1 − P)),     p = Φ(z):  negative is worse outside S than on it

Looks at 10, 20, 40, … newcomers with audit tasks, over the latest 20 of them. An agent alone is flagged below
−3 with at least 5 audit tasks.

Symbols
-------
=======  ===============  =====================================  ======
symbol   code             shape                                  unit
=======  ===============  =====================================  ======
x        ``outcomes``     (n_agents, n_tasks), NaN: not audited  0 to 1
P        ``expected``     (n_agents, n_tasks)                    0 to 1
=======  ===============  =====================================  ======

Not done here
-------------
P counts as known: the errors of θ̂_S and b̂ are not in z.

Source
------
This project's own.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
from scipy.special import ndtr

from analytics.arrays import FloatArray, IndexArray
from analytics.drift.looks import LEVEL, last_look
from analytics.drift.monitor import N_LATEST, Monitor, State, at, insufficient, same_length

NAME = "tuning to the subset"
WARN_TIMES, ALERT_TIMES = 5.0, 2.0
FLAGGED_BELOW, N_TASKS_FLAGGED = -3.0, 5


def subset_tuning(
    outcomes: FloatArray, expected: FloatArray, agents: Sequence[str], dates: Sequence[date | None]
) -> Monitor:
    """Test whether newcomers do worse on audit tasks than S predicts; name those far worse.

    Parameters
    ----------
    outcomes, expected : float arrays, (n_agents, n_tasks)
        x and P of newcomers in time order; NaN where a task was not audited.
    agents, dates : sequences, (n_agents,)

    Raises
    ------
    SeriesMismatch
    """
    same_length(outcomes, expected, agents, dates)
    audited = np.flatnonzero((~np.isnan(outcomes)).any(axis=1))
    if not audited.size:
        return insufficient(NAME, "no audit tasks")
    look = last_look(audited.size)
    evidence: dict[str, Any] = {"agents": [agents[i] for i in _flagged(outcomes, expected).tolist()]}
    if look is None:
        return insufficient(NAME, f"{audited.size} newcomers with audit tasks; 10 are needed", evidence)
    latest = audited[: look.size][-N_LATEST:]
    beyond, variance = _sums(outcomes[latest], expected[latest])
    z = float(beyond.sum() / np.sqrt(variance.sum())) if variance.sum() > 0 else 0.0
    p, limit = float(ndtr(z)), ALERT_TIMES * look.level
    state: State = "alert" if p <= limit else "warn" if p <= WARN_TIMES * look.level else "ok"
    reason = f"on audit tasks the latest {latest.size} newcomers are {z:+.1f} standard errors off; p {p:.2g}"
    evidence |= {"look": at(int(audited[look.size - 1]), agents, dates), "z": z}
    return Monitor(NAME, state, p, limit, reason, evidence, false_alerts_at_most=ALERT_TIMES * LEVEL)


def _flagged(outcomes: FloatArray, expected: FloatArray) -> IndexArray:
    """Positions of agents that are below −3 on at least 5 audit tasks."""
    beyond, variance = _sums(outcomes, expected)
    enough = (np.count_nonzero(~np.isnan(outcomes), axis=1) >= N_TASKS_FLAGGED) & (variance > 0)
    z = np.divide(beyond, np.sqrt(variance), out=np.zeros(len(beyond)), where=enough)
    return np.flatnonzero(z < FLAGGED_BELOW)


def _sums(outcomes: FloatArray, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ(x − P) and Σ P(1 − P) of each agent over its audit tasks."""
    known = ~np.isnan(outcomes)
    beyond = np.where(known, outcomes - expected, 0.0).sum(axis=1)
    return beyond, np.where(known, expected * (1.0 - expected), 0.0).sum(axis=1)
