"""``python -m selection replay``: staged assignment over the full runs of a file."""

import argparse
from typing import Any

from analytics.command_line import (
    MOST_COUNTED,
    MOST_SEED,
    Answer,
    Parser,
    add_command,
    flat_file,
    plain,
    progress_bar,
    whole,
)
from analytics.record import Record
from selection.staged.replay import replay
from selection.staged.told import shown
from selection.staged.verdict import verdict
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
        "it cannot reach the podium or its score is known well enough.",
    )
    parser.add_argument(
        "--podium",
        type=whole(MOST_COUNTED),
        default=standard.podium,
        metavar="P",
        help=f"places that are always run in full ({standard.podium})",
    )
    parser.add_argument(
        "--staged-from",
        type=whole(MOST_COUNTED),
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
    parser.add_argument("--seed", type=whole(MOST_SEED), default=0, help="seed of draws and orders (0)")


def _replay(arguments: argparse.Namespace) -> Answer:
    staging = Staging(
        podium=arguments.podium, staged_from=arguments.staged_from, draw_share=arguments.draw_share
    )
    agents = training(Record.from_flat(flat_file(arguments.file, arguments.only)))
    with progress_bar("replay", "agents") as show:
        found = replay(agents, staging, seed=arguments.seed, progress=show)
    replayed, judged = plain(found), plain(verdict(found))
    return Answer({**replayed, "verdict": judged}, shown(replayed, judged))
