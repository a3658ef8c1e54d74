"""``python -m analytics.research turns FILE``: at which turn conversations first cross a threshold.

Hazards as counted, and by a model of scores.

A conversation is one item (under one prompt, in one run) through turns 1, 2, …, T. Conversations on one item
are not independent, so that items are the clusters. Formulas: analytics/README.md, *Turns of a conversation*.

Symbols
-------
======  =====================  ===============  ======
symbol  code                   shape            unit
======  =====================  ===============  ======
h, S    ``hazard``…            (n_turns,)       0 to 1
μ       ``mean``               (n_turns,)       score
θ*      ``threshold``          scalar           score
σ²      ``persistent``…        scalar           score²
======  =====================  ===============  ======

Limits: where nobody crosses S = 1, and where all do S = 0: no interval.

Not done here: no proportional hazards (Cox), no covariates. A conversation that ends counts as ended by
chance.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. F.1. Kaplan & Meier, *JASA* 53 (1958)
457-481. Kalbfleisch & Prentice, *The Statistical Analysis of Failure Time Data*, 2nd ed. 2002, §1.4
(log-log). Ying & Wei, *J. Multivariate Analysis* 50 (1994) 17-29 (dependent times).
"""

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, stdtrit

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
from analytics.reml import FitRefused, fit
from analytics.text import named

N_NODES = 64
MIN_ITEMS = 2
MAX_TURNS = 1_000
CONVERSATION = ("item", "prompt_variant", "run")
FIGURES = ("n_at_risk", "n_crossed", "hazard", "survival", "se", "lower", "upper")
ABOUT = (
    "FILE is a CSV with agent, item, turn (1, 2, …) and either crossed (1 or 0) or score, which crosses "
    "above --threshold; prompt_variant and run tell conversations on one item apart. Rows "
    "whose valid is 0 are left out, where there is such a column."
)


class TurnsRefused(CoreError):
    """Rows from which no hazard can be computed.

    Codes: ``turns``, ``few_items``, ``variance``.
    """


@dataclass(frozen=True, eq=False)
class Crossing:
    """When the conversations of one agent cross, (n_turns,) each.

    hazard, survival: h and S; NaN where nobody is at risk.
    se: of log S; NaN where S is 0 or nobody is at risk.
    lower, upper: 95% interval of S; NaN where it has none.
    """

    n_at_risk: CodeArray
    n_crossed: CodeArray
    hazard: FloatArray
    survival: FloatArray
    se: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_items: int


def crossing(item: CodeArray, seen: Mask, crossed: Mask) -> Crossing:
    """Hazards and survival, with errors clustered by item.

    item: (n_conversations,); from 0.
    seen: (n_conversations, n_turns); which turns a conversation has: the first ones, without a gap.
    crossed: (n_conversations, n_turns); whether a turn's score lies above the threshold.
    Raises TurnsRefused.
    """
    if not item.size or int(item.max()) + 1 < MIN_ITEMS:
        raise TurnsRefused(f"errors by item need {MIN_ITEMS} items at least", code="few_items")
    gap = ~seen[:, :-1] & seen[:, 1:]
    if gap.any() or not seen[:, 0].all():
        row = int(np.argmax(gap.any(axis=1) | ~seen[:, 0]))
        raise TurnsRefused(f"conversation {row + 1}: turns are 1, 2, … without a gap", code="turns")
    before: CodeArray = np.cumsum(crossed & seen, axis=1) - (crossed & seen)
    risk = seen & (before == 0)
    first = risk & crossed
    n, d = risk.sum(axis=0), first.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard = d / n
        survival = np.cumprod(1.0 - hazard)
        beyond = (first - hazard * risk) / (n * (1.0 - hazard))
    influence = np.cumsum(np.where(risk, beyond, 0.0), axis=1)
    m = int(item.max()) + 1
    by_item = np.stack([np.bincount(item, column, m) for column in influence.T], axis=1)
    has_error = (n > 0) & (survival > 0)
    se = np.where(has_error, np.sqrt(m / (m - 1) * (by_item**2).sum(axis=0)), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(survival)
        c = float(stdtrit(m - 1, 0.975)) * se / -log
        ends = [np.where(log < 0, np.exp(log * np.exp(sign * c)), np.nan) for sign in (1, -1)]
    lower, upper = ends[0], ends[1]
    return Crossing(n, d, hazard, survival, se, lower, upper, m)


def published_hazard(mean: FloatArray, threshold: float, variance: float) -> FloatArray:
    """Eq. 12, shape (n_turns,): the marginal probability of crossing at a turn.

    mean: (n_turns,).
    Raises TurnsRefused.
    """
    if not variance > 0:
        raise TurnsRefused("scores that do not vary have no hazard by Eq. 12", code="variance")
    return np.asarray(ndtr((mean - threshold) / math.sqrt(variance)), dtype=np.float64)


def model_survival(mean: FloatArray, threshold: float, persistent: float, rest: float) -> FloatArray:
    """S(t) of the model, shape (n_turns,).

    mean: (n_turns,).
    persistent, rest: σ_u² and σ_e².
    Raises TurnsRefused.
    """
    if not (persistent >= 0 and rest > 0):
        raise TurnsRefused("a model of turns needs a variance that is not persistent", code="variance")
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    u = math.sqrt(persistent) * nodes
    below = ndtr((threshold - mean[:, None] - u) / math.sqrt(rest))
    return np.asarray(np.cumprod(below, axis=0) @ weights / weights.sum(), dtype=np.float64)


def model_hazard(mean: FloatArray, threshold: float, persistent: float, rest: float) -> FloatArray:
    """Hazard of the model, shape (n_turns,): among those that have not crossed before.

    mean, threshold, persistent, rest: as in `model_survival`.
    """
    survival = model_survival(mean, threshold, persistent, rest)
    return np.asarray(1.0 - survival / np.concatenate([[1.0], survival[:-1]]), dtype=np.float64)


# ----------------------------------------------------------------------------------------------- the command


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
class _TurnRows:
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
        raise CoreError("scores cross nothing without --threshold", code="turn_rows")
    if threshold is not None and not math.isfinite(threshold):
        raise CoreError(f"--threshold is {threshold:g}, not a finite number", code="turn_rows")
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


def _rows(columns: Mapping[str, list[str]], column: str, valid: Mask) -> _TurnRows:
    """Read all valid rows, so that a fault names the row of the file."""
    if not columns["agent"]:
        raise CoreError("there are no rows", code="turn_rows")
    rows_valid = np.flatnonzero(valid).tolist()
    for name in ("agent", "item"):
        if (row := next((row for row in rows_valid if not columns[name][row]), None)) is not None:
            raise CoreError(f"row {row + 1}: no name in column {name}", code="turn_rows")
    blank = [""] * len(columns["agent"])
    read = truths if column == "crossed" else numbers
    conversation = list(zip(*(columns.get(name, blank) for name in CONVERSATION), strict=True))
    return _TurnRows(
        agent=[columns["agent"][row] for row in rows_valid],
        conversation=[conversation[row] for row in rows_valid],
        turn=_turn_numbers(columns["turn"], valid),
        value=np.asarray(read(column, columns[column], valid)[valid], dtype=np.float64),
    )


def _conversations(rows: _TurnRows, agent: str, threshold: float | None) -> _Conversations:
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
            levels = zip(CONVERSATION, names[i], strict=True)
            where = ", ".join(
                f"{name} {named(level)}" for name, level in [("agent", agent), *levels] if level
            )
            raise CoreError(f"{where}: {rule.format(t + 1)}", code="turn_rows")


def _turn_numbers(texts: list[str], valid: Mask) -> CodeArray:
    turn = numbers("turn", texts, valid)
    wrong = valid & ((turn < 1) | (turn != np.rint(turn)) | (turn > MAX_TURNS))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise CoreError(
            f"row {row + 1}: turn is {named(texts[row])}, not a whole number from 1 to {MAX_TURNS:,}",
            code="turn_rows",
        )
    return turn[valid].astype(np.int64)


def _agent_values(agent: str, conversations: _Conversations, threshold: float | None) -> dict[str, Any]:
    try:
        crossed = crossing(conversations.item, conversations.seen, conversations.crossed)
    except TurnsRefused as refusal:
        raise TurnsRefused(f"agent {named(agent)}: {refusal}", code=refusal.code) from None
    published, model, reason = _modelled(conversations, threshold)
    turns = [
        {
            "turn": t + 1,
            **{name: _number(crossed, name, t) for name in FIGURES},
            "hazard_published": None if published is None else float(published[t]),
            "hazard_model": None if model is None else float(model[t]),
        }
        for t in range(crossed.hazard.size)
    ]
    return {"agent": agent, "n_items": crossed.n_items, "turns": turns, "reason": reason}


def _number(crossed: Crossing, name: str, t: int) -> float | int | None:
    value = getattr(crossed, name)[t].item()
    return value if isinstance(value, int) or np.isfinite(value) else None


def _modelled(
    conversations: _Conversations, threshold: float | None
) -> tuple[FloatArray | None, FloatArray | None, str]:
    """Hazards of Eq. 12 and of the model, by a fit of the scores; or why there are none."""
    if threshold is None:
        return None, None, "not measured: no scores"
    if not conversations.seen.all():
        return (
            None,
            None,
            "not measured: conversations end at different turns, so that means are of those left",
        )
    n, n_turns = conversations.score.shape
    columns = {
        "item": np.repeat(conversations.item, n_turns),
        "prompt": np.repeat(conversations.prompt, n_turns),
        "turn": np.tile(np.arange(n_turns), n),
    }
    terms = ["item", "prompt", "item:prompt"] if conversations.prompt.max() > 0 else ["item"]
    try:
        fitted = fit(
            columns,
            conversations.score.ravel(),
            random=" + ".join(terms),
            fixed="turn" if n_turns > 1 else "",
        )
        persistent, mean = sum(fitted.components.values()), conversations.score.mean(axis=0)
        published = published_hazard(mean, threshold, persistent + fitted.residual)
        return published, model_hazard(mean, threshold, persistent, fitted.residual), ""
    except (FitRefused, TurnsRefused) as refusal:
        return None, None, f"not measured: {refusal}"


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {line["agent"]: line["turns"] for line in values["agents"]}
    reasons = {line["agent"]: line["reason"] for line in values["agents"] if line["reason"]}
    left_out = {LEFT_OUT: values["n_invalid"]} if values["n_invalid"] else {}
    return {**shown, "without a model": reasons, **left_out, "notes": "; ".join(values["notes"])}
