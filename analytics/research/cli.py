"""Studies of methods, from the command line: ``python -m analytics.research COMMAND FILE``.

=========  =========================================================  ============================
command    answers                                                    reads
=========  =========================================================  ============================
pairwise   strengths from who beats whom                              a CSV of verdicts, or the flat file
surrogate  what people would have said, from a judge and some labels  the flat file
turns      at which turn conversations cross a threshold              a CSV of turns
panels     what disagreement predicts, what an ensemble gains         the flat file
gaming     what a team gains by submitting often, showing its best    the flat file
=========  =========================================================  ============================
"""

from collections.abc import Sequence

from analytics.command_line import Parser, run
from analytics.research import gaming, surrogate, turns
from analytics.research.pairwise import command as pairwise
from analytics.research.panels import command as panels


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for a refusal."""
    return run(_parser(), arguments)


def _parser() -> Parser:
    parser = Parser(prog="python -m analytics.research", description="Studies of methods of evaluation.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (pairwise, surrogate, turns, panels, gaming):
        command.add(commands)
    return parser
