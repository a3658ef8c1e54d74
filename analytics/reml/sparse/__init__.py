"""REML of crossed and nested random intercepts on unbalanced designs, by blocks with a border.

Source: Bates, Mächler, Bolker & Walker, *Fitting Linear Mixed-Effects Models Using lme4*, 2015, §3
(criterion, zeros on the boundary). Searle, Casella & McCulloch, *Variance Components*, 1992, §6.6 and §8.3
(gradient). Gilmour, Thompson & Cullis, *Average Information REML*, Biometrics 51, 1995 (information). Zhou,
Hu, Qiao, Cho & Zhou, *MM Algorithms for Variance Components Models*, 2019 (the multiplicative step).
"""

from analytics.reml.sparse.criterion import Criterion
from analytics.reml.sparse.optimum import minimise

__all__ = ["Criterion", "minimise"]
