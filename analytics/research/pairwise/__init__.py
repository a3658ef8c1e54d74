"""Pairwise scoring: strengths from who beats whom, with errors that know of items, judges and order.

===================  ======================================================================================
module               holds
===================  ======================================================================================
``comparisons``      rows of a file, or the outcomes of agents, as comparisons and their tallies
``bradley_terry``    the fit: strengths, position effects, errors clustered by item
``cells``            what another judge, prompt or order would have said: bootstraps of cells
``agreement``        pipelines against people
``joint_ranks``      rank sets of estimates that one fit gave, with its covariance
``report``           what the command answers
``command``          its arguments and files
===================  ======================================================================================
"""

from analytics.research.pairwise.agreement import Agreement, agreement, verdicts_of_scores, verdicts_of_shares
from analytics.research.pairwise.bradley_terry import BradleyTerry, StrengthsRefused, elo, fit, fit_wins
from analytics.research.pairwise.cells import CellBootstrap, bootstrap_cells
from analytics.research.pairwise.comparisons import Battles, Comparisons, OutcomeMatrix, read_comparisons
from analytics.research.pairwise.report import Pairwise, pairwise

__all__ = [
    "Agreement",
    "Battles",
    "BradleyTerry",
    "CellBootstrap",
    "Comparisons",
    "OutcomeMatrix",
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
