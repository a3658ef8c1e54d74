"""The record of a benchmark: what every agent did, reduced from its rows by one set of rules.

Model
-----
A *row* is one trial of an agent on a task under a setting, in a delivery. A *place* is a task that the agent
was asked to run × one of its counted trials. Counted are, on each task, the first R_a trials by order of
delivery, within a delivery the lowest outcomes first (their numbers are the submitter's own)::

    R_a = min(max(n_trials, those there once all of these tasks were), the fewest delivered)

taken of the tasks that were first asked for together, and of those never asked for, invalid trials included,
so that more trials on some tasks move nothing, and other tasks leave these alone; n_trials is that asked for
with them first, or more later, and no bound where no number was. It alone bounds an agent whose tasks are
asked for as outcomes come in. Where gaps count as failures, and a task asked for has no row, R_a is the most
that one has. All trials count in what an operator loads. With several conditions compared, R_a holds for
each. An invalid trial counts 0 until an operator confirms that the harness failed; then its place is a *gap*.
In what an operator loads, R_a is what most tasks have (the lower median), a task without a row is all gap,
and trials absent from a delivered task are gaps as far as `analytics.record.absent` can tell. Rows outside
what the agent was asked count once it has delivered every task.

Order of evaluation: universe (which tasks are active) → conditions (which settings are compared) → cells. A
*condition* is a combination of prompt variant, judge and temperature (temperature only where an agent has
two; not stated is a level; `run` is a replicate); `analytics.record.conditions` says which are compared. A
place is delivered, and a cell valid, only under every compared condition; the cell is the mean over them::

    X[i, j] = mean over conditions of ( mean over trials, of whatever run, of outcome )

=============  ==============================================================================================
module         holds
=============  ==============================================================================================
``counting``   Counting, Condition: which outcomes count
``rows``       About, Delivery, Rows: what was delivered
``universe``   which tasks are active
``conditions`` which settings are compared
``reduction``  rows to one AgentRow an agent
``spending``   costs, tokens and seconds of a trial
``absent``     trials that a loaded file does not hold
``alike``      repeated trials
``people``     what people said of some trials
``stacked``    AgentRows to one Record
``files``      a flat file's agents, deliveries and rows
=============  ==============================================================================================

Symbols
-------
==============  ====================  =====================================  =========
symbol          code                  shape                                  unit
==============  ====================  =====================================  =========
X, s², R        ``table``             see `analytics.outcome_table`          0 to 1
places          ``n_places``          (n_agents, n_tasks)                    trials
gaps            ``n_gaps``            (n_agents, n_tasks)                    trials
asked           ``asked``             (n_agents, n_tasks)                    bool
complete        ``complete``          (n_agents,)                            bool
==============  ====================  =====================================  =========

Not done here
-------------
No task is selected and nobody is ranked. What a missing place is completed with is `selection.linking`'s.

Source
------
Ndzomga, *Efficient Benchmarking of AI Agents*, §3.1 (X and y). Places, counted trials and comparable
conditions are this project's own.
"""

from analytics.record.conditions import Compared, Held, compare, held, loaded_choose, most_lacking
from analytics.record.counting import Condition, Counting, RecordRefused
from analytics.record.people import People
from analytics.record.reduction import AgentRow, agent_rows, in_part
from analytics.record.rows import About, Delivery, Rows, is_full_run
from analytics.record.stacked import Record, offer, record, shared_tasks
from analytics.record.universe import universe

__all__ = [
    "About",
    "AgentRow",
    "Compared",
    "Condition",
    "Counting",
    "Delivery",
    "Held",
    "People",
    "Record",
    "RecordRefused",
    "Rows",
    "agent_rows",
    "compare",
    "held",
    "in_part",
    "is_full_run",
    "loaded_choose",
    "most_lacking",
    "offer",
    "record",
    "shared_tasks",
    "universe",
]
