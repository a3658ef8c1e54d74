"""REML: variance components of crossed and nested random effects, none below 0.

=======================  ==================================================================================
module                   holds
=======================  ==================================================================================
``fitting``              `fit`: the front door; checks, codes the factors, chooses the way
``formula``              ``"item + prompt + item:prompt"`` as terms
``factors``              labels as codes, treatment contrasts
``balanced``             mean squares of strata are sufficient: closed form, or under bounds
``unbalanced``           patterns of observed cells, by `sparse`
``sparse``               one large factor as blocks, the others as a border
``variance_components``  `VarianceFit`: what a fit tells, and how it ended
``fixed_effects``        θ̂ and the fixed effects with their intervals
``bootstrap``            parametric draws and refits
=======================  ==================================================================================
"""

from analytics.reml.fitting import fit
from analytics.reml.variance_components import VarianceFit

__all__ = ["VarianceFit", "fit"]
