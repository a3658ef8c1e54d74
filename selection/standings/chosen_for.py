"""Agents that were asked for tasks chosen for them, batch by batch: ranked by their estimate alone.

Model
-----
Such an agent is placed on no task set: not on S, whatever of it was among its tasks, nor on all tasks before
it ran them. Once its assignment has come to its end, its score on all tasks is ŷ of `selection.adaptive`
with the interval of the look, ŷ ± q·c_t·se_t. For comparisons its error is s_cal = c_t·se_t, with one
χ²_{n−1} for all agents of one study, n its past agents.

Not done here
-------------
Nothing is estimated: the steps are `selection.adaptive_steps`'s. Such agents feed no pass rate, no
calibration and no monitor.

Source
------
As in `selection.adaptive` and `analytics.differences.finite_ranks`.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from analytics.record import Record
from selection.given import Adaptive
from selection.standings.full_scores import BY_SCAFFOLD, Estimated
from selection.standings.terms import CHOSEN_TASKS


def marked(record: Record, adaptive: Mapping[str, Adaptive]) -> Record:
    """Say of these agents why they are placed on no task set; not of those that ran all tasks.

    Parameters
    ----------
    record : Record
    adaptive : mapping of str to Adaptive
    """
    if not adaptive:
        return record
    both = zip(record.about, record.ran_all.tolist(), strict=True)
    about = tuple(
        one if ran_all or one.name not in adaptive else replace(one, chosen_for=adaptive[one.name].reason)
        for one, ran_all in both
    )
    return replace(record, about=about)


def estimates(record: Record, adaptive: Mapping[str, Adaptive]) -> dict[int, Estimated]:
    """Return the full scores of those that have come to the end, by position.

    Parameters
    ----------
    record : Record
        As `marked` gives it.
    adaptive : mapping of str to Adaptive
    """
    studies = sorted({one.study for one in adaptive.values()})
    found = {}
    for i, about in enumerate(record.about):
        one = adaptive.get(about.name)
        if one is None or one.se is None or not about.chosen_for or _is_barred(record, i):
            continue
        found[i] = _estimated(one, BY_SCAFFOLD + 1 + studies.index(one.study))
    return found


def is_chosen_for(record: Record) -> np.ndarray:
    """Agents that `marked` has marked, shape (n_agents,)."""
    return np.array([bool(one.chosen_for) for one in record.about], dtype=np.bool_)


def _is_barred(record: Record, i: int) -> bool:
    """Whether more keeps it from a rank: it took outcomes back, or ran under another condition."""
    return bool(record.about[i].withheld or (record.condition and record.condition[i]))


def _estimated(one: Adaptive, calibration: int) -> Estimated:
    assert one.se is not None
    return Estimated(
        score=one.score,
        lower=one.lower,
        upper=one.upper,
        se2=one.se**2,
        df=float(one.n - 1),
        calibration=calibration,
        source=CHOSEN_TASKS,
        note=f"from {one.k} tasks, by replays of {one.n} past agents",
    )
