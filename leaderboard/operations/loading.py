"""`load`: a whole file of outcomes into a benchmark, in one transaction or not at all."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction

from leaderboard.catalog.models import Agent, Benchmark
from leaderboard.catalog.services import (
    AgentDescription,
    ensure_agents,
    ensure_tasks,
    get_or_create_benchmark,
)
from leaderboard.errors import Faulty
from leaderboard.submissions.models import Status, Submission
from leaderboard.submissions.parsing.flat import MAX_FAULTS, Fault, FlatFile
from leaderboard.submissions.queries import live_outcomes
from leaderboard.submissions.rows import KEY, OUTCOME, content_sha256, place, same_outcome
from leaderboard.submissions.services import (
    bump_data_version,
    carry_details,
    change_status,
    ensure_settings,
    record_submission,
)


@dataclass(frozen=True)
class LoadReport:
    """What a load did, or would do."""

    benchmark: str
    n_rows: int
    n_new: int
    n_same: int
    n_replaced: int
    n_submissions: int
    n_agents: int
    n_tasks: int
    n_new_tasks: int


@transaction.atomic
def load(
    *,
    flat: FlatFile,
    slug: str,
    as_of: datetime,
    replace: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LoadReport:
    """Store what is new in the file: a submission for each agent and run.

    Rows that are stored already are skipped. A row that contradicts what is stored is a fault, or with
    `replace` supersedes the submission that holds it.
    """
    benchmark, _ = get_or_create_benchmark(slug=slug, title=flat.benchmark)
    n_new_tasks = ensure_tasks(
        benchmark=benchmark, categories=dict(zip(flat.tasks, flat.categories, strict=True))
    )
    placed = _Placed.of(flat, benchmark)
    if placed.n_changed and not replace:
        raise placed.contradiction()
    groups = list(placed.groups())
    for done, group in enumerate(groups):
        progress(done, len(groups))
        _record(group, placed, as_of=as_of)
    progress(len(groups), len(groups))
    if groups or n_new_tasks:
        bump_data_version(benchmark=benchmark)
    transaction.set_rollback(dry_run)
    return LoadReport(
        benchmark=slug,
        n_rows=flat.n_rows,
        n_new=placed.n_new,
        n_same=flat.n_rows - placed.n_new - placed.n_changed,
        n_replaced=placed.n_changed,
        n_submissions=len(groups),
        n_agents=len(flat.agents),
        n_tasks=len(flat.tasks),
        n_new_tasks=n_new_tasks,
    )


@dataclass(frozen=True)
class _Placed:
    """The file's rows with their ids, beside what is stored under the same keys."""

    flat: FlatFile
    agents: dict[int, Agent]
    task_names: dict[int, str]
    settings: dict[int, tuple[object, ...]]
    rows: pa.Table
    stored: pa.Table
    holder: np.ndarray  # (n_rows,) id of the submission that holds the row's key; 0: none does
    changed: np.ndarray  # (n_rows,) bool: it holds another outcome
    new: np.ndarray  # (n_rows,) bool: nothing holds it

    @classmethod
    def of(cls, flat: FlatFile, benchmark: Benchmark) -> "_Placed":
        described = [AgentDescription(*d) for d in zip(flat.agents, flat.scaffolds, flat.models, strict=True)]
        agents = ensure_agents(benchmark=benchmark, descriptions=described, owner=None)
        task_ids = dict(benchmark.tasks.values_list("name", "id"))
        setting_ids = ensure_settings(benchmark=benchmark, settings=flat.settings)
        rows = place(
            flat,
            agents=[agents[name].pk for name in flat.agents],
            tasks=[task_ids[name] for name in flat.tasks],
            settings=[setting_ids[tuple(setting)] for setting in flat.settings],
        )
        stored = live_outcomes([agent.pk for agent in agents.values()])
        holder, changed = _compare(rows, stored)
        return cls(
            flat=flat,
            agents={agent.pk: agent for agent in agents.values()},
            task_names={pk: name for name, pk in task_ids.items()},
            settings={pk: facets for facets, pk in setting_ids.items()},
            rows=rows,
            stored=stored,
            holder=holder,
            changed=changed,
            new=holder == 0,
        )

    @property
    def n_new(self) -> int:
        return int(self.new.sum())

    @property
    def n_changed(self) -> int:
        return int(self.changed.sum())

    def contradiction(self) -> Faulty:
        """Name the rows that contradict what is stored, with both outcomes."""
        where = np.flatnonzero(self.changed)
        rows = self.rows.take(where[:MAX_FAULTS])
        stored = rows.select(KEY).join(self.stored, keys=KEY, join_type="left outer")
        both = {tuple(r[k] for k in KEY): r for r in stored.to_pylist()}
        faults = tuple(
            Fault(
                row=int(i) + 1,
                field="outcome",
                value=_said(row),
                rule=f"is stored as {_said(both[tuple(row[k] for k in KEY)])} for agent "
                f"{self.agents[row['agent']].name!r}, task {self.task_names[row['task']]!r}, "
                f"trial {row['trial']}; --replace supersedes the stored submission",
            )
            for i, row in zip(where, rows.to_pylist(), strict=False)
        )
        return Faulty(
            "The file contradicts what is stored; nothing was stored.", faults=faults, n_faults=len(where)
        )

    def groups(self) -> Iterator["_Group"]:
        """The rows to store, one group for each agent and run, in order of agent name and run."""
        wanted = np.flatnonzero(self.new | self.changed)
        runs = sorted({self._run(i) for i in range(len(self.flat.settings))})
        run_of_setting = np.array([runs.index(self._run(i)) for i in range(len(self.flat.settings))])
        run = run_of_setting[self.flat.setting[wanted]]
        agent, task, setting, trial = (
            getattr(self.flat, name)[wanted] for name in ("agent", "task", "setting", "trial")
        )
        order = np.lexsort((trial, setting, task, run, agent))
        label = agent[order].astype(np.int64) * len(runs) + run[order]
        superseded: set[int] = set()
        for part in np.split(order, np.flatnonzero(np.diff(label)) + 1):
            if len(part):
                group = self._group(wanted[part], superseded)
                superseded |= set(group.supersedes)
                yield group

    def _run(self, setting: int) -> str:
        return self.flat.settings[setting].run or ""

    def _group(self, index: np.ndarray, superseded: set[int]) -> "_Group":
        old = sorted(set(self.holder[index][self.changed[index]].tolist()) - superseded)
        rows = self.rows.take(index)
        if old:
            left = self.stored.filter(pc.is_in(self.stored["submission"], pa.array(old, pa.int32())))
            taken = self.rows.filter(pa.array(self.new | self.changed)).select(KEY)
            carried = left.join(taken, keys=KEY, join_type="left anti").drop_columns("submission")
            rows = pa.concat_tables([rows, carried.select(OUTCOME)], promote_options="default")
        dates = self.flat.submitted_at[index]
        dated = index[~np.isnat(dates)]
        earliest = dated[np.argmin(self.flat.submitted_at[dated])] if len(dated) else None
        return _Group(
            rows=rows,
            supersedes=old,
            submitted_at=None
            if earliest is None
            else self.flat.submitted_at[earliest].item().replace(tzinfo=UTC),
            imprecise=earliest is None or bool(self.flat.imprecise[earliest]),
        )


@dataclass(frozen=True)
class _Group:
    rows: pa.Table
    supersedes: list[int]
    submitted_at: datetime | None
    imprecise: bool


def _record(group: _Group, placed: _Placed, *, as_of: datetime) -> None:
    rows = group.rows
    old = list(Submission.objects.filter(pk__in=group.supersedes).order_by("pk"))
    submission = Submission(
        agent=placed.agents[rows["agent"][0].as_py()],
        status=Status.ACCEPTED,
        submitted_at=group.submitted_at,
        imprecise=group.imprecise,
        received_at=as_of,
        content_sha256=content_sha256(rows, task_names=placed.task_names, settings=placed.settings),
        n_outcomes=rows.num_rows,
        n_invalid=rows.num_rows - pc.sum(rows["valid"]).as_py(),
        replaces=old[0] if old else None,
    )
    change_status(
        submissions=old, status=Status.SUPERSEDED, at=as_of, by=None, reason=f"load: {submission.uuid}"
    )
    record_submission(submission=submission, rows=rows, by=None, reason="load")
    if old:
        carry_details(old=old, new=submission)


def _compare(rows: pa.Table, stored: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row the submission that holds its key (0: none) and whether the outcomes differ."""
    if not stored.num_rows:
        return np.zeros(rows.num_rows, np.int64), np.zeros(rows.num_rows, bool)
    numbered = rows.select(OUTCOME).append_column("row", pa.array(np.arange(rows.num_rows)))
    both = numbered.join(stored, keys=KEY, join_type="left outer", right_suffix="_stored").sort_by("row")
    held = pc.is_valid(both["submission"])
    same = pc.and_(
        same_outcome(both["value"], both["value_stored"]), same_outcome(both["valid"], both["valid_stored"])
    )
    holder = pc.fill_null(both["submission"], 0).to_numpy().astype(np.int64)
    return holder, pc.and_(held, pc.invert(same)).to_numpy()


def _said(row: dict[str, object]) -> str:
    return "no outcome" if row["value"] is None else f"{row['value']:.9g}" + " (invalid)" * (not row["valid"])
