"""Is one harness configuration better than another? Differences of R, D and C by a paired bootstrap.

Source: *Toward Meta-Harness Optimization*, §28.10.3. Davison & Hinkley, *Bootstrap Methods*, 1997, §4.4.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analytics.arrays import FloatArray
from analytics.differences.pairs import benjamini_hochberg
from analytics.errors import CoreError
from analytics.harness.gstudy import reliability_draws
from analytics.harness.quality import coverage_draws, discriminability_draws
from analytics.harness.tensor import HarnessInterval, ScoreTensor, percentile_interval
from analytics.resampling import resampled_counts

N_DRAWS = 2000
METHOD = "paired bootstrap over tasks; runs and models not resampled"
FIGURES: dict[str, Callable[[ScoreTensor, npt.ArrayLike], FloatArray]] = {
    "R": reliability_draws,
    "D": discriminability_draws,
    "C": coverage_draws,
}


@dataclass(frozen=True)
class Change:
    """Difference of one figure between two configurations.

    configuration: name of the second one; empty in `compare`.
    figure: {"R", "D", "C"}.
    first, second, difference: None where it cannot be said, with the reason in `note`.
    p_adjusted: by Benjamini-Hochberg over all figures and configurations of `compare_several`; None in
        `compare`.
    """

    configuration: str
    figure: str
    first: float | None
    second: float | None
    difference: float | None
    interval: HarnessInterval | None
    p_value: float | None
    p_adjusted: float | None = None
    note: str = ""


def compare(
    first: ScoreTensor, second: ScoreTensor, seed: int, n_draws: int = N_DRAWS
) -> tuple[Change, Change, Change]:
    """ΔR, ΔD and ΔC of two configurations, second minus first.

    first, second: the same models and tasks by name; runs may differ in number.
    seed, n_draws: of the bootstrap.
    Raises CoreError: when models or tasks differ, or there is one task.
    """
    for noun, a, b in (("models", first.models, second.models), ("tasks", first.tasks, second.tasks)):
        if a != b:
            odd = sorted(set(a) ^ set(b))[0]
            raise CoreError(
                f"a paired comparison needs the same {noun} in both; {odd!r} is only in one", code="harness"
            )
    if len(first.tasks) < 2:
        raise CoreError(
            "a paired comparison is not measured: one task (at least 2 are needed)", code="harness"
        )
    n_tasks = len(first.tasks)
    counts = np.vstack(
        [np.ones((1, n_tasks), int), resampled_counts(seed, "paired bootstrap", n_tasks, n_draws)]
    )
    r, d, c = (_change(figure, first, second, counts) for figure in FIGURES)
    return r, d, c


def compare_several(
    base: ScoreTensor, others: Mapping[str, ScoreTensor], seed: int, n_draws: int = N_DRAWS
) -> tuple[Change, ...]:
    """Compare every configuration with `base`, in name order, p-values adjusted over all of them.

    Raises CoreError: as `compare`.
    """
    changes = [
        replace(change, configuration=name)
        for name in sorted(others)
        for change in compare(base, others[name], seed, n_draws)
    ]
    tested = [change.p_value for change in changes if change.p_value is not None]
    adjusted = iter(benjamini_hochberg(tested).tolist())
    return tuple(
        change if change.p_value is None else replace(change, p_adjusted=next(adjusted)) for change in changes
    )


def _change(figure: str, first: ScoreTensor, second: ScoreTensor, counts: npt.NDArray[np.int64]) -> Change:
    try:
        a, b = (FIGURES[figure](tensor, counts) for tensor in (first, second))
        interval = percentile_interval((b - a)[1:], f"Δ{figure}", METHOD)
        if np.isnan(a[0] + b[0]):
            raise CoreError(f"{figure} cannot be said of both configurations", code="harness")
    except CoreError as refusal:
        return Change("", figure, None, None, None, None, None, note=str(refusal))
    differences = (b - a)[1:]
    below = 1 + int(np.count_nonzero(differences <= 0.0))
    above = 1 + int(np.count_nonzero(differences >= 0.0))
    p_value = min(1.0, 2.0 * min(below, above) / (differences.size + 1))
    return Change("", figure, float(a[0]), float(b[0]), float(b[0] - a[0]), interval, p_value)
