"""Whether agents that were drawn to run everything stand as what was published of them before said.

Model
-----
est_i ± se_i is what was published of an agent when it was stopped, y_i its full score since. Over the pairs
with y_i ≠ y_j::

    share    = mean of [sign(est_i − est_j)·sign(y_i − y_j) + 1]/2
    promised = mean of Φ(|est_i − est_j|/√(se_i² + se_j²))
    upper    = share + z_{1−α}·SE,          SE: each agent left out in turn
    alert    where upper < min(.92, promised) at α_j;  warn at 5·α_j

A look takes all such agents so far: 10, 20, 40, … of them. Agents that were drawn are those that the rule
would stop: close scores among them are not held against it, as they promise little.

Symbols
-------
==============  ================  ===========  ======
symbol          code              shape        unit
==============  ================  ===========  ======
est, se         ``estimates``,    (n_agents,)  0 to 1
                ``errors``
y               ``scores``        (n_agents,)  0 to 1
α_j             ``look.level``    scalar       1
==============  ================  ===========  ======

Not done here: agents that ran on because they did well are not looked at, nor those that delivered the rest
unasked.

Source: This project's own; .92 is what a verdict needs for *mostly* (`selection.staged.replay`).
"""

from collections.abc import Sequence
from datetime import date

import numpy as np
from scipy.special import ndtr, ndtri

from analytics.arrays import DECIMALS, FloatArray
from analytics.drift.looks import LEVEL, last_look
from analytics.drift.monitor import MIN_AGENTS, Monitor, State, at, insufficient, same_length
from analytics.text import counted

NAME = "published order"
MIN_SHARE = 0.92
WARN_TIMES = 5.0


def published_order(
    estimates: FloatArray,
    errors: FloatArray,
    scores: FloatArray,
    agents: Sequence[str],
    dates: Sequence[date | None],
) -> Monitor:
    """Test, at looks of 10, 20, 40, … agents, whether fewer pairs stand as published than was promised.

    estimates, errors: (n_agents,); what was published when each was stopped, and its standard error.
    scores: (n_agents,); of the full runs since.
    agents, dates: (n_agents,); in the order in which the full scores became known.
    """
    same_length(estimates, errors, scores, agents, dates)
    look = last_look(len(agents))
    if look is None:
        runs = counted(len(agents), "full run")
        return insufficient(NAME, f"{runs} of agents with a published estimate; {MIN_AGENTS} are needed")
    est, se, y = (part[: look.size] for part in (estimates, errors, scores))
    apart, true = (np.round(one[:, None] - one, DECIMALS) for one in (est, y))
    differ = true != 0.0
    if not differ.any():
        return insufficient(NAME, "all full scores are equal: no order")
    right = np.where(differ, (np.sign(apart) * np.sign(true) + 1.0) / 2.0, 0.0)
    share = float(right.sum() / differ.sum())
    promised = float(ndtr(np.abs(apart) / np.hypot(se[:, None], se))[differ].mean())
    n_pairs = np.maximum(differ.sum() - 2 * differ.sum(axis=1), 1)
    without = (right.sum() - 2.0 * right.sum(axis=1)) / n_pairs
    error = float(np.sqrt((look.size - 1) * np.mean((without - without.mean()) ** 2)))
    threshold = min(MIN_SHARE, promised)

    def upper(level: float) -> float:
        return min(share - float(ndtri(level)) * error, 1.0)

    state: State = "ok"
    if upper(WARN_TIMES * look.level) < threshold:
        state = "alert" if upper(look.level) < threshold else "warn"
    reason = (
        f"{share:.1%} of the pairs of {look.size} agents stand as published, {upper(look.level):.1%} at "
        f"most; their estimates promised {promised:.1%}, and it alerts under {threshold:.1%}"
    )
    evidence = {
        "share": share,
        "se": error,
        "promised": promised,
        "n_pairs": int(differ.sum()) // 2,
        "n_agents": look.size,
        "look": at(look.size - 1, agents, dates),
    }
    return Monitor(NAME, state, upper(look.level), threshold, reason, evidence, false_alerts_at_most=LEVEL)
