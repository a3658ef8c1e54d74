"""REML: variance components of crossed and nested random effects, none below 0."""

from analytics.reml.fitting import fit
from analytics.reml.fixed_effects import (
    component_intervals,
    refits,
    satterthwaite_df,
    small_facets,
    theta_interval,
    theta_slopes,
)
from analytics.reml.formula import parse
from analytics.reml.model import FitRefused
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
