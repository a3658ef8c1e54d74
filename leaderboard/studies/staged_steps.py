"""One step of a walk by its study: one ability is estimated, so that a request may take it.

What the core is asked for is imported where it is used: intake names this module.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from leaderboard.studies.models import StagedStudy
from selection.staged.text import DRAWN as DRAWN
from selection.staged.text import STOPPED as STOPPED
from selection.staged.text import WalkState as WalkState

if TYPE_CHECKING:
    from selection.staged.walks import Fit

N_KEPT = 256  # studies that a process holds; a board reads those of all agents that were asked in batches


def step(
    study: StagedStudy,
    *,
    tasks_run: Sequence[str],
    means: Mapping[str, float | None],
    active: Collection[str],
    agent: str,
    seed: int = 0,
) -> WalkState:
    """Tell what an agent runs next; see `selection.staged.walks.step`.

    `means` are mean outcomes by name of the tasks that it has delivered whole; None: a failure of the
    harness. `agent` and `seed` decide what is drawn.
    """
    from selection.staged import walks

    names, fit = study.result["tasks"], _fit(study.pk, study.created_at)
    place = {name: j for j, name in enumerate(names)}
    there = np.array([name in means for name in names])
    is_active = np.array([name in active for name in names])
    next_step = walks.step(
        fit,
        assigned_tasks=[place[name] for name in tasks_run],
        outcomes=np.array([means.get(name) for name in names], dtype=np.float64),
        delivered=there,
        active=is_active,
        seed=seed,
        agent=agent,
    )
    known = next_step.estimate
    return WalkState(
        stage=str(next_step.stage),
        waiting=tuple(names[j] for j in next_step.waiting),
        batch=tuple(names[j] for j in next_step.batch),
        n_run=sum(bool(there[place[name]] and is_active[place[name]]) for name in tasks_run),
        n_tasks=int(np.count_nonzero(is_active)),
        podium=fit.podium,
        best=fit.best,
        reason=next_step.reason,
        score=known.score if known else None,
        lower=known.lower if known else None,
        upper=known.upper if known else None,
        se=known.se if known else None,
    )


def degrees_of(study: StagedStudy) -> int:
    return int(study.result["fit"]["scale"]["degrees"])


@lru_cache(maxsize=N_KEPT)
def _fit(pk: int, created_at: datetime) -> "Fit":
    """Read a study once: it never changes, but another database may have another one of its number."""
    from selection.staged.walks import Fit

    return Fit.from_plain(StagedStudy.objects.get(pk=pk, created_at=created_at).result["fit"])
