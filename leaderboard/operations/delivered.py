"""A delivery beside what stands for its agent: what its receipt, its checks and its acceptance ask."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from leaderboard.catalog.models import Duplicates, Policy
from leaderboard.catalog.queries import active_tasks
from leaderboard.operations import asking, assignments
from leaderboard.operations.corrections import is_better
from leaderboard.operations.models import Assignment
from leaderboard.operations.queries import is_recalled
from leaderboard.studies.queries import active_subset
from leaderboard.studies.receipt import AgentContext, AgentRow, conditions_counted, own_row, places_of
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.queries import by_arrival, taken_back_outcomes, trusted_accounts
from leaderboard.submissions.rows import KEY, OUTCOME


@dataclass(frozen=True, eq=False)
class DeliveredRows:
    """Rows that came, under a submission that is stored or would be.

    `rows` has the key of each outcome, its value and whether it is valid. `before` and `replaced` have the
    submission and whether the key is free beside: what stood and goes on to stand, and what goes.
    `is_first`: nothing was ever delivered for the agent.
    """

    submission: Submission
    policy: Policy
    rows: pa.Table
    before: pa.Table
    replaced: pa.Table
    settings: Mapping[int, tuple[object, ...]]
    assignment: Assignment | None
    is_first: bool = False

    @cached_property
    def trusted(self) -> set[int]:
        """Ids of the accounts that operators trust."""
        return trusted_accounts(self.policy.benchmark)

    @cached_property
    def wanted(self) -> list[int] | None:
        """Ids of the tasks that it was asked for; None: all active ones."""
        return assignments.wanted_by(self.assignment, self.submission)

    @cached_property
    def unranks(self) -> bool:
        """Whether the agent has no rank until all of what it was asked for is there."""
        return self.wanted == self.submission.asked and not is_recalled(self.submission.agent_id)

    @cached_property
    def asked_by_now(self) -> list[int] | None:
        """The same with what the agent was asked for before, which goes on to count."""
        if self.wanted is None:
            return None
        before = (pk for one in self.submissions.values() for pk in one.asked or ())
        return list(dict.fromkeys([*self.wanted, *before]))

    @cached_property
    def names_asked(self) -> dict[int, str]:
        return self.names(self.asked_by_now)

    def names(self, task_ids: Collection[int] | None) -> dict[int, str]:
        """The names of the tasks asked for by id, in task order."""
        return asking.names_among(self._active, self.policy, task_ids)

    @cached_property
    def _active(self) -> dict[int, str]:
        return dict(active_tasks(self.policy.benchmark).values_list("id", "name"))

    @cached_property
    def submissions(self) -> dict[int, Submission]:
        """What stands, by id in order of arrival; last this one, under the id 0 where it is not stored."""
        ids = pc.unique(self.before["submission"]).to_pylist()
        stored = by_arrival(Submission.objects.filter(pk__in=ids))
        return stored | {self.submission.pk or 0: self.submission}

    @cached_property
    def blocks(self) -> list[dict[int, str]]:
        """The names by id of the tasks that the agent was first asked for together."""
        return asking.in_blocks([one.asked for one in self.submissions.values()], self.names(None))

    @cached_property
    def of_agent(self) -> AgentContext:
        return AgentContext(
            agent=self.submission.agent_id,
            submissions=self.submissions,
            policy=self.policy,
            subset=active_subset(self.policy.benchmark),
            tasks=self.names(None),
            settings=self.settings,
            is_first=self.is_first,
        )

    @cached_property
    def conditions(self) -> Mapping[int, object]:
        """By setting, as the board compares them."""
        return conditions_counted(self.outcomes, self.of_agent)

    @cached_property
    def outcomes(self) -> pa.Table:
        """All that stands for the agent, in order of delivery; what is not stored under the id 0."""
        n = self.rows.num_rows
        ids = pa.repeat(pa.scalar(self.submission.pk or 0, pa.int32()), n)
        rows = self.rows.select(OUTCOME).add_column(0, "submission", ids)
        rows = rows.append_column("free", pa.repeat(pa.scalar(False), n))
        return pa.concat_tables([self.before.select(rows.column_names), rows], promote_options="permissive")

    @cached_property
    def row(self) -> AgentRow | None:
        """The agent's part of the record, were this to count."""
        return own_row(self.outcomes, self.of_agent)

    @property
    def is_capped(self) -> bool:
        """Whether no more trials count than were asked for, also where all tasks had more at once."""
        return any(one.study_id for one in self.submissions.values())

    @cached_property
    def rest(self) -> dict[int, str]:
        """The names by id of the tasks beside those asked for, which count where all are there."""
        everything, asked_for = self.names(None), set[int]().union(*self.blocks)
        if not everything.keys() <= {task for task, _ in asking.trials(self.standing, everything)}:
            return {}
        return {pk: name for pk, name in everything.items() if pk not in asked_for}

    def most_trials(self, part: Mapping[int, str]) -> int:
        """How many trials of each task of a block, or of the rest, the board counts; 0: none of any."""
        n_conditions = len({one for one in self.conditions.values() if one is not None})
        counted = [n for task, n in places_of(self.row, self.of_agent).items() if n and task in part]
        return min(counted, default=0) // max(n_conditions, 1)

    def n_trials_asked(self, part: Mapping[int, str]) -> int | None:
        """Of each task, by whoever asked for a block first, and later more; None: as many as came."""
        block = self.blocks[0] if part is self.rest else part
        of = [one for one in self.submissions.values() if one.asked is None or block.keys() & set(one.asked)]
        if not of or of[0].n_trials is None:
            return None
        return max(one.n_trials or 0 for one in of)

    def beside_counting(self, awaiting_review: Collection[int] = ()) -> "DeliveredRows":
        """The same beside what counts alone, and these: not what waits, is checked, or is under embargo."""
        if not self.before.num_rows:
            return self
        counting = [
            pk
            for pk, one in self.submissions.items()
            if one.status == Status.ACCEPTED or pk in awaiting_review
        ]
        before = self.before.filter(pc.is_in(self.before["submission"], pa.array(counting, pa.int32())))
        return self if before.num_rows == self.before.num_rows else replace(self, before=before)

    @property
    def is_again(self) -> bool:
        """Whether such tasks of the agent count already; any, where the last delivery counts alone."""
        before = self.beside_counting().before
        before = before.filter(pc.invert(before["free"]))
        if self.policy.duplicates == Duplicates.LATEST:
            return bool(before.num_rows)
        return not _ran(self.rows, self.settings).isdisjoint(_ran(before, self.settings))

    @cached_property
    def is_better_again(self) -> bool:
        """Whether its owner took outcomes back, or does so by it, and it has better ones of these tasks."""
        stored = taken_back_outcomes(self.submission.agent)
        gone = pa.concat_tables(
            [stored, self.replaced.select(stored.column_names)], promote_options="permissive"
        )
        return is_better(self.rows, gone)

    @cached_property
    def standing(self) -> pa.Table:
        return standing(self.rows, self.before, self.conditions)


def split_replaced(stored: pa.Table, replaces: list[int]) -> tuple[pa.Table, pa.Table]:
    """What stands for an agent, without and with the submissions of these ids alone."""
    goes = pc.is_in(stored["submission"], pa.array(replaces, pa.int32()))
    return stored.filter(pc.invert(goes)), stored.filter(goes)


def standing(rows: pa.Table, before: pa.Table, conditions: Mapping[int, object]) -> pa.Table:
    """By task and condition, null where it is not compared, the number `n` of the outcomes that an agent has.

    `conditions` are those of the settings, by id.
    """
    keys = rows.select(KEY)
    if before.num_rows:  # a failure of the harness and what was delivered in its place are one
        keys = pa.concat_tables([before.select(KEY), keys]).group_by(KEY).aggregate([])
    n = keys.group_by(["task", "setting"]).aggregate([([], "count_all")])
    condition = [None if (one := conditions[pk]) is None else str(one) for pk in n["setting"].to_pylist()]
    named = pa.table({"task": n["task"], "condition": pa.array(condition, pa.string()), "n": n["count_all"]})
    return named.group_by(["task", "condition"]).aggregate([("n", "sum")]).rename_columns(named.column_names)


def _ran(rows: pa.Table, settings: Mapping[int, tuple[object, ...]]) -> set[tuple[object, ...]]:
    """Tasks with prompt and judge; a few outcomes at another temperature are a run like any other."""
    pairs = rows.group_by(["task", "setting"]).aggregate([]).to_pylist()
    return {(one["task"], *settings[one["setting"]][:2]) for one in pairs}
