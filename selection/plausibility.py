"""Whether reported outcomes of an agent are plausible, given those of verified agents.

The theory is in ``selection/README.md``, “Plausible outcomes”. Source: Wilson, *JASA* 22 (1927) 209-212.
Poisson-binomial by convolution: Chen & Liu, *Statistica Sinica* 7 (1997) 875-892.
"""

from dataclasses import dataclass, replace

import numpy as np

from analytics.arrays import DECIMALS, FloatArray, IndexArray, Mask
from analytics.differences.estimates import wilson
from analytics.text import counted
from selection.rasch import ability, fit

MIN_VERIFIED = 5
SHARED = 0.9
IMPROBABLE = 1e-4
MIN_EXPECTED_PASSES = 0.1  # expected passes


@dataclass(frozen=True, eq=False)
class Reference:
    """What verified agents did.

    means: (n_agents, n_tasks); mean outcomes, 0 to 1; NaN where missing.
    difficulties: (n_tasks,); logits; NaN where fewer than five verified agents have an outcome.
    is_pass_fail: no outcome of theirs lies between 0 and 1.
    """

    means: FloatArray
    difficulties: FloatArray
    is_pass_fail: bool

    def on(self, tasks: IndexArray) -> "Reference":
        """Return the same on some of the tasks."""
        return replace(self, means=self.means[:, tasks], difficulties=self.difficulties[tasks])


def reference(means: FloatArray, *, is_pass_fail: bool) -> Reference:
    """Fit the difficulties of tasks to verified agents.

    means: (n_agents, n_tasks).
    """
    difficulties = np.full(means.shape[1], np.nan)
    ran = np.count_nonzero(~np.isnan(means), axis=0) >= MIN_VERIFIED
    agents = ~np.isnan(means[:, ran]).all(axis=1)
    if agents.any():
        difficulties[ran] = fit(means[np.ix_(agents, ran)]).difficulties
    return Reference(means, difficulties, is_pass_fail)


def implausible(
    verified: Reference,
    means: FloatArray,
    n_trials: FloatArray,
    *,
    n_graded: int,
    ranking: Mask | None = None,
    n_ran: int | None = None,
    is_part: bool = False,
) -> str:
    """Say what is implausible of an agent; empty where nothing is.

    means, n_trials: (n_tasks,); of what is judged of it; NaN where missing.
    n_graded: trials of it strictly between 0 and 1.
    ranking: (n_tasks,); the ranking tasks; None: there are none.
    n_ran: tasks that it ran, or where what is judged `is_part` of its run, those of this part; None: those
        judged.
    """
    if n_graded and verified.is_pass_fail and len(verified.means):
        lie = "lies" if n_graded == 1 else "lie"
        return f"{n_graded:,} of its outcomes {lie} between 0 and 1; those of verified agents are all 0 or 1"
    if len(verified.means) < MIN_VERIFIED or np.isnan(means).all():
        return ""
    n = int(np.count_nonzero(~np.isnan(means)))
    first, last = ("these", "tasks") if is_part else ("the", "tasks that it ran")
    on_all = f"{first} {n:,} {last}" if n_ran in (None, n) else f"{n:,} of {first} {n_ran:,} {last}"
    ahead = _ahead(verified, means, on_all)
    if ranking is not None and not ahead:
        n_ranking = int(np.count_nonzero(ranking & ~np.isnan(means)))
        ahead = _ahead(verified, np.where(ranking, means, np.nan), counted(n_ranking, "ranking task"))
    return ahead or _passed_alone(verified, means, n_trials)


def upper_tail(probabilities: FloatArray, n_passed: int) -> float:
    """P(Σ Bernoulli(p_j) ≥ n_passed), to 1e-15."""
    fewer = np.zeros(n_passed)  # P(sum = 0 … n_passed − 1)
    fewer[:1] = 1.0
    for p in probabilities:
        fewer[1:] = fewer[1:] * (1.0 - p) + fewer[:-1] * p
        fewer[:1] *= 1.0 - p
    return float(max(0.0, 1.0 - fewer.sum()))


def _ahead(verified: Reference, means: FloatArray, judged: str) -> str:
    ran = ~np.isnan(means)
    n, others = int(np.count_nonzero(ran)), verified.means[:, ran]
    comparable = np.count_nonzero(~np.isnan(others), axis=1) >= SHARED * n
    if not n or np.count_nonzero(comparable) < MIN_VERIFIED:
        return ""
    mean, best = float(np.mean(means[ran])), float(np.nanmean(others[comparable], axis=1).max())
    lowest = wilson(mean, n, 0.975)[0]
    if round(lowest - best, DECIMALS) <= 0:
        return ""
    return (
        f"it scores {mean:.1%} on {judged} (95% interval from {lowest:.1%}); the best verified "
        f"agent scores {best:.1%} there"
    )


def _passed_alone(verified: Reference, means: FloatArray, n_trials: FloatArray) -> str:
    ran = ~np.isnan(means) & ~np.isnan(verified.difficulties)
    never: Mask = ran & ~(verified.means > 0.0).any(axis=0)
    n_passed = int(np.count_nonzero(means[never] > 0.0))
    if not n_passed:
        return ""
    distance = ability(means[ran], verified.difficulties[ran]) - verified.difficulties[never]
    passing = 1.0 - (1.0 + np.exp(distance)) ** -n_trials[never]
    if upper_tail(passing, n_passed) >= IMPROBABLE:
        return ""
    passes = f"it passes {counted(n_passed, 'task')} that no verified agent passed"
    predicted = (
        f"{passing.sum():.1f}"
        if passing.sum() >= MIN_EXPECTED_PASSES
        else f"fewer than {MIN_EXPECTED_PASSES}"
    )
    return f"{passes}; its other results predict {predicted}"
