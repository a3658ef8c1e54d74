"""A delivery beside what stands for its agent: what its receipt, its checks and its acceptance ask.

And what became of it, for its owner and operators: what arrived, what it lacks, what a board did.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from django.db.models import Q, QuerySet

from leaderboard.accounts.models import ApiToken, User
from leaderboard.boards.queries import boards_of
from leaderboard.catalog.models import Benchmark, Duplicates, MissingPlaces, Policy, Role
from leaderboard.catalog.queries import active_tasks, policy_in_force, role_of, visible_benchmarks
from leaderboard.operations import asking, assignments, quotas
from leaderboard.operations.models import Assignment, Mode
from leaderboard.operations.queries import NoSuchSubmission, is_recalled
from leaderboard.studies.queries import active_subset
from leaderboard.studies.receipt import AgentContext, AgentRow, conditions_counted, own_row, places_of
from leaderboard.submissions.models import LIVE, Judged, Status, Submission
from leaderboard.submissions.queries import (
    by_arrival,
    is_by_owner,
    live_outcomes,
    settings_of,
    standing_submissions,
    taken_back_outcomes,
    trusted_accounts,
    withheld,
)
from leaderboard.submissions.rows import IDENTITY, KEY, OUTCOME, ran_again


@dataclass(frozen=True, eq=False)
class DeliveredRows:
    """Rows that came, under a submission that is stored or would be.

    `rows` has the key of each outcome, its value and whether it is valid; `before`, what stood and goes on to
    stand, and `replaced`, what goes, have the submission and whether the key is free beside.
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
        return trusted_accounts(self.policy.benchmark)

    @cached_property
    def wanted(self) -> list[int] | None:
        return assignments.wanted_by(self.assignment, self.submission)

    @cached_property
    def unranks(self) -> bool:
        """Whether the agent has no rank until all of what it was asked for is there."""
        is_awaited = not self.is_first and is_recalled(self.submission.agent_id)
        return self.wanted == self.submission.asked and not is_awaited

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
        return conditions_counted(self.counted, self.of_agent)

    @cached_property
    def outcomes(self) -> pa.Table:
        """All that stands for the agent, in order of delivery; what is not stored under the id 0."""
        n = self.rows.num_rows
        ids = pa.repeat(pa.scalar(self.submission.pk or 0, pa.int32()), n)
        rows = self.rows.select(OUTCOME).add_column(0, "submission", ids)
        rows = rows.append_column("free", pa.repeat(pa.scalar(False), n))
        return pa.concat_tables([self.before.select(rows.column_names), rows], promote_options="permissive")

    @cached_property
    def counted(self) -> pa.Table:
        return _counted(self.outcomes, self.of_agent)

    @cached_property
    def row(self) -> AgentRow | None:
        return own_row(self.outcomes, self.of_agent)

    @property
    def is_capped(self) -> bool:
        """Whether no more trials count than were asked for, also where all tasks had more at once."""
        return any(one.study_id for one in self.submissions.values())

    @cached_property
    def rest(self) -> dict[int, str]:
        """The names by id of the tasks beside those asked for, which count where all are there."""
        everything, asked_for = self.names(None), set[int]().union(*self.blocks)
        if not everything.keys() <= {task for task, _ in asking.trials(self.n_counted, everything)}:
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
        accepted = {pk for pk, one in self.submissions.items() if one.status == Status.ACCEPTED}
        counting = pa.array([*accepted, *awaiting_review], pa.int32())
        before = self.before.filter(pc.is_in(self.before["submission"], counting))
        return self if before.num_rows == self.before.num_rows else replace(self, before=before)

    @property
    def is_again(self) -> bool:
        """Whether such tasks of the agent count already; any, where the last delivery counts alone."""
        before = self.beside_counting().before
        before = before.filter(pc.invert(before["free"]))
        if self.policy.duplicates == Duplicates.LATEST:
            return bool(before.num_rows)
        is_repeated = not _ran(self.rows, self.settings).isdisjoint(_ran(before, self.settings))
        return is_repeated or self.fills_failures

    @cached_property
    def fills_failures(self) -> bool:
        """Whether it has passes of tasks that were requested earlier and counted as failures until now."""
        counting = self.beside_counting()
        if self.policy.missing != MissingPlaces.ZERO or not counting.before.num_rows:
            return False
        better = self.rows.filter(pc.greater(self.rows["value"], 0))
        if not (before := self._counting(counting.before)):  # the board ranked nothing of it
            return False
        late = {task for task, _ in self._counting(better) - before}
        asked = [one.asked for one in counting.submissions.values() if one is not self.submission]
        return any(late.intersection(self.names(None) if one is None else one) for one in asked)

    def _counting(self, rows: pa.Table) -> set[tuple[int, object]]:
        """Tasks with the condition that their outcomes count under."""
        pairs = rows.group_by(["task", "setting"]).aggregate([]).to_pylist()
        return {(one["task"], of) for one in pairs if (of := self.conditions[one["setting"]]) is not None}

    @cached_property
    def is_run_again(self) -> bool:
        """Whether tasks stand with it that the owner took back and ran again; see `rows.ran_again`."""
        names, now = ["submission", *IDENTITY], self.submission
        before = self.beside_counting().before
        gone, before = taken_back_outcomes(now.agent), before.filter(pc.invert(before["free"]))
        parts = [gone.select(names)]
        if is_by_owner(now):
            parts.append(self.replaced.filter(pc.invert(self.replaced["free"])).select(names))
        gone = pa.concat_tables(parts, promote_options="permissive")
        if not gone.num_rows:
            return False
        number = 1 + max(pc.max(one["submission"]).as_py() or 0 for one in (gone, before))  # it comes last
        ids = pa.repeat(pa.scalar(number, pa.int32()), self.rows.num_rows)
        rows = self.rows.select(IDENTITY).append_column("submission", ids).select(names)
        standing = pa.concat_tables([before.select(names), rows], promote_options="permissive")
        reviewed = Submission.objects.filter(
            status_changes__judged=Judged.REVIEWED, pk__in=[*self.submissions]
        )
        own = {pk for pk, one in self.submissions.items() if is_by_owner(one)}
        own = own.difference(reviewed.values_list("pk", flat=True))
        own |= {number} if is_by_owner(now) else set()
        return ran_again(gone, standing, own)

    @cached_property
    def standing(self) -> pa.Table:
        return _n_outcomes(self.outcomes, self.conditions)

    @cached_property
    def n_counted(self) -> pa.Table:
        """The same of what counts by the policy on duplicates."""
        return _n_outcomes(self.counted, self.conditions)


def stored_delivery(submission: Submission, *, overtaken: bool = False) -> DeliveredRows:
    """A stored submission beside what was delivered before it; `overtaken`: or since, while it waited."""
    agent = submission.agent
    live = live_outcomes([agent.pk])
    earlier = live.filter((pc.not_equal if overtaken else pc.less)(live["submission"], submission.pk))
    before, replaced = split_replaced(earlier, [submission.replaces_id] if submission.replaces_id else [])
    return DeliveredRows(
        submission=submission,
        policy=policy_in_force(agent.benchmark),
        rows=live.filter(pc.equal(live["submission"], submission.pk)),
        before=before,
        replaced=replaced,
        settings={pk: facets for facets, pk in settings_of(agent.benchmark).items()},
        assignment=submission.assignments.first(),
    )


def split_replaced(stored: pa.Table, replaces: list[int]) -> tuple[pa.Table, pa.Table]:
    """What stands for an agent, without and with the submissions of these ids alone."""
    goes = pc.is_in(stored["submission"], pa.array(replaces, pa.int32()))
    return stored.filter(pc.invert(goes)), stored.filter(goes)


def _counted(outcomes: pa.Table, of: AgentContext) -> pa.Table:
    """What counts by the policy on duplicates."""
    if of.policy.duplicates == Duplicates.MEAN:
        return outcomes
    alone = list(of.submissions)[-1 if of.policy.duplicates == Duplicates.LATEST else 0]
    return outcomes.filter(pc.equal(outcomes["submission"], alone))


def _n_outcomes(outcomes: pa.Table, conditions: Mapping[int, object]) -> pa.Table:
    """By task and condition, null where it is not compared, the number `n` of the outcomes.

    `conditions` are those of the settings, by id. A failure of the harness and what was delivered in its
    place are one.
    """
    keys = outcomes.group_by(KEY).aggregate([])
    n = keys.group_by(["task", "setting"]).aggregate([([], "count_all")])
    condition = [None if (one := conditions[pk]) is None else str(one) for pk in n["setting"].to_pylist()]
    named = pa.table({"task": n["task"], "condition": pa.array(condition, pa.string()), "n": n["count_all"]})
    return named.group_by(["task", "condition"]).aggregate([("n", "sum")]).rename_columns(named.column_names)


def _ran(rows: pa.Table, settings: Mapping[int, tuple[object, ...]]) -> set[tuple[object, ...]]:
    """Tasks with prompt and judge; a few outcomes at another temperature are a run like any other."""
    pairs = rows.group_by(["task", "setting"]).aggregate([]).to_pylist()
    return {(one["task"], *settings[one["setting"]][:2]) for one in pairs}


# -------------------------------------------------------------------------------------- what became of it

OF_STATUS = {
    Status.CHECKING: "Checks are running.",
    Status.WAITING: "It waits for review or for the end of its embargo. It does not count yet.",
    Status.REFUSED: "It was refused and does not count.",
    Status.SUPERSEDED: "Another submission replaced it. It no longer counts.",
    Status.WITHDRAWN: "It was withdrawn and no longer counts.",
}


def submissions_of(user: User, benchmark: Benchmark | None = None) -> QuerySet[Submission]:
    submissions = Submission.objects.filter(Q(submitted_by=user) | Q(agent__owner=user))
    if benchmark is not None:
        submissions = submissions.filter(agent__benchmark=benchmark)
    return submissions.select_related("agent__benchmark").order_by("-id")


def followed_by(user: User, uuid: UUID) -> Submission:
    """The submission, to whoever delivered it, its agent's owner, and operators; to others there is none."""
    submissions = Submission.objects.select_related("agent__benchmark", "replaces", "submitted_by")
    visible = submissions.filter(uuid=uuid, agent__benchmark__in=visible_benchmarks(user).values("pk"))
    if (one := visible.first()) and (
        user.pk in (one.submitted_by_id, one.agent.owner_id)
        or role_of(user, one.agent.benchmark) == Role.OPERATOR
    ):
        return one
    raise NoSuchSubmission


class Followed:
    """What became of a submission.

    `lacking` is in words and empty for a whole run; `checks` is None until they were made.
    `quota` is what the token and the agent may still deliver today, None where nobody counts, and for
    operators, who have no bound. `entry` is the agent's line on `board`, the latest; None where it has none.
    """

    def __init__(self, submission: Submission, *, token: ApiToken | None, as_of: datetime) -> None:
        agent, counted = submission.agent, token or submission.token
        self.submission = submission
        self.history = list(submission.status_changes.order_by("id"))
        check = getattr(submission, "machine_check", None)
        self.checks: list[dict[str, str]] | None = check.found if check else None
        left = counted and quotas.remaining(
            benchmark=agent.benchmark, token=counted, agent=agent, as_of=as_of
        )
        self.quota = left.as_plain() if left else None
        assignment = submission.assignments.select_related("subset").order_by("-id").first()
        self.assignment, is_staged = assignment, assignment and assignment.mode == Mode.STAGED
        self.staged = asking.step_of(assignment) if assignment and is_staged else None
        self.lacking = _lacking(submission, assignment) if submission.status in LIVE else []
        self.replaced_by = submission.replaced_by.order_by("-id").first()
        board = boards_of(agent.benchmark).order_by("-number").first()
        self.entry = (
            board.entries.filter(agent_id=agent.merged_into_id or agent.pk).first() if board else None
        )
        self.board = board if self.entry else None

    @property
    def quota_lines(self) -> list[tuple[str, str]]:
        counted = [(name, one) for name, one in (self.quota or {}).items() if isinstance(one, dict)]
        return [
            (f"of this {name}", f"{one['left']:,} of {one['limit']:,} submissions") for name, one in counted
        ]

    @property
    def standing(self) -> str:
        if sentence := OF_STATUS.get(Status(self.submission.status)):
            return sentence
        agent = self.submission.agent
        if withheld(agent.benchmark, agent=agent.merged_into or agent):
            return "The agent took results back, so it has no rank until an operator approves."
        if self.entry is None or self.board is None:
            return "It counts. The next board shows it."
        shows = f"Board {self.board.number} shows {self.entry.name}"
        place = self.entry.line["at"].get(self.board.target) or {}
        if place.get("rank") is None:
            reason = place.get("reason") or "no reason is stored"
            return f"{shows}: not ranked: {reason}."
        lower, upper = place.get("rank_lower"), place.get("rank_upper")
        between = f", between {lower} and {upper} with 95%" if lower is not None else ""
        return f"{shows}: rank {place['rank']}{between}."


def _lacking(submission: Submission, assignment: Assignment | None) -> list[str]:
    """What the agent still lacks of what this delivery was asked for, with all that it delivered since."""
    policy = policy_in_force(submission.agent.benchmark)
    wanted = assignments.wanted_by(assignment, submission)
    agent = submission.agent.merged_into_id or submission.agent_id
    of_agent = asking.agent_context(agent, standing_submissions(agent), policy)
    outcomes = _counted(live_outcomes([agent]), of_agent)
    n_outcomes = _n_outcomes(outcomes, conditions_counted(outcomes, of_agent))
    blocks = asking.in_blocks([one.asked for one in of_agent.submissions.values()], of_agent.tasks)
    names = asking.names_asked(policy, wanted)
    unranked = wanted == submission.asked and not is_recalled(agent)
    return list(asking.lacking(n_outcomes, names, blocks, policy, unranked=unranked))
