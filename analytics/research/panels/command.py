"""``python -m analytics.research panels FILE``: what disagreement predicts, and what an ensemble gains."""

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from analytics.arrays import CodeArray, FloatArray, IndexArray
from analytics.command_line import MAX_SEED, Answer, add_command, outcomes_of, plain, whole
from analytics.errors import CoreError
from analytics.flat_file import FlatFile
from analytics.research.panels import disagreement, ensemble, tiers
from analytics.research.panels.ensemble import EnsembleRefused
from analytics.text import named


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "panels",
        _panels,
        summary="What disagreement of judges predicts, tier by tier, and what an ensemble gains.",
        about="An item is a task of an agent; a pipeline is a prompt, judge, temperature, run and trial.",
    )
    questions = parser.add_mutually_exclusive_group(required=True)
    questions.add_argument(
        "--reference", metavar="COL", help="column of labels, 1 or 0: which majorities are wrong"
    )
    questions.add_argument("--tier", metavar="COL", help="column with the tier of each judge")
    questions.add_argument("--members", metavar="A,B,…", help="agents whose outcomes are averaged")
    parser.add_argument("--seed", type=whole(MAX_SEED), default=0, help="seed of all draws (0)")


def _panels(arguments: argparse.Namespace) -> Answer:
    flat = outcomes_of(arguments)
    rows = np.flatnonzero(flat.valid)
    if arguments.reference is not None:
        return _items(flat, rows, arguments.reference, arguments.seed)
    if arguments.tier is not None:
        return _tiers(flat, rows, arguments.tier, arguments.seed)
    return _ensemble(flat, rows, [name.strip() for name in arguments.members.split(",")])


# ---------------------------------------------------------------------------------------------------- items


def _items(flat: FlatFile, rows: IndexArray, column: str, seed: int) -> Answer:
    label = _labels(flat, column)[rows]
    item, cell = _items_and_cells(flat, rows)
    mask = np.isin(item, np.unique(item[~np.isnan(label)]))
    names, code = np.unique(item[mask], return_inverse=True)
    cells, place = np.unique(cell[mask], return_inverse=True)
    votes = np.full((names.size, cells.size), np.nan)
    votes[code, place] = flat.outcome[rows[mask]]
    result = disagreement(votes, _reference(label[mask], code, names.size), seed=seed)
    low, high = result.r_null[1:]
    values = {
        "n_items": int(names.size),
        "n_pipelines": int(cells.size),
        "n_wrong": result.n_wrong,
        "area": result.area,
        "p_value": result.p_value,
        "r": result.r,
        "r_null": {"mean": result.r_null[0], "lower": low, "upper": high},
        "items": [
            {
                "agent": flat.agents[one // len(flat.tasks)],
                "task": flat.tasks[one % len(flat.tasks)],
                "variance": float(v),
                "accuracy": float(a),
            }
            for one, v, a in zip(names.tolist(), result.variance, result.accuracy, strict=True)
        ],
        "notes": ["r is below 0 by arithmetic; what tells is the area, ½ without a relation"],
    }
    return Answer(values, {name: value for name, value in values.items() if name != "items"})


def _items_and_cells(flat: FlatFile, rows: IndexArray) -> tuple[CodeArray, CodeArray]:
    item = flat.agent[rows].astype(np.int64) * len(flat.tasks) + flat.task[rows]
    return item, flat.setting[rows].astype(np.int64) * (int(flat.trial.max()) + 1) + flat.trial[rows]


def _labels(flat: FlatFile, column: str) -> FloatArray:
    if column in flat.labels:
        return flat.labels[column]
    texts = _texts(flat, column)
    try:
        return np.array([float(text) if text else np.nan for text in texts])
    except ValueError as error:
        raise CoreError(f"column {column}: {error}", code="panel_option") from None


def _texts(flat: FlatFile, column: str) -> list[str]:
    if column not in flat.metadata:
        there = ", ".join(dict.fromkeys([*flat.labels, *flat.metadata])) or "none"
        raise CoreError(f"no column {column!r}; there are {there}", code="panel_option")
    return [text or "" for text in flat.metadata[column].to_pylist()]


def _reference(label: FloatArray, code: CodeArray, n_items: int) -> FloatArray:
    rows = np.flatnonzero(~np.isnan(label))
    reference = np.full(n_items, np.nan)
    reference[code[rows]] = label[rows]
    if (reference[code[rows]] != label[rows]).any():
        raise CoreError("an item has two different labels", code="panel_option")
    return reference


# ---------------------------------------------------------------------------------------------------- tiers


def _tiers(flat: FlatFile, rows: IndexArray, column: str, seed: int) -> Answer:
    names = sorted({setting.judge or "" for setting in flat.settings})
    place = {name: i for i, name in enumerate(names)}
    judge = np.array([place[setting.judge or ""] for setting in flat.settings])[flat.setting[rows]]
    prompts = np.array([str(setting.prompt_variant) for setting in flat.settings])
    prompt = np.unique(prompts, return_inverse=True)[1].astype(np.int64)[flat.setting[rows]]
    texts = np.array(_texts(flat, column))[rows]
    tiers_of = [set(texts[judge == i].tolist()) for i in range(len(names))]
    for name, tier in zip(names, tiers_of, strict=True):
        if len(tier) != 1 or "" in tier:
            raise CoreError(
                f"judge {named(name)} has {len(tier)} tiers, or none, in column {column!r}",
                code="panel_option",
            )
    item, _ = _items_and_cells(flat, rows)
    result = tiers(item, judge, prompt, flat.outcome[rows], names, [min(one) for one in tiers_of], seed=seed)
    values = plain(result)
    shown = {
        "": [
            {"tier": one.name, "ratio": one.ratio, "from": one.lower, "to": one.upper, **one.components}
            for one in result.tiers
        ],
        "spread of item:judge": result.spread,
        "p": result.p_value,
        "partitions": result.n_partitions,
    }
    return Answer(values, shown)


# ------------------------------------------------------------------------------------------------- ensemble


def _ensemble(flat: FlatFile, rows: IndexArray, members: list[str]) -> Answer:
    unknown = [name for name in members if name not in flat.agents]
    if unknown:
        raise CoreError(f"no agent {named(unknown[0])}", code="panel_option")
    places = [flat.agents.index(name) for name in dict.fromkeys(members)]
    _, cell = _items_and_cells(flat, rows)
    cells, code = np.unique(cell, return_inverse=True)
    outcomes = np.full((len(flat.agents), len(flat.tasks), cells.size), np.nan)
    outcomes[flat.agent[rows], flat.task[rows], code] = flat.outcome[rows]
    chosen = outcomes[places]
    n = np.count_nonzero(~np.isnan(chosen), axis=2)
    by_tasks = np.where(n > 0, np.nansum(chosen, axis=2) / np.maximum(n, 1), np.nan)
    common = ~np.isnan(by_tasks).any(axis=0)
    values = {
        "members": [flat.agents[i] for i in places],
        "domain": _ensemble_values(by_tasks[:, common, None], finite=False),
        "finite": _ensemble_values(chosen, finite=True),
    }
    return Answer(values, {**values, "domain": _short(values["domain"]), "finite": _short(values["finite"])})


def _ensemble_values(outcomes: FloatArray, *, finite: bool) -> dict[str, Any]:
    try:
        return {**plain(ensemble(outcomes, finite=finite)), "reason": ""}
    except EnsembleRefused as refusal:
        if refusal.code in ("not_measured", "constant"):
            return {"reason": str(refusal)}
        raise


def _short(values: Any) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if name != "covariance"}
