"""Better settings for a harness: ``python -m analytics.research.tuning COMMAND STUDY.toml``."""

import argparse
import sys
from collections.abc import Sequence

from analytics.command_line import MAX_SPLITS, Answer, Parser, add_command, whole
from analytics.command_line import run as run_command
from analytics.errors import CoreError
from analytics.research.tuning import protocol
from analytics.research.tuning.report import as_markdown, as_plain, front_values
from analytics.research.tuning.store import Store
from analytics.research.tuning.study import read_study

STUDY = "STUDY.toml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for a refusal."""
    parser = Parser(
        prog="python -m analytics.research.tuning",
        description="Search for settings of a harness, and prove them.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command, summary in (
        ("run", _run, "Run the baseline, the search and the full evaluations, or what is left of them."),
        ("status", _status, "Say how far a study is."),
        ("front", _front, "Name the trials that none beats in R, D, C and cost."),
        (
            "protocol",
            lambda arguments: Answer(as_plain(_store(arguments))),
            "Say what of the five phases is done, and what they say.",
        ),
        ("ablate", _ablate, "Say what would have been chosen without a part of F."),
        (
            "report",
            lambda arguments: Answer(report := as_plain(_store(arguments)), as_markdown(report)),
            "Tell all of it, as Markdown.",
        ),
    ):
        added = add_command(commands, name, command, summary=summary, file=STUDY, about="docs/tuning.md")
        added.set_defaults(expected="a study in TOML (docs/tuning.md)")
        if name == "ablate":
            added.add_argument("--search", action="store_true", help="search anew under each condition")
            added.add_argument(
                "--seeds", type=whole(MAX_SPLITS), default=8, help="of each condition, with --search (8)"
            )
    return run_command(parser, arguments)


def _store(arguments: argparse.Namespace) -> Store:
    return Store(read_study(arguments.file))


def _run(arguments: argparse.Namespace) -> Answer:
    store = _store(arguments)
    with store.writing():
        why = protocol.run(store, _report_step)
    report = as_plain(store)
    return Answer(report, f"The search ended: {why}.\n\n{as_markdown(report)}")


def _report_step(what: str, done: int, n: int) -> None:
    sys.stderr.write(f"{what}: {done:,} of {n:,}\n")


def _status(arguments: argparse.Namespace) -> Answer:
    report = as_plain(_store(arguments))
    names = ("study", "phase", "n_trials", "n_failed", "cost_usd", "converged", "below_protocol")
    return Answer({name: report[name] for name in names})


def _front(arguments: argparse.Namespace) -> Answer:
    store = _store(arguments)
    front = front_values(protocol.trials_of(store))
    if front is None:
        raise CoreError("no trial of the search has figures yet", code="not_yet")
    return Answer(front)


def _ablate(arguments: argparse.Namespace) -> Answer:
    store = _store(arguments)
    if arguments.search:
        with store.writing():
            ablated = protocol.searched_ablations(store, arguments.seeds, _report_step)
    else:
        ablated = protocol.ablations(store)
    return Answer({"ablations": ablated})
