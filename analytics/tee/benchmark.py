"""Variance components of a whole benchmark: what a difference between two of its agents rests on.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, §3 and Eq. 7. The terms with an agent are this
project's own.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from analytics import glmm
from analytics.arrays import FloatArray, IndexArray
from analytics.differences.groups import Groups
from analytics.differences.rows import ErrorTerm, Facet, facets_of, satterthwaite
from analytics.errors import CoreError
from analytics.flat_file import FlatFile
from analytics.outcome_table import naive_standard_error
from analytics.record import Record
from analytics.reml import fit
from analytics.reml.variance_components import VarianceFit
from analytics.tee.agent_projection import (
    ESTIMANDS,
    GROUP,
    NOT_APART,
    ONE_TRIAL,
    advice,
    agent_contributions,
    as_seen,
    by_groups,
    shown_estimands,
    task_groups,
)
from analytics.tee.design import Declaration
from analytics.tee.dstudy import DStudyRefused, Reading
from analytics.tee.report import SCORES, BoardEstimate, paragraph
from analytics.tee.total_error import TotalError, sensitivity, total_error
from analytics.text import enumerated

FACETS = ("prompt", "judge", "temperature", "run")
CONDITION = ("prompt", "judge", "temperature")
FIXED = ("judge", "temperature")
MEANING = {
    "agent": "differences between agents",
    "task": "differences in difficulty, the same for all agents",
    "agent:task": "some tasks suit some agents; more tasks average it out",
    "prompt": "differences between prompts, the same for all agents",
    "agent:prompt": "some prompts suit some agents",
    "task:prompt": "some prompts suit some tasks",
    "agent:judge": "some judges prefer some agents",
    "task:judge": "some judges are milder on some tasks",
    "agent:temperature": "some agents depend on the temperature",
    "agent:run": "differences between full runs of one agent",
    "agent:task:trial": "differences between trials of an agent on a task",
    "Residual": "differences between trials of an agent on a task, and everything else",
}
VERDICTS = "differences between judges on one trial, and everything else"
MIN_REPEATS = 5  # trials beyond the first of their cell, from which on their noise is known by itself
TRIALS = (1, 2, 3, 4, 5, 10)
MAX_LOGIT_ROWS = 10**6
OnBoard = Callable[[Sequence[Facet]], Mapping[str, BoardEstimate]]


@dataclass(frozen=True, eq=False)
class TrialOutcomes:
    """Valid trials, (n_rows,): "agent", "task", and columns of `FACETS`; not stated is a level.

    trial: its number; judges scored one trial where the rest is equal too. None: each row is another one.
    """

    columns: Mapping[str, npt.NDArray[np.str_]]
    outcome: FloatArray
    trial: npt.NDArray[np.integer] | None = None

    @classmethod
    def of_flat(cls, flat: FlatFile, tasks: Collection[str]) -> "TrialOutcomes":
        """Take the valid rows of a flat file on these tasks."""
        setting = np.array([[str(value) for value in one] for one in flat.settings], dtype=np.str_)
        rows = flat.valid & np.isin(flat.tasks, list(tasks))[flat.task]
        columns = {"agent": np.array(flat.agents)[flat.agent], "task": np.array(flat.tasks)[flat.task]}
        columns |= {facet: setting[:, i][flat.setting] for i, facet in enumerate(FACETS)}
        columns = {name: values[rows] for name, values in columns.items()}
        return cls(columns, flat.outcome[rows], flat.trial[rows])

    def n_levels(self, column: str) -> int:
        """Count the labels of a column."""
        return int(np.unique(self.columns[column]).size)

    def levels_by_agent(self, column: str) -> IndexArray:
        """Count the labels of a column by agent, (n_agents,)."""
        pairs = np.unique(np.stack([self.columns["agent"], self.columns[column]]), axis=1)
        return np.unique(pairs[0], return_counts=True)[1]

    def of_agents(self, names: Collection[str]) -> "TrialOutcomes":
        """Return the rows of these agents."""
        mask = np.isin(self.columns["agent"], list(names))
        columns = {name: values[mask] for name, values in self.columns.items()}
        return TrialOutcomes(columns, self.outcome[mask], None if self.trial is None else self.trial[mask])

    @cached_property
    def judged_trials(self) -> Literal["", "one", "several"]:
        """Where judges scored the same trials: whether tasks have several under a prompt and temperature."""
        if self.trial is None or self.n_levels("judge") < 2:
            return ""
        first, place = _same_trial(self._with_trial())
        if place.size - first.size < MIN_REPEATS:
            return ""
        trials = {name: values[first] for name, values in self.columns.items()}
        return "several" if _are_repeated(trials, "prompt", "temperature") else "one"

    @cached_property
    def judges_agree(self) -> bool:
        """Whether each trial has verdicts of several judges, who never differed."""
        if not self.judged_trials:
            return False
        first, place = _same_trial(self._with_trial())
        is_shared = np.bincount(place).min() > 1
        return bool(is_shared and (self.outcome == self.outcome[first][place]).all())

    def numbered(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns, with the number of the trial apart for each prompt, temperature and run."""
        columns = self._with_trial()
        return {**columns, "trial": _numbers(columns, "prompt", "temperature", "run", "trial")}

    def per_trial(self) -> "TrialOutcomes":
        """Return each trial once, with the mean of its verdicts and no judge."""
        if not self.judged_trials:
            return self
        first, place = _same_trial(self._with_trial())
        columns = {name: values[first] for name, values in self.columns.items()}
        columns["judge"] = np.full(first.size, "")
        means = np.bincount(place, self.outcome) / np.bincount(place)
        return TrialOutcomes(columns, means)

    def _with_trial(self) -> dict[str, npt.NDArray[Any]]:
        trial = np.arange(self.outcome.size) if self.trial is None else self.trial
        return {**self.columns, "trial": trial}

    def by_agent(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give each agent's name and columns, its outcomes among them, by code point."""
        names, agent = np.unique(self.columns["agent"], return_inverse=True)
        ends = np.cumsum(np.bincount(agent, minlength=names.size))
        parts = np.split(np.argsort(agent, kind="stable"), ends[:-1])
        for name, rows in zip(names.tolist(), parts, strict=False):  # without rows there is one empty part
            columns = {column: values[rows] for column, values in self._with_trial().items()}
            yield name, columns | {"outcome": self.outcome[rows]}


def variance_study(
    outcomes: TrialOutcomes,
    *,
    complete: Collection[str],
    n_tasks: int,
    voices: Collection[str] | None = None,
    on_board: OnBoard | None = None,
    groups: Mapping[str, Any] | None = None,
    with_agents: bool = True,
) -> dict[str, Any]:
    """Fit a benchmark and its agents, and tell the result as objects of JSON.

    complete: agents with full runs: to the others, tasks are a selection and no sample.
    n_tasks: active tasks, m.
    voices: agents that the fit is of; by default all.
    on_board: from the facets that were measured to what a board states of the agents whose outcomes here are
        under the conditions that it compares.
    groups: the result of `analytics.tee.agent_projection.task_groups`; by default tasks are independent.
    """
    result: dict[str, Any] = {"available": True, "reason": ""}
    learnt = outcomes if voices is None else outcomes.of_agents(voices)
    try:
        result |= _fitted(*_fit(learnt), learnt, n_tasks, groups)
    except CoreError as refusal:
        result = {"available": False, "reason": str(refusal)}
    on_board_of = on_board(facets_of(result)) if on_board else {}
    return result | {
        "n_rows": int(learnt.outcome.size),
        "levels": {column: learnt.n_levels(column) for column in ("agent", "task", *FACETS)},
        "agents": list(_agents(outcomes, complete, on_board_of)) if with_agents else [],
    }


def study_of_file(flat: FlatFile) -> dict[str, Any]:
    """Return the `variance_study` of a benchmark that holds a flat file and nothing else, without its agents.

    What a board states of an agent is in `selection.standings`.
    """
    record = Record.from_flat(flat)
    names, groups = np.array(record.table.agents, dtype=object), Groups.clusters(record.groups)
    means = record.table.means[record.ran_all & record.voice]
    result = variance_study(
        TrialOutcomes.of_flat(flat, record.table.tasks),
        complete=names[record.ran_all].tolist(),
        n_tasks=record.n_tasks,
        voices=names[record.voice].tolist(),
        groups=task_groups(means, groups) if groups.is_enough else None,
        with_agents=False,
    )
    return {name: value for name, value in result.items() if name != "agents"}


def _fit(outcomes: TrialOutcomes) -> tuple[VarianceFit, list[str], TrialOutcomes]:
    """Return a fit, why it has no prompts and judges where it could not, and the rows that it is of."""
    if outcomes.judges_agree:
        return _fit(outcomes.per_trial())
    varied = [facet for facet in CONDITION if outcomes.n_levels(facet) > 1]
    # labels of runs are an agent's own
    pairs = np.unique(np.stack([outcomes.columns["agent"], outcomes.columns["run"]]), axis=1)
    is_shared = outcomes.judged_trials == "several"
    random = [
        *_of_tasks(outcomes),
        *_cells(outcomes, varied),
        *(["agent:task:trial"] if is_shared else []),
        *(["prompt"] if "prompt" in varied else []),
        *(f"agent:{facet}" for facet in varied),
        *(f"task:{facet}" for facet in varied if facet != "temperature"),
        *(["agent:run"] if pairs.shape[1] > np.unique(pairs[0]).size else []),
    ]
    fixed = [facet for facet in varied if facet in FIXED]
    columns = outcomes.numbered() if is_shared else outcomes.columns
    try:
        found = fit(columns, outcomes.outcome, random=" + ".join(random), fixed=" + ".join(fixed))
        return found, [], outcomes
    except CoreError as refusal:
        once = outcomes.per_trial()
        plain = _of_tasks(once)
        if plain == random:
            raise
        return fit(once.columns, once.outcome, random=" + ".join(plain)), [str(refusal)], once


def _of_tasks(outcomes: TrialOutcomes) -> list[str]:
    """Name the terms of agents and tasks that the rows tell apart."""
    return ["agent", "task", *(["agent:task"] if _are_repeated(outcomes.columns) else [])]


def _cells(outcomes: TrialOutcomes, varied: Sequence[str]) -> list[str]:
    """Name the cells of agent, task and condition that the rows can separate from each other and from noise.

    They are that of the prompt, that without judges, and the whole.
    """
    without_judges = tuple(facet for facet in varied if facet != "judge")
    found, n_before = list[str](), _n_cells(outcomes.columns)
    for facets in dict.fromkeys((without_judges[:1], without_judges, tuple(varied))):
        n = _n_cells(outcomes.columns, *facets)
        if n - n_before >= MIN_REPEATS and outcomes.outcome.size - n >= MIN_REPEATS:
            found.append(_cell(facets))
            n_before = n
    return found


def _cell(facets: Sequence[str]) -> str:
    return ":".join(("agent", "task", *facets))


def _pooled_with(parts: Collection[str], *, is_one_trial: bool) -> str:
    """Return the term of a fit that includes the noise of trials; empty where the fit separates it."""
    varied = [facet for facet in CONDITION if f"agent:{facet}" in parts]
    if is_one_trial:
        return _cell([facet for facet in varied if facet != "judge"])
    return "" if {_cell(varied), "agent:task:trial"} & set(parts) else _cell(varied)


def _are_repeated(columns: Mapping[str, npt.NDArray[Any]], *facets: str) -> bool:
    """Whether tasks have enough rows beyond the first of an agent under one level of these facets."""
    return len(columns["agent"]) - _n_cells(columns, *facets) >= MIN_REPEATS


def _n_cells(columns: Mapping[str, npt.NDArray[Any]], *facets: str) -> int:
    return int(np.unique(_numbers(columns, "agent", "task", *facets)).size)


def _numbers(columns: Mapping[str, npt.NDArray[Any]], *names: str) -> IndexArray:
    """Give rows with the same labels in these columns the same number, (n_rows,)."""
    numbers = np.zeros(len(columns[names[0]]), np.intp)
    for name in names:
        labels, codes = np.unique(columns[name], return_inverse=True)
        numbers = numbers * labels.size + codes
    return numbers


def _fitted(
    fitted: VarianceFit,
    dropped: list[str],
    fitted_rows: TrialOutcomes,
    outcomes: TrialOutcomes,
    n_tasks: int,
    groups: Mapping[str, Any] | None,
) -> dict[str, Any]:
    parts = {**fitted.components, "Residual": fitted.residual}
    total = sum(parts.values())
    levels = {facet: outcomes.n_levels(facet) for facet in FACETS}
    judges_differ = any(name.startswith("judge[") for name in fitted.fixed)
    sensitive = sensitivity(fitted, "judge") if judges_differ else None
    is_one_trial = fitted_rows.judged_trials == "one"
    pooled_with = _pooled_with(parts, is_one_trial=is_one_trial)
    missing = []
    if pooled_with:
        apart = pooled_with.replace(":", " × ")
        why = ONE_TRIAL if is_one_trial else "too few trials were repeated under one condition"
        missing = [f"{NOT_APART} {apart} ({why})"]
    missing += [f"{facet} (only one, or not stated)" for facet in CONDITION if levels[facet] < 2]
    missing += [] if "agent:run" in parts else ["repeated full runs (none are labelled)"]
    missing += dropped
    return {
        "components": [
            {
                "name": name,
                "variance": variance,
                "share": variance / total,
                "boundary": name in fitted.boundary,
                "meaning": _meaning(name, pooled_with, is_judged=bool(fitted_rows.judged_trials)),
            }
            for name, variance in parts.items()
        ],
        "fixed": fitted.fixed,
        "criterion": fitted.criterion,
        "method": fitted.method,
        "message": fitted.message,
        "converged": fitted.converged,
        "facets": _facets(fitted, outcomes, pooled_with),
        "not_measured": missing,
        "groups": groups,
        "projections": []
        if pooled_with
        else _projections(parts, fitted.fixed, {**levels, "task": n_tasks}, groups),
        "advice": advice(
            parts,
            levels=levels,
            n_tasks=n_tasks,
            sensitivity=sensitive,
            groups=groups,
            pooled_with=pooled_with,
            without_effect=["judge"] if outcomes.judges_agree else [],
        ),
        "logit": _logit(fitted, fitted_rows),
    }


def _meaning(name: str, pooled_with: str, *, is_judged: bool) -> str:
    """Say what a component is; the term `pooled_with` includes the noise of trials, if one is named."""
    if name == "Residual" and is_judged:
        return VERDICTS
    if name == "Residual" and pooled_with:
        return f"everything else: {_suits(pooled_with)}, and trials differ"
    if name in MEANING and name != pooled_with:
        return MEANING[name]
    trials = "trials differ, and " if name == pooled_with else ""
    return f"{trials}{_suits(name)}; more tasks average it out" if name.startswith("agent:task") else ""


def _suits(cell: str) -> str:
    """Say what the term of agent, task and these facets is."""
    facets = [f"{facet}s" for facet in cell.split(":")[2:]]
    return f"some tasks suit some agents{f' under some {enumerated(facets)}' * bool(facets)}"


def _logit(fitted: VarianceFit, outcomes: TrialOutcomes) -> dict[str, Any] | None:
    if not np.isin(outcomes.outcome, (0.0, 1.0)).all():
        return None
    if outcomes.outcome.size > MAX_LOGIT_ROWS:
        return {"available": False, "reason": f"not fitted to more than {MAX_LOGIT_ROWS:,} outcomes"}
    if "agent:task:trial" in fitted.components:
        return {"available": False, "reason": "not fitted where several judges scored the same trials"}
    random = " + ".join(term.name for term in fitted.terms)
    fixed = " + ".join(name for name in FIXED if any(key.startswith(f"{name}[") for key in fitted.fixed))
    try:
        logit = glmm.fit_logit(outcomes.columns, outcomes.outcome, random=random, fixed=fixed)
        check = glmm.logit_check(fitted, logit, by_level="agent")
    except CoreError as refusal:
        return {"available": False, "reason": str(refusal)}
    return {"available": True, "reason": "", **check.as_json()}


def _facets(fitted: VarianceFit, outcomes: TrialOutcomes, pooled_with: str) -> dict[str, dict[str, float]]:
    # Satterthwaite's 2σ⁴/Var(σ̂²), at least 1; on the boundary those of the mean square of the term
    free = fitted.free()
    variances, of_estimates = fitted.parameters[free], np.diag(fitted.covariance())
    degrees = {
        fitted.names[i]: max(1.0, 2 * variance**2 / of_estimate)
        for i, variance, of_estimate in zip(
            free.tolist(), variances.tolist(), of_estimates.tolist(), strict=True
        )
        if of_estimate > 0
    }
    facets: dict[str, dict[str, float]] = {}
    for name in ("run", "prompt", "judge"):
        n_levels, of_agents = outcomes.n_levels(name), outcomes.levels_by_agent(name) - 1
        # the labels of runs belong to one agent each
        df = int(of_agents.sum()) - (0 if name == "run" else n_levels - 1)
        if f"agent:{name}" not in fitted.components or not (df >= MIN_REPEATS or of_agents.all()):
            continue  # too few agents varied it to say anything about the others
        known = facets.setdefault(name, {})
        for key, term, least in (("with_agent", f"agent:{name}", df), ("main", name, n_levels - 1)):
            if term in fitted.components:
                known[key] = fitted.components[term]
                known[f"df_{key}"] = degrees.get(term, max(1.0, least))
    if outcomes.judges_agree:
        facets["judge"] = {"with_agent": 0.0, "main": 0.0}
    # a panel of judges is fixed, and so is what suits an agent on a task under one of them
    cells = [
        ErrorTerm(name, fitted.components[name] / averaged, df)
        for name, df in degrees.items()
        if name.startswith("agent:task:prompt") and name != pooled_with
        for averaged in [math.prod(outcomes.n_levels(facet) for facet in FIXED if facet in name)]
    ]
    if cells and "prompt" in facets:
        with_task = sum(cell.variance for cell in cells)
        facets["prompt"] |= {"with_task": with_task, "df_with_task": satterthwaite(cells)}
    return facets


def _projections(
    parts: Mapping[str, float],
    fixed: Mapping[str, float],
    levels: Mapping[str, int],
    groups: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """Project the SE of one agent's mean by trials, for both estimands, over what was seen."""
    seen = as_seen(levels, parts)
    parts, known = by_groups(parts, groups), shown_estimands(groups)
    if groups and GROUP in parts:
        seen["C"] = groups["n_groups"]
    projections = []
    for n in TRIALS:
        row: dict[str, Any] = {"n_trials": n} | dict.fromkeys(ESTIMANDS)
        for name in known:
            with suppress(DStudyRefused):
                contributions, _ = agent_contributions(parts, fixed, {**seen, "R": n}, Reading(name))
                row[name] = float(np.sqrt(sum(contributions.values())))
        projections.append(row)
    return projections


def _agents(
    outcomes: TrialOutcomes, complete: Collection[str], on_board: Mapping[str, BoardEstimate]
) -> Iterator[dict[str, Any]]:
    for name, trials in outcomes.by_agent():
        mine = _averaged_over_judges(trials)
        facets = [facet for facet in FACETS if facet != "run" and np.unique(mine[facet]).size > 1]
        if not facets and np.unique(mine["task"]).size == mine["task"].size:
            continue
        try:
            columns: dict[str, Any] = {facet: facet for facet in facets}
            items: Literal["sample", "selected"] = "sample" if name in complete else "selected"
            declared = Declaration(outcome="outcome", item="task", items=items, **columns)
            study = total_error(mine, declared, Reading("finite"))
            n_averaged = 0 if mine is trials else np.unique(trials["judge"]).size
            yield _agent(name, study, on_board.get(name), n_averaged)
        except CoreError as refusal:
            yield {"agent": name, "reason": str(refusal)}


def _averaged_over_judges(trials: dict[str, Any]) -> dict[str, Any]:
    """Average what several judges said of one trial, where some trial has several: it ran once."""
    if (trials["judge"] == trials["judge"][0]).all():
        return trials
    first, place = _same_trial(trials)
    if first.size == place.size:
        return trials
    means = np.bincount(place, trials["outcome"]) / np.bincount(place)
    averaged = {column: values[first] for column, values in trials.items()}
    return averaged | {"outcome": means, "judge": np.full(first.size, "")}


def _same_trial(trials: Mapping[str, npt.NDArray[np.generic]]) -> tuple[IndexArray, IndexArray]:
    """Return the first row of each trial, whoever judged it, and which of these each row is of."""
    place = np.zeros(trials["trial"].size, np.intp)
    for column in ("agent", "task", "prompt", "temperature", "run", "trial"):
        labels, codes = np.unique(trials[column], return_inverse=True)
        first, place = np.unique(place * labels.size + codes, return_index=True, return_inverse=True)[1:]
    return first, place


def _agent(name: str, study: TotalError, on_board: BoardEstimate | None, n_averaged: int) -> dict[str, Any]:
    return {
        "agent": name,
        "reason": "",
        "theta": on_board.score if on_board else study.theta,
        "se": on_board.se if on_board else study.se,
        "on_board": on_board is not None,
        "few_levels_df": study.interval().df if study.few_levels and on_board is None else None,
        "naive_se": on_board.naive_se
        if on_board
        else naive_standard_error(study.theta, study.layout.levels["N"]),
        "levels": dict(study.layout.levels),
        "replicates": list(study.layout.replicates),
        "table": [
            {"name": row.name, "variance": row.variance, "share_of_mean": row.share_of_mean}
            for row in study.table()
        ],
        "paragraph": paragraph(study, SCORES, on_board, is_mean_of_judges=n_averaged > 0),
        "judges_averaged": n_averaged,
    }
