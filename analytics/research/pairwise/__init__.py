"""``python -m analytics.research pairwise FILE``: strengths from who beats whom.

Strengths with ranks, position effects, cells, people. A board is never ordered by this.

Source: Mogstad, Romano, Shaikh & Wilhelm, *Review of Economic Studies* 91 (2024) 476-518 (ranks). Hothorn,
Bretz & Westfall, *Biometrical Journal* 50 (2008) 346-363 (maximum of t statistics).
"""

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from analytics.arrays import DECIMALS, FloatArray
from analytics.command_line import (
    LEFT_OUT,
    MAX_SEED,
    Answer,
    add_command,
    check_columns,
    csv_header,
    csv_valid,
    outcomes_of,
    progress_bar,
    whole,
)
from analytics.differences.error_draws import may_be_first_by_tasks
from analytics.differences.neyman_draws import N_DRAWS, upper_place
from analytics.differences.ranks import RankIntervals, check_draws, gaps
from analytics.errors import CoreError
from analytics.record import Record
from analytics.resampling import generator
from analytics.research.pairwise.bradley_terry import BradleyTerry, elo, fit
from analytics.research.pairwise.cells import agreement, bootstrap_cells
from analytics.research.pairwise.comparisons import (
    OPTIONAL,
    REQUIRED,
    Battles,
    Comparisons,
    OutcomeMatrix,
    read_comparisons,
)

ITEMS_PER_PARAMETER = 2
MIN_VARIANCE = 1e-12
MAX_GAPS = 1 << 20  # at once: 8 MB
ABOUT = (
    "FILE is a CSV of verdicts: item, a, b, winner (a, b or tie), and if there are any first (who was shown "
    "first: a or b), judge, prompt_variant, run and category; where there is a column valid, rows of 0 are "
    "left out. With --from-outcomes it is a flat file: an agent wins a task where its outcome is larger."
)


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "pairwise",
        _pairwise,
        summary="Strengths from who beats whom, with errors that know of items and judges.",
        file="FILE",
        about=ABOUT,
    )
    parser.add_argument("--from-outcomes", action="store_true", help="FILE is a flat file of outcomes")
    parser.add_argument("--only", metavar="BENCHMARK", help="the one to read, of a flat file of several")
    parser.add_argument(
        "--prior",
        type=float,
        metavar="V",
        help="variance of a normal prior of each strength, such as 9 (none)",
    )
    parser.add_argument(
        "--cells", action="store_true", help="bootstrap judges, prompts and orders beside items"
    )
    parser.add_argument("--human", metavar="COL", help="column of human verdicts to compare with")
    parser.add_argument("--seed", type=whole(MAX_SEED), default=0, help="seed of all draws (0)")


def _pairwise(arguments: argparse.Namespace) -> Answer:
    battles, n_invalid = (_outcomes(arguments), 0) if arguments.from_outcomes else _rows(arguments)
    rows = battles if isinstance(battles, Comparisons) else None
    values = pairwise(battles, seed=arguments.seed, prior=arguments.prior)
    seed, prior = arguments.seed, arguments.prior
    if rows is not None and arguments.cells:
        with progress_bar("cells", "draws") as show:
            values["cells"] = bootstrap_cells(rows, seed=seed, prior=prior, progress=show)
    if rows is not None and arguments.human is not None:
        values["agreement"] = agreement(rows)
    values["n_invalid"] = n_invalid
    cells, agreed = values["cells"] or [], values["agreement"] or {}
    shown = {
        "": values["agents"],
        "position effects": values["position"],
        "log-likelihood": values["log_likelihood"],
        "items": values["n_items"],
        "comparisons": values["n_comparisons"],
        **({LEFT_OUT: n_invalid} if n_invalid else {}),
        "critical value": values["critical_value"],
        "cells": [
            {name: one[name] for name in ("pipeline", "ratio", "n_draws", "n_left_out", "reason")}
            for one in cells
        ],
        "agreement with people": agreed.get("pipelines", []),
        "where both decide": agreed.get("differences", []),
        "method": values["method"],
        "notes": "; ".join(values["notes"]),
    }
    return Answer(values, shown)


def _outcomes(arguments: argparse.Namespace) -> Battles:
    if arguments.cells or arguments.human is not None:
        raise CoreError(
            "outcomes are nobody's verdicts: --cells and --human are for a file of comparisons", code="option"
        )
    table = Record.from_flat(outcomes_of(arguments)).compared_table()
    return OutcomeMatrix.of(table.agents, table.tasks, table.means)


def _rows(arguments: argparse.Namespace) -> tuple[Battles, int]:
    if arguments.only is not None:
        raise CoreError("--only names a benchmark of a flat file: --from-outcomes reads one", code="option")
    there = csv_header(arguments.file)
    human = [] if arguments.human is None else [arguments.human]
    check_columns([*REQUIRED, *human], there)
    wanted = [*REQUIRED, *(name for name in OPTIONAL if name in there), *human]
    columns, valid = csv_valid(arguments.file, wanted, there)
    columns_valid = {name: np.array(texts, dtype=object)[valid].tolist() for name, texts in columns.items()}
    rows = (np.flatnonzero(valid) + 1).tolist()
    return read_comparisons(columns_valid, arguments.human, rows=rows), valid.size - len(rows)


def pairwise(battles: Battles, *, seed: int, prior: float | None = None) -> dict[str, Any]:
    """Fit and rank: one object of plain values, the best agent first; cells and people are None."""
    model = fit(battles, prior)
    n = len(model.agents)
    ranks = joint_ranks(model.agents, model.strengths, model.covariance[:n, :n], model.n_items, seed=seed)
    points = elo(model.strengths)
    if prior is None:
        method = "Bradley-Terry, maximum likelihood"
    else:
        method = f"Bradley-Terry, penalised: normal prior of variance {prior:g}"
    return {
        "agents": [
            {
                "agent": model.agents[i],
                "strength": float(model.strengths[i]),
                "se": float(model.se[i]),
                "elo": float(points[i]),
                "rank_lo": int(ranks.lower[i]),
                "rank_hi": int(ranks.upper[i]),
            }
            for i in np.argsort(-np.round(model.strengths, DECIMALS), kind="stable").tolist()
        ],
        "position": {
            judge: {"effect": float(effect), "se": float(se)}
            for judge, effect, se in zip(model.judges, model.positions, model.se[n:], strict=True)
        },
        "log_likelihood": model.log_likelihood,
        "n_items": model.n_items,
        "n_comparisons": int(model.n_comparisons),
        "critical_value": ranks.critical,
        "cells": None,
        "agreement": None,
        "method": f"{method}; errors clustered by item",
        "notes": _notes(model, battles),
    }


def _notes(model: BradleyTerry, battles: Battles) -> list[str]:
    n_strengths = len(model.agents)
    ratio = np.median(model.se[:n_strengths] / model.naive_se[:n_strengths])
    notes = [
        f"errors are {ratio:.2f} times (median) those of {int(model.n_comparisons):,} independent comparisons"
    ]
    width = n_strengths + len(model.judges)
    if model.n_items < ITEMS_PER_PARAMETER * width:
        notes.append(
            f"{model.n_items} items for {width} strengths and position effects: the errors are too small"
        )
    if isinstance(battles, OutcomeMatrix):
        notes.append("an agent wins a task where its outcome is larger; a board is never ordered by this")
        return notes
    if (battles.points == 0.5).any():
        notes.append("a tie counts half a win to each")
    if not battles.judges:
        notes.append("position effects are not measured: no row says who was shown first")
    return notes


def joint_ranks(
    agents: Sequence[str],
    estimates: FloatArray,
    covariance: FloatArray,
    n_items: int,
    *,
    seed: int,
    n_draws: int = N_DRAWS,
) -> RankIntervals:
    """Simultaneous 95% rank ranges, and who could be the best, of estimates that err together.

    Of two agents whose difference has no error at all none beats the other. Pairs that differ on few items
    know less of their se than is counted here (docs/decisions/ranks.md).
    n_items, n_draws: m, what the covariance was estimated from, two at least; at least 19.
    """
    _check(agents, estimates, covariance, n_items, n_draws)
    # √se²_ab, infinite where a difference has no error, and between an agent and itself
    variances = np.diag(covariance)
    pairs = variances[:, None] + variances - 2.0 * covariance
    se = np.asarray(np.sqrt(np.where(pairs > MIN_VARIANCE * variances.max(), pairs, np.inf)))
    scale = generator(seed, "joint scale").chisquare(n_items - 1, n_draws) / (n_items - 1)
    names = [name.encode("utf-8", "surrogatepass") for name in agents]
    z = np.stack([generator(seed, "joint rank", *name).standard_normal(n_draws) for name in names], axis=1)
    values, vectors = np.linalg.eigh(covariance)
    errors = np.asarray(z @ ((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T), dtype=np.float64)
    # how far the best of the others is ahead of each agent, max over b of T_ba², (n_draws, n_agents)
    ahead = np.empty(errors.shape)
    for part in np.array_split(np.arange(n_draws), -(-n_draws * len(agents) ** 2 // MAX_GAPS)):
        lead = errors[part][:, None, :] - errors[part][:, :, None]
        lead /= se
        ahead[part] = np.maximum(lead.max(axis=2), 0.0) ** 2
    ahead /= scale[:, None]
    place, shown = upper_place(n_draws), np.round(estimates, DECIMALS)
    critical, d = math.sqrt(np.sort(ahead.max(axis=1))[place - 1]), gaps(shown)
    beats = d / se > critical
    lead = (d / se).max(axis=0)
    first = may_be_first_by_tasks(ahead, lead, place, least=np.zeros(len(agents)))
    others: dict[str, Any] = {"se": se, "n_tasks": n_items, "n_draws": n_draws, "may_be_first": first}
    return RankIntervals.of(agents, shown, beats, critical, **others)


def _check(
    agents: Sequence[str], estimates: FloatArray, covariance: FloatArray, n_items: int, n_draws: int
) -> None:
    shape = (len(agents),) * 2
    if not agents or estimates.shape != shape[:1] or covariance.shape != shape:
        raise CoreError(
            f"estimates {estimates.shape} and covariance {covariance.shape} for {len(agents)} agents",
            code="ranks",
        )
    if not (np.isfinite(estimates).all() and np.isfinite(covariance).all()):
        raise CoreError("an estimate or a covariance is not finite", code="ranks")
    if n_items < 2:
        raise CoreError(f"{n_items} item tells no error", code="ranks")
    check_draws(agents, n_draws, "ranks")
