"""The flags by which rules are typed: one definition for every command that reads a benchmark."""

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any, Literal, cast, get_args

from analytics.command_line import MAX_COUNTED, MAX_SEED, Parser, pairs, whole
from analytics.flat_file import RunSetting
from analytics.names import first_names
from analytics.record import Condition, Counting
from analytics.record.rows import Missing
from selection.errors import SelectionError
from selection.prior import PriorDecisions, SubsetVersion
from selection.rules import ESTIMATORS, GROUPS, TARGETS, Rules
from selection.strategies import STRATEGIES

Settings = Literal["comparable"] | tuple[Condition, ...]
MAX_BYTES = 64 << 20  # of a list of tasks, or of versions of the subset
MAX_LISTED = 10  # conditions of a file
FACETS = ("prompt_variant", "judge", "temperature")


def _universe_named(text: str) -> Literal["all", "common"] | Path:
    return cast(Literal["all", "common"], text) if text in ("all", "common") else Path(text)


FLAGS: Mapping[str, dict[str, Any]] = {
    "target": {
        "choices": TARGETS,
        "help": "what ranks and intervals are about: the ranking tasks, all tasks, or tasks like these "
        "(full, unless the ranking tasks order agents better)",
    },
    "groups": {
        "choices": GROUPS,
        "default": Rules.groups,
        "help": "for --target domain: groups or categories of tasks are drawn whole (cluster), or tasks "
        "are drawn within them (stratum) (auto: groups are clusters, if at least 10)",
    },
    "missing": {
        "choices": get_args(Missing),
        "default": "auto",
        "help": "what a missing result counts as: a gap, or a failure (auto: a failure, or only common tasks "
        "count, if fewer than half of five or more agents can be ranked)",
    },
    "duplicates": {
        "choices": ("mean", "latest", "first"),
        "default": "mean",
        "help": "which runs of an agent count (mean of all)",
    },
    "settings": {
        "nargs": "+",
        "default": ["comparable"],
        "metavar": "SETTING",
        "help": "conditions compared, such as judge=j1,prompt_variant=p2 (those that agents share)",
    },
    "universe": {
        "type": _universe_named,
        "default": "all",
        "metavar": "all|common|FILE",
        "help": "active tasks: all, those that 95%% of the agents have run, or the names in FILE (all)",
    },
    "strategy": {
        "choices": tuple(STRATEGIES),
        "default": Rules.strategy,
        "help": f"how the ranking tasks are chosen ({Rules.strategy})",
    },
    "estimator": {
        "choices": ESTIMATORS,
        "help": "how the full score is estimated from the tasks that an agent ran (completion)",
    },
    "band": {
        "nargs": 2,
        "type": float,
        "default": [Rules.lo, Rules.hi],
        "metavar": ("LO", "HI"),
        "help": f"pass rates of the ranking tasks ({Rules.lo:g} {Rules.hi:g})",
    },
    "window": {
        "type": whole(MAX_COUNTED),
        "metavar": "N",
        "help": "use pass rates of the latest N agents with full runs (all)",
    },
    "trial_noise": {
        "metavar": "NOISE",
        "help": "run-to-run noise from another benchmark, if no agent has two trials of a task, such as "
        '"0.118 from Terminal-Bench" (an upper bound)',
    },
    "seed": {
        "type": whole(MAX_SEED),
        "default": Rules.seed,
        "help": f"seed of all random draws ({Rules.seed})",
    },
    "subsets": {
        "type": Path,
        "metavar": "FILE.json",
        "help": "earlier versions of the ranking tasks, the last one in use: a list of objects with tasks "
        "and chosen_from",
    },
}


def add_rules(parser: Parser, *, without: Collection[str] = ()) -> None:
    """Add the flags to a command.

    without: names of rules that the command takes otherwise, or not at all.
    """
    group = parser.add_argument_group("rules")
    for name, options in FLAGS.items():
        if name not in without:
            group.add_argument(f"--{name.replace('_', '-')}", **options)


def rules_of(arguments: argparse.Namespace) -> Rules:
    """Return the rules that the flags state; those of a new benchmark where a command has no such flag."""
    flags = vars(arguments)
    lo, hi = flags.get("band", (Rules.lo, Rules.hi))
    strategy = flags.get("strategy", Rules.strategy)
    return Rules(
        lo=lo,
        hi=hi,
        history_window=flags.get("window"),
        strategy=strategy if isinstance(strategy, str) else Rules.strategy,
        estimator=flags.get("estimator") or "",
        target=flags.get("target"),
        trial_noise=flags.get("trial_noise") or "",
        groups=flags.get("groups", Rules.groups),
        seed=flags.get("seed", Rules.seed),
        counting=Counting(
            duplicates=flags.get("duplicates", "mean"),
            settings=_settings(flags.get("settings", ["comparable"])),
            missing=flags.get("missing", "auto"),
            universe=_universe(flags.get("universe", "all")),
        ),
    )


def prior_of(arguments: argparse.Namespace, rules: Rules) -> PriorDecisions:
    """Return what the flags say was decided before.

    Raises SelectionError (flag).
    Raises OSError.
    """
    path: Path | None = vars(arguments).get("subsets")
    if path is None:
        return PriorDecisions()
    try:
        rows = json.loads(_content(path))
        rows = rows["subsets"] if isinstance(rows, dict) else rows  # as the service exports them
        versions = tuple(_version(one, number, rules) for number, one in enumerate(rows, 1))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        message = f"missing {error}" if isinstance(error, KeyError) else str(error)
        raise SelectionError(
            f"{path.name} is not a list of objects with tasks and chosen_from: {message}", code="flag"
        ) from error
    return PriorDecisions(subsets=versions)


def check_settings(settings: Settings, present: Sequence[RunSetting]) -> None:
    """Refuse a condition that nothing in the file ran under.

    present: of the file.
    Raises SelectionError: flag: with those that there are.
    """
    if settings == "comparable":
        return
    for one in settings:
        if not any(one[:2] == its[:2] and one.temperature in (None, its.temperature) for its in present):
            listed = first_names(
                sorted({_condition_text(Condition(*its[:3])) for its in present}), MAX_LISTED
            )
            raise SelectionError(
                f"--settings {_condition_text(one)}: no results. Conditions in the file: {listed}",
                code="flag",
            )


def _condition_text(condition: Condition) -> str:
    parts = [
        f"{name}={level:g}" if isinstance(level, float) else f"{name}={level}"
        for name, level in zip(FACETS, condition, strict=True)
        if level is not None
    ]
    return ",".join(parts) or "nothing stated"


def _settings(texts: list[str]) -> Settings:
    if texts == ["comparable"]:
        return "comparable"
    conditions = list[Condition]()
    for named in (pairs(one, FACETS) for one in texts):
        temperature = named.get("temperature")
        try:
            number = None if temperature is None else float(temperature)
        except ValueError:
            raise SelectionError(f"temperature {temperature!r} is not a number", code="flag") from None
        conditions.append(Condition(named.get("prompt_variant"), named.get("judge"), number))
    return tuple(conditions)


def _universe(source: Literal["all", "common"] | Path) -> Literal["all", "common"] | tuple[str, ...]:
    if not isinstance(source, Path):
        return source
    try:
        lines = _content(source).splitlines()
    except UnicodeDecodeError:
        raise SelectionError(
            f"{source.name} is not UTF-8 text. Write one task name per line", code="flag"
        ) from None
    return tuple(sorted({line.strip() for line in lines} - {""}))


def _content(path: Path) -> str:
    """Read a text in UTF-8 that is no larger than any list of tasks; a device never ends."""
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise SelectionError(f"{path.name} is larger than {MAX_BYTES >> 20} MiB", code="flag")
    return content.decode()


def _version(row: Any, number: int, rules: Rules) -> SubsetVersion:
    """Read a version; what is not stated follows from the rules and its place in the list."""
    if not isinstance(row, dict):
        raise TypeError(f"{row!r} is not an object")
    tasks, chosen_from = (tuple(sorted(map(str, row[name]))) for name in ("tasks", "chosen_from"))
    unknown = sorted(set(row) - {entry.name for entry in fields(SubsetVersion)})
    if unknown:
        raise SelectionError(f"unknown field {unknown[0]!r} in a version", code="flag")
    return SubsetVersion(
        number=int(row.get("number", number)),
        tasks=tasks,
        chosen_from=chosen_from,
        arrival=int(row.get("arrival", number)),
        fixed_on=date.fromisoformat(row.get("fixed_on", date.min.isoformat())),
        lo=float(row.get("lo", rules.lo)),
        hi=float(row.get("hi", rules.hi)),
        widened=bool(row.get("widened", False)),
        provisional=bool(row.get("provisional", False)),
        strategy=str(row.get("strategy", rules.strategy)),
        reason=str(row.get("reason", f"{len(tasks)} tasks, fixed before")),
        n_complete=int(row.get("n_complete", len(chosen_from))),
        n_tasks=int(row.get("n_tasks", len(tasks))),
    )
