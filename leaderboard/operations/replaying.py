"""Replay: what the rules of a benchmark would have asked of agents that ran everything, and what came of it.

The core replays. Here it gets full runs, of a file or those that are stored, and what it found may be stored
as a benchmark of its own: agents, assignments with their batches, decisions and fits, and the outcomes that
would have been run. The scheduler leaves such a benchmark alone, for its clock is that of the history.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.db import transaction

from leaderboard.boards.models import Board
from leaderboard.catalog.models import Agent, Assigning, Benchmark, Policy, Trust
from leaderboard.catalog.queries import policy_in_force
from leaderboard.catalog.rules import RULES
from leaderboard.catalog.services import AgentDescription, ensure_agents, ensure_tasks
from leaderboard.errors import Conflict, Refusal
from leaderboard.operations.asking import BATCHES, decisions_of
from leaderboard.operations.models import Assignment, AssignmentStatus, Mode
from leaderboard.operations.queries import locked_benchmark
from leaderboard.operations.runs import Progress
from leaderboard.operations.services import NothingToRank, recompute
from leaderboard.studies.queries import active_subset
from leaderboard.studies.records import About, Reader, Snapshot
from leaderboard.studies.services import CoreError, one_blas_thread
from leaderboard.studies.staged_studies import (
    courses_of,
    keep_fit,
    replay_of_file,
    replay_of_stored,
)
from leaderboard.submissions.export.outcomes import ExportTransaction, OutcomeRows
from leaderboard.submissions.export.streams import write_parquet
from leaderboard.submissions.models import InvalidConfirmation, Submission
from leaderboard.submissions.parsing.flat import FlatFile, read_file
from leaderboard.submissions.services import MatchedRows, append_changes, draft, record

if TYPE_CHECKING:
    from leaderboard.studies.staged_studies import Course

NOON = time(12, tzinfo=UTC)
DAY = timedelta(days=1)
DETAILS = (
    *("description", "url", "licence", "citation", "unit"),
    *("visibility", "hidden_at", "hidden_reason"),
)


def slug_taken() -> Conflict:
    return Conflict(
        "There is a benchmark of this name already: a replay is stored as a new one.", code="slug_taken"
    )


def is_replay() -> Conflict:
    return Conflict("This benchmark is a replay. Replay its source.", code="is_replay")


def replay(
    *,
    benchmark: Benchmark | None,
    flat: FlatFile | None,
    n_seeds: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Replay the rules of a benchmark, of a new one without it, on the full runs of a file or its own."""
    if benchmark and benchmark.replay is not None and flat is None:
        raise is_replay()
    with one_blas_thread():
        if flat is not None:
            policy = policy_in_force(benchmark) if benchmark else Policy()
            return replay_of_file(flat, policy, n_seeds, progress)
        assert benchmark is not None
        now = Reader(benchmark).now(active_subset(benchmark))
        if now is None:
            raise NothingToRank
        return replay_of_stored(now, decisions_of(benchmark), n_seeds, progress)


def store_replay(*, source: Benchmark, slug: str, progress: Progress | None) -> tuple[Board, dict[str, Any]]:
    """Replay staged assignment on the full runs of a benchmark, and store it as a new one with its board."""
    if Benchmark.objects.filter(slug=slug).exists():
        raise slug_taken()
    if source.replay is not None:
        raise is_replay()
    if policy_in_force(source).assignment != Assigning.STAGED:
        raise Conflict(
            "Only staged assignment can be stored: the policy assigns in another way.",
            code="assigns_otherwise",
        )
    full, _ = recompute(benchmark=source, as_of=datetime.now(UTC))
    source.refresh_from_db()
    now = Reader(source).now(active_subset(source))
    assert now is not None
    try:
        with one_blas_thread():
            result, courses = courses_of(now, decisions_of(source), progress)
    except CoreError as refusal:
        raise Refusal(f"Cannot store a replay: {refusal}.", code="cannot_compute") from refusal
    with TemporaryDirectory() as folder, ExportTransaction(source) as snapshot:
        path = Path(folder) / "outcomes.parquet"  # all that counts, as it is exported
        with path.open("wb") as file:
            file.writelines(write_parquet(OutcomeRows(snapshot)))
        flat = read_file(path, as_of=datetime.now(UTC))
    with transaction.atomic():
        last = _store(source, full, slug, flat, result, courses, now)
        board, _ = recompute(benchmark=Benchmark.objects.get(slug=slug), as_of=last)
        # Who erases or withdraws from now on waits, and then finds the replay.
        locked = locked_benchmark(source)
        if (locked.data_version, locked.shown_version) != (now.data_version, source.shown_version):
            raise Conflict(
                "The data changed while they were replayed, and nothing is stored: try again.",
                code="data_changed",
            )
    return board, result


def _store(
    source: Benchmark,
    full: Board,
    slug: str,
    flat: FlatFile,
    result: Mapping[str, Any],
    courses: Sequence["Course"],
    now: Snapshot,
) -> datetime:
    """Store what each agent ran, at noon of its date, a delivery for each batch; return the last moment."""
    dates = {}
    for one in courses:
        at = flat.submitted_at[flat.agent == flat.agents.index(one.agent)]
        dates[one.agent] = datetime.combine(np.nanmin(at).item().date(), NOON)
    rules = {name: getattr(policy_in_force(source), name) for name in RULES}
    benchmark, is_new = Benchmark.objects.get_or_create(
        slug=slug,
        defaults={
            "title": f"{source.title}, as if run here",
            "replay": {"of": source.slug, "board": full.number, "figures": result["figures"]},
            **{name: getattr(source, name) for name in DETAILS},
        },
    )
    if not is_new:
        raise slug_taken()
    policy = Policy.objects.create(
        benchmark=benchmark, number=1, created_at=dates[courses[0].agent] - DAY, **rules
    )
    ensure_tasks(
        benchmark=benchmark,
        categories=dict(zip(flat.tasks, flat.categories, strict=True)),
        groups=dict(zip(flat.tasks, flat.groups, strict=True)),
    )
    append_changes(benchmark=benchmark, changes=[], tasks_came=True)
    names = zip(flat.agents, flat.scaffolds, flat.models, strict=True)
    described = [AgentDescription(*one) for one in names]
    agents = ensure_agents(benchmark=benchmark, descriptions=described, owner=None)
    matched = MatchedRows(flat, benchmark=benchmark, agents=agents, are_new=True)
    moment = dates[courses[0].agent]
    about = dict(zip(now.record.table.agents, now.record.about, strict=True))
    n_unconfirmed = dict(zip(now.record.table.agents, now.record.n_unconfirmed, strict=True))
    for course in courses:
        moment = max(moment, dates[course.agent])
        agent = agents[course.agent]
        stored = _deliver(course, agent, policy, matched, moment, about[course.agent])
        for delivered in stored:
            # What was confirmed on the source is a failure of the harness here, from its delivery on
            if not n_unconfirmed[course.agent] and delivered.n_invalid and not delivered.loaded:
                version = delivered.status_changes.get().data_version
                assert version is not None
                of = {"submission": delivered, "reason": "as on the benchmark replayed"}
                InvalidConfirmation.objects.create(data_version=version, at=moment, **of)
    return moment


def _deliver(
    course: "Course", agent: Agent, policy: Policy, matched: MatchedRows, moment: datetime, about: About
) -> list[Submission]:
    """Store an agent's course: its assignment, where it was asked in batches, and a delivery for each."""
    ids = {name: pk for pk, name in matched.task_names.items()}
    batches = [[ids[name] for name in batch] for batch in course.batches]
    task_ids = [pk for batch in (batches[:-1] if course.is_recalled else batches) for pk in batch]
    assignment = None
    if course.fit is not None:
        study = keep_fit(agent.benchmark, policy, course.fit, moment)
        assignment = Assignment.objects.create(
            agent=agent,
            mode=Mode.STAGED,
            reason=BATCHES,
            study=study,
            tasks=task_ids,
            decisions=list(course.decisions),
            n_trials=policy.n_trials,
            status=AssignmentStatus.FULFILLED,
            created_at=moment,
            expires_at=moment + timedelta(days=policy.assignment_days),
            ended_at=moment,
        )
    mine = matched.rows.filter(pc.equal(matched.rows["agent"], agent.pk))
    submissions, changes, n_asked = list[Submission](), [], 0
    for k, batch in enumerate(batches):
        rows = mine.filter(pc.is_in(mine["task"], pa.array(batch, pa.int32())))
        n_asked += len(batch)
        is_rest = course.is_recalled and k == len(batches) - 1
        by = assignment if assignment and not is_rest else None
        submission = draft(
            rows,
            matched=matched,
            submitted_at=moment,
            received_at=moment,
            loaded=about.trust == Trust.VERIFIED,
            links=dict(about.links) if about.trust == Trust.LOGS else {},
            asked=task_ids[:n_asked] if by else None,
            n_trials=policy.n_trials if by else None,
            study_id=by.study_id if by else None,
        )
        changes += record([(submission, rows, ())], reason="replay")
        submissions.append(submission)
        if by:
            by.submissions.add(submission)
    append_changes(benchmark=agent.benchmark, changes=changes)
    return submissions
