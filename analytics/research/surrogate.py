"""``python -m analytics.research surrogate FILE``: what people would have said, from a judge and some labels.

The estimate is that of `analytics.human_labels`.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. M and Eq. 15.
"""

import argparse
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from analytics.arrays import CodeArray, FloatArray, IndexArray
from analytics.command_line import Answer, add_command, outcomes_of
from analytics.errors import CoreError
from analytics.flat_file import FlatFile
from analytics.human_labels import (
    CENSUS,
    Corrected,
    Labelled,
    SurrogateRefused,
    correct,
    difference,
)
from analytics.reml import FitRefused, fit
from analytics.text import cut, named

ABOUT = (
    "What people said stands in a column of numbers from 0 to 1 (--human), on rows of the judge, or is a "
    "level of the column judge (--human-judge). How the labels were drawn must be said."
)
BY_HAND = (
    "how the labels were drawn is not said: --probability names the column with the probability of each, "
    "--random-sample says that all tasks were equally likely; labels picked by hand tell nothing of the rest"
)


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "surrogate",
        _surrogate,
        summary="The mean that people would have given, from a judge on all tasks and labels on some.",
        about=ABOUT,
    )
    parser.add_argument("--judge", required=True, metavar="LEVEL", help="the judge that saw all tasks")
    people = parser.add_mutually_exclusive_group(required=True)
    people.add_argument("--human", metavar="COL", help="column of what people said, such as human")
    people.add_argument("--human-judge", metavar="LEVEL", help="level of judge that holds what people said")
    drawn = parser.add_mutually_exclusive_group()
    drawn.add_argument(
        "--probability", metavar="COL", help="column of drawing probabilities, such as human_probability"
    )
    drawn.add_argument("--random-sample", action="store_true", help="all tasks were equally likely")


def _surrogate(arguments: argparse.Namespace) -> Answer:
    if arguments.probability is None and not arguments.random_sample:
        raise CoreError(BY_HAND, code="surrogate_option")
    if arguments.judge == arguments.human_judge:
        raise CoreError(f"--judge and --human-judge are both {arguments.judge!r}", code="surrogate_option")
    flat = outcomes_of(arguments)
    chosen = _rows_under(flat, arguments.judge)
    human, probability = _labels(flat, chosen, arguments)
    agents: dict[str, tuple[CodeArray, Labelled]] = {}  # with their tasks
    left_out: dict[str, str] = {}
    for i, agent in enumerate(flat.agents):
        mine = np.flatnonzero(flat.agent[chosen] == i)
        if not mine.size:
            left_out[agent] = "no row under the judge"
            continue
        tasks, task = np.unique(flat.task[chosen[mine]].astype(np.int64), return_inverse=True)
        likely = None if arguments.probability is None else probability[mine]
        try:
            one = Labelled.of_trials(task, flat.outcome[chosen[mine]], human[mine], likely)
            agents[agent] = tasks, one
        except SurrogateRefused as refusal:
            if refusal.code != "few_labels":
                raise SurrogateRefused(f"agent {named(agent)}: {refusal}", code=refusal.code) from None
            left_out[agent] = str(refusal)
    if not agents:
        raise SurrogateRefused(
            f"no agent has enough labels: {next(iter(left_out.values()))}", code="few_labels"
        )
    values = {
        "judge": arguments.judge,
        "labels": arguments.human or arguments.human_judge,
        "agents": [_agent_values(agent, correct(one)) for agent, (_, one) in agents.items()],
        "differences": [_difference(a, b, agents) for a, b in combinations(agents, 2)],
        "pipeline_error": _pipeline_error(flat, chosen, agents),
        "left_out": left_out,
        "notes": ["such a score stands beside an agent; it never orders a board"],
    }
    names = {"agent": "agent", "judge_mean": "judge", "corrected_mean": "corrected", "lower": "from"}
    names |= {"upper": "to", "n_labels": "labels", "n_tasks": "tasks", "worth": "worth labels"}
    names |= {"design": "design"}
    shown = {
        "": [{head: line[name] for name, head in names.items()} for line in values["agents"]],
        "labels alone": [{"agent": line["agent"], **line["labels_alone"]} for line in values["agents"]],
        "differences": values["differences"],
        "what the pipeline adds": values["pipeline_error"],
        "left out": left_out,
        "notes": "; ".join(values["notes"]),
    }
    return Answer(values, shown)


def _rows_under(flat: FlatFile, judge: str) -> IndexArray:
    levels = np.array([setting.judge == judge for setting in flat.settings])
    rows = np.flatnonzero(levels[flat.setting] & flat.valid)
    if not rows.size:
        there = sorted({setting.judge for setting in flat.settings if setting.judge})
        raise CoreError(
            f"no row is of judge {named(judge)}; there are {', '.join(map(cut, there)) or 'none'}",
            code="surrogate_option",
        )
    return rows


def _labels(
    flat: FlatFile, chosen: IndexArray, arguments: argparse.Namespace
) -> tuple[FloatArray, FloatArray]:
    """Y and π of the judge's rows, (n_chosen,) each; NaN where nobody was asked."""
    probability = np.full(flat.n_rows, np.nan)
    if arguments.probability is not None:
        probability = column_of_numbers(flat, arguments.probability, "surrogate_option")
    if arguments.human is not None:
        return column_of_numbers(flat, arguments.human, "surrogate_option")[chosen], probability[chosen]
    people = _rows_under(flat, arguments.human_judge)
    human, likely = np.full(chosen.size, np.nan), np.full(chosen.size, np.nan)
    # the same trials under both judges
    others = [setting._replace(judge=None) for setting in flat.settings]
    code = {setting: i for i, setting in enumerate(dict.fromkeys(others))}
    setting = np.array([code[one] for one in others], dtype=np.int64)[flat.setting]
    key = (flat.agent.astype(np.int64) * len(flat.tasks) + flat.task) * len(code) + setting
    key = key * (int(flat.trial.max()) + 1) + flat.trial
    _, mine, theirs = np.intersect1d(key[chosen], key[people], return_indices=True)
    human[mine], likely[mine] = flat.outcome[people[theirs]], probability[people[theirs]]
    return human, likely


def column_of_texts(flat: FlatFile, column: str, code: str) -> list[str]:
    """Return a column of the file's own, "" where it is empty; refused under `code` where there is none."""
    if column not in flat.metadata:
        there = ", ".join(dict.fromkeys([*flat.labels, *flat.metadata])) or "none"
        raise CoreError(f"no column {column!r}; there are {there}", code=code)
    return [text or "" for text in flat.metadata[column].to_pylist()]


def column_of_numbers(flat: FlatFile, column: str, code: str) -> FloatArray:
    """Return a column of labels, or of the file's own, as numbers, (n_rows,); NaN where it is empty."""
    if column in flat.labels:
        return flat.labels[column]
    try:
        return np.array([float(text) if text else np.nan for text in column_of_texts(flat, column, code)])
    except CoreError:
        raise
    except ValueError as error:
        raise CoreError(f"column {column}: {error}", code=code) from None


def _agent_values(agent: str, corrected: Corrected) -> dict[str, Any]:
    left_to_err = corrected.design != CENSUS
    return {
        "agent": agent,
        "judge_mean": corrected.judge_mean,
        "corrected_mean": corrected.corrected.value,
        **corrected.corrected.error((0.0, 1.0), known=left_to_err),
        "n_labels": corrected.n_labels,
        "n_tasks": corrected.n_tasks,
        "labels_alone": {
            "mean": corrected.alone.value,
            **corrected.alone.error((0.0, 1.0), known=left_to_err),
        },
        "worth": corrected.worth,
        "design": corrected.design,
    }


def _difference(a: str, b: str, agents: Mapping[str, tuple[CodeArray, Labelled]]) -> dict[str, Any]:
    (tasks_a, one), (tasks_b, other) = agents[a], agents[b]
    _, of_a, of_b = np.intersect1d(tasks_a, tasks_b, return_indices=True)
    try:
        one, other = one.on(of_a), other.on(of_b)
        estimate = difference(one, other)
    except SurrogateRefused as refusal:
        return {"a": a, "b": b, "difference": None, "reason": f"on their common tasks: {refusal}"}
    all_labelled = one.is_census and other.is_census
    return {
        "a": a,
        "b": b,
        "difference": estimate.value,
        **estimate.error((-1.0, 1.0), known=not all_labelled),
        "n_tasks": of_a.size,
        "reason": CENSUS if all_labelled else "",
    }


def pipeline_error(
    *, prompts: float, cells: float, replicates: float, n_prompts: int, n_replicates: int, mean_square: float
) -> dict[str, float]:
    """Return the parts of Eq. 15, score², with σ_bias² what is left of the mean square of e.

    prompts: σ_φ² and its interactions, added up.
    cells, replicates: σ_ε² and σ_ρ².
    n_prompts, n_replicates: V and R.
    mean_square: mean e² of labels.
    """
    parts = (prompts / n_prompts, cells / n_prompts, replicates / (n_prompts * n_replicates))
    names = ("prompts", "cells", "replicates")
    return dict(zip(names, parts, strict=True)) | {"bias": max(mean_square - sum(parts), 0.0)}


def _pipeline_error(
    flat: FlatFile, chosen: IndexArray, agents: Mapping[str, tuple[CodeArray, Labelled]]
) -> dict[str, Any]:
    rows = chosen[np.isin(flat.agent[chosen], [flat.agents.index(agent) for agent in agents])]
    texts = np.array([str(setting.prompt_variant) for setting in flat.settings])[flat.setting[rows]]
    prompts, prompt = np.unique(texts, return_inverse=True)
    item = flat.agent[rows].astype(np.int64) * len(flat.tasks) + flat.task[rows]
    _, n_trials = np.unique(item * prompts.size + prompt, return_counts=True)
    if np.unique(item).size == rows.size:
        return {"reason": "not measured: the judge has one prompt and one trial of each task"}
    terms = ["item", "prompt", "item:prompt"] if n_trials.size < rows.size else ["item", "prompt"]
    terms = terms if prompts.size > 1 else ["item"]
    try:
        fitted = fit({"item": item, "prompt": prompt}, flat.outcome[rows], random=" + ".join(terms))
    except FitRefused as refusal:
        return {"reason": f"not measured: {refusal}"}
    n_replicates = int(np.median(n_trials))
    parts = pipeline_error(
        prompts=fitted.components.get("prompt", 0.0) + fitted.components.get("item:prompt", 0.0),
        cells=0.0,
        replicates=fitted.residual,
        n_prompts=prompts.size,
        n_replicates=n_replicates,
        mean_square=float(np.mean(np.concatenate([one.e for _, one in agents.values()]) ** 2)),
    )
    return {"n_prompts": prompts.size, "n_replicates": n_replicates, **parts, "reason": ""}
