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
from selection.staged.replay import Figure, Replay, replay
from selection.staged.verdict import Verdict, verdict
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
    judged = verdict(found)
    return Answer({**plain(found), "verdict": plain(judged)}, _shown(found, judged))


def _shown(found: Replay, judged: Verdict) -> dict[str, Any]:
    order = "by date" if found.n_orders == 1 else f"in {found.n_orders} random orders, as dates are missing"
    shown = {
        "verdict": judged.text,
        "agents": f"{found.n_agents} with full runs on {found.n_tasks} tasks, {order}",
        "runs saved": f"{found.saved:.1%}; among the second half of the agents {found.saved_late:.1%}",
        "pairs in order": f"{_percent(found.pairs)}; random tasks at the same cost {found.random_pairs:.1%}; "
        f"two full runs would agree on {found.ceiling:.1%}",
        "clear pairs": _percent(found.clear_pairs),
        "best five found": f"{5 * found.best_five:.1f}",
        "podium found": f"{found.podium:.0%}",
        "leader": f"{100 * found.regret:.1f} points below the best",
        "95% intervals": f"{_percent(found.coverage)} of {found.n_published} estimates inside",
        "bias": "no estimate" if found.bias is None else f"{100 * found.bias.value:+.1f} points",
        "typical error": "no estimate" if found.rmse is None else f"{100 * found.rmse:.1f} points (RMSE)",
    }
    return shown | ({"short of yes": list(judged.reasons)} if judged.reasons else {})


def _percent(figure: Figure | None) -> str:
    if figure is None:
        return "none"
    return f"{figure.value:.1%}" + ("" if figure.se is None else f" ± {figure.se:.1%}")
