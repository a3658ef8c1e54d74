"""``python -m analytics.research adaptive`` and ``next``: tasks chosen for each agent, batch by batch.

The one study of methods that asks `selection` for its agents and strategies; the service assigns tasks by
`selection.staged` instead.
"""

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from analytics.command_line import (
    MAX_COUNTED,
    MAX_SEED,
    MAX_SPLITS,
    Answer,
    Parser,
    add_command,
    outcomes_of,
    plain,
    progress_bar,
    whole,
)
from analytics.record import Record
from analytics.research.adaptive.assignment import Stop, check, next_tasks
from analytics.research.adaptive.replay import N_SEEDS, replay
from analytics.text import counted
from selection.errors import SelectionError
from selection.standings.choice import training

HALF_WIDTH = 0.05
PROTOCOLS = {"loao": "without the agent", "temporal": "in time"}


def add(commands: Any) -> None:
    """Add both commands."""
    table = add_command(
        commands,
        "adaptive",
        _adaptive,
        summary="Replay adaptive assignment on past agents: what it would run, and whether it holds.",
        about="It says whether adaptive tasks order agents better here than as many tasks fixed beforehand.",
    )
    table.add_argument(
        "--half-width",
        nargs="+",
        type=float,
        default=[HALF_WIDTH],
        metavar="H",
        help=f"half-widths at which to stop ({HALF_WIDTH})",
    )
    table.add_argument("--seeds", type=whole(MAX_SPLITS), default=N_SEEDS, help=f"random subsets ({N_SEEDS})")
    table.add_argument("--seed", type=whole(MAX_SEED), default=0, help="seed of the random subsets (0)")
    parser: Parser = add_command(
        commands,
        "next",
        _next,
        summary="The tasks that an agent is to run next, and what those it ran say of its full score.",
        about="The file holds the past agents and what this one has run so far; one without outcomes is "
        "given its first tasks.",
    )
    parser.add_argument("--agent", required=True, metavar="A", help="the agent, by its name in the file")
    parser.add_argument(
        "--half-width", type=float, default=HALF_WIDTH, metavar="H", help=f"enough is known ({HALF_WIDTH})"
    )
    parser.add_argument(
        "--ranks", type=whole(MAX_COUNTED), metavar="W", help="enough is known with W ranks left (never)"
    )
    parser.add_argument(
        "--budget", type=whole(MAX_COUNTED), metavar="K", help="tasks at most (the last look)"
    )


def _adaptive(arguments: argparse.Namespace) -> Answer:
    if arguments.seeds < 1:
        raise SelectionError(f"seeds: at least 1; here {arguments.seeds}", code="not_adaptive")
    record = Record.from_flat(outcomes_of(arguments))
    with progress_bar("replay", "agents") as show:
        result = replay(
            record,
            tuple(dict.fromkeys(arguments.half_width)),
            seeds=arguments.seeds,
            base_seed=arguments.seed,
            progress=show,
        )
    return Answer(plain(result), _replayed(result))


def _replayed(replay: Mapping[str, Any]) -> dict[str, Any]:
    looks = ", ".join(map(str, replay["looks"]))
    no_replay = {"in time": f"no replay: {replay['unavailable']}"} if replay["unavailable"] else {}
    return {
        "past agents": replay["n_agents"],
        "tasks": f"{replay['n_tasks']}, in batches of {replay['batch']}; looks after {looks}",
        **no_replay,
        "stopping at a half-width": [
            {
                "past": PROTOCOLS[one["protocol"]],
                "half-width": one["half_width"],
                "tasks run": one["share_run"],
                "covered": f"{one['n_covered']} of {one['n']}",
                "95%": f"{one['covered_lo']:.3f} to {one['covered_hi']:.3f}",
                "never reach it": f"{one['n_never']} of {one['n']}",
            }
            for one in replay["replayed"]
        ],
        f"pairs in the right order from {counted(replay['k'], 'task')}": [
            {
                "chosen": one["strategy"],
                "pairs_correct_full": one["pairs_correct_full"],
                "adaptive is better by": one["difference"],
                "se": one["se"],
            }
            for one in replay["chosen"]
        ],
        "": [_verdict(replay)],
    }


def _verdict(replay: Mapping[str, Any]) -> str:
    others = [(one["strategy"], one["difference"] or 0.0, one["se"] or 0.0) for one in replay["chosen"][1:]]
    worse = [name for name, difference, se in others if difference < -2 * se]
    even = [name for name, difference, se in others if abs(difference) <= 2 * se]
    if worse:
        return f"Tasks chosen by {', '.join(worse)} order agents better than adaptive ones."
    if even:
        return f"No gain in order is shown over as many tasks chosen by {', '.join(even)}."
    return "Adaptive tasks order agents better than as many chosen otherwise."


def _next(arguments: argparse.Namespace) -> Answer:
    stop = Stop(arguments.half_width, arguments.ranks, arguments.budget)
    record = Record.from_flat(outcomes_of(arguments))
    table, everybody = record.table, training(record)
    others = np.array([i for i, name in enumerate(everybody.names) if name != arguments.agent], np.intp)
    check(others.size, table.n_tasks, record.graded_share)
    outcomes, delivered = np.full(table.n_tasks, np.nan), np.zeros(table.n_tasks, dtype=np.bool_)
    if arguments.agent in table.agents:
        i = table.agents.index(arguments.agent)
        outcomes, delivered = table.means[i], record.n_places[i] > 0
    result = next_tasks(everybody.take(others), outcomes, delivered, stop)
    values = result | {"tasks": [table.tasks[j] for j in result["tasks"]]}
    rows: dict[str, Any] = {"done": values["done"], "why": values["reason"]}
    if values["score"] is not None:
        rows["full score"] = f"{values['score']:.3f}, {values['lo']:.3f} to {values['hi']:.3f} (95%)"
        rows["ranks"] = f"{values['rank_lo']} to {values['rank_hi']} beside the past agents"
    return Answer(values, rows | {"run next": values["tasks"]})
