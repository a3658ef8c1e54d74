"""Versions of one agent that differ by noise alone stand as one line: the best, less what best of K gains.

The theory is in ``selection/README.md``, “Where every agent stands”.

Source: `analytics.trials`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from scipy.special import stdtrit

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask, columns, read_only
from analytics.differences.estimates import Target
from analytics.names import alike
from analytics.record import Record
from analytics.trials import expected_maximum
from selection.schema.board import AtTarget
from selection.standings import targets
from selection.standings.full_scores import FullScoreEstimate
from selection.standings.placing import AgentOnTasks
from selection.standings.targets import ErrorModel, TargetResult

MIN_SHARED = 10


@dataclass(frozen=True)
class Group:
    """Versions that stand as one line.

    best: position of the one that stands.
    correction: what is taken from its score.
    """

    best: int
    others: tuple[int, ...]
    unfinished: tuple[int, ...]
    correction: float
    n_taken_back: int = 0


def target_by_version(
    error_model: ErrorModel,
    target: Target,
    tasks: IndexArray,
    on_tasks: Sequence[AgentOnTasks],
    *,
    shift: tuple[Mask, float] | None = None,
    estimated: Mapping[int, FullScoreEstimate] = MappingProxyType({}),
) -> TargetResult:
    """Answer for a target, versions that it does not separate as one; as `targets.target_result`."""
    apart = targets.target_result(error_model, target, tasks, on_tasks, shift=shift, estimated=estimated)
    cells = columns(error_model.record.table.means, tasks)
    groups = [
        group
        for versions in versions_of(error_model.record)
        for group in _groups(error_model.record, versions, apart, on_tasks, estimated, cells)
    ]
    if not groups:
        return apart
    joined = targets.target_result(
        error_model,
        target,
        tasks,
        _joined(groups, on_tasks),
        shift=shift,
        estimated=_corrected(groups, estimated),
    )
    return replace(joined, at=_at(error_model.record, groups, apart, joined))


def versions_of(record: Record) -> list[list[int]]:
    """Return the positions of versions of one agent, where there are two at least, or were."""
    versions: list[list[int]] = []
    for i, about in enumerate(record.about):
        for same in versions:
            one = record.about[same[0]]
            of_account = one.account == about.account
            if of_account and alike(one.scaffold, about.scaffold) and alike(one.model, about.model):
                same.append(i)
                break
        else:
            versions.extend([[i]] if about.account else [])
    return [same for same in versions if len(same) > 1 or record.about[same[0]].n_taken_back]


def _groups(
    record: Record,
    versions: Sequence[int],
    apart: TargetResult,
    on_tasks: Sequence[AgentOnTasks],
    estimated: Mapping[int, FullScoreEstimate],
    cells: FloatArray,
) -> Iterator[Group]:
    """Yield versions that are not separated, directly or through others, and unfinished ones; two at least.

    `cells` are the outcomes that were run, shape (n_agents, k).
    """
    ranked = np.array([i for i in versions if apart.at[i].rank is not None], dtype=np.intp)
    if not ranked.size:
        return
    is_joined = apart.tied[np.ix_(ranked, ranked)] | (apart.line.critical is None)
    from scipy.sparse.csgraph import connected_components  # of linked versions alone

    n_groups, group_of = connected_components(is_joined, directed=False)
    scores = {i: apart.at[i].score or 0.0 for i in ranked.tolist()}
    by_score = [
        sorted(ranked[group_of == group].tolist(), key=lambda i: (-round(scores[i], DECIMALS), i))
        for group in range(n_groups)
    ]
    # Under the conditions compared, and lacking some of what it was asked for
    barred = record.condition or ("",) * record.n_agents
    left = [i for i in versions if not (record.complete[i] or record.about[i].stopped or barred[i])]
    left = [i for i in left if not (record.about[i].withheld or np.isnan(cells[i]).all())]
    began = [i for i in left if i not in ranked]
    back = [i for i in versions if record.about[i].took_back or record.about[i].withheld]
    n_gone = record.about[versions[0]].n_taken_back
    for best, *others in sorted(by_score, key=lambda members: -scores[members[0]]):
        unfinished = [i for i in began if not _is_clearly_better(cells[best], cells[i])]
        began = [i for i in began if i not in unfinished]
        n_taken_back = n_gone + len(set(back) - {best, *others, *unfinished})
        if n_others := len(others) + len(unfinished) + n_taken_back:
            noise = _noise([best, *others], unfinished, on_tasks, estimated, cells)
            gain = min(expected_maximum(1 + n_others) * noise, scores[best])
            yield Group(best, tuple(others), tuple(unfinished), gain, n_taken_back)
        n_gone, back = 0, []


def _is_clearly_better(cells: FloatArray, others: FloatArray) -> bool:
    """Whether a version passes more of the tasks that both ran, ten at least (paired t, one-sided 2.5%)."""
    differences = cells - others
    differences = differences[~np.isnan(differences)]
    if differences.size < MIN_SHARED:
        return False
    error = float(differences.std(ddof=1)) / math.sqrt(differences.size)
    return float(differences.mean()) > error * float(stdtrit(differences.size - 1, 0.975))


def _noise(
    members: Sequence[int],
    unfinished: Sequence[int],
    on_tasks: Sequence[AgentOnTasks],
    estimated: Mapping[int, FullScoreEstimate],
    cells: FloatArray,
) -> float:
    """Return σ, the standard deviation of one version's score."""
    n_tasks = cells.shape[1]
    rows = [row for i in members if (row := on_tasks[i].outcomes) is not None]
    rows += [cells[i] for i in unfinished]
    several = np.array(rows)
    several = several[:, np.count_nonzero(~np.isnan(several), axis=0) > 1] if rows[1:] else np.empty((0, 0))
    score = on_tasks[members[0]].score or 0.0
    measured = 0.0
    if rows:
        spread = float(np.nanvar(several, axis=0, ddof=1).sum()) if several.size else 0.0
        measured = (spread + (n_tasks - several.shape[1]) * score * (1.0 - score)) / n_tasks**2
    known = [estimated[i] for i in members if i in estimated]
    calibrated = [
        (one.se2 or 0.0) + one.score * (1.0 - one.score) / n_tasks for one in known if one.score is not None
    ]
    return math.sqrt(max([measured, *calibrated]))


def _joined(groups: Sequence[Group], on_tasks: Sequence[AgentOnTasks]) -> list[AgentOnTasks]:
    """Scale the outcomes of the best of each group to its corrected score, and place none of the others."""
    joined = list(on_tasks)
    for group in groups:
        one = on_tasks[group.best]
        if one.outcomes is not None and one.score:
            score = one.score - group.correction
            joined[group.best] = replace(
                one, outcomes=read_only(one.outcomes * (score / one.score)), score=score
            )
        for i in group.others:
            joined[i] = replace(on_tasks[i], outcomes=None, score=None)
    return joined


def _corrected(
    groups: Sequence[Group], estimated: Mapping[int, FullScoreEstimate]
) -> dict[int, FullScoreEstimate]:
    """Correct estimated scores and their intervals in the same way."""
    others = {i for group in groups for i in group.others}
    corrected = {i: one for i, one in estimated.items() if i not in others}
    for group in groups:
        if one := estimated.get(group.best):
            score, lower, upper = (
                None if value is None else max(value - group.correction, 0.0)
                for value in (one.score, one.lower, one.upper)
            )
            corrected[group.best] = replace(one, score=score, lower=lower, upper=upper)
    return corrected


def _at(
    record: Record, groups: Sequence[Group], apart: TargetResult, joined: TargetResult
) -> tuple[AtTarget, ...]:
    """Say of the best what was taken from its score, and of the others under whom they stand."""
    at = list(joined.at)
    for group in groups:
        name = record.table.agents[group.best]
        at[group.best] = replace(at[group.best], correction=group.correction, n_taken_back=group.n_taken_back)
        for i in group.others + group.unfinished:
            why = (
                "not clearly better (95%)"
                if i in group.others
                else f"not clearly worse; {apart.at[i].reason}"
            )
            at[i] = replace(
                apart.at[i],
                rank=None,
                rank_lower=None,
                rank_upper=None,
                folded_under=name,
                reason=f"shares the line of {name}: {why}",
            )
    return tuple(at)
