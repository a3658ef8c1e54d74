"""One agent's part of the record, were all that stands for it accepted: what receipts and checks rest on.

It is reduced by the rules of the board, from the agent's own outcomes; of other agents only what the last
recompute kept is read, to tell which conditions are compared.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.record import Delivery, Rows, compare, held
from leaderboard.catalog.models import Policy
from leaderboard.studies import conditions
from leaderboard.studies.models import TaskSubset
from leaderboard.studies.parts import joined, positions, split
from leaderboard.studies.rules import counting_of
from leaderboard.submissions.models import Submission
from leaderboard.submissions.rows import standing


def means_of(
    outcomes: pa.Table,
    *,
    agent: int,
    submissions: Mapping[int, Submission],
    policy: Policy,
    subset: TaskSubset | None,
    tasks: Mapping[int, str],
    settings: Mapping[int, tuple[Any, ...]],
    n_trials: int,
) -> dict[str, float | None]:
    """Mean outcomes by name of the tasks with so many trials under each condition compared; None: invalid.

    Parameters
    ----------
    outcomes : table
        With submission, task, setting, trial, value, valid and free.
    agent, submissions, policy, subset, settings
        As of `own_part`.
    tasks : mapping of id to name
        The active ones.
    n_trials : int
    """
    names = dict(sorted(tasks.items(), key=lambda task: task[1]))
    kept = pc.is_in(outcomes["submission"], pa.array(list(submissions), pa.int32()))
    here = standing(outcomes.filter(kept))
    here = here.filter(pc.is_in(here["task"], pa.array(list(names), pa.int32())))
    if not here.num_rows:
        return {}
    from selection.adaptive_steps import means_so_far

    own = own_part(
        here,
        agent=agent,
        submissions=submissions,
        policy=policy,
        subset=subset,
        names=names,
        settings=settings,
    )
    return means_so_far(**own, n_trials=n_trials)


def own_part(
    here: pa.Table,
    *,
    agent: int,
    submissions: Mapping[int, Submission],
    policy: Policy,
    subset: TaskSubset | None,
    names: Mapping[int, str],
    settings: Mapping[int, tuple[Any, ...]],
) -> dict[str, Any]:
    """What `analytics.record.agent_rows` takes of one agent.

    Parameters
    ----------
    here : table
        All that stands for it on the active tasks.
    agent : int
    submissions : mapping of id to Submission
        In order of delivery; one that is not stored has the id 0.
    policy, subset
        In force, and fixed.
    names : mapping of id to name
        The active tasks, by name.
    settings : mapping of id to (prompt_variant, judge, temperature, run)
    """
    counting = counting_of(policy, subset)
    is_open = counting.settings == "comparable" and conditions.several(settings.values())
    others = conditions.kept(policy, agent) if is_open else []
    source: dict[str, Any] = {
        "rows": _rows(here, list(submissions), list(names), list(settings)),
        "tasks": list(names.values()),
        "settings": list(settings.values()),
        "deliveries": [_delivery(place, one, names) for place, one in enumerate(submissions.values())],
        "counting": counting,
    }
    by_temperature = conditions.by_temperature(others)
    mine = held(**source, n_agents=1, by_temperature=by_temperature)
    compared = compare(joined([*others, *split(mine)], len(names), by_temperature), counting)
    return source | {"compared": replace(compared, condition=compared.condition[-1:])}


def _rows(here: pa.Table, submissions: list[int], tasks: list[int], settings: list[int]) -> Rows:
    return Rows(
        agent=np.zeros(here.num_rows, np.int64),
        task=positions(here["task"], tasks, pa.int32()),
        setting=positions(here["setting"], settings, pa.int32()),
        delivery=positions(here["submission"], submissions, pa.int32()),
        trial=here["trial"].to_numpy().astype(np.int64),
        outcome=as_told(here["value"]),
        valid=here["valid"].to_numpy(zero_copy_only=False),
        confirmed=here["free"].to_numpy(zero_copy_only=False),
    )


def as_told(values: pa.ChunkedArray) -> np.ndarray:
    """0.1 as it was delivered and as PostgreSQL prints its four bytes; NaN where there is none."""
    return pc.fill_null(values.cast(pa.string()).cast(pa.float64()), np.nan).to_numpy()


def _delivery(arrival: int, one: Submission, names: Mapping[int, str]) -> Delivery:
    asked = None if one.asked is None else frozenset(names[pk] for pk in one.asked if pk in names)
    return Delivery(0, arrival, one.loaded, asked, one.n_trials)
