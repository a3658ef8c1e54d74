"""``python -m analytics.research adaptive`` and ``next``: tasks chosen for each agent, batch by batch.

The one study of methods that asks `selection` for its agents and strategies; the service assigns tasks by
`selection.staged` instead. The replay says what past agents would have run, and whether fixed tasks order
as well. The theory is in ``analytics/README.md``, “The next task”.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray
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
from analytics.drift.e_value import upper_share
from analytics.record import Record
from analytics.research.adaptive.assignment import (
    Stop,
    batch_size,
    calibrated,
    check,
    completed,
    half_widths,
    looks_of,
    nearest_batch,
    next_tasks,
    prepared,
    walk,
)
from analytics.text import counted
from selection.bands import HI, LO
from selection.errors import SelectionError
from selection.folds import CompleteAgents, generator, membership
from selection.held_out import agreement
from selection.intervals import MIN_FOR_QUANTILE
from selection.standings.choice import training
from selection.strategies import STRATEGIES, Training
from selection.validation.figures import jackknife, mean_known, shares
from selection.validation.nested import jackknife_groups

HALF_WIDTH = 0.05
PROTOCOLS = {"loao": "without the agent", "temporal": "in time"}
N_SEEDS = 100
TWO_SIDED = 0.975
COMPARED = ("adaptive", "mid_range", "spread", "random")

Progress = Callable[[int, int], None]


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
    return Answer(plain(result), _table(result))


def _table(result: Mapping[str, Any]) -> dict[str, Any]:
    looks = ", ".join(map(str, result["looks"]))
    no_replay = {"in time": f"no replay: {result['unavailable']}"} if result["unavailable"] else {}
    return {
        "past agents": result["n_agents"],
        "tasks": f"{result['n_tasks']}, in batches of {result['batch']}; looks after {looks}",
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
            for one in result["replayed"]
        ],
        f"pairs in the right order from {counted(result['k'], 'task')}": [
            {
                "chosen": one["strategy"],
                "pairs_correct_full": one["pairs_correct_full"],
                "adaptive is better by": one["difference"],
                "se": one["se"],
            }
            for one in result["chosen"]
        ],
        "": [_verdict(result)],
    }


def _verdict(result: Mapping[str, Any]) -> str:
    others = [(one["strategy"], one["difference"] or 0.0, one["se"]) for one in result["chosen"][1:]]
    if any(se is None for *_, se in others):
        return "All agents are of one model, so nobody can say whether adaptive tasks order agents better."
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


# Of one agent: |y − ŷ| and the calibrated half-width at each look
Way = tuple[FloatArray, FloatArray]


def replay(
    record: Record,
    stops: Sequence[float],
    *,
    seeds: int,
    base_seed: int,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Replay adaptive assignment on the complete agents of a record.

    stops: half-widths of the interval, score.
    seeds: random subsets.
    Returns: ``n_agents``, ``n_tasks``, ``batch``, ``k`` (tasks of the comparison), ``looks``; ``replayed`` by
        protocol and half-width, with the share of tasks run and the 95% limits of the share covered;
        ``unavailable``: why there is no replay in time, else empty; ``chosen``, as `compared` gives it.
    Raises SelectionError: not_adaptive: under 20 complete agents (19 past ones when one is left out), on
        graded outcomes, on one task, or a half-width that is none.
    """
    for half_width in stops:
        Stop(half_width)
    agents = training(record)
    m = agents.outcomes.shape[1]
    check(max(agents.n - 1, 0), m, record.graded_share)
    everyone, loao = np.arange(agents.n), list[Way]()
    for i in everyone.tolist():
        loao += _ways(agents, everyone[everyone != i], [i])
        if progress is not None:
            progress(i + 1, agents.n)
    in_time, unavailable = _in_time(agents)
    ways = {"loao": loao} | ({} if unavailable else {"temporal": in_time})
    k = nearest_batch(m, 1 / 4)
    return {
        "n_agents": agents.n,
        "n_tasks": m,
        "batch": batch_size(m),
        "k": k,
        "looks": list(looks_of(m)),
        "replayed": [_replayed(name, h, ends, m) for name, ends in ways.items() for h in stops],
        "unavailable": unavailable,
        "chosen": compared(agents, k, seeds=seeds, base_seed=base_seed),
    }


def compared(agents: CompleteAgents, k: int, *, seeds: int, base_seed: int) -> list[dict[str, Any]]:
    """Compare k tasks chosen adaptively with as many chosen otherwise, leaving one agent out.

    ``difference``, ``se``: of adaptive choice over this one, and its jackknife error; None for its own, and
    the error where all agents are of one model.
    """
    everyone = np.arange(agents.n)
    estimates = np.array(
        [_estimates(agents, i, everyone[everyone != i], k, (seeds, base_seed)) for i in everyone.tolist()]
    )
    groups = jackknife_groups(agents)
    folds = np.column_stack([np.ones(agents.n), groups[:, None] != np.arange(groups.max() + 1)])
    y, by_choice = np.round(agents.scores, DECIMALS), list[FloatArray]()
    for column in np.round(estimates.T, DECIMALS):
        table = agreement(y, everyone, np.ones((agents.n, agents.n), dtype=np.bool_), column, y)
        by_choice.append(mean_known(shares(table, everyone, table >= 0, folds)))
    figures = np.vstack([by_choice[:3], np.array(by_choice[3:]).mean(axis=0)])
    whole, without = figures[:, 0], (figures[0] - figures)[:, 1:]
    errors = jackknife(without.T)
    return [
        {
            "strategy": name,
            "pairs_correct_full": float(whole[s]),
            "difference": float(whole[0] - whole[s]) if s else None,
            "se": float(errors[s]) if s and np.isfinite(errors[s]) else None,
        }
        for s, name in enumerate(COMPARED)
    ]


def _in_time(agents: CompleteAgents) -> tuple[list[Way], str]:
    """Replay the agents of each date after those of earlier dates; or say why not."""
    n_undated = sum(day is None for day in agents.dates)
    if n_undated:
        return [], f"{n_undated} of {agents.n} complete agents {'has' if n_undated == 1 else 'have'} no date"
    days, ways = [day or date.min for day in agents.dates], list[Way]()
    for day in sorted(set(days)):
        past = np.array([i for i, other in enumerate(days) if other < day], dtype=np.intp)
        if past.size >= MIN_FOR_QUANTILE:
            ways += _ways(agents, past, [i for i, other in enumerate(days) if other == day])
    return ways, "" if ways else f"no agent has {MIN_FOR_QUANTILE} others of earlier dates"


def _ways(agents: CompleteAgents, past: IndexArray, newcomers: Sequence[int]) -> list[Way]:
    start, calibration = prepared(agents, past), calibrated(agents, past)
    ways = []
    for i in newcomers:
        looks = walk(start, agents.outcomes[i]).looks
        errors = np.abs(agents.scores[i] - np.array([one.score for one in looks]))
        ways.append((errors, half_widths(calibration, looks)))
    return ways


def _replayed(protocol: str, half_width: float, ways: Sequence[Way], m: int) -> dict[str, Any]:
    looks, stops, n_covered, n_never = looks_of(m), list[int](), 0, 0
    for errors, widths in ways:
        halves = np.round(widths, DECIMALS)
        enough = np.flatnonzero(halves <= half_width)
        stop = int(enough[0]) if enough.size else len(looks) - 1
        n_never += not enough.size
        n_covered += bool(np.round(errors[stop], DECIMALS) <= halves[stop])
        stops.append(looks[stop])
    lower, upper = clopper_pearson(n_covered, len(ways))
    return {
        "protocol": protocol,
        "half_width": half_width,
        "n": len(ways),
        "n_covered": n_covered,
        "n_never": n_never,
        "share_run": float(np.mean(stops)) / m,
        "covered_lo": lower,
        "covered_hi": upper,
    }


def clopper_pearson(n_covered: int, n: int) -> tuple[float, float]:
    """95% limits of a share, each tail at most 2.5%."""
    lower = 1.0 - upper_share(n - n_covered, n, level=TWO_SIDED) if n_covered else 0.0
    return lower, upper_share(n_covered, n, level=TWO_SIDED) if n_covered < n else 1.0


def _estimates(
    agents: CompleteAgents, i: int, past: IndexArray, k: int, seeds: tuple[int, int]
) -> list[float]:
    start, outcomes = prepared(agents, past), agents.outcomes[i]
    rates = np.nanmean(agents.outcomes[past], axis=0)
    known = Training(agents.outcomes, agents.scores, past, rates)
    from_middle = np.round(np.abs(rates - (LO + HI) / 2), DECIMALS)
    middle = np.argsort(from_middle, kind="stable")[:k]
    choices = [np.concatenate(walk(start, outcomes).batches)[:k], middle]
    choices.append(STRATEGIES["spread"](known, k, None))
    draws = (generator(seeds[1], "adaptive", agents.names[i], draw) for draw in range(seeds[0]))
    choices += [STRATEGIES["random"](known, k, rng) for rng in draws]
    return [completed(start, outcomes, row).score for row in membership(choices, outcomes.size)]
