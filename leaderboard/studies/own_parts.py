"""One agent's part of the record, were all that stands for it accepted: what receipts and checks rest on.

It is reduced by the rules of the board, from the agent's own outcomes; of other agents only what the last
recompute kept is read, to tell which conditions are compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class OfAgent:
    """An agent, what it delivered, and the rules that this is read by.

    `submissions` stand by id in order of delivery; one that is not stored has the id 0. `policy` is in force,
    `subset` fixed. `tasks` are the names of the active ones by id. `settings` are (prompt_variant, judge,
    temperature, run) by id.
    """

    agent: int
    submissions: Mapping[int, Submission]
    policy: Policy
    subset: TaskSubset | None
    tasks: Mapping[int, str]
    settings: Mapping[int, tuple[Any, ...]]

    @property
    def names(self) -> dict[int, str]:
        """The active tasks, by name."""
        return dict(sorted(self.tasks.items(), key=lambda task: task[1]))


def means_of(outcomes: pa.Table, of: OfAgent, *, n_trials: int) -> dict[str, float | None]:
    """Mean outcomes by name of the tasks with so many trials under each condition compared; None: invalid.

    Parameters
    ----------
    outcomes : table
        With submission, task, setting, trial, value, valid and free.
    of : OfAgent
    n_trials : int
    """
    kept = pc.is_in(outcomes["submission"], pa.array(list(of.submissions), pa.int32()))
    here = standing(outcomes.filter(kept))
    here = here.filter(pc.is_in(here["task"], pa.array(list(of.tasks), pa.int32())))
    if not here.num_rows:
        return {}
    from selection.adaptive_steps import means_so_far

    return means_so_far(**own_part(here, of), n_trials=n_trials)


def own_part(here: pa.Table, of: OfAgent) -> dict[str, Any]:
    """What `analytics.record.agent_rows` takes of one agent.

    Parameters
    ----------
    here : table
        All that stands for it on the active tasks.
    of : OfAgent
    """
    names, counting = of.names, counting_of(of.policy, of.subset)
    is_open = counting.settings == "comparable" and conditions.several(of.settings.values())
    others = conditions.kept(of.policy, of.agent) if is_open else []
    source: dict[str, Any] = {
        "rows": _rows(here, list(of.submissions), list(names), list(of.settings)),
        "tasks": list(names.values()),
        "settings": list(of.settings.values()),
        "deliveries": [_delivery(place, one, names) for place, one in enumerate(of.submissions.values())],
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
    return Delivery(0, arrival, one.loaded, asked, one.n_trials, capped=one.study_id is not None)
