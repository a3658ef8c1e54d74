"""``python -m analytics.research pairwise FILE``: strengths from who beats whom."""

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

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
from analytics.errors import CoreError
from analytics.record import Record
from analytics.research.pairwise import Battles, OutcomeMatrix, pairwise, read_comparisons
from analytics.research.pairwise.comparisons import OPTIONAL, REQUIRED
from analytics.research.pairwise.report import bootstrapped

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
    with progress_bar("cells", "draws") as show:
        scores = pairwise(
            battles,
            seed=arguments.seed,
            prior=arguments.prior,
            cells=bootstrapped(arguments.seed, arguments.prior, show) if arguments.cells else None,
            human=arguments.human is not None,
        )
    values = scores.values() | {"n_invalid": n_invalid}
    return Answer(values, _shown(values))


def _outcomes(arguments: argparse.Namespace) -> Battles:
    if arguments.cells or arguments.human is not None:
        raise CoreError(
            "outcomes are nobody's verdicts: --cells and --human are for a file of comparisons", code="option"
        )
    table = Record.from_flat(outcomes_of(arguments)).compared_table()
    return OutcomeMatrix.of(table.agents, table.tasks, table.means)


def _rows(arguments: argparse.Namespace) -> tuple[Battles, int]:
    """Return the battles, and how many rows are not valid."""
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


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    cells, agreed = values["cells"] or [], values["agreement"] or {}
    return {
        "": values["agents"],
        "position effects": values["position"],
        "log-likelihood": values["log_likelihood"],
        "items": values["n_items"],
        "comparisons": values["n_comparisons"],
        **({LEFT_OUT: values["n_invalid"]} if values["n_invalid"] else {}),
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
