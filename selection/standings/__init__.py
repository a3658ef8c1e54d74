"""Who stands where: one record in, one answer out, for every face that shows it.

=================  =====================================================================================
module             holds
=================  =====================================================================================
``lines``          the answer's types and their plain form
``words``          its sentences
``terms``          what their words mean, and how figures are set
``gaps``           what its lines do not show
``changes``        what changed between two boards
``table``          its tables: columns for a reader, flat rows for a CSV
``printed``        the whole as text for a terminal
``choice``         which tasks are the subset
``placing``        who is ranked on a set of tasks, and why not
``full_scores``    the full score estimated from the subset
``targets``        scores, errors, ranks and ties for one target
``versions``       versions of one agent that differ by noise alone, as one line
``pairs``          two agents and how they differ, on request
``podium``         whether the first places ran all tasks
``phase``          the phase of the benchmark
``savings``        what the subset spares
``verdict``        whether the subset ranks like the whole, and which strategy does better
``trials``         how many trials a run of the subset should have
``agents``         one line for each agent
``answering``      the steps in their order
=================  =====================================================================================

Importing this package, ``lines``, ``words``, ``terms``, ``gaps``, ``changes``, ``table`` and ``printed``
imports nothing heavy; `answer` does when called.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.record import Record
    from selection.given import Given
    from selection.rules import Rules
    from selection.standings.lines import Standings

__all__ = ["answer"]


def answer(record: "Record", rules: "Rules | None" = None, given: "Given | None" = None) -> "Standings":
    """Tell where every agent stands, for every target.

    Parameters
    ----------
    record : Record
        Reduced by `Rules.counting`.
    rules : Rules, optional
        Those of a new benchmark where not given.
    given : Given, optional
        What was decided or measured before; nothing where not given.

    Raises
    ------
    SelectionError
        When the rules cannot be applied to these data.
    """
    from selection.given import Given
    from selection.rules import Rules
    from selection.standings.answering import answered

    return answered(record, rules or Rules(), given or Given())
