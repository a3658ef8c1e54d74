"""What of a delivery is compared, known while it comes in: from what is kept of the other agents.

Nothing is reduced, and no outcome of another agent is read; agents that no recompute has seen have no say.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.record import (
    Compared,
    Condition,
    ConditionCounts,
    Delivery,
    Rows,
    Voter,
    compare,
    condition_counts,
    most_lacking,
    vouched_choose,
)
from analytics.record.rows import NEVER
from analytics.record.voices import MAX_VOICES as MAX_VOICES
from leaderboard.catalog.models import Policy
from leaderboard.studies.models import AgentScores, TaskSubset
from leaderboard.studies.record_cache import TEMPERATURE, by_agent, join_counts, positions, split, voter_of
from leaderboard.studies.rules import counting_of
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import deliveries, trusted_accounts
from selection.standings import words

TWO_TEMPERATURES = (
    "nearly every task asked for was run at two temperatures: as long as no subset is fixed, a board may "
    "tell temperatures apart, for every agent, and count only those that it compares"
)


def uncounted(
    outcomes: pa.Table,
    *,
    submission: Submission,
    policy: Policy,
    subset: TaskSubset | None,
    tasks: Mapping[int, str],
    task_ids: Sequence[int] | None,
    settings: Mapping[int, tuple[Any, ...]],
) -> list[str]:
    """Say which of an agent's outcomes are of conditions that the board does not compare.

    outcomes: all that stand for the agent, with task, setting, trial, value, valid and free.
    submission: the latest of the agent.
    policy, subset: in force, and fixed.
    tasks: the active ones.
    task_ids: all active ones where not given.
    """
    others, voters = cached_conditions(policy, submission.agent_id, submission)
    temperatures = by_temperature(others)
    counting = counting_of(policy, subset)
    names = dict(sorted(tasks.items(), key=lambda task: task[1]))
    here = outcomes.filter(pa.array(np.isin(outcomes["task"], list(names))))
    source: dict[str, Any] = {
        "rows": _rows(here, list(names), list(settings)),
        "n_agents": 1,
        "tasks": list(names.values()),
        "settings": list(settings.values()),
        "deliveries": [_delivery(names, task_ids)],
        "counting": counting,
    }
    mine = condition_counts(**source, by_temperature=temperatures)
    every = join_counts([*others, *split(mine)], voters, len(names), temperatures)
    sentences = _uncounted_of(mine, every, compare(every, counting), zero=counting.missing == "zero")
    is_open = counting.settings == "comparable" and not temperatures and not vouched_choose(every)
    if is_open and condition_counts(**source).by_temperature:
        sentences.append(TWO_TEMPERATURES)
    return sentences


def _uncounted_of(
    mine: ConditionCounts, every: ConditionCounts, compared: Compared, *, zero: bool
) -> list[str]:
    if compared.condition[-1] and (few := most_lacking(mine, compared)):
        name, n_lacking, n_asked = few
        why = words.lacking_under([name], n_lacking, n_asked, zero=zero)
        return [f"{why}: the agent is listed without a rank"]
    if compared.condition[-1]:
        return [words.uncounted(compared.condition[-1], compared.words)]
    out = [one for one in every.conditions if one not in compared.conditions]
    named = dict(zip(out, (name for name, _ in compared.left_out), strict=False))
    labels = [named[one] for one in mine.conditions if one in named]
    return [words.uncounted_text(labels, compared.words)] if labels else []


def by_temperature(parts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether agents are known under conditions that differ in temperature."""
    return any(one[TEMPERATURE] is not None for part in parts for one in part["conditions"])


def cached_conditions(
    policy: Policy, agent: int, latest: Submission
) -> tuple[list[dict[str, Any]], list[Voter]]:
    """What the other agents ran under each condition, as the last recompute read it; whose all agents are.

    The last of these is the agent itself, of which `latest` was delivered.
    """
    benchmark = policy.benchmark
    delivered, trusted = by_agent(deliveries(benchmark, withdrawn=True)), trusted_accounts(benchmark)
    cached = AgentScores.objects.filter(agent_id__in=delivered, agent__merged_into=None)
    rows = list(cached.exclude(agent_id=agent).select_related("agent").defer("arrays").order_by("agent_id"))
    voters = [voter_of(one.agent, delivered[one.agent_id], trusted) for one in rows]
    owner, first = latest.agent.owner_id, delivered.get(agent)
    arrival = first[0].arrival if first else NEVER
    own = Voter(latest.agent.name, str(owner or ""), latest.loaded or owner in trusted, arrival)
    return [one.content["held"] for one in rows], [*voters, own]


def _rows(outcomes: pa.Table, tasks: list[int], settings: list[int]) -> Rows:
    n = outcomes.num_rows
    return Rows(
        agent=np.zeros(n, np.int64),
        task=positions(outcomes["task"], tasks, pa.int32()),
        setting=positions(outcomes["setting"], settings, pa.int32()),
        delivery=np.zeros(n, np.int64),
        trial=outcomes["trial"].to_numpy().astype(np.int64),
        outcome=np.zeros(n),
        valid=outcomes["valid"].to_numpy(zero_copy_only=False),
        confirmed=outcomes["free"].to_numpy(zero_copy_only=False),
    )


def _delivery(names: Mapping[int, str], task_ids: Sequence[int] | None) -> Delivery:
    return Delivery(
        0,
        operator=False,
        asked=None if task_ids is None else frozenset(names[pk] for pk in task_ids if pk in names),
    )


def several(settings: Iterable[tuple[Any, ...]]) -> bool:
    """Whether settings differ in prompt, judge or temperature."""
    return len({facets[: len(Condition._fields)] for facets in settings}) > 1
