"""Who stands where: one record in, one answer out, for every face that shows it.

Importing this package, ``lines``, ``words``, ``terms``, ``gaps``, ``changes``, ``table`` and ``printed``
imports nothing heavy; `answer` does when called.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.record import Record
    from selection.prior import PriorDecisions
    from selection.rules import Rules
    from selection.standings.lines import Standings

__all__ = ["answer"]


def answer(
    record: "Record", rules: "Rules | None" = None, prior: "PriorDecisions | None" = None
) -> "Standings":
    """Tell where every agent stands, for every target.

    Parameters
    ----------
    record : Record
        Reduced by `Rules.counting`.
    rules : Rules, optional
        Those of a new benchmark where not given.
    prior : PriorDecisions, optional
        What was decided or measured before; nothing where not given.

    Raises
    ------
    SelectionError
        When the rules cannot be applied to these data.
    """
    from selection.prior import PriorDecisions
    from selection.rules import Rules
    from selection.standings.answering import answered

    return answered(record, rules or Rules(), prior or PriorDecisions())
