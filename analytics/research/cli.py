"""Studies of methods, from the command line: ``python -m analytics.research COMMAND FILE``."""

from collections.abc import Sequence

from analytics.command_line import Parser, run
from analytics.research import adaptive, gaming, pairwise, panels, surrogate, turns


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 for a refusal."""
    parser = Parser(prog="python -m analytics.research", description="Studies of methods of evaluation.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (pairwise, surrogate, turns, panels, gaming, adaptive):
        command.add(commands)
    return run(parser, arguments)
