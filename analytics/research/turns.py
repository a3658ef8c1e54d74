"""``python -m analytics.research turns FILE``: at which turn conversations first cross a threshold.

Hazards as counted, and by a model of scores. A conversation is one item (under one prompt, in one run)
through turns 1, 2, …, T. Conversations on one item are not independent, so that items are the clusters; one
that ends counts as ended by chance.

Source: Messing, *Hidden Measurement Error in LLM Pipelines*, App. F.1. Kaplan & Meier, *JASA* 53 (1958)
457-481. Kalbfleisch & Prentice, *The Statistical Analysis of Failure Time Data*, 2nd ed. 2002, §1.4
(log-log). Ying & Wei, *J. Multivariate Analysis* 50 (1994) 17-29 (dependent times).
"""

import argparse
import math
from typing import Any

import numpy as np
import numpy.typing as npt
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
from analytics.reml import fit
from analytics.text import named

N_NODES = 64
MIN_ITEMS = 2
MAX_TURNS = 1_000
CONVERSATION = ("item", "prompt_variant", "run")
ABOUT = (
    "FILE is a CSV with agent, item, turn (1, 2, …) and either crossed (1 or 0) or score, which crosses "
    "above --threshold; prompt_variant and run tell conversations on one item apart. Rows "
    "whose valid is 0 are left out, where there is such a column."
)


def crossing(item: CodeArray, seen: Mask, crossed: Mask) -> dict[str, npt.NDArray[Any]]:
    """Hazards and survival, with errors clustered by item.

    item: (n_conversations,); from 0.
    seen: (n_conversations, n_turns); which turns a conversation has: the first ones, without a gap.
    crossed: (n_conversations, n_turns); whether a turn's score lies above the threshold.
    Returns: by turn, (n_turns,) each; NaN where nobody is at risk. `se` is of log S, `lower` and `upper` are
        the 95% interval of S: none where S is 0, and no interval where it is 1.
    """
    if not item.size or int(item.max()) + 1 < MIN_ITEMS:
        raise CoreError(f"errors by item need {MIN_ITEMS} items at least", code="few_items")
    gap = ~seen[:, :-1] & seen[:, 1:]
    if gap.any() or not seen[:, 0].all():
        row = int(np.argmax(gap.any(axis=1) | ~seen[:, 0]))
        raise CoreError(f"conversation {row + 1}: turns are 1, 2, … without a gap", code="turns")
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
        lower, upper = (np.where(log < 0, np.exp(log * np.exp(sign * c)), np.nan) for sign in (1, -1))
    return {
        "n_at_risk": n,
        "n_crossed": d,
        "hazard": hazard,
        "survival": survival,
        "se": se,
        "lower": lower,
        "upper": upper,
    }


def published_hazard(mean: FloatArray, threshold: float, variance: float) -> FloatArray:
    """Eq. 12, shape (n_turns,): the marginal probability of crossing at a turn, with `mean` (n_turns,)."""
    if not variance > 0:
        raise CoreError("scores that do not vary have no hazard by Eq. 12", code="variance")
    return np.asarray(ndtr((mean - threshold) / math.sqrt(variance)), dtype=np.float64)


def model_survival(mean: FloatArray, threshold: float, persistent: float, rest: float) -> FloatArray:
    """S(t) of the model, from means, (n_turns,), σ_u² and σ_e²."""
    if not (persistent >= 0 and rest > 0):
        raise CoreError("a model of turns needs a variance that is not persistent", code="variance")
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    u = math.sqrt(persistent) * nodes
    below = ndtr((threshold - mean[:, None] - u) / math.sqrt(rest))
    return np.asarray(np.cumprod(below, axis=0) @ weights / weights.sum(), dtype=np.float64)


def model_hazard(mean: FloatArray, threshold: float, persistent: float, rest: float) -> FloatArray:
    """Hazard of `model_survival`, shape (n_turns,): among those that have not crossed before."""
    survival = model_survival(mean, threshold, persistent, rest)
    return np.asarray(1.0 - survival / np.concatenate([[1.0], survival[:-1]]), dtype=np.float64)


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
    if not columns["agent"]:
        raise CoreError("there are no rows", code="turn_rows")
    rows = np.flatnonzero(valid).tolist()
    for name in ("agent", "item"):
        if (row := next((row for row in rows if not columns[name][row]), None)) is not None:
            raise CoreError(f"row {row + 1}: no name in column {name}", code="turn_rows")
    turn = _turn_numbers(columns["turn"], valid)
    read = truths if column == "crossed" else numbers
    value = np.asarray(read(column, columns[column], valid), dtype=np.float64)
    blank = [""] * len(valid)
    conversation = list(zip(*(columns.get(name, blank) for name in CONVERSATION), strict=True))
    agents = []
    for agent in sorted({columns["agent"][row] for row in rows}):
        mine = [row for row in rows if columns["agent"][row] == agent]
        names = [conversation[row] for row in mine]
        agents.append(_agent_values(agent, names, turn[mine], value[mine], threshold))
    notes = ["hazard_published is the probability of crossing at a turn; a hazard if nothing persists"]
    n_invalid = int((~valid).sum())
    shown: dict[str, Any] = {line["agent"]: line["turns"] for line in agents}
    shown["without a model"] = {line["agent"]: line["reason"] for line in agents if line["reason"]}
    shown |= {LEFT_OUT: n_invalid} if n_invalid else {}
    values = {"agents": agents, "n_invalid": n_invalid, "notes": notes}
    return Answer(values, shown | {"notes": "; ".join(notes)})


def _turn_numbers(texts: list[str], valid: Mask) -> CodeArray:
    turn = numbers("turn", texts, valid)
    wrong = valid & ((turn < 1) | (turn != np.rint(turn)) | (turn > MAX_TURNS))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise CoreError(
            f"row {row + 1}: turn is {named(texts[row])}, not a whole number from 1 to {MAX_TURNS:,}",
            code="turn_rows",
        )
    return np.where(valid, turn, 0).astype(np.int64)


def _agent_values(
    agent: str,
    conversation: list[tuple[str, ...]],
    turn: CodeArray,
    value: FloatArray,
    threshold: float | None,
) -> dict[str, Any]:
    """Answer for one agent by its rows, (n_rows,) each; `value` is the score, or 1 where a turn crossed."""
    names = sorted(set(conversation))
    place = {name: i for i, name in enumerate(names)}
    at = (np.array([place[name] for name in conversation]), turn - 1)
    shape = (len(names), int(turn.max()))
    n_rows, score = np.zeros(shape, np.int64), np.full(shape, np.nan)
    np.add.at(n_rows, at, 1)
    score[at] = value
    missing = (n_rows[:, :-1] == 0) & (n_rows[:, 1:] > 0)
    for wrong, rule in (
        (n_rows > 1, "turn {} stands twice"),
        (missing, "turn {} is missing; turns are 1, 2, … without a gap"),
    ):
        if wrong.any():
            i, t = np.argwhere(wrong)[0]
            levels = [("agent", agent), *zip(CONVERSATION, names[i], strict=True)]
            where = ", ".join(f"{name} {named(level)}" for name, level in levels if level)
            raise CoreError(f"{where}: {rule.format(t + 1)}", code="turn_rows")
    item, prompt = (
        np.unique([name[part] for name in names], return_inverse=True)[1].astype(np.int64) for part in (0, 1)
    )
    try:
        figures = crossing(item, n_rows > 0, score == 1.0 if threshold is None else score > threshold)
    except CoreError as refusal:
        raise CoreError(f"agent {named(agent)}: {refusal}", code=refusal.code) from None
    hazards: list[FloatArray] | None = None
    reason = ""
    if threshold is None:
        reason = "not measured: no scores"
    elif not n_rows.all():
        reason = "not measured: conversations end at different turns, so that means are of those left"
    else:
        try:
            hazards = _modelled(item, prompt, score, threshold)
        except CoreError as refusal:
            reason = f"not measured: {refusal}"
    turns = [
        {
            "turn": t + 1,
            **{
                name: figure[t].item() if math.isfinite(figure[t]) else None
                for name, figure in figures.items()
            },
            "hazard_published": None if hazards is None else float(hazards[0][t]),
            "hazard_model": None if hazards is None else float(hazards[1][t]),
        }
        for t in range(shape[1])
    ]
    return {"agent": agent, "n_items": int(item.max()) + 1, "turns": turns, "reason": reason}


def _modelled(item: CodeArray, prompt: CodeArray, score: FloatArray, threshold: float) -> list[FloatArray]:
    """Hazards of Eq. 12 and of the model, by a fit of the scores, (n_conversations, n_turns)."""
    n, n_turns = score.shape
    columns = {
        "item": np.repeat(item, n_turns),
        "prompt": np.repeat(prompt, n_turns),
        "turn": np.tile(np.arange(n_turns), n),
    }
    terms = "item + prompt + item:prompt" if prompt.max() > 0 else "item"
    fitted = fit(columns, score.ravel(), random=terms, fixed="turn" if n_turns > 1 else "")
    persistent, mean = sum(fitted.components.values()), score.mean(axis=0)
    published = published_hazard(mean, threshold, persistent + fitted.residual)
    return [published, model_hazard(mean, threshold, persistent, fitted.residual)]
