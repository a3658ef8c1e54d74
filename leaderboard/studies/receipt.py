"""One agent's part of the record, were all that stands for it accepted: what receipts and checks rest on.

It is reduced by the rules of the board, from the agent's own outcomes; of other agents only what the last
recompute kept is read, to tell which conditions are compared.
"""

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import BinaryField
from django.db.models.functions import Substr

from analytics.record import AgentRow as AgentRow
from analytics.record import (
    Compared,
    Condition,
    Delivery,
    Rows,
    Voter,
    agent_rows,
    compare,
    condition_counts,
    most_lacking,
    vouched_choose,
)
from analytics.record.alike import only_better
from analytics.record.conditions import MAX_VOICES as MAX_VOICES
from analytics.record.conditions import conditions_of
from analytics.record.rows import NEVER
from analytics.trials.flags import identical_agents
from leaderboard.catalog.models import Benchmark, Policy
from leaderboard.studies.models import AgentScores, TaskSubset, VerifiedReference
from leaderboard.studies.record_cache import (
    FASTEST,
    KINDS,
    N_DIGEST,
    TEMPERATURE,
    by_agent,
    delivery_of,
    join_counts,
    names_of,
    positions,
    rows_of,
    split,
    unpacked,
    voter_of,
)
from leaderboard.studies.rules import counting_of
from leaderboard.submissions.models import Submission
from leaderboard.submissions.queries import (
    deliveries,
    fewest_trials,
    measured_outcomes_of,
    policies_of,
    trusted_accounts,
    with_withdrawn,
)
from leaderboard.submissions.rows import without_superseded
from selection.standings import words

if TYPE_CHECKING:
    from leaderboard.studies.records import Snapshot
    from selection.plausibility import Reference


DELIVERED = ("submission", "task", "setting", "trial", "valid", "free")


@dataclass(frozen=True)
class AgentContext:
    """An agent, what it delivered, and the rules that this is read by.

    `submissions` stand by id in order of delivery; one that is not stored has the id 0. `policy` is in force,
    `subset` fixed. `tasks` are the names of the active ones by id. `settings` are (prompt_variant, judge,
    temperature, run) by id. `is_first`: nothing was delivered for it before.
    """

    agent: int
    submissions: Mapping[int, Submission]
    policy: Policy
    subset: TaskSubset | None
    tasks: Mapping[int, str]
    settings: Mapping[int, tuple[Any, ...]]
    is_first: bool = False

    @property
    def names(self) -> dict[int, str]:
        return dict(sorted(self.tasks.items(), key=lambda task: task[1]))

    @cached_property
    def withdrawn(self) -> dict[int, Submission]:
        return {} if self.is_first else with_withdrawn(self.agent, self.submissions)

    @cached_property
    def policies(self) -> list[Policy]:
        first = self.policy.number == 1
        return [self.policy] if first else policies_of(self.policy.benchmark)

    @cached_property
    def is_open(self) -> bool:
        """Whether what all agents ran decides which conditions are compared."""
        counting = counting_of(self.policy, self.subset)
        return counting.settings == "comparable" and several(self.settings.values())

    @cached_property
    def others(self) -> tuple[list[dict[str, Any]], list[Voter]]:
        """What the others ran under each condition, as the last recompute read it; whose all agents are.

        The last of these is the agent itself.
        """
        benchmark = self.policy.benchmark
        delivered, trusted = by_agent(deliveries(benchmark, withdrawn=True)), trusted_accounts(benchmark)
        cached = AgentScores.objects.filter(agent_id__in=delivered, agent__merged_into=None)
        cached = cached.exclude(agent_id=self.agent).select_related("agent").defer("arrays")
        rows = list(cached.order_by("agent_id"))
        voters = [voter_of(one.agent, delivered[one.agent_id], trusted) for one in rows]
        latest, first = list(self.submissions.values())[-1], delivered.get(self.agent)
        owner, arrival = latest.agent.owner_id, first[0].arrival if first else NEVER
        own = Voter(latest.agent.name, str(owner or ""), latest.loaded or owner in trusted, arrival)
        return [one.content["held"] for one in rows], [*voters, own]

    def on_active(self, outcomes: pa.Table) -> pa.Table:
        is_own = pc.is_in(outcomes["submission"], pa.array(list(self.submissions), pa.int32()))
        here = without_superseded(outcomes.filter(is_own))
        return here.filter(pc.is_in(here["task"], pa.array(list(self.tasks), pa.int32())))


def means_of(outcomes: pa.Table, of: AgentContext, *, n_trials: int) -> dict[str, float | None]:
    """Mean outcomes by name of the tasks with so many trials under each condition compared; None: invalid.

    outcomes: with submission, task, setting, trial, value, valid and free.
    """
    here = of.on_active(outcomes)
    if not here.num_rows:
        return {}
    from selection.single_tasks import means_so_far

    return means_so_far(**own_part(here, of), n_trials=n_trials)


def own_row(outcomes: pa.Table, of: AgentContext) -> AgentRow | None:
    """The agent's part of the record, of what `means_of` takes; None where nothing is on an active task."""
    here = of.on_active(outcomes)
    return agent_rows(**own_part(here, of), n_agents=1)[0] if here.num_rows else None


def places_of(row: AgentRow | None, of: AgentContext) -> dict[int, int]:
    """How many trials of each task count, by its id, with those that are lacking and count as failed."""
    return {} if row is None else dict(zip(of.names, row.n_places.tolist(), strict=True))


def own_part(here: pa.Table, of: AgentContext) -> dict[str, Any]:
    """What `analytics.record.agent_rows` takes of one agent.

    here: all that stands for it on the active tasks.
    """
    source = _source(here, of, as_delivered(here["value"]))
    source["compared"] = _compare_conditions(source, of)
    if not of.withdrawn:
        return source
    # What was taken back or replaced was delivered, though it counts nowhere
    gone = measured_outcomes_of((), [pk for pk in of.withdrawn if pk not in of.submissions])
    gone = gone.filter(pc.is_in(gone["task"], pa.array(list(of.tasks), pa.int32())))
    gone = gone.append_column("free", pa.repeat(pa.scalar(False), gone.num_rows))
    outcome = np.concatenate([as_delivered(part["value"]) for part in (here, gone)])
    both = pa.concat_tables([part.select(DELIVERED) for part in (here, gone)], promote_options="permissive")
    rows = _rows(both, of, outcome, list(of.withdrawn))
    return source | {"rows": rows, "deliveries": _deliveries(of.withdrawn, of)}


def conditions_counted(outcomes: pa.Table, of: AgentContext) -> dict[int, Condition | None]:
    """The condition that the outcomes of each setting count under, as the board of now compares; None: none.

    outcomes: with submission, task, setting, trial, value, valid and free.
    """
    here = of.on_active(outcomes)
    if not here.num_rows:
        return dict.fromkeys(of.settings)
    if not of.is_open:  # then how much was run under each setting decides nothing
        _, first = np.unique(here["setting"].to_numpy(), return_index=True)
        here = here.take(pa.array(first))
    source = _source(here, of, np.zeros(here.num_rows))
    compared = _compare_conditions(source, of)
    counted = conditions_of(source["settings"], compared.by_temperature, source["counting"])
    return {
        pk: one if one in compared.conditions else None for pk, one in zip(of.settings, counted, strict=True)
    }


def _source(here: pa.Table, of: AgentContext, outcome: np.ndarray) -> dict[str, Any]:
    return {
        "rows": _rows(here, of, outcome, list(of.submissions)),
        "tasks": list(of.names.values()),
        "settings": list(of.settings.values()),
        "deliveries": _deliveries(of.submissions, of),
        "counting": counting_of(of.policy, of.subset),
    }


def _rows(table: pa.Table, of: AgentContext, outcome: np.ndarray, submissions: list[int]) -> Rows:
    delivery = positions(table["submission"], submissions)
    return rows_of(table, list(of.names), list(of.settings), outcome=outcome, delivery=delivery)


def _compare_conditions(source: Mapping[str, Any], of: AgentContext) -> Compared:
    others, voters = of.others if of.is_open else ([], [Voter("")])
    by_temperature = differ_in_temperature(others)
    mine = condition_counts(**source, n_agents=1, by_temperature=by_temperature)
    joint = join_counts([*others, *split(mine)], voters, len(of.tasks), by_temperature)
    compared = compare(joint, source["counting"])
    return replace(compared, condition=compared.condition[-1:])


def as_delivered(values: pa.ChunkedArray) -> np.ndarray:
    """0.1 as it was delivered and as PostgreSQL prints its four bytes; NaN where there is none."""
    return pc.fill_null(values.cast(pa.string()).cast(pa.float64()), np.nan).to_numpy()


def _deliveries(submissions: Mapping[int, Submission], of: AgentContext) -> list[Delivery]:
    return [
        delivery_of(
            one,
            of.tasks,
            agent=0,
            arrival=arrival,
            fewest=fewest_trials(one, of.policies),
            withdrawn=pk not in of.submissions,
        )
        for arrival, (pk, one) in enumerate(submissions.items())
    ]


TWO_TEMPERATURES = (
    "nearly every task asked for was run at two temperatures: as long as no subset is fixed, a board may "
    "tell temperatures apart, for every agent, and count only those that it compares"
)


def uncounted(outcomes: pa.Table, of: AgentContext) -> list[str]:
    """Say which of an agent's outcomes are of conditions that the board does not compare.

    outcomes: all that stand for the agent, with task, setting, trial, value, valid and free.
    """
    if not several(of.settings.values()):
        return []
    latest, (others, voters) = list(of.submissions.values())[-1], of.others
    temperatures = differ_in_temperature(others)
    counting, names = counting_of(of.policy, of.subset), of.names
    here = outcomes.filter(pa.array(np.isin(outcomes["task"], list(names))))
    source: dict[str, Any] = {
        "rows": rows_of(here, list(names), list(of.settings), outcome=np.zeros(here.num_rows)),
        "n_agents": 1,
        "tasks": list(names.values()),
        "settings": list(of.settings.values()),
        "deliveries": [Delivery(0, operator=False, asked=names_of(latest.asked, names))],
        "counting": counting,
    }
    mine = condition_counts(**source, by_temperature=temperatures)
    every = join_counts([*others, *split(mine)], voters, len(names), temperatures)
    compared = compare(every, counting)
    own, sentences = compared.condition[-1], list[str]()
    if own and (few := most_lacking(mine, compared)):
        name, n_lacking, n_asked = few
        why = words.lacking_under([name], n_lacking, n_asked, zero=counting.missing == "zero")
        sentences.append(f"{why}: the agent is not ranked")
    elif own:
        sentences.append(words.uncounted(own, compared.words))
    else:
        out = [one for one in every.conditions if one not in compared.conditions]
        named = dict(zip(out, (name for name, _ in compared.left_out), strict=False))
        labels = [named[one] for one in mine.conditions if one in named]
        sentences += [words.uncounted_text(labels, compared.words)] if labels else []
    is_open = counting.settings == "comparable" and not temperatures and not vouched_choose(every)
    if is_open and condition_counts(**source).by_temperature:
        sentences.append(TWO_TEMPERATURES)
    return sentences


def differ_in_temperature(parts: Iterable[Mapping[str, Any]]) -> bool:
    return any(one[TEMPERATURE] is not None for part in parts for one in part["conditions"])


def several(settings: Iterable[tuple[Any, ...]]) -> bool:
    return len({facets[: len(Condition._fields)] for facets in settings}) > 1


def flags(
    outcomes: pa.Table, earlier: pa.Table, of: AgentContext, row: AgentRow | None
) -> tuple[str, str, tuple[str, ...]]:
    """Say whether two trials agree too often, and whether the new ones are only better; empty where not.

    With the names of agents that have the same outcome on every task.

    outcomes: with submission, agent, task, setting, trial, value, valid and free; last the delivery that is
        new.
    earlier: the delivery before it, or what it replaces; the same columns.
    of: with the submissions of `outcomes`.
    row: what `own_row` makes of `outcomes`.
    """
    on_active = pa.array(list(of.tasks), pa.int32())
    here, before = (
        without_superseded(rows.filter(pc.is_in(rows["task"], on_active))) for rows in (outcomes, earlier)
    )
    new = here.filter(pc.equal(here["submission"], list(of.submissions)[-1]))
    gains = ""
    if before.num_rows and new.num_rows:
        place = np.repeat([0, 1], [before.num_rows, new.num_rows])
        both = pa.concat_tables([part.select(["task", "value", "valid"]) for part in (before, new)])
        valid = both["valid"].to_numpy(zero_copy_only=False)
        task = np.unique(both["task"].to_numpy(), return_inverse=True)[1]
        gains = only_better(task[valid], as_delivered(both["value"])[valid], place[valid])
    if row is None:
        return "", gains, ()
    means = np.asarray(row.means).astype(KINDS["means"])
    digest = hashlib.sha256(means.tobytes()).digest()
    first = Substr("arrays", 1, N_DIGEST, output_field=BinaryField())
    cached = AgentScores.objects.filter(agent__benchmark=of.policy.benchmark, n_tasks=means.size)
    cached = cached.filter(agent__merged_into=None).exclude(agent_id=of.agent).select_related("agent")
    identical = list(cached.alias(first=first).filter(first=digest).order_by("agent__name"))
    theirs = [(one.agent.name, row.means) for one, row in unpacked(identical)]
    names, mine = [name for name, _ in theirs], len(theirs)
    groups = identical_agents(np.stack([*(one for _, one in theirs), means]))
    same = tuple(names[i] for group in groups if mine in group for i in group if i != mine)
    return row.repeats.copies, gains, same


KIND = "<f8"


def get_or_compute_reference(now: "Snapshot") -> None:
    """Keep what verified agents did, where it has changed; else all that came was judged by it already."""
    record = now.record
    verified = [i for i, one in enumerate(record.about) if one.trust == "verified"]
    means = np.ascontiguousarray(record.table.means[verified], KIND)
    digest = hashlib.sha256(means.data)
    digest.update(repr(now.task_ids).encode())
    same = VerifiedReference.objects.filter(benchmark=now.benchmark, sha256=digest.hexdigest())
    if same.update(judged_upto=now.data_version):
        return
    from selection.plausibility import reference

    computed = reference(means, is_pass_fail=not any(record.n_graded[i] for i in verified))
    compressor = zlib.compressobj(FASTEST)
    parts = [compressor.compress(one.data) for one in (means, computed.difficulties.astype(KIND))]
    made = {
        "sha256": digest.hexdigest(),
        "tasks": now.task_ids,
        "n_agents": len(verified),
        "is_pass_fail": computed.is_pass_fail,
        "arrays": b"".join([*parts, compressor.flush()]),
    }
    VerifiedReference.objects.update_or_create(benchmark=now.benchmark, defaults=made)


def why_implausible(row: AgentRow | None, of: AgentContext, *, n_ran: int, is_part: bool = False) -> str:
    """Say what is implausible of what is judged of an agent; empty where nothing is.

    It is judged on the tasks that the last recompute read too, and on the ranking tasks among them alone. Of
    verified agents nothing else is read.
    `n_ran` counts the tasks that it ran, or those of the delivery that is judged alone as `is_part`.
    """
    found = None if row is None else _read_reference(of.policy.benchmark)
    if row is None or found is None:
        return ""
    from selection.plausibility import implausible

    reference, tasks = found
    ids, mine, theirs = np.intersect1d(list(of.names), tasks, assume_unique=True, return_indices=True)
    ranking = of.subset.tasks.values_list("pk", flat=True) if of.subset else []
    return implausible(
        reference.on(theirs),
        row.means[mine],
        row.n_trials[mine],
        n_graded=row.n_graded,
        ranking=np.isin(ids, list(ranking)),
        n_ran=n_ran,
        is_part=is_part,
    )


def _read_reference(benchmark: Benchmark) -> "tuple[Reference, list[int]] | None":
    """What verified agents did, and the ids of its tasks; None where the last recompute kept none.

    A damaged one is deleted. The next recompute makes it anew, and judges by it what came meanwhile.
    """
    from selection.plausibility import Reference

    stored = VerifiedReference.objects.filter(benchmark=benchmark).first()
    if stored is None:
        return None
    try:
        values = np.frombuffer(zlib.decompress(stored.arrays), KIND)
        values = values.reshape(stored.n_agents + 1, len(stored.tasks))
    except (zlib.error, ValueError):
        stored.delete()
        return None
    return Reference(values[:-1], values[-1], stored.is_pass_fail), stored.tasks
