"""The record of a benchmark: what every agent did, reduced from its rows by one set of rules.

Model
-----
A *row* is one trial of an agent on a task under a setting, in a delivery. A *place* is a task that the agent
was asked to run × one of its counted trials. A task has R_a places::

    R_a = min(n_trials, the fewest delivered)

taken of the tasks that were first asked for together, and of those never asked for, invalid trials included,
so that more trials on some tasks move nothing, and other tasks leave these alone; n_trials is that asked for
with them first, or more later, and no bound where no number was. Deliveries fill the places in order of
acceptance. A whole run (`analytics.record.whole_runs`) counts whole: where it has more trials than places are
left, their mean fills these. Of what is none the lowest outcomes come first, for trial numbers are the
submitter's own; so it is with an agent whose tasks are asked for as outcomes come in. An agent that *retried*
has the lower of this score and the mean over all of its trials. One with fewer trials than were asked for is
not complete. Where gaps count as failures, and a task asked for has no row, R_a is the most that one has. All
trials count in what an operator loads. With several conditions compared, R_a holds for each. What was
withdrawn counts nowhere; it was delivered, and so it may have been part of a whole run. An invalid trial
counts 0 until an operator confirms that the harness failed; then its place is a *gap*. In what an operator
loads, R_a is what most tasks have (the lower median), a task without a row is all gap, and trials absent from
a delivered task are gaps as far as `analytics.record.absent` can tell. Rows outside what the agent was asked
count once it has delivered every task.

Order of evaluation: universe (which tasks are active) → conditions (which settings are compared) → cells. A
*condition* is a combination of prompt variant, judge and temperature (temperature only where an agent has
two; not stated is a level; `run` is a replicate); `analytics.record.conditions` says which are compared. A
place is delivered, and a cell valid, only under every compared condition; the cell is the mean over them::

    X[i, j] = mean over conditions of ( mean over places, of whatever run, of outcome )

Symbols
-------
==============  ====================  =====================================  =========
symbol          code                  shape                                  unit
==============  ====================  =====================================  =========
X, s², R        ``table``             see `analytics.outcome_table`          0 to 1
places          ``n_places``          (n_agents, n_tasks)                    trials
gaps            ``n_gaps``            (n_agents, n_tasks)                    trials
asked           ``asked``             (n_agents, n_tasks)                    bool
voice           ``voice``             (n_agents,)                            bool
complete        ``complete``          (n_agents,)                            bool
==============  ====================  =====================================  =========

Not done here: no task is selected and nobody is ranked. `selection.standings.full_scores` completes what is
missing.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.1 (X and y). Places, counted trials and comparable
conditions are this project's own.
"""

from analytics.record.conditions import (
    Compared,
    ConditionCounts,
    compare,
    condition_counts,
    most_lacking,
    vouched_choose,
)
from analytics.record.people import People
from analytics.record.reduction import AgentRow, agent_rows, in_part
from analytics.record.rows import TRUST, About, Condition, Counting, Delivery, Rows, Trust, is_full_run
from analytics.record.stacked import Record, offer, record, shared_tasks
from analytics.record.universe import universe
from analytics.record.voices import Voter

__all__ = [
    "TRUST",
    "About",
    "AgentRow",
    "Compared",
    "Condition",
    "ConditionCounts",
    "Counting",
    "Delivery",
    "People",
    "Record",
    "Rows",
    "Trust",
    "Voter",
    "agent_rows",
    "compare",
    "condition_counts",
    "in_part",
    "is_full_run",
    "most_lacking",
    "offer",
    "record",
    "shared_tasks",
    "universe",
    "vouched_choose",
]
