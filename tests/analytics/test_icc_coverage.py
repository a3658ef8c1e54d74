"""Coverage of the jackknife interval of the ICC for pass/fail agents at the published parameters.

Each agent is beta-binomial with the accuracy and ICC of a row of the tables: rates from Beta(μκ, (1 − μ)κ),
κ = (1 − ICC)/ICC, so that σ_b² + σ_w² = μ(1 − μ); 64 trials of each task. Replicates whose interval is marked
unreliable are counted apart.
"""

import numpy as np
import pytest

from analytics.trials.icc import IccRefused, intraclass_correlation, task_trials_of_sums

N_REPLICATES = 2000
N_TRIALS = 64
LEAST = 0.92

# Tables 2 and 3 of *Intraclass correlation for agentic evaluation*: tasks, accuracy, ICC.
PARAMETERS = {
    "GAIA 1 GPT-4o": (53, 0.227, 0.561),
    "GAIA 1 GPT-5": (53, 0.623, 0.774),
    "GAIA 2 GPT-4o": (86, 0.232, 0.662),
    "GAIA 2 GPT-5": (86, 0.542, 0.745),
    "GAIA 3 GPT-4o": (26, 0.066, 0.304),
    "GAIA 3 GPT-5": (26, 0.442, 0.629),
    "FRAMES GPT-5 search": (50, 0.7731, 0.496),
    "FRAMES GPT-4o search": (50, 0.6354, 0.735),
    "FRAMES GPT-4o": (50, 0.3816, 0.712),
    "FRAMES Claude 4.5 Haiku": (50, 0.6837, 0.655),
    "FRAMES Claude 4.5 Sonnet": (50, 0.6644, 0.689),
    "FRAMES Gemini 2.5 Pro": (50, 0.6234, 0.713),
    "FRAMES Qwen3": (50, 0.3422, 0.617),
    "FRAMES DeepSeek": (50, 0.4475, 0.663),
}


def replicates(name):
    """Yield (marked unreliable, covered) of every replicate that has an interval."""
    n_tasks, mean, icc = PARAMETERS[name]
    rng = np.random.default_rng([2026, list(PARAMETERS).index(name)])
    kappa = (1 - icc) / icc
    for _ in range(N_REPLICATES):
        passed = rng.binomial(N_TRIALS, rng.beta(mean * kappa, (1 - mean) * kappa, n_tasks))
        try:
            found = intraclass_correlation(task_trials_of_sums(np.full(n_tasks, N_TRIALS), passed, passed))
        except IccRefused:
            continue
        if found.interval is not None:
            yield bool(found.unreliable), found.interval.lower <= icc <= found.interval.upper


@pytest.mark.slow
@pytest.mark.parametrize("name", PARAMETERS)
def test_coverage_at_the_published_parameters(name):
    found = np.array(list(replicates(name)))
    reliable = found[~found[:, 0], 1]
    share = "none reliable" if not reliable.size else f"{reliable.mean():.3f} of {reliable.size} reliable"
    print(f"{name:26} ICC {PARAMETERS[name][2]:.3f}  {share}, {found[:, 1].mean():.3f} of all {len(found)}")
    if reliable.size < 100:
        assert name == "GAIA 3 GPT-4o"
    else:
        assert reliable.mean() >= LEAST
