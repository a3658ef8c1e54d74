"""Outcomes of a crossed study of items, prompts, judges, temperatures and replicates."""

import itertools

import numpy as np


def factorial(
    seed=0, n_items=12, n_prompts=5, n_judges=3, n_temperatures=2, n_replicates=2, noise=None, n_categories=4
):
    """Outcomes of a crossed design with every effect present; `noise` by temperature."""
    rng = np.random.default_rng(seed)
    sizes = (n_items, n_prompts, n_judges, n_temperatures, n_replicates)
    i, v, m, h, _ = np.array(list(itertools.product(*(range(n) for n in sizes)))).T
    y = 3.0 + rng.normal(0, 0.8, n_items)[i] + rng.normal(0, 0.4, n_prompts)[v]
    y += rng.normal(0, 0.5, n_categories)[i % n_categories]
    y += 0.3 * (m - (n_judges - 1) / 2) + 0.1 * h
    y += rng.normal(0, 0.3, (n_items, n_prompts))[i, v] + rng.normal(0, 0.3, (n_items, n_judges))[i, m]
    y += rng.normal(0, 0.2, (n_prompts, n_judges))[v, m] + rng.normal(0, 0.2, (n_items, n_temperatures))[i, h]
    y += rng.normal(0, 0.2, (n_prompts, n_temperatures))[v, h]
    y += rng.normal(0, 0.25, sizes[:4])[i, v, m, h]
    y += rng.normal(0, 1, i.size) * np.array(noise or [0.5] * n_temperatures)[h]
    return {"item": i, "prompt": v, "judge": m, "temperature": h, "score": y, "category": i % n_categories}


def kept(columns, rows):
    return {name: values[rows] for name, values in columns.items()}
