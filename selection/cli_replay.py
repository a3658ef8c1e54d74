"""``python -m selection replay``: what a rule of assignment would have saved on full runs."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from analytics.command_line import (
    MAX_COUNTED,
    MAX_SEED,
    Answer,
    Parser,
    add_command,
    outcomes_of,
    plain,
    progress_bar,
    whole,
)
from analytics.record import Record
from selection.errors import SelectionError
from selection.staged.replay import ASSIGNMENTS, replay, verdict
from selection.staged.text import shown
from selection.staged.walks import Staging
from selection.standings.choice import training


def add_replay(commands: Any) -> None:
    """Add the command."""
    standard = Staging()
    parser: Parser = add_command(
        commands,
        "replay",
        _replay,
        summary="Simulate the service on past full runs: trials saved and ranks compared with full runs.",
        about="Oldest agent first. The first agents run all tasks. Later agents run batches of tasks. An "
        "agent stops if its standard error is at most 3 points and it is unlikely to reach the top "
        "places (--podium). It also stops if its standard error is under 1 point and it is unlikely to lead.",
    )
    parser.add_argument(
        "--assignment",
        choices=list(ASSIGNMENTS),
        default="staged",
        help="staged; subset: later agents run only the ranking tasks, one in five all tasks; full (staged)",
    )
    parser.add_argument("--subset", type=Path, metavar="FILE", help="the ranking tasks, one name per line")
    parser.add_argument(
        "--reselect", action="store_true", help="choose the ranking tasks again after each agent"
    )
    parser.add_argument(
        "--subset-from",
        type=whole(MAX_COUNTED),
        default=standard.subset_from,
        metavar="N",
        help=f"number of agents that the ranking tasks are chosen from ({standard.subset_from})",
    )
    parser.add_argument(
        "--podium",
        type=whole(MAX_COUNTED),
        default=standard.podium,
        metavar="P",
        help=f"number of top places; an agent stops when it is unlikely to reach them ({standard.podium})",
    )
    parser.add_argument(
        "--staged-from",
        type=whole(MAX_COUNTED),
        default=standard.staged_from,
        metavar="N",
        help=f"number of agents that run all tasks first ({standard.staged_from})",
    )
    parser.add_argument(
        "--draw-share",
        type=float,
        metavar="Q",
        help="share of stopped agents, drawn at random, that run all tasks to check the estimates (.25 up to "
        "30 full runs, then .10)",
    )
    parser.add_argument("--seed", type=whole(MAX_SEED), default=0, help="the first seed (0)")
    parser.add_argument(
        "--seeds",
        type=whole(MAX_COUNTED),
        metavar="N",
        help="number of replays to average over (10; 20 if dates are missing)",
    )


def _replay(arguments: argparse.Namespace) -> Answer:
    staging = Staging(
        podium=arguments.podium,
        staged_from=arguments.staged_from,
        draw_share=arguments.draw_share,
        subset_from=arguments.subset_from,
    )
    record = Record.from_flat(outcomes_of(arguments))
    file, subset = arguments.subset, None
    if file is not None:
        wanted = {name.strip() for name in file.read_text("utf-8", errors="replace").splitlines()} - {""}
        if not wanted:
            raise SelectionError(f"{file.name} has no task name", code="not_a_task")
        if unknown := sorted(wanted - set(record.table.tasks)):
            raise SelectionError(f"{file.name}: unknown task {unknown[0]!r}", code="not_a_task")
        subset = np.flatnonzero(np.isin(record.table.tasks, list(wanted)))
    with progress_bar("replay", "agents") as show:
        result = replay(
            training(record),
            staging,
            assignment=arguments.assignment,
            subset=subset,
            reselected=arguments.reselect,
            seed=arguments.seed,
            n_seeds=arguments.seeds,
            progress=show,
        )
    replayed, judged = plain(result), verdict(result)
    return Answer({**replayed, "verdict": judged}, shown(replayed, judged))
