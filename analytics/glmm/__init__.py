"""A logit check: binomial models with crossed random effects, by the Laplace approximation.

Formulas: analytics/README.md, *The logit check*.

========  ==================================  ==============================  ===================
symbol    code                                shape                           unit
========  ==================================  ==============================  ===================
v, σ_t²   ``variances``                       (n_terms,)                      logit²
β         ``beta``                            (p,)                            logit
s, R      ``successes``, ``trials``           (n_cells,)                      trials
η, μ      ``eta``, ``expit(eta)``             (n_cells,)                      logit, probability
r         ``residual``                        (n_cells,), s − Rμ              trials
W         ``weight``                          (n_cells,)                      trials
h         ``leverages``                       (n_cells,), Var(η) given data   logit²
D         ``value``, ``deviance``             scalar                          −2 log likelihood
========  ==================================  ==============================  ===================

============  =======================================================================
module        holds
============  =======================================================================
``fitting``   `fit_logit`: from columns to components, and what is refused
``layout``    blocks, border, and the cells' places in them
``laplace``   D with its gradient
``optimum``   the minimum of D; zero components exactly 0
``shares``    `logit_check`: what the mean's variance is made of, on both scales
============  =======================================================================

Source: Bates, Mächler, Bolker & Walker, *Fitting Linear Mixed-Effects Models Using lme4*, 2015, and lme4's
glmer (D). Tierney & Kadane, *JASA* 81 (1986) 82-86. Messing, *Hidden Measurement Error in LLM Pipelines*,
App. G.
"""

from analytics.glmm.fitting import LogitFit, fit_logit
from analytics.glmm.shares import Facets, LogitCheck, logit_check

__all__ = ["Facets", "LogitCheck", "LogitFit", "fit_logit", "logit_check"]
