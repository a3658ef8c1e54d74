"""Drift: monitors over a benchmark in time order. Each is a function of arrays; only the past is used.

====================  =============================================  =====================================
monitor               statistic                                      warn, alert
====================  =============================================  =====================================
rank fidelity         ρ and skill of the latest 20 sampled full runs  alert ρ < .75 or skill < .5, from 12
                                                                     runs; warn lower bound < .75, from 20
capability jump       CUSUM of normal scores of in-band pass rates   alert above 3.5
band erosion          share of the subset that left the band         warn > 25%, alert > 50%
calibration           e-value of missed 95% intervals, p₀ = .05      warn 20, alert 100
calibration residuals CUSUM of y − ŷ, both sides                     alert above 4.17
saturation            lower Wilson bound of the best mean over S     alert ≥ 95%
scaffold novelty      share of the latest 20 agents with a new one   warn > 50%, from 10 agents
harness failures      e-value of the invalid share                   warn 20, alert 100
run-to-run variance   permutation test at looks 10, 20, 40, …        alert p ≤ .01·2^−j
cost per task         CUSUM, both sides                              alert above 4.17
====================  =============================================  =====================================

Without any change a CUSUM of normal scores alarms once in about 200 agents, each e-value at most once in 100
benchmarks, however often it is looked at, and the permutation test in at most 1%, all looks together.

Not done here
-------------
Nothing is chosen, fitted or drawn from a database: S, ŷ and intervals are arguments. No alert is opened.
"""

from analytics.drift.capability import capability_jump
from analytics.drift.erosion import band_erosion
from analytics.drift.harness import cost_per_task, harness_failures, run_variance
from analytics.drift.monitor import Monitor, false_alerts_a_year, insufficient
from analytics.drift.novelty import scaffold_novelty
from analytics.drift.promises import calibration, residuals
from analytics.drift.rank_fidelity import subset_fidelity
from analytics.drift.reruns import Rerun, rerun_set
from analytics.drift.saturation import saturation

__all__ = [
    "Monitor",
    "Rerun",
    "band_erosion",
    "calibration",
    "capability_jump",
    "cost_per_task",
    "false_alerts_a_year",
    "harness_failures",
    "insufficient",
    "rerun_set",
    "residuals",
    "run_variance",
    "saturation",
    "scaffold_novelty",
    "subset_fidelity",
]
