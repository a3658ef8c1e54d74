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
        summary="What staged assignment would have saved on these full runs, and what it would get right.",
        about="Agents come in order of date. The first ones run all tasks; each later one runs batches until "
        "its standard error is at most 3 points and it cannot reach the podium, or its standard error is "
        "under 1 point and it cannot lead; or it runs the subset alone.",
    )
    parser.add_argument(
        "--assignment",
        choices=list(ASSIGNMENTS),
        default="staged",
        help="staged; subset: later agents run the subset alone, one in five everything; full (staged)",
    )
    parser.add_argument(
        "--subset", type=Path, metavar="FILE", help="tasks of the subset from the outset, a name in each line"
    )
    parser.add_argument(
        "--reselect", action="store_true", help="choose the subset anew after each agent, never to stay"
    )
    parser.add_argument(
        "--subset-from",
        type=whole(MAX_COUNTED),
        default=standard.subset_from,
        metavar="N",
        help=f"agents from which the subset is chosen ({standard.subset_from})",
    )
    parser.add_argument(
        "--podium",
        type=whole(MAX_COUNTED),
        default=standard.podium,
        metavar="P",
        help=f"first places, which an agent that stops cannot reach ({standard.podium})",
    )
    parser.add_argument(
        "--staged-from",
        type=whole(MAX_COUNTED),
        default=standard.staged_from,
        metavar="N",
        help=f"agents that run all tasks first ({standard.staged_from})",
    )
    parser.add_argument(
        "--draw-share",
        type=float,
        metavar="Q",
        help="share of stopped agents drawn to run the rest, so that estimates can be judged (.25 until 30 "
        "full runs can be replayed, then .10)",
    )
    parser.add_argument("--seed", type=whole(MAX_SEED), default=0, help="the first seed (0)")
    parser.add_argument(
        "--seeds",
        type=whole(MAX_COUNTED),
        metavar="N",
        help="replays with other draws, over which figures are means (10; 20 where dates are missing)",
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
            raise SelectionError(f"{file.name} names no task", code="not_a_task")
        if unknown := sorted(wanted - set(record.table.tasks)):
            raise SelectionError(
                f"{file.name}: {unknown[0]!r} is no task of this benchmark", code="not_a_task"
            )
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
