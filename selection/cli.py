"""Which tasks, and does it hold up, from the command line: ``python -m selection COMMAND FILE``.

=========  =========================================================================================
command    answers
=========  =========================================================================================
band       which tasks have a pass rate in the middle
validate   whether a subset chosen without an agent puts that agent in its place, protocol by protocol
standings  where every agent stands, for every target: the object of `selection.standings.answer`
ranks      the same for one target: which ranks each agent may hold, all of them right at once
compare    which differences between agents are real, for a target that is named
drift      when each monitor would first have fired, had the subset been chosen early
replay     what staged assignment would have saved on these full runs, and what it would get right
=========  =========================================================================================

FILE is a flat file of one benchmark. Every command prints text, or one object under ``--json``; a refusal is
one line on stderr and exit code 2. The flags of the rules are `selection.cli_rules`'.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.arrays import FloatArray
from analytics.command_line import (
    MAX_PROCESSES,
    MAX_SEED,
    MAX_SPLITS,
    Answer,
    Parser,
    add_command,
    outcomes_of,
    plain,
    run,
    whole,
)
from analytics.programs import progress_bar
from analytics.record import Record
from analytics.text import as_text
from selection.cli_rules import add_rules, check_settings, prior_of, rules_of
from selection.errors import SelectionError
from selection.rules import Rules

if TYPE_CHECKING:
    from selection.schema.board import Standings
    from selection.watch import MonitorReplay


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for a refusal."""
    name = next(iter(sys.argv[1:] if arguments is None else arguments), "")
    return run(_parser(name), arguments)


def _parser(name: str) -> Parser:
    """Return the parser of one command, or of all where there is none of this name."""
    parser = Parser(
        prog="python -m selection",
        description="Choose ranking tasks and rank agents.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in {ADDED[name]} if name in ADDED else dict.fromkeys(ADDED.values()):
        add(commands)
    return parser


def _add_band(commands: Any) -> None:
    band = add_command(commands, "band", _band, summary="The ranking tasks: those with a middle pass rate.")
    add_rules(band, without=("target", "groups"))


def _add_drift(commands: Any) -> None:
    drift = add_command(
        commands,
        "drift",
        _drift,
        summary="The drift monitors in time order: when each would first have fired.",
        about="The ranking tasks are chosen from the first 15 agents with full runs. Each later agent is "
        "compared with agents of earlier dates.",
    )
    drift.add_argument("--seed", type=whole(MAX_SEED), default=0, help="seed of the permutations (0)")


def _add_replay(commands: Any) -> None:
    from selection.cli_replay import add_replay

    add_replay(commands)


def _record(arguments: argparse.Namespace, rules: Rules) -> Record:
    flat = outcomes_of(arguments)
    check_settings(rules.counting.settings, flat.settings)
    return Record.from_flat(flat, rules.counting)


def _band(arguments: argparse.Namespace) -> Answer:
    from selection import validation_text
    from selection.schema.board import Conditions
    from selection.standings import words
    from selection.standings.choice import band_of, choice
    from selection.standings.savings import trials

    rules = rules_of(arguments)
    record = _record(arguments, rules)
    prior = prior_of(arguments, rules)
    band, chosen = band_of(record, rules), choice(record, rules, prior)
    band = replace(band, tasks=chosen.tasks)
    tasks, flagged = record.table.tasks, set(band.flagged.tolist())

    def by_task(values: FloatArray) -> dict[str, float | None]:
        known = zip(tasks, values.tolist(), strict=True)
        return {task: None if np.isnan(value) else value for task, value in known}

    def rows(positions: Iterable[int]) -> list[dict[str, Any]]:
        return [
            {
                "task": tasks[j],
                "pass rate": float(band.pass_rates[j]),
                "P(ranking task)": float(band.p_in_band[j]),
            }
            for j in positions
        ]

    n_trials = trials(record, band.tasks, prior.facets)
    values = {
        "agents": band.n_complete,
        "agents_in_file": record.n_agents,
        "tasks": record.n_tasks,
        "conditions": plain(Conditions(record.compared, record.left_out)),
        "subset": band.as_plain(tasks) | {"stage": band.stage, "flagged": [tasks[j] for j in band.flagged]},
        "pass_rates": by_task(band.pass_rates),
        "p_in_band": by_task(band.p_in_band),
        "trials": plain(n_trials),
    }
    failed = words.failed_text(record.n_missing_failed)
    notes = (failed, record.universe, words.compared_text(record.compared, record.left_out), *record.uneven)
    counted = " ".join(words.sentence(one) for one in notes if one)
    inside = band.tasks.tolist()
    shown = {
        "agents": validation_text.agents_text(values),
        "tasks": values["tasks"],
        "ranking tasks": f"{validation_text.subset_text(values)} ({band.stage})" if band.suited else "none",
        "reason": band.reason,
        **({"counted": counted} if counted else {}),
        "": [
            row | {"": "unsure" if j in flagged else ""} for j, row in zip(inside, rows(inside), strict=True)
        ],
        "left out, but perhaps ranking tasks": rows(sorted(flagged - set(inside))),
        "trials": words.trials_text(n_trials) or "–",
    }
    return Answer(values, shown)


def _add_validate(commands: Any) -> None:
    from selection.folds import N_SEEDS, PROTOCOLS
    from selection.strategies import STRATEGIES

    parser = add_command(
        commands,
        "validate",
        _validate,
        summary="Validate the ranking tasks: do they order new agents as all tasks do?",
        about="pairs_correct: share of agent pairs that the ranking tasks order as all tasks do. "
        "pairs_correct_full: the same by the estimated full score, which a board uses. skill and kappa are 0 "
        "if agents do not differ, and 1 at best.",
    )
    for option, metavar, known, default in (
        ("--protocol", "P", PROTOCOLS, "all"),
        ("--strategy", "S", STRATEGIES, "all but what would take very long on this board, which is named"),
    ):
        of = f"some of {', '.join(known)} ({default})"
        parser.add_argument(option, nargs="+", action="extend", metavar=metavar, help=of)
    parser.add_argument(
        "--seeds",
        type=whole(MAX_SPLITS),
        default=N_SEEDS,
        help=f"how many random splits and random subsets ({N_SEEDS})",
    )
    parser.add_argument(
        "--jobs", type=whole(MAX_PROCESSES), default=1, help="workers; the numbers do not depend on it (1)"
    )
    parser.add_argument("--full", action="store_true", help="print all figures, and what they mean")
    add_rules(parser, without=("target", "groups", "strategy", "subsets"))


def _validate(arguments: argparse.Namespace) -> Answer:
    from selection import validation_text
    from selection.folds import PROTOCOLS
    from selection.standings.verdict import verdict

    rules = rules_of(arguments)
    values = _validated(
        _record(arguments, rules),
        rules,
        protocols=tuple(dict.fromkeys(arguments.protocol or PROTOCOLS)),
        strategies=tuple(dict.fromkeys(arguments.strategy)) if arguments.strategy else None,
        seeds=arguments.seeds,
        jobs=arguments.jobs,
    )
    if arguments.full:
        return Answer(values, validation_text.shown(values))
    judged = verdict(values, rules.strategy)
    head = fill(judged.sentence, 100) if judged else ""
    summary = as_text(validation_text.summary(values, rules.strategy, more="add --full"), 100)
    return Answer(values, "\n\n".join(filter(None, (head, summary))))


def _validated(record: Record, rules: Rules, **options: Any) -> dict[str, Any]:
    from selection.standings.validating import validation_of

    with progress_bar("validation", "folds") as show:
        return validation_of(record, rules, progress=show, **options)


def _add_boards(commands: Any) -> None:
    standings = add_command(
        commands,
        "standings",
        _standings,
        summary="The board: ranks, scores and costs of all agents.",
        about="Prints one target; --json has all of them.",
    )
    standings.add_argument(
        "--validate", action="store_true", help="also test whether the ranking tasks can be trusted"
    )
    standings.add_argument(
        "--explain",
        action="store_true",
        help="all columns, what they mean, what intervals cover, what was not measured",
    )
    ranks = add_command(
        commands,
        "ranks",
        _ranks,
        summary="95% rank ranges, the agents that could be the best, and ties.",
        about="Two agents are tied if neither is clearly better (95%). A may tie with B and B with C, while "
        "A is clearly better than C. tied_with lists ranges of positions in the table.",
    )
    for parser in (standings, ranks):
        parser.add_argument(
            "--staged",
            action="store_true",
            help="estimate the full score of agents with some tasks only, as staged assignment does (else "
            "they are incomplete)",
        )
    compare = add_command(
        commands,
        "compare",
        _compare,
        summary="All pairs of agents: the difference, its error and interval for a target that is named.",
        about="Printed are the pairs of the ten best agents unless --agents or --all says otherwise; --json "
        "has all. p is adjusted over all pairs that are compared (Benjamini and Hochberg; --json also has it "
        "unadjusted); it answers single questions and decides no rank. Components of error that were never "
        "measured are listed.",
    )
    compare.add_argument(
        "--agents", nargs="+", action="extend", metavar="AGENT", help="the agents to compare (all)"
    )
    compare.add_argument(
        "--all", action="store_true", help="print the pairs of all agents, not those of the ten best alone"
    )
    for parser in (standings, ranks, compare):
        add_rules(parser)


def _standings(arguments: argparse.Namespace) -> Answer:
    from selection.standings import printed, words
    from selection.standings.verdict import advice_text

    board = _answered(arguments)
    advice = advice_text(board.verdict, "--strategy {strategy}")
    run = f"python -m selection standings {arguments.file}"
    shown = printed.text(
        board,
        explain=arguments.explain,
        command=lambda settings: f"{run} {words.flags(settings)}",
    )
    return Answer(board.as_plain(), "\n\n".join(filter(None, (shown, advice))))


def _answered(arguments: argparse.Namespace) -> "Standings":
    """Answer for the file, ordered by the target that was asked for."""
    from selection.staged.study import AssignmentRule, staged_in
    from selection.staged.walks import Staging
    from selection.standings import answer, terms

    rules = rules_of(arguments)
    record, prior = _record(arguments, rules), prior_of(arguments, rules)
    rule = None
    if vars(arguments).get("staged"):
        staging = Staging(lo=rules.lo, hi=rules.hi, subset_from=rules.subset_from)
        rule, prior = AssignmentRule(staging), replace(prior, staged=staged_in(record, staging))
    if vars(arguments).get("validate"):
        # What choosing a strategy is worth needs all of them.
        is_default = rules.strategy == Rules.strategy
        strategies = (rules.strategy, "random") if is_default else None
        validation = _validated(
            record, rules, protocols=("loao", "temporal"), strategies=strategies, rule=rule
        )
        prior = replace(prior, validation=validation)
    with progress_bar("standings"):
        board = answer(record, rules, prior)
    if rules.target is not None and board.target != rules.target:
        why = board.why if rules.target == "subset" else board.targets[rules.target].reason
        raise SelectionError(
            f"no ranks for the target {rules.target}: {terms.clause(why)}", code="target_silent"
        )
    return board


def _ranks(arguments: argparse.Namespace) -> Answer:
    from selection.standings import printed, terms

    board = _answered(arguments)
    agents = [
        {"agent": line.agent, "scaffold": line.scaffold, "model": line.model, "how": line.how}
        | plain(line.at[board.target])
        for line in terms.in_order(board)
    ]
    values = {"target": board.target, **plain(board.targets[board.target]), "agents": agents}
    return Answer(values, printed.ranks(board))


def _compare(arguments: argparse.Namespace) -> Answer:
    from selection.standings.pairs import pairs, pairs_shown, pairs_values

    rules = rules_of(arguments)
    record, prior = _record(arguments, rules), prior_of(arguments, rules)
    with progress_bar("comparison", "pairs") as show:
        result = pairs(record, rules, prior, agents=arguments.agents, progress=show)
    whole = bool(arguments.agents or arguments.all)
    return Answer(pairs_values(result), pairs_shown(result, whole=whole))


def _drift(arguments: argparse.Namespace) -> Answer:
    from selection.standings import words
    from selection.watch import replay

    record = Record.from_flat(outcomes_of(arguments))
    with progress_bar("replay", "agents") as show:
        result = replay(record, Rules(seed=arguments.seed), progress=show)
    version, pace, promises = result.version, result.false_alerts_a_year, result.promises
    values = {
        "agents_in_file": result.n_agents,
        "fixed_on": version.fixed_on.isoformat(),
        "chosen_from": list(version.chosen_from),
        "subset": {
            "lo": version.lo,
            "hi": version.hi,
            "size": len(version.tasks),
            "tasks": list(version.tasks),
        },
        "monitors": {
            one.name: {
                "first_warn": plain(one.warn),
                "first_alert": plain(one.alert),
                **plain(one.final),
                "advice": one.final.advice,
            }
            for one in result.monitors
        },
        "promises": {name: plain(promise) for name, promise in promises.items()},
        "missed": list(result.missed),
        "false_alerts_a_year": pace,
    }
    n_promised = sum(promise.interval is not None for promise in promises.values())
    finals = [(one.name, one.final) for one in result.monitors]
    shown = {
        "ranking tasks": f"{words.counted(len(version.tasks), 'task')}, chosen on {version.fixed_on} from "
        f"{words.counted(len(version.chosen_from), 'agent')}",
        "later agents": f"{len(promises):,} with full runs; {len(result.missed)} of "
        f"{words.counted(n_promised, 'interval')} missed",
        "false alerts": "–" if pace is None else f"at most {pace:.2f} a year if nothing changes",
        "first fired": [_watched_row(one) for one in result.monitors],
        "in the end": [
            {"monitor": name, "state": final.state, "": final.reason, "what to do": final.advice}
            for name, final in finals
        ],
    }
    return Answer(values, shown)


def _watched_row(one: "MonitorReplay") -> dict[str, Any]:
    first = one.alert or one.warn
    return {
        "monitor": one.name,
        "warn": one.warn.day.isoformat() if one.warn else None,
        "alert": one.alert.day.isoformat() if one.alert else None,
        "after": first.n_later if first else None,
        "agent": first.agent if first else None,
        "": first.reason if first else "not fired",
    }


ADDED = {
    "band": _add_band,
    "validate": _add_validate,
    "standings": _add_boards,
    "ranks": _add_boards,
    "compare": _add_boards,
    "drift": _add_drift,
    "replay": _add_replay,
}
