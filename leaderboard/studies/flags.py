"""What an operator should look at in the outcomes of one agent, found while they come in (STATISTICS §10).

The rules are those of the board. Of other agents only what the last recompute kept is read, so that one that
no recompute has seen has no say.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import BinaryField
from django.db.models.functions import Substr

from analytics.record import AgentRow
from analytics.record.alike import only_better
from analytics.trials.flags import identical_agents
from leaderboard.catalog.models import Policy
from leaderboard.studies.models import AgentScores
from leaderboard.studies.receipt import AgentContext, as_delivered
from leaderboard.studies.scores import KINDS, means_of
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


def flags(outcomes: pa.Table, earlier: pa.Table, of: AgentContext, row: AgentRow | None) -> Flags:
    """Look at all that stands for an agent.

    outcomes: with submission, agent, task, setting, trial, value, valid and free; last the delivery that is
        new.
    earlier: the delivery before it, or what it replaces; the same columns.
    of: with the submissions of `outcomes`.
    row: what `own_row` makes of `outcomes`.
    """
    on_active = pa.array(list(of.tasks), pa.int32())
    here, before = (standing(rows.filter(pc.is_in(rows["task"], on_active))) for rows in (outcomes, earlier))
    new = here.filter(pc.equal(here["submission"], list(of.submissions)[-1]))
    gains = _gains(before, new) if before.num_rows and new.num_rows else ""
    if row is None:
        return Flags("", gains, ())
    return Flags(row.repeats.copies, gains, _identical(row, of.agent, of.policy))


def _gains(before: pa.Table, new: pa.Table) -> str:
    place = np.repeat([0, 1], [before.num_rows, new.num_rows])
    both = pa.concat_tables(
        [before.select(["task", "value", "valid"]), new.select(["task", "value", "valid"])]
    )
    valid = both["valid"].to_numpy(zero_copy_only=False)
    task = np.unique(both["task"].to_numpy(), return_inverse=True)[1]
    return only_better(task[valid], as_delivered(both["value"])[valid], place[valid])


def _identical(row: AgentRow, agent: int, policy: Policy) -> tuple[str, ...]:
    """The means stand first among the arrays that are kept: their bytes find whoever may be alike."""
    means = np.asarray(row.means).astype(KINDS["means"])
    first = Substr("arrays", 1, means.nbytes, output_field=BinaryField())
    cached = AgentScores.objects.filter(agent__benchmark=policy.benchmark, n_tasks=means.size)
    cached = cached.filter(agent__merged_into=None).exclude(agent_id=agent).select_related("agent")
    identical = list(cached.alias(first=first).filter(first=means.tobytes()).order_by("agent__name"))
    groups = identical_agents(np.stack([*(means_of(one) for one in identical), means]))
    names, mine = [one.agent.name for one in identical], len(identical)
    return tuple(names[i] for group in groups if mine in group for i in group if i != mine)
