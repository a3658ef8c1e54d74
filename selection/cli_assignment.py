"""``python -m selection adaptive``, ``next`` and ``replay``: assignment of tasks, and its replays."""

import argparse
from collections.abc import Mapping
from pathlib import Path
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
from selection import adaptive
from selection.adaptive import N_SEEDS
from selection.adaptive import replay as replay_adaptive
from selection.errors import SelectionError
from selection.staged.replay import ASSIGNMENTS, replay, verdict
from selection.staged.text import shown
from selection.staged.walks import Staging
from selection.standings.choice import training
from selection.standings.words import counted

HALF_WIDTH = 0.05
PROTOCOLS = {"loao": "without the agent", "temporal": "in time"}


def add_adaptive(commands: Any) -> None:
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
        result = replay_adaptive(
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
    stop = adaptive.Stop(arguments.half_width, arguments.ranks, arguments.budget)
    record = Record.from_flat(outcomes_of(arguments))
    table, everybody = record.table, training(record)
    others = np.array([i for i, name in enumerate(everybody.names) if name != arguments.agent], np.intp)
    adaptive.check(others.size, table.n_tasks, record.graded_share)
    outcomes, delivered = np.full(table.n_tasks, np.nan), np.zeros(table.n_tasks, dtype=np.bool_)
    if arguments.agent in table.agents:
        i = table.agents.index(arguments.agent)
        outcomes, delivered = table.means[i], record.n_places[i] > 0
    result = adaptive.next_tasks(everybody.take(others), outcomes, delivered, stop)
    values = result | {"tasks": [table.tasks[j] for j in result["tasks"]]}
    rows: dict[str, Any] = {"done": values["done"], "why": values["reason"]}
    if values["score"] is not None:
        rows["full score"] = f"{values['score']:.3f}, {values['lo']:.3f} to {values['hi']:.3f} (95%)"
        rows["ranks"] = f"{values['rank_lo']} to {values['rank_hi']} beside the past agents"
    return Answer(values, rows | {"run next": values["tasks"]})


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
