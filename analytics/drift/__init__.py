"""Drift: monitors over a benchmark in time order. Each is a function of arrays; only the past is used.

=====================  ==============================================  =====================================
monitor                statistic                                       warn; alert
=====================  ==============================================  =====================================
rank fidelity          fall of ρ with the tasks outside S, z test      p ≤ 5α_j; p ≤ α_j; if it fell > .10
published order        share of pairs that stand as published, when    upper limit < min(.92, promised) at
                       stopped, of agents run in full since            5α_j; at α_j
capability jump        CUSUM of normal scores of means over S, rising  5.5; 7
band erosion           share of the band that left it, and how far it  p ≤ 5α_j and > 10 points over chance;
                       went, by permutation                            p ≤ 2α_j and > 20
calibration            e-value of missed 95% intervals, p₀ = .05       20; 100
calibration residuals  CUSUM of y − ŷ, both sides                      7; 9
saturation             lower limits of the best mean over S            95% limit ≥ .90, or half of S > 95%;
                                                                       99% limit ≥ .90, and not less of the
                                                                       agent's full score where it is known
tuning to the subset   audit tasks against what S predicts, drawn      p ≤ 5α_j; p ≤ 1.5α_j
                       from the reference; batch by batch: tasks
                       beyond the first batch against the model
scaffold novelty       new ones in the latest 20, by permutation       p ≤ 5α_j and > 50%; never
harness failures       bets on larger invalid shares of agents          20; 100
run-to-run noise       rise of ω̂, by permutation                       p ≤ 5α_j; p ≤ α_j
cost per task          CUSUM, both sides                               6.2; 7.8
=====================  ==============================================  =====================================

α_j = .01·2^−j at look j, taken at 10, 20, 40, … agents (rank fidelity: 12, 20, 40, …); between two looks the
last one stands (`looks`). Without any change a chart alarms once in 7,500 agents or more; rank fidelity,
calibration, harness failures and run-to-run noise ever alert with probability .01 or about it, tuning with
.015, band erosion with .02. Novelty never alerts; saturation has the errors of its limits.
How often each fires on simulated boards is in docs/evidence/monitors.txt.
"""

from analytics.drift.calibration import calibration
from analytics.drift.charts import capability_jump, cost_per_task, residuals
from analytics.drift.erosion import band_erosion
from analytics.drift.failures import Invalid, harness_failures
from analytics.drift.monitor import Monitor, false_alerts_a_year, insufficient
from analytics.drift.noise import Noise, noise_of, run_noise
from analytics.drift.novelty import scaffold_novelty
from analytics.drift.published_order import published_order
from analytics.drift.rank_fidelity import OnAndOff, subset_fidelity
from analytics.drift.reruns import Rerun, rerun_set
from analytics.drift.saturation import FullRunScore, of_benchmark, saturation
from analytics.drift.tuning import Audit, first_batch_tuning, n_audit_tasks, subset_tuning

__all__ = [
    "Audit",
    "FullRunScore",
    "Invalid",
    "Monitor",
    "Noise",
    "OnAndOff",
    "Rerun",
    "band_erosion",
    "calibration",
    "capability_jump",
    "cost_per_task",
    "false_alerts_a_year",
    "first_batch_tuning",
    "harness_failures",
    "insufficient",
    "n_audit_tasks",
    "noise_of",
    "of_benchmark",
    "published_order",
    "rerun_set",
    "residuals",
    "run_noise",
    "saturation",
    "scaffold_novelty",
    "subset_fidelity",
    "subset_tuning",
]
