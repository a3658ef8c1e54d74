"""Who stands where: one record in, one answer out, for every face that shows it.

Importing this package, ``words``, ``terms``, ``changes``, ``table`` and ``printed`` imports nothing heavy;
`answer` does when called.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.record import Record
    from selection.prior import PriorDecisions
    from selection.rules import Rules
    from selection.schema.board import Standings

__all__ = ["answer"]


def answer(
    record: "Record", rules: "Rules | None" = None, prior: "PriorDecisions | None" = None
) -> "Standings":
    """Tell where every agent stands, for every target.

    record: reduced by `Rules.counting`.
    rules: those of a new benchmark where not given.
    prior: what was decided or measured before; nothing where not given.
    Raises SelectionError: when the rules cannot be applied to these data.
    """
    from selection.prior import PriorDecisions
    from selection.rules import Rules
    from selection.standings.answering import answered

    return answered(record, rules or Rules(), prior or PriorDecisions())
