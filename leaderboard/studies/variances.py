"""Variance components of a benchmark, stored as a study: rows in, `analytics.tee.benchmark`, JSON out."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.differences.rows import Facet
from analytics.tee.benchmark import FACETS, TrialOutcomes, variance_study
from analytics.tee.grouped_tasks import task_groups
from analytics.tee.report import BoardEstimate
from leaderboard.studies.models import VarianceStudy
from leaderboard.studies.records import Snapshot
from leaderboard.studies.services import CheckClaim, find_study, no_claim, store_study
from leaderboard.submissions.models import Setting
from leaderboard.submissions.queries import outcomes_of, settings_of
from selection.standings.targets import grouping, on_all_tasks

CONDITION = ("prompt", "judge", "temperature")
SETTING_FIELDS = dict(zip(FACETS, Setting.FACETS, strict=True))


def get_or_compute_variance(
    *, snapshot: Snapshot, as_of: datetime, check_claim: CheckClaim = no_claim
) -> tuple[VarianceStudy, bool]:
    """Return the study of the present data and whether it was computed just now."""
    if study := find_study(VarianceStudy, snapshot=snapshot):
        return study, False
    record = snapshot.record
    names = np.array(record.table.agents, dtype=object)
    outcomes, groups = _outcomes(snapshot), grouping(record, snapshot.rules).groups

    def on_board(facets: Sequence[Facet]) -> dict[str, BoardEstimate]:
        return _on_board(snapshot, outcomes, facets)

    result = variance_study(
        outcomes,
        complete=names[record.ran_all].tolist(),
        n_tasks=record.n_tasks,
        voices=names[record.voice].tolist(),
        on_board=on_board,
        groups=task_groups(record.table.means[record.ran_all & record.voice], groups) if groups else None,
    )
    return store_study(
        VarianceStudy, snapshot=snapshot, result=result, as_of=as_of, check_claim=check_claim
    ), True


def _on_board(
    snapshot: Snapshot, outcomes: TrialOutcomes, facets: Sequence[Facet]
) -> dict[str, BoardEstimate]:
    """What the board states of agents that ran nothing but the conditions it compares."""
    ran = np.unique(np.stack([outcomes.columns[name] for name in ("agent", *CONDITION)]), axis=1)[0]
    names, n_conditions = np.unique(ran, return_counts=True)
    n_compared = max(1, len(snapshot.compared))
    same = {name for name, n in zip(names.tolist(), n_conditions.tolist(), strict=True) if n == n_compared}
    return {
        name: BoardEstimate(at.score, at.se, at.lower, at.upper, at.reason)
        for name, at in on_all_tasks(snapshot.record, facets).items()
        if name in same and at.score is not None
    }


def _outcomes(snapshot: Snapshot) -> TrialOutcomes:
    """All accepted valid outcomes, those of conditions that are not compared too: pilots feed this alone."""
    rows = outcomes_of(one.submission for one in snapshot.deliveries)
    agents = {agent.pk: agent.name for agent in snapshot.agents}
    tasks = dict(zip(snapshot.task_ids, snapshot.record.table.tasks, strict=True))
    known = pc.and_(rows["valid"], pc.is_in(rows["task"], pa.array(tasks, pa.int32())))
    rows = rows.filter(pc.and_(known, pc.is_in(rows["agent"], pa.array(agents, pa.int64()))))
    settings = {
        pk: dict(zip(Setting.FACETS, facets, strict=True))
        for facets, pk in settings_of(snapshot.benchmark).items()
    }
    columns = {"agent": _labels_of(rows["agent"], agents), "task": _labels_of(rows["task"], tasks)}
    for facet, attribute in SETTING_FIELDS.items():
        columns[facet] = _labels_of(
            rows["setting"], {pk: str(one[attribute]) for pk, one in settings.items()}
        )
    return TrialOutcomes(columns, rows["value"].to_numpy())


def _labels_of(ids: pa.ChunkedArray, labels: dict[int, str]) -> np.ndarray:
    present, codes = np.unique(ids.to_numpy(), return_inverse=True)
    return np.array([labels[pk] for pk in present.tolist()], dtype=np.str_)[codes]
