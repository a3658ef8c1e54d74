"""``python -m analytics turns FILE``: at which turn conversations cross a threshold."""

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.arrays import CodeArray, FloatArray, Mask
from analytics.command_line import (
    LEFT_OUT,
    Answer,
    add_command,
    check_columns,
    csv_header,
    csv_valid,
    numbers,
    truths,
)
from analytics.errors import CoreError
from analytics.reml import FactorRefused, FitRefused, fit
from analytics.text import named
from analytics.turns import Crossing, TurnsRefused, crossing, model_hazard, published_hazard

MOST_TURNS = 1_000
CONVERSATION = ("item", "prompt_variant", "run")
FIGURES = ("n_at_risk", "n_crossed", "hazard", "survival", "se", "lower", "upper")
ABOUT = (
    "FILE is a CSV with agent, item, turn (1, 2, …) and either crossed (1 or 0) or score, which crosses "
    "above --threshold; prompt_variant and run tell conversations on one item apart. Rows "
    "whose valid is 0 are left out, where there is such a column."
)


class TurnRowsRefused(CoreError):
    """Rows that are no turns of conversations."""


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "turns",
        _turns,
        summary="At which turn conversations cross a threshold: hazard, survival, and a model of scores.",
        file="FILE",
        about=ABOUT,
    )
    parser.add_argument("--threshold", type=float, metavar="T", help="a score above it crosses")


@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows of the file: (n_rows,) each; `value` is the score, or 1 where a turn crossed."""

    agent: list[str]
    conversation: list[tuple[str, ...]]
    turn: CodeArray
    value: FloatArray


@dataclass(frozen=True, eq=False)
class _Conversations:
    """Of one agent: (n_conversations,), and (n_conversations, n_turns) each; scores NaN where none are."""

    item: CodeArray
    prompt: CodeArray
    seen: Mask
    crossed: Mask
    score: FloatArray


def _turns(arguments: argparse.Namespace) -> Answer:
    there = csv_header(arguments.file)
    threshold: float | None = arguments.threshold
    column = "crossed" if threshold is None else "score"
    if threshold is None and "crossed" not in there and "score" in there:
        raise TurnRowsRefused("scores cross nothing without --threshold")
    if threshold is not None and not math.isfinite(threshold):
        raise TurnRowsRefused(f"--threshold is {threshold:g}, not a finite number")
    check_columns(["agent", "item", "turn", column], there)
    wanted = ["agent", "item", "turn", column, *(n for n in ("prompt_variant", "run") if n in there)]
    columns, valid = csv_valid(arguments.file, wanted, there)
    rows = _rows(columns, column, valid)
    values = {
        "agents": [
            _agent_values(agent, _conversations(rows, agent, threshold), threshold)
            for agent in sorted(set(rows.agent))
        ],
        "n_invalid": int((~valid).sum()),
        "notes": ["hazard_published is the probability of crossing at a turn; a hazard if nothing persists"],
    }
    return Answer(values, _shown(values))


def _rows(columns: Mapping[str, list[str]], column: str, valid: Mask) -> _Rows:
    """Read all valid rows, so that a fault names the row of the file."""
    if not columns["agent"]:
        raise TurnRowsRefused("there are no rows")
    kept = np.flatnonzero(valid).tolist()
    for name in ("agent", "item"):
        if (row := next((row for row in kept if not columns[name][row]), None)) is not None:
            raise TurnRowsRefused(f"row {row + 1}: no name in column {name}")
    blank = [""] * len(columns["agent"])
    read = truths if column == "crossed" else numbers
    conversation = list(zip(*(columns.get(name, blank) for name in CONVERSATION), strict=True))
    return _Rows(
        agent=[columns["agent"][row] for row in kept],
        conversation=[conversation[row] for row in kept],
        turn=_turn_numbers(columns["turn"], valid),
        value=np.asarray(read(column, columns[column], valid)[valid], dtype=np.float64),
    )


def _conversations(rows: _Rows, agent: str, threshold: float | None) -> _Conversations:
    mine = [row for row, name in enumerate(rows.agent) if name == agent]
    names = sorted({rows.conversation[row] for row in mine})
    place = {name: i for i, name in enumerate(names)}
    at = (np.array([place[rows.conversation[row]] for row in mine]), rows.turn[mine] - 1)
    shape = (len(names), int(rows.turn[mine].max()))
    n_rows, value = np.zeros(shape, np.int64), np.full(shape, np.nan)
    np.add.at(n_rows, at, 1)
    value[at] = rows.value[mine]
    _check_turns(agent, names, n_rows)
    item = np.unique([name[0] for name in names], return_inverse=True)[1].astype(np.int64)
    prompt = np.unique([name[1] for name in names], return_inverse=True)[1].astype(np.int64)
    if threshold is None:
        return _Conversations(item, prompt, n_rows > 0, value == 1.0, np.full(shape, np.nan))
    return _Conversations(item, prompt, n_rows > 0, value > threshold, value)


def _check_turns(agent: str, names: list[tuple[str, ...]], n_rows: CodeArray) -> None:
    """Refuse a turn that stands twice, and one that is missing before another."""
    missing = (n_rows[:, :-1] == 0) & (n_rows[:, 1:] > 0)
    for wrong, rule in (
        (n_rows > 1, "turn {} stands twice"),
        (missing, "turn {} is missing; turns are 1, 2, … without a gap"),
    ):
        if wrong.any():
            i, t = np.argwhere(wrong)[0]
            told = zip(CONVERSATION, names[i], strict=True)
            where = ", ".join(f"{name} {named(level)}" for name, level in [("agent", agent), *told] if level)
            raise TurnRowsRefused(f"{where}: {rule.format(t + 1)}")


def _turn_numbers(texts: list[str], valid: Mask) -> CodeArray:
    turn = numbers("turn", texts, valid)
    wrong = valid & ((turn < 1) | (turn != np.rint(turn)) | (turn > MOST_TURNS))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise TurnRowsRefused(
            f"row {row + 1}: turn is {named(texts[row])}, not a whole number from 1 to {MOST_TURNS:,}"
        )
    return turn[valid].astype(np.int64)


def _agent_values(agent: str, told: _Conversations, threshold: float | None) -> dict[str, Any]:
    try:
        found = crossing(told.item, told.seen, told.crossed)
    except TurnsRefused as refusal:
        raise TurnsRefused(f"agent {named(agent)}: {refusal}", code=refusal.code) from None
    published, model, reason = _modelled(told, threshold)
    turns = [
        {
            "turn": t + 1,
            **{name: _number(found, name, t) for name in FIGURES},
            "hazard_published": None if published is None else float(published[t]),
            "hazard_model": None if model is None else float(model[t]),
        }
        for t in range(found.hazard.size)
    ]
    return {"agent": agent, "n_items": found.n_items, "turns": turns, "reason": reason}


def _number(found: Crossing, name: str, t: int) -> float | int | None:
    value = getattr(found, name)[t].item()
    return value if isinstance(value, int) or np.isfinite(value) else None


def _modelled(
    told: _Conversations, threshold: float | None
) -> tuple[FloatArray | None, FloatArray | None, str]:
    """Hazards of Eq. 12 and of the model, by a fit of the scores; or why there are none."""
    if threshold is None:
        return None, None, "not measured: no scores"
    if not told.seen.all():
        return (
            None,
            None,
            "not measured: conversations end at different turns, so that means are of those left",
        )
    n, n_turns = told.score.shape
    columns = {
        "item": np.repeat(told.item, n_turns),
        "prompt": np.repeat(told.prompt, n_turns),
        "turn": np.tile(np.arange(n_turns), n),
    }
    terms = ["item", "prompt", "item:prompt"] if told.prompt.max() > 0 else ["item"]
    try:
        fitted = fit(
            columns, told.score.ravel(), random=" + ".join(terms), fixed="turn" if n_turns > 1 else ""
        )
        persistent, mean = sum(fitted.components.values()), told.score.mean(axis=0)
        published = published_hazard(mean, threshold, persistent + fitted.residual)
        return published, model_hazard(mean, threshold, persistent, fitted.residual), ""
    except (FitRefused, FactorRefused, TurnsRefused) as refusal:
        return None, None, f"not measured: {refusal}"


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {line["agent"]: line["turns"] for line in values["agents"]}
    reasons = {line["agent"]: line["reason"] for line in values["agents"] if line["reason"]}
    left_out = {LEFT_OUT: values["n_invalid"]} if values["n_invalid"] else {}
    return {**shown, "without a model": reasons, **left_out, "notes": "; ".join(values["notes"])}
