"""What disagreement among judges predicts, and what a panel or an ensemble gains.

============  ===================================================================================
module        holds
============  ===================================================================================
``items``     whether items on which pipelines disagree are those that their majority gets wrong
``tiers``     how far judges of one tier disagree, tier by tier
``ensemble``  the variance of a mean of members, and how many independent ones it is worth
============  ===================================================================================
"""

from analytics.research.panels.ensemble import Ensemble, ensemble
from analytics.research.panels.items import Disagreement, area, disagreement
from analytics.research.panels.tiers import Tier, Tiers, tiers

__all__ = ["Disagreement", "Ensemble", "Tier", "Tiers", "area", "disagreement", "ensemble", "tiers"]
