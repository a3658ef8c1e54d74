"""``python -m analytics turns FILE``: at which turn conversations cross a threshold."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.arrays import CodeArray, FloatArray, Mask
from analytics.command_line import (
    Answer,
    add_command,
    check_columns,
    csv_columns,
    csv_header,
    numbers,
    truths,
)
from analytics.errors import CoreError
from analytics.reml import FactorRefused, FitRefused, fit
from analytics.turns import Crossing, TurnsRefused, crossing, model_hazard, published_hazard

MOST_TURNS = 1_000
FIGURES = ("n_at_risk", "n_crossed", "hazard", "survival", "se", "lower", "upper")
ABOUT = (
    "FILE is a CSV with agent, item, turn (1, 2, …) and either crossed (1 or 0) or score, which crosses "
    "above --threshold; prompt_variant and run tell conversations on one item apart."
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
class _Conversations:
    """Of one agent: (n_conversations,), and (n_conversations, n_turns) each; scores NaN where none are."""

    item: CodeArray
    prompt: CodeArray
    seen: Mask
    crossed: Mask
    score: FloatArray


def _turns(arguments: argparse.Namespace) -> Answer:
    there = csv_header(arguments.file)
    column = "crossed" if arguments.threshold is None else "score"
    if arguments.threshold is None and "crossed" not in there and "score" in there:
        raise TurnRowsRefused("scores cross nothing without --threshold")
    check_columns(["agent", "item", "turn", column], there)
    wanted = ["agent", "item", "turn", column, *(n for n in ("prompt_variant", "run") if n in there)]
    columns = csv_columns(arguments.file, wanted)
    if not columns["agent"]:
        raise TurnRowsRefused("there are no rows")
    values = {
        "agents": [
            _agent_values(agent, _conversations(columns, agent, arguments.threshold), arguments.threshold)
            for agent in sorted(set(columns["agent"]))
        ],
        "notes": ["hazard_published is the probability of crossing at a turn; a hazard if nothing persists"],
    }
    return Answer(values, _shown(values))


def _conversations(columns: Mapping[str, list[str]], agent: str, threshold: float | None) -> _Conversations:
    rows = [row for row, name in enumerate(columns["agent"]) if name == agent]
    blank = [""] * len(columns["agent"])
    told = [columns.get(name, blank) for name in ("item", "prompt_variant", "run")]
    keys = [tuple(column[row] for column in told) for row in rows]
    names = sorted(set(keys))
    place = {key: i for i, key in enumerate(names)}
    conversation = np.array([place[key] for key in keys])
    turn = _turn_numbers([columns["turn"][row] for row in rows])
    shape = (len(names), int(turn.max()))
    seen, crossed, score = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_), np.full(shape, np.nan)
    at = (conversation, turn - 1)
    seen[at] = True
    if int(seen.sum()) < len(rows):
        raise TurnRowsRefused(f"agent {agent!r}: a turn of a conversation stands twice")
    if threshold is None:
        crossed[at] = truths("crossed", [columns["crossed"][row] for row in rows])
    else:
        score[at] = numbers("score", [columns["score"][row] for row in rows])
        crossed = score > threshold
    item = np.unique([name[0] for name in names], return_inverse=True)[1].astype(np.int64)
    prompt = np.unique([name[1] for name in names], return_inverse=True)[1].astype(np.int64)
    return _Conversations(item, prompt, seen, crossed, score)


def _turn_numbers(texts: list[str]) -> CodeArray:
    turn = numbers("turn", texts)
    wrong = (turn < 1) | (turn != np.rint(turn)) | (turn > MOST_TURNS)
    if wrong.any():
        raise TurnRowsRefused(
            f"turn is {texts[int(np.argmax(wrong))]!r}, not a whole number from 1 to {MOST_TURNS:,}"
        )
    return turn.astype(np.int64)


def _agent_values(agent: str, told: _Conversations, threshold: float | None) -> dict[str, Any]:
    try:
        found = crossing(told.item, told.seen, told.crossed)
    except TurnsRefused as refusal:
        raise TurnsRefused(f"agent {agent!r}: {refusal}", code=refusal.code) from None
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
    return {**shown, "without a model": reasons, "notes": "; ".join(values["notes"])}
