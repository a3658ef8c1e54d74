"""`load`: whole files of outcomes into a benchmark, in one transaction or not at all."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction

from analytics.names import without_case
from leaderboard.accounts.models import User
from leaderboard.catalog.models import Benchmark
from leaderboard.catalog.services import (
    AgentDescription,
    complete_agents,
    ensure_agents,
    ensure_tasks,
    get_or_create_benchmark,
    grouped_tasks,
    look_alikes,
)
from leaderboard.errors import Faulty, Refusal
from leaderboard.operations import claims
from leaderboard.operations.arrivals import tell_of_arrivals
from leaderboard.operations.file_metadata import FileMetadata, file_metadata_of
from leaderboard.submissions.models import StatusChange, Submission
from leaderboard.submissions.parsing.flat import MAX_FAULTS, Fault, FlatFile, excerpt
from leaderboard.submissions.rows import KEY, OUTCOME
from leaderboard.submissions.services import (
    MatchedRows,
    SubmissionPart,
    Terms,
    append_changes,
    carry_details,
    draft,
    record,
)

ALONE = "The file"


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
    notes: tuple[str, ...] = ()


class _Stored(NamedTuple):
    """What one file brought."""

    delivery: "_Load"
    n_submissions: int
    n_new_tasks: int
    changes: list[StatusChange]
    notes: tuple[str, ...]


@transaction.atomic
def load(
    *,
    flat: FlatFile | Mapping[str, FlatFile],
    slug: str,
    as_of: datetime,
    replace: bool = False,
    dry_run: bool = False,
    by: User | None = None,
    reason: str = "load",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LoadReport:
    """Store what is new in a file, or in several by name: of each a submission for each agent and run.

    Rows that are stored already are skipped. A row that contradicts what is stored is a fault, or with
    `replace` supersedes the submission that holds it. A failure of the harness holds its key against
    nothing: the trial may be delivered again.
    """
    files = {ALONE: flat} if isinstance(flat, FlatFile) else flat
    _check_spelling(files)
    benchmark, _ = get_or_create_benchmark(slug=slug, title=next(iter(files.values())).benchmark)
    terms, before = Terms(as_of=as_of, loaded=True, by=by, reason=reason), grouped_tasks(benchmark)
    loads = [
        _store(one, benchmark, called=name, replace=replace, terms=terms, progress=progress)
        for name, one in files.items()
    ]
    changes = [change for one in loads for change in one.changes]
    tell_of_arrivals(benchmark=benchmark, changes=changes, as_of=as_of)
    tasks_came = grouped_tasks(benchmark) != before
    append_changes(benchmark=benchmark, changes=changes, tasks_came=tasks_came)
    transaction.set_rollback(dry_run)
    return _report(slug, loads)


def _store(
    flat: FlatFile,
    benchmark: Benchmark,
    *,
    called: str,
    replace: bool,
    terms: Terms,
    progress: Callable[[int, int], None],
) -> _Stored:
    metadata = file_metadata_of(flat)
    described = _descriptions(metadata)
    with _naming(called):
        n_new_tasks = ensure_tasks(
            benchmark=benchmark,
            categories=dict(zip(flat.tasks, flat.categories, strict=True)),
            groups=dict(zip(flat.tasks, flat.groups, strict=True)),
        )
        claims.free_unused(benchmark=benchmark, names=metadata.flat.agents, by=None, as_of=terms.as_of)
        agents = ensure_agents(benchmark=benchmark, descriptions=described, owner=None)
    notes = (*_other_benchmark(benchmark, flat, called), *_look_alikes(benchmark, described))
    delivery = _Load(MatchedRows(metadata.flat, benchmark=benchmark, agents=agents), metadata)
    if delivery.changed.any() and not replace:
        raise delivery.contradiction(called)
    parts = list(delivery.parts())
    changes = _record(parts, delivery.matched, terms, progress)
    complete_agents(benchmark=benchmark, agents=agents, descriptions=described)
    return _Stored(delivery, len(parts), n_new_tasks, changes, notes)


@contextmanager
def _naming(called: str) -> Iterator[None]:
    """Put the file's name before a refusal that has none, where there are several files."""
    try:
        yield
    except Refusal as refusal:
        if called != ALONE:
            refusal.args = (f"{called}: {refusal}",)
        raise


def _check_spelling(files: Mapping[str, FlatFile]) -> None:
    """Refuse a name that two files spell in two ways, as one file with both is refused."""
    faults = []
    for column in ("agent", "scaffold", "model"):
        first: dict[str, tuple[str, str]] = {}
        for file, name in (
            (file, name) for file, flat in files.items() for name in getattr(flat, f"{column}s")
        ):
            other, where = first.setdefault(without_case(name), (name, file))
            if other != name:
                rule = f'is "{excerpt(other)}" in {where}; spell each {column} one way (in {file})'
                faults.append(Fault(None, column, excerpt(name), rule))
    if faults:
        message = "The files spell a name in two ways; nothing was stored."
        raise Faulty(message, faults=tuple(faults[:MAX_FAULTS]), n_faults=len(faults))


def _other_benchmark(benchmark: Benchmark, flat: FlatFile, called: str) -> Iterator[str]:
    """Say that a file names another benchmark than it is loaded into; the data may be right."""
    if flat.benchmark not in (benchmark.slug, benchmark.title):
        yield (
            f'{called} names the benchmark "{flat.benchmark}"; '
            f'"{benchmark.slug}" was loaded as "{benchmark.title}".'
        )


def _report(slug: str, loads: list[_Stored]) -> LoadReport:
    files = [one.delivery.matched.flat for one in loads]
    n_rows = sum(flat.n_rows for flat in files)
    n_new = sum(int(one.delivery.new.sum()) for one in loads)
    n_changed = sum(int(one.delivery.changed.sum()) for one in loads)
    return LoadReport(
        benchmark=slug,
        n_rows=n_rows,
        n_new=n_new,
        n_same=n_rows - n_new - n_changed,
        n_replaced=n_changed,
        n_submissions=sum(one.n_submissions for one in loads),
        n_agents=len({name for flat in files for name in flat.agents}),
        n_tasks=len({name for flat in files for name in flat.tasks}),
        n_new_tasks=sum(one.n_new_tasks for one in loads),
        notes=tuple(dict.fromkeys(note for one in loads for note in one.notes)),
    )


def _descriptions(metadata: FileMetadata) -> list[AgentDescription]:
    flat = metadata.flat
    columns = (flat.agents, flat.scaffolds, flat.models, metadata.versions, metadata.organisations)
    return [AgentDescription(*values) for values in zip(*columns, strict=True)]


def _look_alikes(benchmark: Benchmark, described: list[AgentDescription]) -> tuple[str, ...]:
    """Say which names of the file read like others of the benchmark; the data may be right."""
    pairs = []
    for kind, column in (("agent", "name"), ("scaffold", "scaffold__name"), ("model", "model__name")):
        names = {getattr(one, column.partition("__")[0]) for one in described}
        pairs += look_alikes(kind, sorted(names), set(benchmark.agents.values_list(column, flat=True)))
    return tuple(f"{one}; if they are the same, rename or merge." for one in pairs)


def _record(
    parts: list[SubmissionPart], matched: MatchedRows, terms: Terms, progress: Callable[[int, int], None]
) -> list[StatusChange]:
    changes: list[StatusChange] = []
    for done, part in enumerate(parts):
        progress(done, len(parts))
        submission = draft(part, matched=matched, terms=terms)
        changes += record(submission, part, terms=terms)
        if part.replaces:
            carry_details(old=part.replaces, new=submission)
    progress(len(parts), len(parts))
    return changes


@dataclass(frozen=True, eq=False)
class _Load:
    """The file's rows, as far as they are new or contradict what is stored."""

    matched: MatchedRows
    metadata: FileMetadata

    @cached_property
    def changed(self) -> np.ndarray:
        """(n_rows,) bool: another outcome is stored."""
        return (self.matched.holder > 0) & ~self.matched.same

    @cached_property
    def new(self) -> np.ndarray:
        """(n_rows,) bool: nothing is stored, or a failure of the harness."""
        return (self.matched.holder == 0) & ~self.matched.same

    def contradiction(self, called: str) -> Faulty:
        """Name the rows that contradict what is stored, with both outcomes."""
        matched, where = self.matched, np.flatnonzero(self.changed)
        rows = matched.rows.take(where[:MAX_FAULTS])
        holding = matched.stored.filter(pc.invert(matched.stored["free"]))
        stored = rows.select(KEY).join(holding, keys=KEY, join_type="inner")
        both = {tuple(r[k] for k in KEY): r for r in stored.to_pylist()}
        faults = tuple(
            Fault(
                row=int(i) + 1,
                field="outcome",
                value=_outcome_text(row),
                rule=f"is stored as {_outcome_text(both[tuple(row[k] for k in KEY)])} for agent "
                f"{matched.agents[row['agent']].name!r}, task {matched.task_names[row['task']]!r}, "
                f"trial {row['trial']}; --replace supersedes the stored submission",
            )
            for i, row in zip(where, rows.to_pylist(), strict=False)
        )
        message = f"{called} contradicts what is stored; nothing was stored."
        return Faulty(message, faults=faults, n_faults=len(where))

    def parts(self) -> Iterator[SubmissionPart]:
        """The rows to store, one part for each agent and run, in order of agent name and run."""
        flat = self.matched.flat
        wanted = np.flatnonzero(self.new | self.changed)
        label = self.metadata.delivery[wanted]
        columns = (getattr(flat, name)[wanted] for name in ("trial", "setting", "task"))
        order = np.lexsort((*columns, label))
        superseded: set[int] = set()
        for part in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
            if len(part):
                yield self._part(wanted[part], superseded)

    def _part(self, index: np.ndarray, superseded: set[int]) -> SubmissionPart:
        """One part; what earlier parts have superseded is left alone, what this one does is added."""
        old = sorted(set(self.matched.holder[index][self.changed[index]].tolist()) - superseded)
        superseded.update(old)
        flat = self.matched.flat
        dates = flat.submitted_at[index]
        dated = index[~np.isnat(dates)]
        earliest = dated[np.argmin(flat.submitted_at[dated])] if len(dated) else None
        return SubmissionPart(
            rows=self._with_carried(self.matched.rows.take(index), old),
            submitted_at=None if earliest is None else flat.submitted_at[earliest].item().replace(tzinfo=UTC),
            imprecise=earliest is None or bool(flat.imprecise[earliest]),
            links=self.metadata.links[self.metadata.delivery[index[0]]],
            replaces=list(Submission.objects.filter(pk__in=old).order_by("pk")),
        )

    def _with_carried(self, rows: pa.Table, old: list[int]) -> pa.Table:
        """Add what the superseded submissions hold and the file does not contradict."""
        if not old:
            return rows
        stored = self.matched.stored
        left = stored.filter(pc.is_in(stored["submission"], pa.array(old, pa.int32())))
        taken = self.matched.rows.filter(pa.array(self.new | self.changed)).select(KEY)
        carried = left.join(taken, keys=KEY, join_type="left anti")
        return pa.concat_tables([rows, carried.select(OUTCOME)], promote_options="default")


def _outcome_text(row: dict[str, object]) -> str:
    return "no outcome" if row["value"] is None else f"{row['value']:.9g}" + " (invalid)" * (not row["valid"])
