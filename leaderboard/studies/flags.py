"""What an operator should look at in the outcomes of one agent, found while they come in (STATISTICS §10).

The rules are those of the board. Of other agents only what the last recompute kept is read, so that one that
no recompute has seen has no say.
"""

import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import BinaryField
from django.db.models.functions import Substr

from analytics.record import AgentRow
from analytics.record.alike import only_better
from analytics.trials.flags import identical_agents
from leaderboard.catalog.models import Policy
from leaderboard.studies.models import AgentScores, VerifiedReference
from leaderboard.studies.receipt import AgentContext, as_delivered
from leaderboard.studies.scores import KINDS, means_of
from leaderboard.submissions.rows import standing

if TYPE_CHECKING:  # intake names this module, which imports what estimates where it is used
    from leaderboard.studies.records import Snapshot
    from selection.plausibility import Reference


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


KIND = "<f8"


def get_or_compute_reference(now: "Snapshot") -> None:
    """Keep what verified agents did, where it has changed; else all that came was judged by it already."""
    record = now.record
    verified = [i for i, one in enumerate(record.about) if one.trust == "verified"]
    means = np.ascontiguousarray(record.table.means[verified], KIND)
    sha256 = hashlib.sha256(means.tobytes() + repr(now.task_ids).encode()).hexdigest()
    same = VerifiedReference.objects.filter(benchmark=now.benchmark, sha256=sha256)
    if same.update(judged_upto=now.data_version):
        return
    from selection.plausibility import reference

    computed = reference(means, is_pass_fail=not any(record.n_graded[i] for i in verified))
    made = {
        "sha256": sha256,
        "tasks": now.task_ids,
        "n_agents": len(verified),
        "is_pass_fail": computed.is_pass_fail,
        "arrays": zlib.compress(means.tobytes() + computed.difficulties.astype(KIND).tobytes()),
    }
    VerifiedReference.objects.update_or_create(benchmark=now.benchmark, defaults=made)


def why_implausible(row: AgentRow | None, of: AgentContext) -> str:
    """Say what is implausible of all that stands for an agent; empty where nothing is.

    It is judged on the tasks that the last recompute read too. Of verified agents nothing else is read.
    """
    stored = VerifiedReference.objects.filter(benchmark=of.policy.benchmark).first()
    if row is None or stored is None:
        return ""
    from selection.plausibility import implausible

    _, mine, theirs = np.intersect1d(list(of.names), stored.tasks, assume_unique=True, return_indices=True)
    verified = _reference(stored).on(theirs)
    return implausible(verified, row.means[mine], row.n_trials[mine], n_graded=row.n_graded)


def _reference(stored: VerifiedReference) -> "Reference":
    from selection.plausibility import Reference

    values = np.frombuffer(zlib.decompress(stored.arrays), KIND).reshape(-1, len(stored.tasks))
    return Reference(values[:-1], values[-1], stored.is_pass_fail)
