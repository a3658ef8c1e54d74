"""The one path on which outcomes come in.

What the interface and files deliver differs in how it is parsed and in what is allowed to stand beside it.
From there on it is the same: `MatchedRows` gives the rows their ids and compares them with what is stored,
`draft` and `record` store some of them as a submission, and `append_changes` ends the transaction.
"""

import functools
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import connection

from leaderboard.accounts.models import User
from leaderboard.catalog.models import Agent, Benchmark, Task
from leaderboard.notify import wake
from leaderboard.submissions.copying import copy_in
from leaderboard.submissions.models import (
    COUNTING,
    Outcome,
    OutcomeDetail,
    Setting,
    Status,
    StatusChange,
    Submission,
)
from leaderboard.submissions.parsing.flat import FlatFile
from leaderboard.submissions.queries import live_outcomes, settings_of
from leaderboard.submissions.rows import (
    KEY,
    OUTCOME,
    CodedNames,
    content_sha256,
    place,
    same_outcome,
)


def ensure_settings(
    *, benchmark: Benchmark, settings: Iterable[tuple[Any, ...]]
) -> dict[tuple[Any, ...], int]:
    known = settings_of(benchmark)
    absent = [
        Setting(benchmark=benchmark, **dict(zip(Setting.FACETS, s, strict=True)))
        for s in settings
        if tuple(s) not in known
    ]
    if not absent:
        return known
    Setting.objects.bulk_create(absent, ignore_conflicts=True)
    return settings_of(benchmark)


def change_status(
    *,
    submissions: Sequence[Submission],
    status: Status,
    at: datetime,
    by: User | None,
    reason: str = "",
    after_board: bool = False,
    judged: str = "",
) -> list[StatusChange]:
    Submission.objects.filter(pk__in=[s.pk for s in submissions]).update(status=status)
    return [
        StatusChange(
            submission=s,
            status=status,
            at=at,
            by=by,
            reason=reason,
            after_board=after_board and s.status == Status.ACCEPTED,
            judged=judged,
        )
        for s in submissions
    ]


def append_changes(
    *, benchmark: Benchmark, changes: Sequence[StatusChange], tasks_came: bool = False
) -> None:
    """Append to the history, under one new data version where what counts has changed.

    These are the last statements of a transaction: the row of the benchmark is locked from here on. Tasks
    that came with it bear the same version; what got a category, group, scaffold or model counts as coming.
    """
    counting = [
        change
        for change in changes
        if change.status in COUNTING or change.submission.status == Status.ACCEPTED  # it had counted
    ]
    if counting or tasks_came:
        version = bump_data_version(benchmark=benchmark)
        for change in counting:
            change.data_version = version
        if tasks_came:
            benchmark.tasks.filter(since=None).update(since=version)
    StatusChange.objects.bulk_create(changes)


def carry_details(*, old: Sequence[Submission], new: Submission) -> None:
    """Copy the details of superseded outcomes to those that `new` took over unchanged, without any."""
    key = {"submission_id", "task_id", "setting_id", "trial"}
    columns = ", ".join(f.name for f in OutcomeDetail._meta.concrete_fields if f.name not in key)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO submissions_outcomedetail (submission_id, task_id, setting_id, trial, {columns})
            SELECT %s, task_id, setting_id, trial, {columns}
            FROM (
                SELECT DISTINCT ON (task_id, setting_id, trial) o.submission_id, task_id, setting_id, trial
                FROM submissions_outcome o JOIN submissions_outcome n USING (task_id, setting_id, trial)
                WHERE o.submission_id = ANY(%s) AND n.submission_id = %s
                    AND (n.value, n.valid) IS NOT DISTINCT FROM (o.value, o.valid)
                ORDER BY task_id, setting_id, trial, o.submission_id DESC
            ) AS latest JOIN submissions_outcomedetail d USING (submission_id, task_id, setting_id, trial)
            ON CONFLICT DO NOTHING
            """,
            [new.pk, [s.pk for s in old], new.pk],
        )


def bump_data_version(*, benchmark: Benchmark) -> int:
    """Say that the counted outcomes change, at the end of the transaction; return the version reached.

    The scheduler wakes when it is committed.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE catalog_benchmark SET data_version = data_version + 1 WHERE id = %s"
            " RETURNING data_version",
            [benchmark.pk],
        )
        (version,) = cursor.fetchone()
    wake()
    return int(version)


LockedIds = defaultdict[type[Task] | type[Setting], set[int]]  # by the transaction


def _hold(model: type[Task] | type[Setting], named: pa.ChunkedArray, locked_ids: LockedIds) -> None:
    ids = [pk for pk in pc.unique(named).to_pylist() if pk not in locked_ids[model]]
    if not ids:
        return
    locked_ids[model].update(ids)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id FROM {model._meta.db_table} WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE", [ids]
        )
        if cursor.rowcount != len(ids):
            raise RuntimeError(f"an outcome names a {model._meta.model_name} that does not exist")


def _copied(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The key and these columns, as the database calls them."""
    ids = {f"{name}_id": rows[name] for name in ("submission", "task", "setting")}
    return pa.table(ids | {name: rows[name] for name in ("trial", *names)})


class MatchedRows:
    """Delivered rows with their ids, beside what is stored under the same keys.

    stored: all live outcomes of these agents.
    holder: (n_rows,); id of the submission that holds the row's key; 0: it is free.
    same: (n_rows,) bool; this very outcome is stored.
    """

    def __init__(
        self,
        flat: FlatFile,
        *,
        benchmark: Benchmark,
        agents: Mapping[str, Agent],
        task_ids: Mapping[str, int] | None = None,
        are_new: bool = False,
    ) -> None:
        """Place the rows of these agents, who are locked, so that what is stored stays as it is.

        `task_ids` by name, where they are known. `are_new`: nothing is stored for these agents.
        """
        task_ids = task_ids or dict(benchmark.tasks.values_list("name", "id"))
        setting_ids = ensure_settings(benchmark=benchmark, settings=flat.settings)
        self.flat, self.are_new = flat, are_new
        self.agents = {agent.pk: agent for agent in agents.values()}
        self.task_names = {pk: name for name, pk in task_ids.items()}
        self.settings = {pk: facets for facets, pk in setting_ids.items()}
        self._coded_tasks = CodedNames(self.task_names)
        self._coded_settings = CodedNames({pk: json.dumps(facets) for pk, facets in self.settings.items()})
        self.rows = rows = place(
            flat,
            agents=[agents[name].pk for name in flat.agents],
            tasks=[task_ids[name] for name in flat.tasks],
            settings=[setting_ids[tuple(setting)] for setting in flat.settings],
        )
        self.stored = stored = live_outcomes([] if are_new else list(self.agents))
        self.holder, self.same = np.zeros(rows.num_rows, np.int64), np.zeros(rows.num_rows, bool)
        if stored.num_rows:
            numbered = rows.select(OUTCOME).append_column("row", pa.array(np.arange(rows.num_rows)))
            both = numbered.join(stored, keys=KEY, join_type="inner", right_suffix="_stored")
            equal = pc.and_(
                same_outcome(both["value"], both["value_stored"]),
                same_outcome(both["valid"], both["valid_stored"]),
            )
            at, holds = both["row"].to_numpy(), ~both["free"].to_numpy()
            self.holder[at[holds]] = both["submission"].to_numpy()[holds]
            self.same[at[equal.to_numpy()]] = True

    def sha256(self, rows: pa.Table) -> bytes:
        return content_sha256(rows, tasks=self._coded_tasks, settings=self._coded_settings)


def draft(
    rows: pa.Table, *, matched: MatchedRows, status: Status = Status.ACCEPTED, **values: Any
) -> Submission:
    """The submission of these rows, not stored yet; `values` are its fields that the rows do not tell."""
    return Submission(
        agent=matched.agents[rows["agent"][0].as_py()],
        status=status,
        content_sha256=matched.sha256(rows),
        n_outcomes=rows.num_rows,
        n_invalid=rows.num_rows - pc.sum(rows["valid"]).as_py(),
        **values,
    )


Draft = tuple[Submission, pa.Table, Sequence[Submission]]  # with its rows, and what it replaces


def record(
    drafts: Sequence[Draft],
    *,
    reason: str,
    judged: str = "",
    taken_back_after_board: bool = False,
    locked_ids: LockedIds | None = None,
) -> list[StatusChange]:
    """Store drafts with their rows; what one replaces is superseded once it counts.

    The outcomes name tasks and settings without foreign keys, so the ids are checked here, once, and locked
    until the transaction ends; `locked_ids` are already, and the others are added to them. `reason` and
    `judged` are of their first status. `taken_back_after_board`: what they replace is their owner's, and a
    board has shown the agent. Returns the changes to append at the end, of each draft its own last.
    """
    superseded = [
        change_status(
            submissions=replaces,
            status=Status.SUPERSEDED,
            at=submission.received_at,
            by=submission.submitted_by,
            reason=f"by {submission.uuid}",
            after_board=taken_back_after_board,
        )
        if replaces and submission.status == Status.ACCEPTED
        else []
        for submission, _, replaces in drafts
    ]
    rows = pa.concat_tables([rows for _, rows, _ in drafts], promote_options="default").combine_chunks()
    locked_ids = LockedIds(set) if locked_ids is None else locked_ids
    _hold(Task, rows["task"], locked_ids)
    _hold(Setting, rows["setting"], locked_ids)
    submissions = Submission.objects.bulk_create(submission for submission, _, _ in drafts)
    numbers = np.repeat([one.pk for one in submissions], [one.num_rows for _, one, _ in drafts])
    rows = rows.add_column(0, "submission", pa.array(numbers, pa.int32()))
    copy_in(_copied(rows, ["value", "valid"]), model=Outcome)
    if names := rows.column_names[1 + len(OUTCOME) :]:
        has_detail = functools.reduce(pc.or_, (pc.is_valid(rows[name]) for name in names))
        copy_in(_copied(rows.filter(has_detail), names), model=OutcomeDetail)
    stored = (
        StatusChange(
            submission=submission,
            status=submission.status,
            at=submission.received_at,
            by=submission.submitted_by,
            reason=reason,
            judged=judged,
        )
        for submission in submissions
    )
    return [change for before, own in zip(superseded, stored, strict=True) for change in (*before, own)]


def propose_changes(draft: Draft, *, taken_back_after_board: bool) -> list[StatusChange]:
    """Return the changes of `record`, and store nothing."""
    submission, _, replaces = draft
    if submission.status != Status.ACCEPTED:
        return []
    superseded = [
        StatusChange(status=Status.SUPERSEDED, after_board=taken_back_after_board) for _ in replaces
    ]
    return [*superseded, StatusChange(status=submission.status)]
