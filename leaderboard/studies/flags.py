"""What an operator should look at in the outcomes of one agent, told while they come in (STATISTICS §10).

The rules are those of the board. Of other agents only what the last recompute kept is read, so that one that
no recompute has seen has no say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import BinaryField
from django.db.models.functions import Substr

from analytics.record import AgentRow, Delivery, Rows, agent_rows, compare, held
from analytics.record.alike import only_better
from analytics.trials.flags import identical_agents
from leaderboard.catalog.models import Policy
from leaderboard.studies import conditions
from leaderboard.studies.models import AgentScores, TaskSubset
from leaderboard.studies.parts import joined, positions, split
from leaderboard.studies.rules import counting_of
from leaderboard.studies.scores import KINDS, means_of
from leaderboard.submissions.models import Submission
from leaderboard.submissions.rows import standing


@dataclass(frozen=True)
class Flags:
    """In words, empty where there is nothing to say.

    `copies`: two trials agree too often. `gains`: only better than before. `identical`: names of agents
    with the same outcome on every task.
    """

    copies: str
    gains: str
    identical: tuple[str, ...]


def flags(
    outcomes: pa.Table,
    earlier: pa.Table,
    *,
    agent: int,
    submissions: Mapping[int, Submission],
    policy: Policy,
    subset: TaskSubset | None,
    tasks: Mapping[int, str],
    settings: Mapping[int, tuple[Any, ...]],
) -> Flags:
    """Look at all that stands for an agent.

    Parameters
    ----------
    outcomes : table
        With submission, agent, task, setting, trial, value, valid and free; last the delivery that is new.
    earlier : table
        The delivery before it, or what it replaces; the same columns.
    agent : int
    submissions : mapping of id to Submission
        Those of `outcomes`, in order of delivery.
    policy, subset
        In force, and fixed.
    tasks : mapping of id to name
        The active ones.
    settings : mapping of id to (prompt_variant, judge, temperature, run)
    """
    names = dict(sorted(tasks.items(), key=lambda task: task[1]))
    on_active = pa.array(list(names), pa.int32())
    here, before = (standing(rows.filter(pc.is_in(rows["task"], on_active))) for rows in (outcomes, earlier))
    new = here.filter(pc.equal(here["submission"], list(submissions)[-1]))
    gains = _gains(before, new) if before.num_rows and new.num_rows else ""
    if not here.num_rows:
        return Flags("", gains, ())
    row = _row(here, agent, submissions, policy, subset, names, settings)
    return Flags(row.repeats.copies, gains, _identical(row, agent, policy))


def _gains(before: pa.Table, new: pa.Table) -> str:
    place = np.repeat([0, 1], [before.num_rows, new.num_rows])
    both = pa.concat_tables(
        [before.select(["task", "value", "valid"]), new.select(["task", "value", "valid"])]
    )
    valid = both["valid"].to_numpy(zero_copy_only=False)
    task = np.unique(both["task"].to_numpy(), return_inverse=True)[1]
    return only_better(task[valid], _as_told(both["value"])[valid], place[valid])


def _row(
    here: pa.Table,
    agent: int,
    submissions: Mapping[int, Submission],
    policy: Policy,
    subset: TaskSubset | None,
    names: Mapping[int, str],
    settings: Mapping[int, tuple[Any, ...]],
) -> AgentRow:
    """The agent's line of the record, were it all accepted."""
    counting = counting_of(policy, subset)
    others = conditions.kept(policy, agent) if conditions.several(settings.values()) else []
    source: dict[str, Any] = {
        "rows": _rows(here, list(submissions), list(names), list(settings)),
        "n_agents": 1,
        "tasks": list(names.values()),
        "settings": list(settings.values()),
        "deliveries": [_delivery(place, one, names) for place, one in enumerate(submissions.values())],
        "counting": counting,
    }
    by_temperature = conditions.by_temperature(others)
    mine = held(**source, by_temperature=by_temperature)
    compared = compare(joined([*others, *split(mine)], len(names), by_temperature), counting)
    return agent_rows(**source, compared=replace(compared, condition=compared.condition[-1:]))[0]


def _rows(here: pa.Table, submissions: list[int], tasks: list[int], settings: list[int]) -> Rows:
    return Rows(
        agent=np.zeros(here.num_rows, np.int64),
        task=positions(here["task"], tasks, pa.int32()),
        setting=positions(here["setting"], settings, pa.int32()),
        delivery=positions(here["submission"], submissions, pa.int32()),
        trial=here["trial"].to_numpy().astype(np.int64),
        outcome=_as_told(here["value"]),
        valid=here["valid"].to_numpy(zero_copy_only=False),
        confirmed=here["free"].to_numpy(zero_copy_only=False),
    )


def _as_told(values: pa.ChunkedArray) -> np.ndarray:
    """0.1 as it was delivered and as PostgreSQL prints its four bytes; NaN where there is none."""
    return pc.fill_null(values.cast(pa.string()).cast(pa.float64()), np.nan).to_numpy()


def _delivery(arrival: int, one: Submission, names: Mapping[int, str]) -> Delivery:
    asked = None if one.asked is None else frozenset(names[pk] for pk in one.asked if pk in names)
    return Delivery(0, arrival, one.loaded, asked, one.n_trials)


def _identical(row: AgentRow, agent: int, policy: Policy) -> tuple[str, ...]:
    """The means stand first among the arrays that are kept: their bytes find whoever may be alike."""
    means = np.asarray(row.means).astype(KINDS["means"])
    first = Substr("arrays", 1, means.nbytes, output_field=BinaryField())
    kept = AgentScores.objects.filter(agent__benchmark=policy.benchmark, n_tasks=means.size)
    kept = kept.filter(agent__merged_into=None).exclude(agent_id=agent).select_related("agent")
    found = list(kept.alias(first=first).filter(first=means.tobytes()).order_by("agent__name"))
    groups = identical_agents(np.stack([*(means_of(one) for one in found), means]))
    names, mine = [one.agent.name for one in found], len(found)
    return tuple(names[i] for group in groups if mine in group for i in group if i != mine)
