"""Whole files of outcomes into a benchmark, in one transaction or not at all."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction
from django.db.models import Q

from analytics.names import without_case
from leaderboard.accounts.models import User
from leaderboard.called import PROGRAM, set_command
from leaderboard.catalog.models import Agent, Benchmark, MissingPlaces, Policy
from leaderboard.catalog.queries import MAX_NAMED, active_tasks, benchmark_of, policy_in_force
from leaderboard.catalog.services import (
    AgentDescription,
    complete_agents,
    ensure_agents,
    ensure_tasks,
    get_or_create_benchmark,
    grouped_tasks,
    look_alikes,
    reads_like,
)
from leaderboard.errors import Faulty, Refusal
from leaderboard.operations import naming
from leaderboard.operations.acting import acting
from leaderboard.operations.events import tell_of_arrivals
from leaderboard.operations.file_metadata import FileMetadata
from leaderboard.operations.policies import changed_policy, put_in_force, with_missing_decided
from leaderboard.operations.runs import Progress
from leaderboard.studies.answers import words
from leaderboard.studies.versions import import_versions
from leaderboard.submissions.models import LIVE, Approval, Status, StatusChange, Submission
from leaderboard.submissions.parsing.flat import (
    MAX_FAULTS,
    Fault,
    FlatFile,
    excerpt,
)
from leaderboard.submissions.queries import details_of
from leaderboard.submissions.rows import KEY, OUTCOME
from leaderboard.submissions.services import (
    Draft,
    LockedIds,
    MatchedRows,
    append_changes,
    bump_data_version,
    carry_details,
    change_status,
    draft,
    record,
)

ALONE = "The file"
ROWS_AT_ONCE = 250_000
ALL_RANKED = re.compile(r"([\d,]+) of \1 agents ")  # as `resolve` of the core says it


@dataclass(frozen=True)
class LoadReport:
    benchmark: str
    n_rows: int
    n_new: int
    n_same: int
    n_replaced: int
    n_remeasured: int  # of those: the outcome stayed, the cost, number of tokens or time did not
    n_submissions: int
    n_agents: int
    n_tasks: int
    n_new_tasks: int
    n_invalid: int = 0
    n_named: int = 0
    notes: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()  # of missing results and tasks that count, by the policy in force


@transaction.atomic
def load(
    *,
    flat: FlatFile | Mapping[str, FlatFile],
    slug: str,
    as_of: datetime,
    replace: bool = False,
    own: bool = False,
    dry_run: bool = False,
    by: User | None = None,
    reason: str = "load",
    versions: Any = None,
    progress: Progress = lambda done, total: None,
) -> LoadReport:
    """Store what is new in a file, or in several by name: of each a submission for each agent and run.

    Rows that are stored already are skipped. A row that contradicts what is stored is a fault, or with
    `replace` supersedes the submission that holds it, as a row with another cost does; a failure of the
    harness contradicts nothing. Subset `versions` that were exported with the file are taken over by a
    benchmark that has none. With `own`, agents of the file that submitters own are the operators' from now
    on, described as in the file; what submitters stored of them is withdrawn.
    """
    files = {ALONE: flat} if isinstance(flat, FlatFile) else flat
    _check_spelling(files)
    benchmark, _ = get_or_create_benchmark(slug=slug, title=next(iter(files.values())).benchmark)
    before = grouped_tasks(benchmark)
    loads, file_of = list[_Load](), dict[int, str]()
    for name, one in files.items():  # what one file stores the next one finds
        part = _Load(one, benchmark, called=name, by=by, as_of=as_of, replace=replace, own=own, reason=reason)
        part.store(progress=progress, file_of=file_of)
        loads.append(part)
    changes = [change for one in loads for change in one.changes]
    tell_of_arrivals(benchmark=benchmark, changes=changes, as_of=as_of)
    tasks_came = grouped_tasks(benchmark) != before or any(one.n_named for one in loads)
    append_changes(benchmark=benchmark, changes=changes, tasks_came=tasks_came)
    if taken := [agent for one in loads for agent in one.taken]:
        now = {"data_version": bump_data_version(benchmark=benchmark), "at": as_of, "by": by}
        Approval.objects.bulk_create(Approval(agent=agent, reason=reason, **now) for agent in taken)
    decided, retired, named_before = list[str](), list[str](), policy_in_force(benchmark).universe
    if versions is None:
        decided = list(_decide_missing(benchmark, loads, dry_run=dry_run, as_of=as_of, by=by, reason=reason))
        decided += _uncounted_tasks(named_before, benchmark, loads)
        retired += _retired_tasks(benchmark, loads)
    elif policy := import_versions(benchmark=benchmark_of(slug), content=versions):
        put_in_force(policy=policy, by=by, reason=reason)
    transaction.set_rollback(dry_run)
    n_rows, n_new = sum(one.matched.flat.n_rows for one in loads), sum(int(one.new.sum()) for one in loads)
    n_changed = sum(int(one.changed.sum()) for one in loads)
    return LoadReport(
        benchmark=slug,
        n_rows=n_rows,
        n_new=n_new,
        n_same=n_rows - n_new - n_changed,
        n_replaced=n_changed,
        n_remeasured=sum(int(one.remeasured.sum()) for one in loads),
        n_submissions=sum(one.n_submissions for one in loads),
        n_agents=len({name for one in loads for name in one.agents_of_new()}),
        n_tasks=len({name for one in loads for name in one.matched.flat.tasks}),
        n_new_tasks=sum(one.n_new_tasks for one in loads),
        n_invalid=sum(int((one.new & ~one.matched.flat.valid).sum()) for one in loads),
        n_named=sum(one.n_named for one in loads),
        notes=(*dict.fromkeys(note for one in loads for note in one.notes), *retired),
        decided=tuple(decided),
    )


def _decide_missing(
    benchmark: Benchmark,
    loads: list["_Load"],
    *,
    dry_run: bool,
    as_of: datetime,
    by: User | None,
    reason: str,
) -> Iterator[str]:
    """Put in force what the first load with five agents decides of missing results, and say so.

    The row of the benchmark is locked: of two loads at once the later finds what the earlier stored.
    """
    before = policy_in_force(benchmark)
    if before.missing != MissingPlaces.AUTO and not (dry_run and before.missing == MissingPlaces.GAP):
        return
    after, undo = _with_nothing_missing(before, loads) or with_missing_decided(benchmark)
    if not after.resolved_from:
        return
    why = after.resolved_from.removeprefix("auto: ")
    if undo:
        yield f"{_decided(before, after)}: {why}."
    elif not ALL_RANKED.match(why):
        setting = [f"missing={MissingPlaces.ZERO_LOADED}"]
        yield f"{why}. To count missing results as failures: {set_command(benchmark.slug, setting)}"
    elif dry_run:
        yield f"{why}."
    if before.missing == MissingPlaces.AUTO:
        after.created_at = as_of  # it holds for what was delivered with it
        put_in_force(policy=after, by=by, reason=reason)
        if undo and not dry_run:
            yield f"To undo: {undo}"


def _decided(before: Policy, after: Policy) -> str:
    """Say what a load decided: which tasks count, or what missing results count as."""
    parts = []
    if after.universe is not None and before.universe is None:
        n = active_tasks(before.benchmark).count() - len(after.universe)
        parts.append(f"{words.counted(n, 'task')} {'is' if n == 1 else 'are'} left out")
    if after.missing != MissingPlaces.GAP:
        parts.append("missing results count as failures")
    text = " and ".join(parts)
    return text[:1].upper() + text[1:]


def _uncounted_tasks(universe: list[str] | None, benchmark: Benchmark, loads: list["_Load"]) -> Iterator[str]:
    """Say that tasks of a load are not among those that the policy named before it."""
    names = {name for one in loads for name in one.matched.flat.tasks}
    if universe is not None and (n := len(names.difference(universe))):
        do = "does" if n == 1 else "do"
        yield (
            f"{words.counted(n, 'task')} of this load {do} not count: the policy names the tasks that count. "
            f"To count all: {set_command(benchmark.slug, ['universe=all'])}"
        )


def _retired_tasks(benchmark: Benchmark, loads: list["_Load"]) -> Iterator[str]:
    """Say which tasks of a load are retired."""
    names = {name for one in loads for name in one.matched.flat.tasks}
    retired = benchmark.tasks.filter(retired_at__isnull=False, name__in=names).order_by("name")
    if still := list(retired.values_list("name", flat=True)):
        are, them = ("is", "it") if len(still) == 1 else ("are", "one")
        restore = f"{PROGRAM} retire {benchmark} {shlex.quote(still[0])} --restore --reason TEXT"
        yield (
            f"{words.counted(len(still), 'task')} of this load {are} retired and not counted. "
            f"To count {them}: {restore}"
        )


def _with_nothing_missing(before: Policy, loads: list["_Load"]) -> tuple[Policy, str] | None:
    """Return what `with_missing_decided` does, where one complete file is all there is; else None.

    Most first files are complete, and to read back what was stored takes a quarter of the time of a load.
    """
    first, benchmark = loads[0], before.benchmark
    n_agents, n_tasks = len(first.matched.flat.agents), len(first.matched.flat.tasks)
    n_stored = Submission.objects.filter(agent__benchmark=benchmark).count()
    retired = benchmark.tasks.values_list("retired_at", flat=True)
    is_all = n_stored == first.n_submissions and list(retired) == [None] * n_tasks
    counts_all = before.universe is None and before.counted_settings is None
    if not (is_all and counts_all and first.is_complete):
        return None
    from leaderboard.studies.records import resolved_by_complete  # imports the core: not with a web worker

    after = changed_policy(benchmark=benchmark, values={"missing": MissingPlaces.GAP})
    after.resolved_from = resolved_by_complete(n_agents, n_tasks)
    return after, ""


def _check_spelling(files: Mapping[str, FlatFile]) -> None:
    faults = []
    for column in ("agent", "scaffold", "model"):
        first: dict[str, tuple[str, str]] = {}
        names = ((file, name) for file, flat in files.items() for name in getattr(flat, f"{column}s"))
        for file, name in names:
            other, where = first.setdefault(without_case(name), (name, file))
            if other != name:
                rule = f'is "{excerpt(other)}" in {where}; spell each {column} one way (in {file})'
                faults.append(Fault(None, column, excerpt(name), rule))
    if faults:
        message = "The files spell a name in two ways. Nothing was stored."
        raise Faulty(message, faults=tuple(faults[:MAX_FAULTS]), n_faults=len(faults))


def _notes(
    benchmark: Benchmark, flat: FlatFile, described: list[AgentDescription], called: str
) -> Iterator[str]:
    """Say that a file names another benchmark, and which of its names read like others: all may be right."""
    if flat.benchmark not in (benchmark.slug, benchmark.title):
        yield (
            f'{called} names the benchmark "{flat.benchmark}"; '
            f'"{benchmark.slug}" was loaded as "{benchmark.title}".'
        )
    for kind, column in (("agent", "name"), ("scaffold", "scaffold__name"), ("model", "model__name")):
        names = {getattr(one, column.partition("__")[0]) for one in described}
        known = set(benchmark.agents.values_list(column, flat=True))
        for name, other in look_alikes(sorted(names), known).items():
            yield f"{reads_like(kind, name, other)}; if they are the same, rename or merge."


class _Load:
    """A file's rows, as far as they are new or contradict what is stored, and what came of them."""

    def __init__(
        self,
        flat: FlatFile,
        benchmark: Benchmark,
        *,
        called: str,
        by: User | None,
        as_of: datetime,
        replace: bool,
        own: bool,
        reason: str,
    ) -> None:
        self.replace = replace
        self.benchmark, self.called, self.by, self.as_of, self.reason = benchmark, called, by, as_of, reason
        self.metadata = metadata = FileMetadata(flat)
        columns = (flat.agents, flat.scaffolds, flat.models, *metadata.of_agent.values())
        self.described = [AgentDescription(*values) for values in zip(*columns, strict=True)]
        try:
            self.n_new_tasks = ensure_tasks(
                benchmark=benchmark,
                categories=dict(zip(flat.tasks, flat.categories, strict=True)),
                groups=dict(zip(flat.tasks, flat.groups, strict=True)),
            )
            naming.free_unused(benchmark=benchmark, names=flat.agents, by=None, as_of=as_of)
            self.agents = ensure_agents(
                benchmark=benchmark, descriptions=self.described, owner=None, describe_owned=own
            )
        except Refusal as refusal:
            if called != ALONE:
                refusal.args = (f"{called}: {refusal}",)
            raise
        self.notes = list(_notes(benchmark, flat, self.described, called))
        self.n_submissions, self.changes, self.taken = 0, list[StatusChange](), list[Agent]()
        if own:
            self._take_over()
        self.matched = MatchedRows(metadata.flat, benchmark=benchmark, agents=self.agents)
        self.remeasured = self._with_stored_details()
        self._check_names()

    def agents_of_new(self) -> list[str]:
        flat = self.matched.flat
        return [flat.agents[i] for i in np.unique(flat.agent[self.new | self.changed])]

    def _check_names(self) -> None:
        """Refuse two names of one agent, merged or renamed, where both have a result to store."""
        flat, matched = self.matched.flat, self.matched
        if len(matched.agents) == len(flat.agents):
            return
        wanted = np.flatnonzero(self.new | self.changed)
        key = [matched.rows[name].to_numpy()[wanted] for name in KEY]
        order = np.lexsort(key[::-1])
        again = np.flatnonzero(np.all([np.diff(column[order]) == 0 for column in key], axis=0))
        where = sorted(zip(wanted[order[again + 1]].tolist(), wanted[order[again]].tolist(), strict=True))
        faults = tuple(
            Fault(
                row=flat.row(i),
                field="agent",
                value=excerpt(flat.agents[flat.agent[i]]),
                rule=f"is the same agent as {flat.agents[flat.agent[other]]!r}, merged or renamed, and both "
                f"have task {flat.tasks[flat.task[i]]!r}, trial {flat.trial[i]}; keep one of the two rows",
            )
            for i, other in where[:MAX_FAULTS]
        )
        if faults:
            message = f"{self.called} has results of one agent twice. Nothing was stored. {flat.row_note}"
            raise Faulty(message.rstrip(), faults=faults, n_faults=len(where))

    def store(self, *, progress: Progress, file_of: dict[int, str]) -> None:
        """Store; `file_of` names the file of each submission that this load has stored."""
        if self.changed.any() and not self.replace:
            raise self.contradiction(file_of)
        parts, locked_ids, superseded = self.parts(), LockedIds(set), set[int]()
        self.n_submissions = len(parts)
        ends = np.cumsum([len(part) for part in parts])
        for _, together in groupby(range(len(parts)), key=lambda i: int(ends[i]) // ROWS_AT_ONCE):
            places = list(together)
            drafts = [self._draft(parts[i], superseded) for i in places]
            self.changes += record(drafts, reason=self.reason, locked_ids=locked_ids)
            for submission, _, replaces in drafts:
                file_of[submission.pk] = self.called
                if replaces:
                    carry_details(old=replaces, new=submission)
            progress(places[-1] + 1, len(parts))
        agents, described = self.agents, self.described
        self.n_named = complete_agents(benchmark=self.benchmark, agents=agents, descriptions=described)
        if self.n_named:
            self.notes.append(
                f"Added the missing scaffold or model of {words.counted(self.n_named, 'agent')}."
            )
        self.notes += self._dates_left_out()
        flat = self.matched.flat
        with_new = {flat.agents[flat.agent[part[0]]] for part in parts}
        if owned := self._owned(with_new):
            self.notes.append(
                f"Submitters own {words.counted(len(owned), 'agent')} of this file and can add results: "
                f"{_named(owned)}. Add --own to take them over."
            )

    def _dates_left_out(self) -> Iterator[str]:
        """Say that dates of the file are not stored, as the results are there already."""
        flat = self.matched.flat
        dated = np.unique(flat.agent[self.matched.same & ~np.isnat(flat.submitted_at)])
        agents = [self.agents[flat.agents[i]] for i in dated]
        stored = Submission.objects.filter(agent__in=agents, loaded=True, status__in=LIVE)
        undated = stored.exclude(agent__in=stored.exclude(submitted_at=None).values("agent"))
        if agents and (first := undated.order_by("pk").first()):
            n = undated.values("agent").distinct().count()
            yield (
                f"The dates of {words.counted(n, 'agent')} are not stored: the results are there already, "
                "without a date. To store them, unload those submissions (the first: "
                f"{PROGRAM} unload {first.uuid} --reason TEXT) and load this file again."
            )

    def _take_over(self) -> None:
        """Own the agents of the file that submitters own, and withdraw what these stored."""
        owned = self._owned(self.agents)
        self.taken = owned
        if not owned:
            return
        of_owned = Q(agent__in=owned) | Q(agent__merged_into__in=owned)
        theirs = Submission.objects.filter(of_owned, loaded=False, status__in=LIVE)
        gone = list(theirs.select_related("agent").order_by("pk"))
        note = f"Taken over from their submitters: {_named(owned)}."
        if gone:
            note += f" Withdrawn: {words.counted(len(gone), 'submission')}. Earlier boards keep them."
        self.notes.append(note)
        with acting(by=self.by, reason=self.reason):
            self.changes += change_status(
                submissions=gone, status=Status.WITHDRAWN, at=self.as_of, by=self.by, reason=self.reason
            )
            for agent in owned:
                agent.owner = None
                agent.save(update_fields=["owner"])

    def _owned(self, names: Collection[str]) -> list[Agent]:
        owned = (agent for name, agent in sorted(self.agents.items()) if name in names and agent.owner)
        return list(dict.fromkeys(owned))  # several names may be of one, where agents were merged

    @property
    def is_complete(self) -> bool:
        """Whether each agent has one valid result of each task, all under one setting."""
        flat = self.matched.flat
        return bool(
            flat.n_rows == len(flat.agents) * len(flat.tasks)
            and len(self.matched.agents) == len(flat.agents)
            and len(flat.settings) == 1
            and np.ptp(flat.trial) == 0
            and flat.valid.all()
        )

    @cached_property
    def changed(self) -> np.ndarray:
        """(n_rows,) bool: another outcome is stored, or another cost that is to be replaced."""
        return (self.matched.holder > 0) & ~self.matched.same | self.remeasured

    @cached_property
    def new(self) -> np.ndarray:
        """(n_rows,) bool: nothing is stored, or a failure of the harness."""
        return (self.matched.holder == 0) & ~self.matched.same

    def _with_stored_details(self) -> np.ndarray:
        """(n_rows,) bool: the stored outcome is to get another cost, number of tokens or time.

        What else is stored of an outcome, and is not to be replaced, goes into its row.
        """
        matched, remeasured = self.matched, np.zeros(self.matched.flat.n_rows, bool)
        is_held = matched.same & matched.flat.valid & (matched.holder > 0)
        if not (self.replace and matched.flat.measured and is_held.any()):
            return remeasured
        where, rows = np.flatnonzero(is_held), matched.rows
        stored = details_of(np.unique(matched.holder[where]).tolist())
        keys = rows.select(KEY[1:]).take(where).append_column("row", pa.array(where))
        keys = keys.append_column("submission", pa.array(matched.holder[where], pa.int32()))
        details = keys.join(stored, keys=["submission", *KEY[1:]], join_type="left outer").sort_by("row")
        for name in stored.column_names[len(KEY) :]:
            old = details[name].combine_chunks()
            column = pa.nulls(rows.num_rows, old.type)
            if name in rows.column_names:
                column, rows = rows[name].combine_chunks(), rows.drop_columns(name)
            if name in matched.flat.measured:
                new = column.take(pa.array(where))
                differs = pc.fill_null(pc.not_equal(new, old), new.is_valid())
                remeasured[where] |= differs.to_numpy(zero_copy_only=False)
                old = pc.coalesce(new, old)
            rows = rows.append_column(name, pc.replace_with_mask(column, pa.array(is_held), old))
        matched.rows = rows
        return remeasured

    def _left(self, agent: int, old: list[int]) -> pa.Table:
        """What stands of these submissions: of a result that was lost and delivered again the later one.

        What does not count yet takes the place of nothing.
        """
        stored = self.matched.stored  # in order of their submissions
        stored = stored.filter(pc.equal(stored["agent"], agent))
        if pc.any(stored["free"]).as_py():
            ids = pc.unique(stored["submission"]).to_pylist()
            counting = Submission.objects.filter(pk__in=ids, status=Status.ACCEPTED).values_list(
                "pk", flat=True
            )
            stored = stored.filter(pc.is_in(stored["submission"], pa.array([*counting, *old], pa.int32())))
            places = stored.select(KEY).append_column("place", pa.array(np.arange(stored.num_rows)))
            stored = stored.take(places.group_by(KEY).aggregate([("place", "max")])["place_max"])
        return stored.filter(pc.is_in(stored["submission"], pa.array(old, pa.int32())))

    def contradiction(self, file_of: Mapping[int, str]) -> Faulty:
        matched, flat, where = self.matched, self.matched.flat, np.flatnonzero(self.changed)
        holders = np.unique(matched.holder[where]).tolist()
        is_as = {pk: f"is in {file_of[pk]} as" if pk in file_of else "is stored as" for pk in holders}
        rows = matched.rows.take(where[:MAX_FAULTS])
        holding = matched.stored.filter(pc.invert(matched.stored["free"]))
        stored = rows.select(KEY).join(holding, keys=KEY, join_type="inner")
        both = {tuple(r[k] for k in KEY): r for r in stored.to_pylist()}
        faults = tuple(
            Fault(
                row=flat.row(int(i)),
                field="outcome",
                value=_outcome_text(row),
                rule=f"{is_as[int(matched.holder[i])]} {_outcome_text(both[tuple(row[k] for k in KEY)])} for "
                f"agent {matched.agents[row['agent']].name!r}, task {matched.task_names[row['task']]!r}, "
                f"trial {row['trial']}; --replace replaces the earlier submission",
            )
            for i, row in zip(where, rows.to_pylist(), strict=False)
        )
        against = " and ".join(sorted({file_of.get(pk, "stored results") for pk in holders}))
        message = f"{self.called} contradicts {against}. Nothing was stored. {flat.row_note}".rstrip()
        message += " Is this a second run? Number it in the column trial, or label it in the column run."
        if owned := self._owned({flat.agents[i] for i in np.unique(flat.agent[where])}):
            message += f" Submitters own {_named(owned)}. To take them over: --own."
        return Faulty(message, faults=faults, n_faults=len(where))

    def parts(self) -> list[np.ndarray]:
        """The rows to store of each agent and run, in order of their key."""
        flat = self.matched.flat
        wanted = np.flatnonzero(self.new | self.changed)
        label = self.metadata.delivery[wanted]
        columns = (getattr(flat, name)[wanted] for name in ("trial", "setting", "task"))
        order = np.lexsort((*columns, label))
        parts = np.split(wanted[order], np.flatnonzero(np.diff(label[order])) + 1)
        return [part for part in parts if len(part)]

    def _draft(self, index: np.ndarray, superseded: set[int]) -> Draft:
        """Their submission, its rows, and what it replaces: not what earlier ones have `superseded`."""
        old = sorted(set(self.matched.holder[index][self.changed[index]].tolist()) - superseded)
        superseded.update(old)
        flat, rows = self.matched.flat, self.matched.rows.take(index)
        if old:  # add what the superseded submissions hold and the file does not contradict
            left = self._left(rows["agent"][0].as_py(), old)
            taken = self.matched.rows.filter(pa.array(self.new | self.changed)).select(KEY)
            carried = left.join(taken, keys=KEY, join_type="left anti").select(OUTCOME)
            rows = pa.concat_tables([rows, carried], promote_options="default")
        dates = flat.submitted_at[index]
        dated = index[~np.isnat(dates)]
        earliest = dated[np.argmin(flat.submitted_at[dated])] if len(dated) else None
        replaces = list(Submission.objects.filter(pk__in=old).order_by("pk")) if old else []
        submission = draft(
            rows,
            matched=self.matched,
            loaded=True,
            submitted_by=self.by,
            received_at=self.as_of,
            submitted_at=None if earliest is None else flat.submitted_at[earliest].item().replace(tzinfo=UTC),
            imprecise=earliest is None or bool(flat.imprecise[earliest]),
            links=self.metadata.links[self.metadata.delivery[index[0]]],
            replaces=replaces[0] if replaces else None,
        )
        return submission, rows, replaces


def _named(owned: Sequence[Agent]) -> str:
    return words.first_names([f"{agent.name} ({agent.owner})" for agent in owned], MAX_NAMED)


def _outcome_text(row: dict[str, object]) -> str:
    if row["value"] is None:
        return "no outcome"
    value = float(str(np.float32(f"{row['value']}")))  # as it was before it was stored in single precision
    return f"{value:.9g}" + " (invalid)" * (not row["valid"])
