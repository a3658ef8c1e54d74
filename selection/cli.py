"""Which tasks, and does it hold up, from the command line: ``python -m selection COMMAND FILE``.

========  ==========================================================================================
command   answers
========  ==========================================================================================
band      which tasks have a pass rate in the middle
validate  whether a subset chosen without an agent puts that agent in its place, protocol by protocol
compare   which differences between agents are real, for a target that is named
ranks     which ranks each agent may hold, all of them right at once
drift     when each monitor would first have fired, had the subset been chosen early
========  ==========================================================================================

FILE is a flat file of one benchmark. Every command prints text, or one object under ``--json``; a refusal is
one line on stderr and exit code 2.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analytics.arrays import Mask
from analytics.command_line import (
    Answer,
    Parser,
    add_command,
    copied_trials,
    flat_file,
    plain,
    progress_bar,
    run,
    table_of,
)
from analytics.differences.pairs import Estimate
from analytics.flat_file import FlatFile
from analytics.outcome_table import OutcomeTable
from analytics.record import Record
from selection import decisions
from selection.bands import Band, table_band
from selection.decisions import TARGETS, Comparison, Pair, Place, Ranking, Side
from selection.folds import N_SEEDS, PROTOCOLS
from selection.rules import Rules
from selection.strategies import STRATEGIES
from selection.validation import as_json, validate
from selection.watch import Replay, Watched, replay


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for a refusal."""
    return run(_parser(), arguments)


def _parser() -> Parser:
    parser = Parser(prog="python -m selection", description="A third of the tasks: which, and how well.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    add_command(commands, "band", _band, summary="The tasks whose pass rate lies in the middle band.")
    _add_validate(commands)
    _add_compare(commands)
    _add_ranks(commands)
    drift = add_command(
        commands,
        "drift",
        _drift,
        summary="The drift monitors in time order: when each would first have fired.",
        about="The subset is chosen from the first 15 complete agents and kept; every later agent is "
        "judged by those of earlier dates.",
    )
    drift.add_argument("--seed", type=int, default=0, help="of the permutations (0)")
    return parser


# ----------------------------------------------------------------------------------------------------- band


def _band(arguments: argparse.Namespace) -> Answer:
    table = table_of(flat_file(arguments.file))
    band = table_band(table)
    values = {
        "agents": band.n_complete,
        "agents_in_file": table.n_agents,
        "tasks": table.n_tasks,
        "subset": _subset_values(band, table),
        "pass_rates": _by_task(table, band.pass_rates),
        "p_in_band": _by_task(table, band.p_in_band),
    }
    return Answer(values, _band_shown(values, band, table))


def _by_task(table: OutcomeTable, values: FloatArray) -> dict[str, float | None]:
    """Give the value of every task, chosen or not; None where no complete agent has a valid outcome."""
    known = zip(table.tasks, values.tolist(), strict=True)
    return {task: None if np.isnan(value) else value for task, value in known}


def _subset_values(band: Band, table: OutcomeTable) -> dict[str, Any]:
    return {
        "lo": band.lo,
        "hi": band.hi,
        "size": band.size,
        "widened": band.widened,
        "suited": band.suited,
        "reason": band.reason,
        "tasks": [table.tasks[j] for j in band.tasks],
        "stage": band.stage,
        "flagged": [table.tasks[j] for j in band.flagged],
    }


def _band_shown(values: Mapping[str, Any], band: Band, table: OutcomeTable) -> dict[str, Any]:
    flagged = set(band.flagged.tolist())
    return {
        "agents": _counted_agents(values),
        "tasks": values["tasks"],
        "subset": f"{_subset_line(values['subset'])} ({band.stage})" if band.suited else "none",
        "reason": band.reason,
        "": [
            {
                "task": table.tasks[j],
                "pass rate": float(band.pass_rates[j]),
                "P(in band)": float(band.p_in_band[j]),
                "": "unsure" if j in flagged else "",
            }
            for j in band.tasks.tolist()
        ],
        "left out, but perhaps in the band": [
            {
                "task": table.tasks[j],
                "pass rate": float(band.pass_rates[j]),
                "P(in band)": float(band.p_in_band[j]),
            }
            for j in sorted(flagged - set(band.tasks.tolist()))
        ],
    }


def _counted_agents(values: Mapping[str, Any]) -> str:
    return f"{values['agents']} complete, of {values['agents_in_file']} in the file"


def _subset_line(subset: Mapping[str, Any]) -> str:
    return f"{subset['size']} tasks, pass rates from {subset['lo']:.0%} to {subset['hi']:.0%}"


# ------------------------------------------------------------------------------------------------- validate


def _add_validate(commands: Any) -> None:
    parser = add_command(
        commands,
        "validate",
        _validate,
        summary="Nested validation: would a subset chosen without an agent put it in its place?",
        about="pairs_correct is what a board consumes: the share of pairs of agents whose order on the "
        "subset is their order on all tasks. skill is 0 where agents do not differ, and 1 at best.",
    )
    for option, metavar, known in (("--protocol", "P", PROTOCOLS), ("--strategy", "S", STRATEGIES)):
        of = f"of {', '.join(known)} (all)"
        parser.add_argument(option, nargs="+", action="extend", metavar=metavar, help=of)
    parser.add_argument(
        "--seeds", type=int, default=N_SEEDS, help=f"random splits and random subsets ({N_SEEDS})"
    )
    parser.add_argument("--jobs", type=int, default=1, help="workers; the numbers do not depend on it (1)")


def _validate(arguments: argparse.Namespace) -> Answer:
    table = table_of(flat_file(arguments.file))
    with progress_bar("validation") as show:
        found = validate(
            table,
            protocols=tuple(dict.fromkeys(arguments.protocol or PROTOCOLS)),
            strategies=tuple(dict.fromkeys(arguments.strategy or STRATEGIES)),
            seeds=arguments.seeds,
            jobs=arguments.jobs,
            progress=show,
        )
    values = as_json(found)
    return Answer(values, _validation_shown(values))


def _validation_shown(values: Mapping[str, Any]) -> dict[str, Any]:
    subset = values["subset"]
    shown: dict[str, Any] = {
        "agents": _counted_agents(values),
        "tasks": values["tasks"],
        "subset": _subset_line(subset) if subset["suited"] else f"none: {subset['reason']}",
    }
    for name, protocol in values["protocols"].items():
        if protocol["available"]:
            shown |= _protocol_shown(name, protocol)
        else:
            shown[name] = f"not available: {protocol['reason']}"
    return shown


def _protocol_shown(name: str, protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Set a protocol as one table, what a board consumes first, and the notes of its figures below."""
    strategies = protocol["strategies"]
    n_used = protocol["n_folds"] - protocol["n_skipped"]
    head = f"\n{name}, {n_used} of {protocol['n_folds']} folds, {protocol['k_mean']:.1f} tasks on average"
    shown: dict[str, Any] = {head: [_strategy_row(s, figures) for s, figures in strategies.items()]}
    for scaffold, figures in protocol.get("per_scaffold", {}).items():
        shown[f"{name}: {scaffold}"] = [_strategy_row(s, one) for s, one in figures.items()]
    return shown | {f"{name}: notes": _notes(strategies)}


def _strategy_row(strategy: str, figures: Mapping[str, Any]) -> dict[str, Any]:
    error = figures["se"] or figures.get("spread", {})
    return {
        "strategy": strategy,
        "pairs_correct": figures["pairs_correct"],
        "±": error.get("pairs_correct"),
        "skill": figures["skill"],
        "± ": error.get("skill"),
        "rho": figures["rho"],
        "tau": figures["tau"],
        "rho_calibrated": figures["rho_calibrated"],
        "r2": figures["r2"],
        "pairs_clear": figures["pairs_clear"],
        "rho_rest": figures["rho_rest"],
        "rho_null": figures["rho_null"],
        "coverage": figures["coverage"],
        "n": figures["n"],
        "left out": figures["n_left_out"],
    }


def _notes(strategies: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Every note once, under the figure and the strategies it is about."""
    about: dict[tuple[str, str], list[str]] = {}
    for strategy, figures in strategies.items():
        for figure, note in figures["notes"].items():
            about.setdefault((figure, note), []).append(strategy)
    return {f"{figure} of {_all_of(names, strategies)}": note for (figure, note), names in about.items()}


def _all_of(names: Sequence[str], strategies: Mapping[str, Any]) -> str:
    others = [name for name in strategies if name not in names]
    if len(others) > 1 or len(names) == 1:
        return ", ".join(names)
    return f"all but {others[0]}" if others else "all"


# -------------------------------------------------------------------------------------------------- compare


def _add_compare(commands: Any) -> None:
    parser = add_command(
        commands,
        "compare",
        _compare,
        summary="All pairs of agents: the difference, its error and interval for a target that is named.",
        about="p is Benjamini-Hochberg adjusted over the pairs shown; it answers single questions and "
        "decides no rank. Components of error that were never measured are listed.",
    )
    _add_target(parser)
    parser.add_argument(
        "--agents", nargs="+", action="extend", metavar="AGENT", help="the agents to compare (all)"
    )


def _add_target(parser: Parser) -> None:
    parser.add_argument(
        "--target",
        choices=TARGETS,
        help="what is told about: these tasks of the subset, all tasks, or tasks like these "
        "(subset, where there is one; else full)",
    )


def _compare(arguments: argparse.Namespace) -> Answer:
    flat = flat_file(arguments.file)
    with progress_bar("pairs") as show:
        found = decisions.compare(
            table_of(flat),
            target=arguments.target,
            agents=arguments.agents,
            copied=copied_trials(flat),
            failed=_failed(flat),
            groups=_groups(flat),
            progress=show,
        )
    return Answer(_comparison_values(found), _comparison_shown(found))


def _failed(flat: FlatFile) -> Mask:
    """Cells that an agent ran, but whose every trial the harness failed, shape (n_agents, n_tasks)."""
    shape = (len(flat.agents), len(flat.tasks))
    ran, valid = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    ran[flat.agent, flat.task] = True
    valid[flat.agent[flat.valid], flat.task[flat.valid]] = True
    return ran & ~valid


def _groups(flat: FlatFile) -> list[str] | None:
    """Category of every task; None where the file has fewer than two."""
    named = [category or "" for category in flat.categories]
    return named if len(set(named)) > 1 else None


def _comparison_values(found: Comparison) -> dict[str, Any]:
    return {
        "target": found.target,
        "tasks": found.n_tasks,
        "omega": found.omega,
        "agents": {side.agent: _side_values(side) for side in found.sides},
        "pairs": [_pair_values(pair) for pair in found.pairs],
        "left_out": dict(found.left_out),
    }


def _side_values(side: Side) -> dict[str, Any]:
    estimate, interval = side.estimate, side.interval
    return {
        "value": side.value,
        "how": side.how,
        "se": estimate.interval.se if estimate and estimate.interval else None,
        "lower": interval[0] if interval else None,
        "upper": interval[1] if interval else None,
        "method": estimate.method if estimate else "calibration",
        "reason": estimate.reason if estimate else "",
    }


def _pair_values(pair: Pair) -> dict[str, Any]:
    values = {"a": pair.a, "b": pair.b, **_estimate_values(pair.estimate)}
    order = {"p_adjusted": pair.p_adjusted, "unclaimed": pair.unclaimed}
    return values | order | {"reason": pair.reason}


def _estimate_values(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return dict.fromkeys(("difference", "se", "df", "lower", "upper", "p", "method", "n_tasks"))
    interval = estimate.interval
    return {
        "difference": estimate.value,
        "se": interval.se if interval else None,
        "df": interval.df if interval and np.isfinite(interval.df) else None,
        "lower": interval.lower if interval else None,
        "upper": interval.upper if interval else None,
        "p": estimate.p_value,
        "method": estimate.method,
        "n_tasks": estimate.n_tasks,
        "grouped": plain(estimate.grouped),
        "terms": {term.name: term.variance for term in estimate.terms},
        "cancels": list(estimate.cancels),
        "omitted": list(estimate.omitted),
    }


def _comparison_shown(found: Comparison) -> dict[str, Any]:
    estimates = [pair.estimate for pair in found.pairs if pair.estimate is not None]
    omitted = sorted({name for estimate in estimates for name in estimate.omitted})
    return {
        "target": f"{found.target}: {_ABOUT[found.target].format(n=found.n_tasks)}",
        "never measured": ", ".join(omitted) or "nothing",
        "agents": [_side_row(side) for side in found.sides],
        "pairs": [_pair_row(pair) for pair in found.pairs],
        "not compared": dict(found.left_out),
    }


_ABOUT = {
    "subset": "the expected mean on the {n} tasks of the subset",
    "full": "the expected mean on all {n} tasks",
    "domain": "the mean over tasks of which these {n} are a sample",
}


def _side_row(side: Side) -> dict[str, Any]:
    values = _side_values(side)
    return {
        "agent": side.agent,
        "mean": side.value,
        "from": values["lower"],
        "to": values["upper"],
        "by": side.how,
        "error by": values["method"],
        "completing errs at the top by": side.top_quartile_error,
        "note": values["reason"],
    }


def _pair_row(pair: Pair) -> dict[str, Any]:
    values = _estimate_values(pair.estimate)
    note = "no order is claimed: outcomes are missing unevenly" if pair.unclaimed else pair.reason
    return {
        "a": pair.a,
        "b": pair.b,
        "a − b": values["difference"],
        "SE": values["se"],
        "from": values["lower"],
        "to": values["upper"],
        "p": pair.p_adjusted,
        "error by": values["method"],
        "note": note,
    }


# ---------------------------------------------------------------------------------------------------- ranks


def _add_ranks(commands: Any) -> None:
    parser = add_command(
        commands,
        "ranks",
        _ranks,
        summary="The ranks that each agent may hold, right for all agents at once (95%).",
        about="Two agents are tied where neither beats the other; ties are not transitive.",
    )
    _add_target(parser)
    parser.add_argument("--draws", type=int, default=2000, help="resamples of the tasks (2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the resamples (0)")


def _ranks(arguments: argparse.Namespace) -> Answer:
    flat = flat_file(arguments.file)
    found = decisions.rank(
        table_of(flat),
        target=arguments.target,
        copied=copied_trials(flat),
        failed=_failed(flat),
        seed=arguments.seed,
        n_draws=arguments.draws,
    )
    values = {
        "target": found.target,
        "tasks": found.n_tasks,
        "critical": found.critical,
        "draws": found.n_draws,
        "note": found.note,
        "agents": [plain(place) for place in found.places],
        "unranked": dict(found.unranked),
    }
    return Answer(values, _ranks_shown(found))


def _ranks_shown(found: Ranking) -> dict[str, Any]:
    ranks = {place.agent: place.rank for place in found.places}
    return {
        "target": f"{found.target}: {_ABOUT[found.target].format(n=found.n_tasks)}",
        "intervals": f"simultaneous 95%, {found.n_draws} draws{f'; {found.note}' if found.note else ''}",
        "": [_place_row(place, ranks) for place in found.places],
        "unranked": dict(found.unranked),
    }


def _place_row(place: Place, ranks: Mapping[str, int]) -> dict[str, Any]:
    tied = [ranks[name] for name in place.tied_with]
    return {
        "rank": place.rank,
        "agent": place.agent,
        "mean": place.mean,
        "interval": f"{place.lower}–{place.upper}",
        "tied with": f"{len(tied)}, ranked {min(tied)} to {max(tied)}" if tied else "nobody",
        "by": place.how,
        "completing errs at the top by": place.top_quartile_error,
    }


# ---------------------------------------------------------------------------------------------------- drift


def _drift(arguments: argparse.Namespace) -> Answer:
    record = Record.from_flat(flat_file(arguments.file))
    with progress_bar("agents") as show:
        found = replay(record, Rules(seed=arguments.seed), progress=show)
    return Answer(_replay_values(found), _replay_shown(found))


def _replay_values(found: Replay) -> dict[str, Any]:
    version = found.version
    return {
        "agents_in_file": found.n_agents,
        "fixed_on": version.fixed_on.isoformat(),
        "chosen_from": list(version.chosen_from),
        "subset": {
            "lo": version.lo,
            "hi": version.hi,
            "size": len(version.tasks),
            "tasks": list(version.tasks),
        },
        "monitors": {one.name: _watched_values(one) for one in found.monitors},
        "promises": {name: plain(promise) for name, promise in found.promises.items()},
        "missed": list(found.missed),
        "false_alerts_a_year": found.false_alerts_a_year,
    }


def _watched_values(one: Watched) -> dict[str, Any]:
    fired = {"first_warn": plain(one.warn), "first_alert": plain(one.alert)}
    return {**fired, **plain(one.final), "advice": one.final.advice}


def _replay_shown(found: Replay) -> dict[str, Any]:
    version, pace = found.version, found.false_alerts_a_year
    n_told = sum(promise.interval is not None for promise in found.promises.values())
    return {
        "subset": f"{len(version.tasks)} tasks, chosen on {version.fixed_on} from "
        f"{len(version.chosen_from)} agents",
        "since": f"{len(found.promises)} complete agents; {len(found.missed)} of {n_told} intervals missed",
        "false alerts": "–" if pace is None else f"{pace:.2f} a year are expected without any change",
        "first fired": [_watched_row(one) for one in found.monitors],
        "in the end": [
            {
                "monitor": one.name,
                "state": one.final.state,
                "": one.final.reason,
                "what to do": one.final.advice,
            }
            for one in found.monitors
        ],
    }


def _watched_row(one: Watched) -> dict[str, Any]:
    first = one.alert or one.warn
    return {
        "monitor": one.name,
        "warn": one.warn.day.isoformat() if one.warn else None,
        "alert": one.alert.day.isoformat() if one.alert else None,
        "after": first.n_later if first else None,
        "agent": first.agent if first else None,
        "": first.reason if first else "not fired",
    }
