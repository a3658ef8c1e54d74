"""Variance components of a benchmark: from repeated trials and from settings that vary.

One model for all agents tells what a difference of two of them rests on; agents whose trials repeat, or that
ran a pilot, have a decomposition of their own (total evaluation error).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.differences.pairs import NEVER_MEASURED, Facet
from analytics.errors import CoreError
from analytics.reml import VarianceFit
from analytics.tee import (
    Component,
    Components,
    Declaration,
    DStudyRefused,
    Reading,
    TotalError,
    paragraph,
    project,
    total_error,
)
from leaderboard.studies.models import VarianceStudy
from leaderboard.studies.services import keep, kept
from leaderboard.studies.tables import Snapshot
from leaderboard.submissions.queries import accepted_submissions, outcomes_of, settings_of

FACETS = {"prompt": 0, "judge": 1, "temperature": 2, "run": 3}  # places in Setting.FACETS
FIXED = ("judge", "temperature")
MEANING = {
    "agent": "how agents differ: what a leaderboard is for",
    "task": "how tasks differ in difficulty; it cancels between agents on the same tasks",
    "agent:task": "which tasks suit which agent; it stays, and only more tasks average it out",
    "prompt": "how prompts differ for all agents alike",
    "agent:prompt": "which prompt suits which agent",
    "task:prompt": "which prompt suits which task",
    "agent:judge": "how judges differ in what they think of an agent",
    "task:judge": "how judges differ in what they think of a task",
    "agent:temperature": "how an agent depends on the temperature",
    "agent:run": "how an agent differs from run to run, on all tasks at once",
    "Residual": "trial noise, and all that was not varied",
}
TRIALS = (1, 2, 3, 5, 10)


@dataclass(frozen=True, eq=False)
class Rows:
    """Valid outcomes of all accepted submissions, with labels as they are told."""

    columns: dict[str, np.ndarray]
    outcome: np.ndarray

    def levels(self, column: str) -> int:
        return int(np.unique(self.columns[column]).size)

    def of_agent(self, name: str) -> dict[str, np.ndarray]:
        mine = self.columns["agent"] == name
        chosen = {column: values[mine] for column, values in self.columns.items()}
        return chosen | {"outcome": self.outcome[mine]}


def settle_variance(*, snapshot: Snapshot, as_of: datetime) -> tuple[VarianceStudy, bool]:
    """Return the study of the present data and whether it was computed just now."""
    if study := kept(VarianceStudy, snapshot=snapshot):
        return study, False
    return keep(VarianceStudy, snapshot=snapshot, result=_result(snapshot), as_of=as_of), True


def facets_of(study: VarianceStudy | None) -> tuple[Facet, ...]:
    """What differences between agents need to know of runs, prompts and judges."""
    if study is None or not study.result["available"]:
        return NEVER_MEASURED
    measured = study.result["facets"]
    return tuple(
        Facet(facet.name, **measured[facet.name]) if facet.name in measured else facet
        for facet in NEVER_MEASURED
    )


def _result(snapshot: Snapshot) -> dict[str, Any]:
    rows = _rows(snapshot)
    described = {
        "n_rows": int(rows.outcome.size),
        "levels": {column: rows.levels(column) for column in ("agent", "task", *FACETS)},
        "agents": list(_agents(rows, snapshot)),
    }
    try:
        found = _fitted(*_fit(rows), rows, snapshot)
    except CoreError as refusal:
        return {"available": False, "reason": str(refusal), **described}
    return {"available": True, "reason": "", **described, **found}


def _fit(rows: Rows) -> tuple[VarianceFit, list[str]]:
    """Fit all that varied; where that cannot be told apart, trials alone, and say so."""
    from analytics.reml import fit

    random, fixed = _terms(rows)
    try:
        return fit(rows.columns, rows.outcome, random=" + ".join(random), fixed=" + ".join(fixed)), []
    except CoreError as refusal:
        plain = [term for term in random if set(term.split(":")) <= {"agent", "task"}]
        if plain == random:
            raise
        return fit(rows.columns, rows.outcome, random=" + ".join(plain)), [str(refusal)]


def _terms(rows: Rows) -> tuple[list[str], list[str]]:
    varied = [facet for facet in FACETS if facet != "run" and rows.levels(facet) > 1]
    random = ["agent", "task"]
    if _repeats(rows, "agent", "task"):
        random.append("agent:task")
    random += ["prompt"] if "prompt" in varied else []
    random += [f"agent:{facet}" for facet in varied]
    random += [f"task:{facet}" for facet in varied if facet != "temperature"]
    if _several_runs(rows):
        random.append("agent:run")
    return random, [facet for facet in varied if facet in FIXED]


def _repeats(rows: Rows, *columns: str) -> bool:
    """Whether some combination has more than one row."""
    cell = np.zeros(rows.outcome.size, np.int64)
    for column in columns:
        labels, codes = np.unique(rows.columns[column], return_inverse=True)
        cell = cell * labels.size + codes
    return bool(np.unique(cell).size < cell.size)


def _several_runs(rows: Rows) -> bool:
    """Whether some agent states more than one run; labels of runs are its own."""
    pairs = np.unique(np.stack([rows.columns["agent"], rows.columns["run"]]), axis=1)
    return bool(pairs.shape[1] > np.unique(pairs[0]).size)


def _fitted(fitted: VarianceFit, dropped: list[str], rows: Rows, snapshot: Snapshot) -> dict[str, Any]:
    parts = {**fitted.components, "Residual": fitted.residual}
    total = sum(parts.values())
    return {
        "components": [
            {
                "name": name,
                "variance": variance,
                "share": variance / total,
                "boundary": name in fitted.boundary,
                "meaning": MEANING.get(name, ""),
            }
            for name, variance in parts.items()
        ],
        "fixed": fitted.fixed,
        "criterion": fitted.criterion,
        "method": fitted.method,
        "message": fitted.message,
        "converged": fitted.converged,
        "facets": _facets(fitted),
        "not_measured": _not_measured(parts, rows, dropped),
        "projections": _projections(parts, snapshot.table.n_tasks),
    }


def _facets(fitted: VarianceFit) -> dict[str, dict[str, float]]:
    """Components with the agent, and main effects, of the facets that a difference rests on."""
    degrees = _degrees(fitted)
    facets: dict[str, dict[str, float]] = {}
    for name in ("run", "prompt", "judge"):
        for key, term in (("with_agent", f"agent:{name}"), ("main", name)):
            if term in fitted.components:
                known = facets.setdefault(name, {})
                known[key] = fitted.components[term]
                if term in degrees:
                    known[f"df_{key}"] = degrees[term]
    return facets


def _degrees(fitted: VarianceFit) -> dict[str, float]:
    """Satterthwaite's 2σ⁴/Var(σ̂²), at least 1, of the components off the boundary."""
    free = fitted.free()
    variances, of_estimates = fitted.parameters[free], np.diag(fitted.covariance())
    return {
        fitted.names[i]: max(1.0, 2 * variance**2 / of_estimate)
        for i, variance, of_estimate in zip(
            free.tolist(), variances.tolist(), of_estimates.tolist(), strict=True
        )
        if of_estimate > 0
    }


def _not_measured(parts: dict[str, float], rows: Rows, dropped: list[str]) -> list[str]:
    missing = [] if "agent:task" in parts else ["trial noise apart from agent:task (no trial was repeated)"]
    missing += [
        f"{facet} (one level)" for facet in ("prompt", "judge", "temperature") if rows.levels(facet) < 2
    ]
    if "agent:run" not in parts:
        missing.append("run (no agent states several)")
    return missing + dropped


def _projections(parts: dict[str, float], n_tasks: int) -> list[dict[str, Any]]:
    """The standard error of one agent's mean over the tasks, by trials, for both estimands."""
    if "agent:task" not in parts:
        return []
    items = parts["task"] + parts["agent:task"]
    components = Components(
        (Component("item", items, frozenset("N")), Component("Residual", parts["Residual"], frozenset("R")))
    )
    return [
        {
            "n_trials": n,
            **{estimand: _projected(components, n_tasks, n, estimand) for estimand in ("finite", "domain")},
        }
        for n in TRIALS
    ]


def _projected(components: Components, n_tasks: int, n_trials: int, estimand: Any) -> float | None:
    try:
        return project(components, {"N": n_tasks, "R": n_trials}, Reading(estimand=estimand)).se
    except DStudyRefused:
        return None


def _agents(rows: Rows, snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Total evaluation error of each agent whose trials repeat or that ran a pilot."""
    complete = snapshot.table.complete()
    for i, name in enumerate(snapshot.table.agents):
        mine = rows.of_agent(name)
        facets = [facet for facet in FACETS if facet != "run" and np.unique(mine[facet]).size > 1]
        if not facets and np.unique(mine["task"]).size == mine["task"].size:
            continue
        try:
            yield _agent(name, total_error(mine, _declared(facets, bool(complete[i])), Reading("finite")))
        except CoreError as refusal:
            yield {"agent": name, "reason": str(refusal)}


def _declared(facets: list[str], is_complete: bool) -> Declaration:
    return Declaration(
        outcome="outcome",
        item="task",
        prompt="prompt" if "prompt" in facets else None,
        judge="judge" if "judge" in facets else None,
        temperature="temperature" if "temperature" in facets else None,
        items="sample" if is_complete else "selected",
    )


def _agent(name: str, study: TotalError) -> dict[str, Any]:
    return {
        "agent": name,
        "reason": "",
        "theta": study.theta,
        "se": study.se,
        "naive_se": study.naive_se,
        "levels": dict(study.layout.levels),
        "table": [
            {"name": row.name, "variance": row.variance, "share_of_mean": row.share_of_mean}
            for row in study.table()
        ],
        "paragraph": paragraph(study),
    }


def _rows(snapshot: Snapshot) -> Rows:
    """Read all accepted outcomes, those outside the counted settings too: pilots feed this study alone."""
    benchmark = snapshot.benchmark
    table = outcomes_of(s.pk for s in accepted_submissions(benchmark))
    names = {agent.pk: agent.name for agent in snapshot.agents}
    active = pa.array(snapshot.task_ids, pa.int32())
    known = pc.and_(table["valid"], pc.is_in(table["task"], active))
    table = table.filter(pc.and_(known, pc.is_in(table["agent"], pa.array(names, pa.int64()))))
    agent = _labelled(table["agent"].to_numpy(), names)
    task_names = dict(zip(snapshot.task_ids.tolist(), snapshot.table.tasks, strict=True))
    setting = table["setting"].to_numpy()
    facets = {pk: stated for stated, pk in settings_of(benchmark).items()}
    columns = {"agent": agent, "task": _labelled(table["task"].to_numpy(), task_names)}
    for facet, place in FACETS.items():
        columns[facet] = _labelled(setting, {pk: str(stated[place]) for pk, stated in facets.items()})
    return Rows(columns, table["value"].cast(pa.float64()).to_numpy())


def _labelled(ids: np.ndarray, labels: dict[int, str]) -> np.ndarray:
    present, codes = np.unique(ids, return_inverse=True)
    return np.array([labels[i] for i in present.tolist()], dtype=np.str_)[codes]
