"""REML: variance components of crossed and nested random effects, none below 0.

=======================  ==================================================================================
module                   holds
=======================  ==================================================================================
``fitting``              `fit`: the front door; checks, chooses the way
``model``                factors and terms of a model, and designs that cannot tell its parts
``formula``              ``"item + prompt + item:prompt"`` as terms
``factors``              labels as codes, treatment contrasts
``strata``               rows of a balanced design as the few mean squares that are sufficient
``balanced``             components from mean squares: closed form, or under bounds
``unbalanced``           patterns of observed cells, by `sparse`
``sparse``               one large factor as blocks, the others as a border
``variance_components``  `VarianceFit`: what a fit tells, and how it ended
``fixed_effects``        θ̂ with its interval
``bootstrap``            parametric draws and refits
=======================  ==================================================================================
"""

from analytics.reml.bootstrap import component_intervals, refits
from analytics.reml.factors import FitRefused
from analytics.reml.fitting import fit
from analytics.reml.fixed_effects import satterthwaite_df, small_facets, theta_interval, theta_slopes
from analytics.reml.formula import parse
from analytics.reml.variance_components import RESIDUAL, VarianceFit, asymptotic_intervals, check_level

__all__ = [
    "RESIDUAL",
    "FitRefused",
    "VarianceFit",
    "asymptotic_intervals",
    "check_level",
    "component_intervals",
    "fit",
    "parse",
    "refits",
    "satterthwaite_df",
    "small_facets",
    "theta_interval",
    "theta_slopes",
]
