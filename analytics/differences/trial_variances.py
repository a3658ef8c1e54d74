"""Variances of all pair differences on given tasks at once, and the noise of trials, ω̂.

Source: Neyman 1923 and Imbens & Rubin, *Causal Inference*, 2015, §6.5 (s_d²/N bounds the finite variance).
The variance function and its rule are this project's own.
"""

import numpy as np

from analytics.arrays import FloatArray, Mask
from analytics.errors import CoreError

N_AGENTS_OMEGA = 3
N_TASKS_OMEGA = 15
N_TRIALS_OMEGA = 3


def finite_variances(
    means: FloatArray, trial_variances: FloatArray | None = None, n_trials: FloatArray | None = None
) -> FloatArray:
    """SE² of all pair differences of means over the common tasks, these tasks given, (n_agents, n_agents).

    Σ(s²_a/R_a + s²_b/R_b)/N² where both have R ≥ 2 on all common tasks; else, from 2 common tasks on, s_d²/N,
    which is also the variance for the target `domain`. NaN without either, and on the diagonal.
    means, trial_variances, n_trials: (n_agents, n_tasks); NaN where missing; s² and R both or neither.
    """
    means, variances = checked_cells(means, trial_variances, n_trials, None)
    valid = (~np.isnan(means)).astype(np.float64)
    x = np.where(valid > 0, means, 0.0)
    n_common = valid @ valid.T
    sums, squares = x @ valid.T, x**2 @ valid.T
    n_single = np.isnan(variances) * valid @ valid.T
    repeated = (n_single + n_single.T == 0) & (n_common > 0)
    noise = np.where(np.isnan(variances), 0.0, variances) @ valid.T
    sum_squares = squares + squares.T - 2 * (x @ x.T)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.maximum(sum_squares - (sums - sums.T) ** 2 / n_common, 0.0)
        neyman = np.where(n_common > 1, centred / (n_common * (n_common - 1)), np.nan)
        se2 = np.where(repeated, (noise + noise.T) / n_common**2, neyman)
    np.fill_diagonal(se2, np.nan)
    return np.asarray(se2, dtype=np.float64)


def trial_variance_ratio(
    means: FloatArray,
    trial_variances: FloatArray | None,
    n_trials: FloatArray | None,
    *,
    one_trial: Mask | None = None,
) -> float | None:
    """ω̂ = Σs²_ij / Σ_i m_i·ȳ_i(1 − ȳ_i): the share of a score's binomial variance that is trial noise.

    m_i and ȳ_i are taken over the tasks on which agent i has a trial variance.

    Returns: None unless at least 3 agents have R ≥ 3 on at least 15 tasks, and where all of them score 0 or
        1.
    """
    means, variances = checked_cells(means, trial_variances, n_trials, one_trial)
    if trial_variances is None or n_trials is None:
        return None
    known = ~np.isnan(variances)
    often = _repeat_often(known, n_trials)
    if np.count_nonzero(often) < N_AGENTS_OMEGA:
        return None
    known, m = known[often], known[often].sum(axis=1)
    rates = np.sum(np.where(known, means[often], 0.0), axis=1) / m
    binomial = float(np.sum(m * rates * (1 - rates)))
    return float(np.sum(trial_variances[often][known])) / binomial if binomial > 0 else None


def n_repeat_often(
    means: FloatArray,
    trial_variances: FloatArray | None,
    n_trials: FloatArray | None,
    *,
    one_trial: Mask | None = None,
) -> int:
    """Count the agents that ω̂ comes from: with R ≥ 3 on at least 15 tasks."""
    _, variances = checked_cells(means, trial_variances, n_trials, one_trial)
    return 0 if n_trials is None else int(np.count_nonzero(_repeat_often(~np.isnan(variances), n_trials)))


def _repeat_often(known: Mask, n_trials: FloatArray) -> Mask:
    often = known & (n_trials >= N_TRIALS_OMEGA - 1e-9)
    return np.asarray(np.count_nonzero(often, axis=1) >= N_TASKS_OMEGA, dtype=np.bool_)


def checked_cells(
    means: FloatArray, trial_variances: FloatArray | None, n_trials: FloatArray | None, one_trial: Mask | None
) -> tuple[FloatArray, FloatArray]:
    """Means, and s²_ij/R_ij with NaN where the cell is missing or R counts as 1."""
    if means.ndim != 2:
        raise CoreError(f"means of shape {means.shape} are not agents by tasks", code="shapes_differ")
    n_agents = len(means)
    mask = np.zeros(n_agents, dtype=np.bool_) if one_trial is None else np.asarray(one_trial)
    if mask.dtype != np.bool_ or mask.shape != (n_agents,):
        raise CoreError(f"one_trial: {mask.dtype} {mask.shape}, not bool ({n_agents},)", code="shapes_differ")
    if trial_variances is None and n_trials is None:
        return means, np.full(means.shape, np.nan)
    if trial_variances is None or n_trials is None:
        raise CoreError("trial variances and numbers of trials are given together", code="shapes_differ")
    if not trial_variances.shape == n_trials.shape == means.shape:
        raise CoreError(
            f"trial variances {trial_variances.shape} and numbers of trials {n_trials.shape} "
            f"for means {means.shape}",
            code="shapes_differ",
        )
    return means, np.where(mask[:, None] | np.isnan(means), np.nan, trial_variances / n_trials)
