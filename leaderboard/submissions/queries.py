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


def live_outcomes(agents: Iterable[int]) -> pa.Table:
    """All outcomes that stand for these agents: a new one may not hold the same key."""
    return copy_out(
        OUTCOMES.format(condition="s.agent_id = ANY(%s) AND s.status = ANY(%s)"),
        [list(agents), list(LIVE)],
        schema=SCHEMA,
    )


def outcomes_of(submissions: Iterable[int]) -> pa.Table:
    return copy_out(OUTCOMES.format(condition="s.id = ANY(%s)"), [list(submissions)], schema=SCHEMA)


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
