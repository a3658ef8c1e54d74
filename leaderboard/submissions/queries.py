"""Reads of submissions."""

from collections.abc import Iterable

import pyarrow as pa

from leaderboard.catalog.models import Benchmark
from leaderboard.submissions.copying import copy_out
from leaderboard.submissions.models import LIVE, Setting, Status, Submission
from leaderboard.submissions.rows import SCHEMA

OUTCOMES = """
    SELECT o.submission_id, s.agent_id, o.task_id, o.setting_id, o.trial, o.value, o.valid
    FROM submissions_outcome o JOIN submissions_submission s ON s.id = o.submission_id
    WHERE {condition}
    ORDER BY o.submission_id, o.task_id, o.setting_id, o.trial
"""

COSTS = """
    SELECT agent_id, task_id, avg(cost) FROM (
        SELECT s.agent_id, d.task_id, sum(d.cost_usd) AS cost
        FROM submissions_outcomedetail d JOIN submissions_submission s ON s.id = d.submission_id
        WHERE s.id = ANY(%s) AND d.cost_usd IS NOT NULL
        GROUP BY s.agent_id, d.task_id, d.submission_id, d.setting_id
    ) AS run
    GROUP BY agent_id, task_id ORDER BY agent_id, task_id
"""
COSTS_SCHEMA = pa.schema({"agent": pa.int64(), "task": pa.int32(), "cost": pa.float64()})


def live_outcomes(agents: Iterable[int]) -> pa.Table:
    """All outcomes that stand for these agents: a new one may not hold the same key."""
    return copy_out(
        OUTCOMES.format(condition="s.agent_id = ANY(%s) AND s.status = ANY(%s)"),
        [list(agents), list(LIVE)],
        schema=SCHEMA,
    )


def outcomes_of(submissions: Iterable[int]) -> pa.Table:
    return copy_out(OUTCOMES.format(condition="s.id = ANY(%s)"), [list(submissions)], schema=SCHEMA)


def costs_of(submissions: Iterable[int]) -> pa.Table:
    """What a run of each agent cost on each task, in US dollars: trials added up, the mean over runs."""
    return copy_out(COSTS, [list(submissions)], schema=COSTS_SCHEMA)


def accepted_submissions(benchmark: Benchmark) -> list[Submission]:
    """The submissions that count, by agent and in order of arrival."""
    return list(
        Submission.objects.filter(agent__benchmark=benchmark, status=Status.ACCEPTED).order_by(
            "agent_id", "received_at", "id"
        )
    )


def settings_of(benchmark: Benchmark) -> dict[tuple[object, ...], int]:
    """The id of each setting by its facets (prompt_variant, judge, temperature, run)."""
    rows = Setting.objects.filter(benchmark=benchmark).values_list("id", *Setting.FACETS)
    return {tuple(facets): pk for pk, *facets in rows}
