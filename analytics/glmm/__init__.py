"""A logit check: binomial models with crossed random effects, by the Laplace approximation.

Formulas and symbols: analytics/README.md, *The logit check*.

Source: Bates, Mächler, Bolker & Walker, *Fitting Linear Mixed-Effects Models Using lme4*, 2015, and lme4's
glmer (D). Tierney & Kadane, *JASA* 81 (1986) 82-86. Messing, *Hidden Measurement Error in LLM Pipelines*,
App. G.
"""

from analytics.glmm.fitting import LogitFit, fit_logit
from analytics.glmm.shares import Facets, LogitCheck, logit_check

__all__ = ["Facets", "LogitCheck", "LogitFit", "fit_logit", "logit_check"]
