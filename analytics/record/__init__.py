"""The record of a benchmark: what every agent did, reduced from its rows by one set of rules.

Source: Ndzomga, *Efficient Benchmarking of AI Agents*, §3.1 (X and y). Places, counted trials and comparable
conditions are this project's own.
"""

from analytics.record.alike import People
from analytics.record.conditions import (
    Compared,
    ConditionCounts,
    Voter,
    compare,
    condition_counts,
    most_lacking,
    vouched_choose,
)
from analytics.record.missing import MIN_AGENTS, ranked_text, resolve
from analytics.record.reduction import AgentRow, agent_rows, in_part
from analytics.record.rows import (
    TRUST,
    About,
    Condition,
    Counting,
    Delivery,
    Rows,
    Trust,
    is_full_run,
    universe,
)
from analytics.record.stacked import Record, offer, record, shared_tasks

__all__ = [
    "MIN_AGENTS",
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
    "ranked_text",
    "record",
    "resolve",
    "shared_tasks",
    "universe",
    "vouched_choose",
]
