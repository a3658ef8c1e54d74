"""Coverage of the jackknife interval of the ICC for pass/fail agents at the published parameters.

Each agent is beta-binomial with the accuracy and ICC of a row of the tables: rates from Beta(μκ, (1 − μ)κ),
κ = (1 − ICC)/ICC, so that σ_b² + σ_w² = μ(1 − μ); 64 trials of each task. Every replicate with an interval
counts; where the truth expects under five passes, a·μ < 5, it is known to be too short.
"""

import numpy as np
import pytest

from analytics.trials import IccRefused, intraclass_correlation
from analytics.trials.icc import TaskTrials

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


def covered(name):
    """Whether the interval covers, of every replicate that has one."""
    n_tasks, mean, icc = PARAMETERS[name]
    rng = np.random.default_rng([2026, list(PARAMETERS).index(name)])
    kappa = (1 - icc) / icc
    n_trials = np.full(n_tasks, N_TRIALS)
    for _ in range(N_REPLICATES):
        rates = rng.binomial(N_TRIALS, rng.beta(mean * kappa, (1 - mean) * kappa, n_tasks)) / N_TRIALS
        try:
            result = intraclass_correlation(TaskTrials(n_trials, rates, N_TRIALS * rates * (1 - rates), True))
        except IccRefused:
            continue
        if result.interval is not None:
            yield result.interval.lower <= icc <= result.interval.upper


@pytest.mark.slow
@pytest.mark.parametrize("name", PARAMETERS)
def test_coverage_at_the_published_parameters(name):
    n_tasks, mean, icc = PARAMETERS[name]
    found = np.array(list(covered(name)))
    print(f"{name:26} ICC {icc:.3f}  {found.mean():.3f} of {len(found)}")
    if n_tasks * min(mean, 1 - mean) >= 5:
        assert found.mean() >= LEAST
    else:
        assert (name, found.mean() < LEAST) == ("GAIA 3 GPT-4o", True)
