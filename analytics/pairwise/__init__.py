"""Pairwise scoring: strengths from who beats whom, with errors that know of items, judges and order.

===================  ======================================================================================
module               holds
===================  ======================================================================================
``comparisons``      rows of a file, or the outcomes of agents, as comparisons and their tallies
``bradley_terry``    the fit: strengths, position effects, errors clustered by item
``cells``            what another judge, prompt or order would have said: bootstraps of cells
``agreement``        pipelines against people
``report``           what the command answers
===================  ======================================================================================
"""

from analytics.pairwise.agreement import Agreement, agreement, verdicts_of_scores, verdicts_of_shares
from analytics.pairwise.bradley_terry import BradleyTerry, StrengthsRefused, elo, fit, fit_wins
from analytics.pairwise.cells import CellBootstrap, bootstrap_cells
from analytics.pairwise.comparisons import (
    Battles,
    Comparisons,
    ComparisonsRefused,
    Outcomes,
    read_comparisons,
)
from analytics.pairwise.report import Pairwise, pairwise

__all__ = [
    "Agreement",
    "Battles",
    "BradleyTerry",
    "CellBootstrap",
    "Comparisons",
    "ComparisonsRefused",
    "Outcomes",
    "Pairwise",
    "StrengthsRefused",
    "agreement",
    "bootstrap_cells",
    "elo",
    "fit",
    "fit_wins",
    "pairwise",
    "read_comparisons",
    "verdicts_of_scores",
    "verdicts_of_shares",
]
