"""Drift: monitors over a benchmark in time order. Each is a function of arrays; only the past is used."""

from analytics.drift.before_and_since import Noise, band_erosion, noise_of, run_noise, scaffold_novelty
from analytics.drift.charts import capability_jump, cost_per_task, residuals
from analytics.drift.e_value import Invalid, calibration, harness_failures
from analytics.drift.monitor import Monitor, false_alerts_a_year, insufficient
from analytics.drift.rank_fidelity import OnAndOff, published_order, subset_fidelity
from analytics.drift.saturation import FullRunScore, of_benchmark, saturation
from analytics.drift.tuning import Audit, first_batch_tuning, n_audit_tasks, subset_tuning

__all__ = [
    "Audit",
    "FullRunScore",
    "Invalid",
    "Monitor",
    "Noise",
    "OnAndOff",
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
    "residuals",
    "run_noise",
    "saturation",
    "scaffold_novelty",
    "subset_fidelity",
    "subset_tuning",
]
